"""Cases of runs: every algorithm once at a small dimension, with a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator

from snapshot.case import AMP, LEARNERS, Case, log_cosh, run, sequences

import solvable as sv

Index, Network, Sensing = sv.MultiIndex, sv.QuadraticNetwork, sv.MatrixSensing
Contamination, losses, Lasso = sv.Contamination, sv.losses, sv.Lasso


def index_runs() -> Iterator[Case]:
    """Runs of index models at small dimension."""
    one = {"abs": ("abs(z)", 2.0), "sign": ("sign(z)", 2.0), "he3": ("he3(z)", 1.0), "window": ("abs(z) < 1", 4.0)}
    for name, (text, alpha) in one.items():
        yield run(f"{name}/amp", Index(text), AMP, alpha=alpha, d=200)
    for learner in ("bayes", "symmetric", "asymmetric"):
        yield run(f"abs/{learner}", Index("abs(z)"), LEARNERS[learner], alpha=2.0, d=200)
    yield run("abs/amp/below", Index("abs(z)"), AMP, alpha=0.3, d=100, seed=1)
    yield run("square-noise/amp", Index("z**2", noise=0.25), AMP, alpha=3.0, d=150)
    yield run("z-sparse/amp", Index("z", noise=0.01, prior="gauss-bernoulli:0.2"), AMP, alpha=0.8, d=200)
    yield run("sign-rademacher/amp", Index("sign(z)", prior="rademacher"), AMP, alpha=1.2, d=200)
    yield run("logit/amp", Index(sv.channels.Logit(2.0)), AMP, alpha=3.0, d=200)
    outliers = Index("z", noise=0.1, contamination=Contamination(0.3, slope=0.0, noise=5.0))
    yield run("outliers/amp", outliers, AMP, alpha=3.0, d=200)
    several = {"parity": ("sign(z1*z2)", 6.0), "product": ("z1*z2", 2.0), "committee": ("sign(z1) + sign(z2)", 4.0)}
    for name, (text, alpha) in several.items():
        yield run(f"{name}/amp", Index(text), AMP, alpha=alpha, d=150)
    for learner in ("bayes", "symmetric", "asymmetric"):
        yield run(f"parity/{learner}", Index("sign(z1*z2)"), LEARNERS[learner], alpha=6.0, d=100)
    yield run("product/spectral-start", Index("z1*z2", noise=0.1), sv.AMP(start="spectral"), alpha=2.0, d=100)
    yield run("staircase-3/amp", Index("z1**2 + sign(z1*z2*z3)"), AMP, alpha=4.0, d=100)
    yield run("polynomial/amp", Index("z1*z2 + 0.3*z1**3", noise=0.1), AMP, alpha=2.0, d=80)
    binary, logit, sparse = Index("sign(z)"), Index(sv.channels.Logit(1.0)), Index("z", 0.05, "gauss-bernoulli:0.2")
    risks = {
        "square": (outliers, losses.Square(), 0.1),
        "huber": (outliers, losses.Huber(1.0), 0.1),
        "absolute": (outliers, losses.Absolute(), 0.5),
        "tukey": (outliers, losses.Tukey(3.0), 0.3),
        "cosine": (outliers, losses.Cosine(1.0), 0.3),
        "logistic": (logit, losses.Logistic(), 0.1),
        "hinge": (binary, losses.Hinge(), 0.5),
        "function": (outliers, log_cosh, 0.2),
        "lasso": (sparse, losses.Square(), Lasso(0.1)),
        "huber-lasso": (sparse, losses.Huber(1.0), Lasso(0.1)),
    }
    for name, (model, loss, penalty) in risks.items():
        for solver in ("direct", "gamp"):
            yield run(f"erm-{name}/{solver}", model, sv.ERM(loss, penalty, solver=solver), alpha=3.0, d=120)
    yield run("erm-margin/direct", binary, sv.ERM(losses.Hinge(), 0.0), alpha=1.5, d=60)
    yield run("erm-least-norm/direct", outliers, sv.ERM(losses.Square(), 0.0), alpha=0.5, d=100)
    yield run("erm-basis-pursuit/direct", sparse, sv.ERM(losses.Square(), Lasso(0.0)), alpha=0.6, d=60)


def matrix_runs() -> Iterator[Case]:
    """Runs of networks, spectra and sequences at small dimension."""
    network, noisy = Network(rho=0.5), Network(rho=0.5, noise=0.25)
    gaussian = Network(rho=0.5, noise=0.25, features="gaussian")
    learners = {
        "amp": (noisy, AMP),
        "lazy": (noisy, sv.Lazy(0.1)),
        "lazy-zero": (noisy, sv.Lazy(0.0)),
        "nuclear": (noisy, sv.NuclearNorm(0.2)),
        "nuclear-zero": (network, sv.NuclearNorm(0.0)),
        "nuclear-network": (noisy, sv.NuclearNorm(0.2, solver="network")),
        "nuclear-width": (noisy, sv.NuclearNorm(0.2, width=5, solver="network")),
        "descent": (network, sv.GradientDescent(max_steps=2000)),
        "gaussian-amp": (gaussian, AMP),
        "gaussian-nuclear": (gaussian, sv.NuclearNorm(0.2)),
        "discrete-amp": (Sensing("discrete:-1,1", noise=0.1), AMP),
        "semicircle-lazy": (Sensing("semicircle", noise=0.1), sv.Lazy(0.1)),
        "power-law-nuclear": (Sensing(sv.spectra.PowerLaw(1.25, size=20), noise=0.1), sv.NuclearNorm(0.1)),
    }
    for name, (model, learner) in learners.items():
        yield run(f"network/{name}", model, learner, alpha=0.45, d=20)
    yield run("sequence/amp", sequences()["sequence"], AMP, alpha=0.6, d=16)
