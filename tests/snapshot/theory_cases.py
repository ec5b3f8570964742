"""Cases of theory: predictions, thresholds, diagnoses and optima of every model, with their regimes and their edges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from snapshot.case import (
    AMP,
    BAYES,
    LEARNERS,
    SYMMETRIC,
    Case,
    bump,
    case,
    log_cosh,
    optimum,
    predict,
    sequences,
    twisted,
)

import solvable as sv

Index, Network, Sensing = sv.MultiIndex, sv.QuadraticNetwork, sv.MatrixSensing
Contamination, losses, Lasso, Ridge = sv.Contamination, sv.losses, sv.Lasso, sv.Ridge
WEAK_PARITY = np.pi**2 / 4
ALGORITHMIC = 1.1284714354944252
"""The end of the hard phase of |z|, as `thresholds` gives it."""


def index_theory() -> Iterator[Case]:
    """One projection: closed forms and any targets, three levels of noise, every prior, named channels, mixtures."""
    alphas = [0.0, 1e-3, 0.5, 0.8, 1.0, 1.1, 1.5, 4.0, 300.0]
    few = [0.0, 0.3, 1.2, 5.0]
    closed = {"z": Index("z"), "abs": Index("abs(z)"), "square": Index("z**2"), "sign": Index("sign(z)")}
    named = {
        "z-noise": Index("z", noise=0.3),
        "probit": Index(sv.channels.Probit(noise=0.5)),
        "logit": Index(sv.channels.Logit(2.0)),
        "logit-flipped": Index(sv.channels.Logit(1.0), contamination=Contamination(0.1, slope=-1.0)),
        "sign-flipped": Index("sign(z)", contamination=Contamination(0.2, slope=-1.0)),
        "z-outliers": Index("z", noise=0.1, contamination=Contamination(0.3, slope=0.0, noise=5.0)),
        "z-rademacher": Index("z", noise=0.05, prior="rademacher"),
        "z-sparse": Index("z", prior="gauss-bernoulli:0.2"),
        "sign-rademacher": Index("sign(z)", prior="rademacher"),
        "abs-sparse": Index("abs(z)", prior="gauss-bernoulli:0.5"),
    }
    generic = {
        "relu": Index("relu(z)"),
        "he3": Index("he3(z)"),
        "he4": Index("he4(z)"),
        "hard": Index("z**2*exp(-z**2)"),
        "window": Index("where(abs(z) < 1, 1, 0)"),
        "function": Index(bump),
        "relu-sparse": Index("relu(z)", prior="gauss-bernoulli:0.2"),
    }
    noisy = {
        "abs-small-noise": Index("abs(z)", noise=1e-4),
        "square-noise": Index("z**2", noise=0.25),
        "relu-large-noise": Index("relu(z)", noise=4.0),
        "sign-noise": Index("sign(z)", noise=0.5, prior="rademacher"),
        "abs-outliers": Index("abs(z)", noise=0.1, contamination="0.2:0:2"),
    }
    # At alpha = 1 exactly, q of linear labels without noise reaches 1: q_hat and the free entropy there are rounding.
    off_the_edge = [alpha for alpha in alphas if alpha != 1.0]
    for name, model in closed.items():
        for learner in LEARNERS:
            on_the_edge = name == "z" and learner in ("bayes", "amp")
            yield predict(f"{name}/{learner}", model, LEARNERS[learner], alpha=off_the_edge if on_the_edge else alphas)
    edges = [1.0, ALGORITHMIC, 1.0625, 1.12847, 1.128473]
    yield predict("abs/bayes/at-thresholds", closed["abs"], BAYES, alpha=edges)
    yield predict("abs/amp/at-thresholds", closed["abs"], AMP, alpha=edges)
    for name, model in (named | generic | noisy).items():
        for learner in ("bayes", "amp"):
            yield predict(f"{name}/{learner}", model, LEARNERS[learner], alpha=few)
    for name in ("relu", "hard", "window", "square-noise", "probit"):
        for learner in ("symmetric", "asymmetric"):
            yield predict(f"{name}/{learner}", (named | generic | noisy)[name], LEARNERS[learner], alpha=few)


def several_theory() -> Iterator[Case]:
    """Two and three projections: parity, products, norms, committees, staircases, pieces, and any other target."""
    closed = {
        "parity": (Index("sign(z1*z2)"), [0.0, 1.0, WEAK_PARITY, 2.5, 6.0]),
        "parity-noise": (Index("sign(z1*z2)", noise=0.3), [1.0, 6.0]),
        "product": (Index("z1*z2"), [0.0, 0.5, 0.7, 1.5]),
        "product-noise": (Index("z1*z2", noise=0.1), [0.5, 1.5]),
        "norm": (Index("z1**2 + z2**2"), [0.5, 1.0, 1.2, 3.0]),
        "committee": (Index("sign(z1) + sign(z2)"), [0.0, 0.5, 3.0, 8.0]),
        "reduced": (Index("sign(z1 + z2)"), [0.5, 2.0]),
        "norm-3": (Index("z1**2 + z2**2 + z3**2"), [2.0]),
        "staircase-3": (Index("z1**2 + sign(z1*z2*z3)"), [0.3, 1.0, 1.5, WEAK_PARITY, 4.0]),
    }
    for name, (model, alpha) in closed.items():
        for learner in ("bayes", "amp"):
            yield predict(f"{name}/{learner}", model, LEARNERS[learner], alpha=alpha)
    for name, alpha in {"parity": [1.0, 4.0], "product": [0.5, 1.5], "norm": [0.8, 3.0], "norm-3": [4.0]}.items():
        for learner in ("symmetric", "asymmetric"):
            yield predict(f"{name}/{learner}", closed[name][0], LEARNERS[learner], alpha=alpha)
    generic = {
        "polynomial": (Index("z1*z2 + 0.3*z1**3"), [0.4]),
        "polynomial-noise": (Index("z1*z2 + 0.3*z1**3", noise=0.1), [0.4, 1.0]),
        "function-2": (Index(sv.Target(twisted, projections=2), noise=0.5), [1.0]),
        "pieces": (Index("where(z1 > 0, z2, 0)"), [0.7]),
        "parity-3": (Index("sign(z1*z2*z3)"), [0.0, 2.0]),
        "committee-3": (Index("sign(z1) + sign(z2) + sign(z3)"), [4.0]),
        "majority-3": (Index("sign(sign(z1) + sign(z2) + sign(z3))"), [0.5]),
        "generic-3": (Index("tanh(z1)*z2 + 0.5*z3**2", noise=0.5), [1.0]),
    }
    for name, (model, alpha) in generic.items():
        yield predict(f"{name}/amp", model, AMP, alpha=alpha)
    yield predict("polynomial/bayes", generic["polynomial"][0], BAYES, alpha=[0.4])
    yield predict("ellipse/symmetric", Index("z1**2 + 0.4*z2**2"), SYMMETRIC, alpha=[2.0])


def risk_theory() -> Iterator[Case]:
    """Empirical risk: every loss and penalty, binary, mixed and nonlinear labels, vanishing and negative strengths."""
    alphas = [1e-3, 0.5, 1.0, 3.0, 100.0]
    linear, clean, binary = Index("z", noise=0.1), Index("z"), Index("sign(z)")
    outliers = Index("z", noise=0.1, contamination=Contamination(0.3, slope=0.0, noise=5.0))
    sparse = Index("z", noise=0.05, prior="gauss-bernoulli:0.2")
    relu, logit = Index("relu(z)"), Index(sv.channels.Logit(1.0))
    learners = {
        "square": (losses.Square(), Ridge(0.1), linear, clean, outliers, relu, binary),
        "square-zero": (losses.Square(), Ridge(0.0), linear, clean),
        "square-negative": (losses.Square(), Ridge(-0.3), outliers),
        "huber": (losses.Huber(1.0), Ridge(0.1), linear, outliers),
        "huber-zero": (losses.Huber(1.0), Ridge(0.0), linear),
        "huber-relu": (losses.Huber(0.5), Ridge(0.2), relu),
        "absolute": (losses.Absolute(), Ridge(0.1), linear, outliers),
        "tukey": (losses.Tukey(3.0), Ridge(0.1), linear, outliers),
        "tukey-negative": (losses.Tukey(3.0), Ridge(-0.1), outliers),
        "cosine": (losses.Cosine(1.0), Ridge(0.1), outliers),
        "logistic": (losses.Logistic(), Ridge(0.1), binary, logit),
        "logistic-zero": (losses.Logistic(), Ridge(0.0), binary, logit),
        "hinge": (losses.Hinge(), Ridge(0.1), binary),
        "hinge-zero": (losses.Hinge(), Ridge(0.0), binary),
        "function": (log_cosh, Ridge(0.2), linear),
        "square-lasso": (losses.Square(), Lasso(0.1), sparse, Index("z", prior="rademacher")),
        "square-lasso-zero": (losses.Square(), Lasso(0.0), sparse),
        "huber-lasso": (losses.Huber(1.0), Lasso(0.1), sparse),
        "logistic-lasso": (losses.Logistic(), Lasso(0.1), logit),
    }
    names = {id(linear): "linear", id(clean): "clean", id(binary): "sign", id(outliers): "outliers"}
    names |= {id(sparse): "sparse", id(relu): "relu", id(logit): "logit"}
    for name, (loss, penalty, *models) in learners.items():
        for model in models:
            yield predict(f"erm-{name}/{names.get(id(model), 'signs')}", model, sv.ERM(loss, penalty), alpha=alphas)


def matrix_theory() -> Iterator[Case]:
    """Networks, spectra and sequences: with and without noise, at recovery, and with penalties and limited widths."""
    alphas = [0.0, 1e-3, 0.1, 0.25, 0.375, 0.5, 2.0]
    few = [0.05, 0.2, 0.45]
    networks = {
        "network": Network(rho=0.5),
        "network-noise": Network(rho=0.5, noise=0.25),
        "network-narrow": Network(rho=0.05, noise=1e-3),
        "network-wide": Network(rho=3.0, noise=5.0),
    }
    sensing = {
        "discrete": Sensing("discrete:-1,1"),
        "three-atoms": Sensing("discrete:-1,0,1@0.1,0.8,0.1", noise=0.1),
        "semicircle": Sensing(sv.spectra.Semicircle(1.0, 0.5), noise=0.1),
        "marchenko-pastur": Sensing(sv.spectra.MarchenkoPastur(0.5), noise=0.25),
        "power-law": Sensing(sv.spectra.PowerLaw(1.25, size=60), noise=0.1),
        "density": Sensing(sv.spectra.Density(lambda x: x * (2 - x), 0.0, 2.0, atoms={0.0: 0.3}), noise=0.1),
    }
    penalised = {"zero": sv.NuclearNorm(0.0), "some": sv.NuclearNorm(0.2), "narrow": sv.NuclearNorm(0.1, width=0.3)}
    for name, model in networks.items():
        yield predict(f"{name}/bayes", model, BAYES, alpha=alphas)
        for kind, learner in penalised.items():
            yield predict(f"{name}/nuclear-{kind}", model, learner, alpha=few)
        for penalty in (0.0, 0.3):
            yield predict(f"{name}/lazy-{penalty:g}", model, sv.Lazy(penalty), alpha=alphas)
    yield predict("network/amp", networks["network"], AMP, alpha=alphas)
    for runs in (1, 4):
        yield predict(f"network/descent-{runs}", networks["network"], sv.GradientDescent(runs=runs), alpha=few)
    yield predict("network-noise/descent", networks["network-noise"], sv.GradientDescent(), alpha=few)
    for name, model in sensing.items():
        yield predict(f"{name}/bayes", model, BAYES, alpha=few)
        yield predict(f"{name}/lazy", model, sv.Lazy(0.1), alpha=few)
        if name != "density":  # takes long to compile
            yield predict(f"{name}/nuclear", model, penalised["some"], alpha=few)
    yield predict("three-atoms/amp", sensing["three-atoms"], AMP, alpha=few)
    yield predict("power-law/nuclear-width", sensing["power-law"], sv.NuclearNorm(0.05, width=6), alpha=few)
    yield predict("marchenko-pastur/descent", sensing["marchenko-pastur"], sv.GradientDescent(), alpha=few)
    for name, model in sequences().items():
        yield predict(f"{name}/bayes", model, BAYES, alpha=alphas)
    yield predict("sequence/amp", sequences()["sequence"], AMP, alpha=alphas)


def thresholds() -> Iterator[Case]:
    """Of models, and of pairs that have their own."""
    one = ["z", "abs(z)", "z**2", "sign(z)", "he3(z)", "z**2*exp(-z**2)", "where(abs(z) < 1, 1, 0)"]
    several = ["sign(z1*z2)", "z1**2 + sign(z1*z2*z3)"]
    models = {text: Index(text) for text in (*one, *several)} | {
        "z**2, noise": Index("z**2", noise=0.25),
        "z, sparse": Index("z", prior="gauss-bernoulli:0.2"),
        "z, rademacher": Index("z", noise=0.05, prior="rademacher"),
        "relu, sparse": Index("relu(z)", prior="gauss-bernoulli:0.2"),
        "sign, flipped": Index("sign(z)", contamination="0.2:-1:0"),
        "network": Network(rho=0.5),
        "network, narrow": Network(rho=0.05),
        "network, noise": Network(rho=0.3, noise=0.5),
        "network, wide": Network(rho=2.0, noise=0.1),
        "discrete": Sensing("discrete:-1,1"),
        "three atoms": Sensing("discrete:-1,0,1@0.1,0.8,0.1"),
        "semicircle": Sensing("semicircle", noise=0.2),
        **sequences(),
    }
    for name, model in models.items():
        yield case("thresholds", name, model)
    margin, sparse = sv.ERM(losses.Logistic(), Ridge(0.0)), sv.ERM(losses.Square(), Lasso(0.1))
    yield case("thresholds", "erm/logit", Index(sv.channels.Logit(1.0)), margin)
    yield case("thresholds", "erm/sign", Index("sign(z)"), sv.ERM(losses.Hinge(), Ridge(0.0)))
    yield case("thresholds", "erm/sparse", Index("z", prior="gauss-bernoulli:0.2"), sparse)


def diagnoses() -> Iterator[Case]:
    """Trivial, easy and hard targets of one to three projections."""
    one = ["z", "abs(z)", "relu(z)", "he4(z)", "z**2*exp(-z**2)", "sin(3*z)**2", "where(abs(z) < 1, 1, 0)"]
    two = ["sign(z1*z2)", "z1*z2", "z1 + z1*z2", "z1**2 + z2**2", "z1*z2 + 0.3*z1**3", "max(z1, z2)"]
    three = ["sign(z1*z2*z3)", "z1**2 + sign(z1*z2*z3)"]
    for text in (*one, *two, *three):
        yield case("diagnose", text, text)
    yield case("diagnose", "abs(z), noise", "abs(z)", noise=0.3)
    yield case("diagnose", "probit", sv.channels.Probit(noise=0.5))
    yield case("diagnose", "function", bump)


def optima() -> Iterator[Case]:
    """The best hyper-parameters, with the bound that none can beat."""
    outliers = Index("z", noise=0.1, contamination=Contamination(0.3, slope=0.0, noise=5.0))
    ridge, huber = sv.ERM(losses.Square(), Ridge(0.1)), sv.ERM(losses.Huber(1.0), Ridge(0.1))
    yield optimum("square", Index("z", noise=0.1), ridge, alpha=2.0)
    yield optimum("square-negative", outliers, ridge, metric="estimation_error", alpha=5.0)
    yield optimum("huber-both", outliers, huber, over=("scale", "penalty"), alpha=10.0)
    yield optimum("lazy", Network(rho=0.5, noise=0.25), sv.Lazy(0.1), alpha=0.4)
    yield optimum("nuclear", Network(rho=0.5, noise=0.25), sv.NuclearNorm(0.1), alpha=0.4)
