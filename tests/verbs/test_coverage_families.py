"""Stated uncertainties are honest, in the low-rank, feature, attention and dynamics families.

As `test_coverage.py` for the index and matrix families, against the independent equations of `reference/apart.py` or
more points. Measured at seed 0, as numbers, covered share and median ratio (a dash: ten or fewer are above rounding):

| pair | measured |
|---|---|
| spiked matrix | 200, 99 %, - |
| spiked tensor | 114, 100 %, - |
| spiked covariance | 9, 100 %, - |
| principal component | 202, 100 %, - |
| matrix and tensor: Bayes and AMP, likelihood, curriculum | 400 each, 100 %, - |
| machine; its ascent | 80, 100 %, -; 38, 100 %, 0.21 |
| wide teacher, where its uncertainty exceeds that of the table | 18, 100 %, 0.11 |
| wide network | 100, 100 %, - |
| averaged descent | 95, 100 %, - |
| random features | 200, 100 %, - |
| one step | 80, 97.5 %, - |
| power law | 72, 100 %, - |
| attention, softmax | 100, 100 %, - |
| attention, hardmax | 24, 100 %, 0.026 |
| one layer | 48, 100 %, 0.0041 |
| untied layer; sequence | 4, 100 %; 2, 100 % |
| one pass; a look ahead; twice | 8 each, 100 %, - |
| batch | 60, 100 %, 0.19 |
| lazy | 400, 100 %, - |
| kernel on an index model | 300, 100 %, 0.033 |
| student of a wide teacher, where its uncertainty exceeds that of the table | 18, 100 %, 0.13 |
| random features, logistic | 120, 100 %, - |
| one step, exact bulk | 96, 100 %, - |
| layer by layer | 120, 100 %, - |

"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from reference import apart, finer
from reference import lowrank_equations as spikes
from reference import random_feature_ridge as power
from reference.features_equations import random_feature_ridge, spiked_ridge
from reference.linear_descent import linear_descent
from scipy.special import erf
from true_errors import COVERED, Draw, Point, assert_honest, judged, log_uniform

import solvable as sv
from solvable.models.depth.hierarchical import labels
from solvable.models.depth.hierarchical import theory as layers
from solvable.models.features.one_step import bulk, grid, logistic
from solvable.models.features.two_layer import averages

PRIORS = {"gaussian": spikes.GAUSSIAN, "rademacher": spikes.RADEMACHER, "gauss-bernoulli:0.3": spikes.sparse(0.3)}
SMOOTH: dict[str, Callable] = {"tanh(z)": np.tanh, "sin(z)": np.sin, "z**3 - 3*z + z": lambda z: z**3 - 2 * z}


def pick(rng, options: Any) -> Any:
    return options[rng.integers(len(options))]


def either(rng) -> Any:
    return pick(rng, (sv.BayesOptimal(), sv.AMP()))


def chance(rng, draw: Callable[[], float], share: float = 0.6) -> float:
    """A number, or zero."""
    return draw() if rng.random() < share else 0.0


def spiked_matrix(rng) -> Point:
    prior = pick(rng, list(PRIORS))
    model = sv.SpikedMatrix(float(rng.uniform(1.02, 3)), prior)
    return model, either(rng), {}, apart.spike(PRIORS[prior], 2)


def spiked_tensor(rng) -> Point:
    prior, order = pick(rng, list(PRIORS)), int(rng.integers(2, 5))
    model = sv.SpikedTensor(order, float(log_uniform(rng, 0.02, 0.6 if order == 2 else 0.2)), prior)
    return model, either(rng), {}, apart.spike(PRIORS[prior], order)


def spiked_covariance(rng) -> Point:
    prior, latent = pick(rng, list(PRIORS)), pick(rng, list(PRIORS))
    model = sv.SpikedCovariance(float(log_uniform(rng, 0.3, 4)), prior, latent)
    return model, either(rng), {"alpha": log_uniform(rng, 0.3, 20, 2)}, apart.covariance(PRIORS[prior], PRIORS[latent])


def principal(rng) -> Point:
    if rng.random() < 0.5:
        return sv.SpikedMatrix(float(rng.uniform(0.5, 4))), sv.Spectral(), {}, apart.principal_component
    if rng.random() < 0.2:  # of order three the unfolding tells nothing at any noise
        model = sv.SpikedTensor(3, float(log_uniform(rng, 0.02, 2)))
        return model, sv.Spectral(), {}, lambda *_: {"squared_overlap": 0.0, "estimation_error": 1.0}
    model = sv.SpikedCovariance(float(log_uniform(rng, 0.3, 4)))
    return model, sv.Spectral(), {"alpha": log_uniform(rng, 0.1, 20, 4)}, apart.principal_component


def matrix_tensor(learner: Any, truth: Callable) -> Draw:
    def draw(rng) -> Point:
        noises = (float(log_uniform(rng, 0.05, most)) for most in (1.5, 1.0))
        ratios = tuple(map(float, log_uniform(rng, 0.3, 3, 4))) if rng.random() < 0.5 else (1.0, 1.0, 1.0, 1.0)
        return sv.MatrixTensor(*noises, ratios), learner(rng), {}, truth

    return draw


def machine(rng) -> Point:
    model = sv.SpikedCovariance(float(log_uniform(rng, 0.5, 5)), latent=pick(rng, ("rademacher", "gaussian")))
    return model, sv.RBM(), {"alpha": log_uniform(rng, 1.5, 20, 2)}, apart.machine


def ascent(rng) -> Point:
    start = float(rng.uniform(0.05, 0.4))
    learner = sv.RBMAscent(
        "gaussian",
        steps=int(rng.integers(1, 6)),
        learning_rate=float(rng.uniform(0.02, 0.1)),
        start=start,
        self_overlap=float(rng.uniform(start**2 + 0.1, 0.6)),
    )
    return sv.SpikedCovariance(float(rng.uniform(0.5, 3))), learner, {"alpha": rng.uniform(1.2, 4, 1)}, apart.ascent


def wide(rng) -> Point:
    name = pick(rng, ("he3(z)", "z + he3(z)/6", "sign(z)"))
    width, noise = pick(rng, (20, 200, math.inf)), float(log_uniform(rng, 0.02, 1))
    model = sv.WideTeacher(float(rng.uniform(0.7, 1.6)), width, name, noise)
    return model, sv.BayesOptimal(), {"alpha": log_uniform(rng, 1, 3000, 2)}, apart.wide_teacher(name)


def wide_network(rng) -> Point:
    model = sv.WideNetwork(
        float(log_uniform(rng, 0.2, 2)), pick(rng, ("relu", "z**2", "z + z**2")), float(log_uniform(rng, 0.05, 1))
    )
    return model, either(rng), {"alpha": log_uniform(rng, 0.02, 0.5, 4)}, apart.wide_network


def averaged(rng) -> Point:
    """On a quadratic network, on its matrix alone, on softmax attention."""
    learner, rho = sv.GradientDescent(runs=int(rng.integers(1, 5))), float(log_uniform(rng, 0.1, 1))
    sensing, attention = sv.MatrixSensing(f"marchenko-pastur:{rho}"), sv.AttentionIndexed(rho, int(rng.integers(2, 5)))
    model = pick(rng, (sv.QuadraticNetwork(rho), sensing, attention))
    most = 0.3 / getattr(model, "measurements", 1)
    alpha = {"alpha": log_uniform(rng, most / 15, most, 4)}
    return model, learner, alpha, apart.runs_of(lambda learner: 1 + 1 / learner.runs)


def random_features(rng) -> Point:
    name, sigma = pick(rng, [("tanh(z)", np.tanh), ("erf", lambda z: erf(z / np.sqrt(2))), ("sin(z)", np.sin)])
    target, g = pick(rng, list(SMOOTH.items()))
    width, penalty = float(log_uniform(rng, 0.3, 3)), float(log_uniform(rng, 1e-3, 1))
    noise = chance(rng, lambda: float(log_uniform(rng, 0.01, 1)))

    def truth(model, learner, alpha, found):
        test, train = random_feature_ridge(sigma, g, alpha, width, penalty, noise)
        return {"generalization_error": test - noise, "training_error": train}

    model = sv.TwoLayer(target, name, width, noise)
    return model, sv.RandomFeatures(penalty), {"alpha": log_uniform(rng, 0.1, 5, 4)}, truth


def one_step(rng) -> Point:
    target, g = pick(rng, list(SMOOTH.items())[:2])
    width, penalty, noise = (float(log_uniform(rng, *ends)) for ends in ((0.5, 2), (0.03, 1), (0.01, 0.5)))
    learner = sv.OneStep(penalty, float(rng.uniform(0.3, 2)), float(rng.uniform(1, 6)), bulk="isotropic")

    def truth(model, learner, alpha, found):
        r, c, gamma = (float(found.order_parameters[name]) for name in ("spike", "norm", "alignment"))
        test, train = spiked_ridge(np.tanh, g, r, c, gamma, alpha, width, penalty, noise)
        return {"generalization_error": test - noise, "training_error": train}

    return sv.TwoLayer(target, "tanh", width, noise), learner, {"alpha": log_uniform(rng, 0.3, 4, 2)}, truth


def power_law(rng) -> Point:
    capacity, source = float(rng.uniform(1.1, 2.5)), float(rng.uniform(0.1, 1.5))
    terms = pick(rng, (1000, 5000, None))
    noise, penalty = chance(rng, lambda: float(log_uniform(rng, 0.01, 1))), float(log_uniform(rng, 1e-4, 1))
    n, p = log_uniform(rng, 10, 500, 2), log_uniform(rng, 10, 500, 2)

    def truth(model, learner, n, p, found):
        total = power.power_law(capacity, source, terms, direct=3000)
        bias, variance, *_ = power.published(total, n, p, penalty, noise)
        return {"bias": bias, "variance": variance, "generalization_error": bias + variance}

    return sv.PowerLawFeatures(capacity, source, noise, terms), sv.RandomFeatures(penalty), {"n": n, "p": p}, truth


def softmax(rng) -> Point:
    model = sv.AttentionIndexed(float(log_uniform(rng, 0.1, 2)), int(rng.integers(2, 6)), tied=bool(rng.random() < 0.5))
    alpha = model.signal_side().dimension / model.measurements * rng.uniform(0.1, 0.9, 4) / 2
    return model, either(rng), {"alpha": alpha}, finer.matrix_bayes


def hardmax(rng) -> Point:
    model = sv.AttentionIndexed(float(log_uniform(rng, 0.1, 2)), 2, "hardmax")
    return model, either(rng), {"alpha": log_uniform(rng, 0.1, 3, 4)}, apart.hardmax


def one_layer(rng) -> Point:
    T = int(rng.integers(2, 6))
    alpha = log_uniform(rng, 1.1 / (T * (T + 1)), 0.95 / T, 4)
    return sv.DeepAttention(1, T), either(rng), {"alpha": alpha}, apart.one_layer


def untied(rng) -> Point:
    T = int(rng.integers(2, 4))
    model = sv.DeepAttention(1, T, tied=False)
    return model, either(rng), {"alpha": rng.uniform(0.4, 0.9, 2) / (T - 1)}, apart.sampled_overlaps(8)


def sequence(rng) -> Point:
    target = pick(rng, ("z1[1]*z1[2]", "z1[1] + z1[2]**2", "abs(z1[1] - z1[2])"))
    model = sv.SequenceIndex(target, 2, noise=float(log_uniform(rng, 0.03, 0.5)))
    return model, either(rng), {"alpha": rng.uniform(0.5, 3, 2)}, apart.sampled_overlaps(8)


def descent(kind: str) -> Draw:
    def draw(rng) -> Point:
        target, g = pick(rng, [("tanh(z)", np.tanh), ("sin(z)", np.sin), ("z + z**2", lambda z: z + z**2)])
        shared = (float(rng.uniform(0.1, 0.5)), "erf")
        more: dict[str, Any] = {"start": float(rng.uniform(0.05, 0.5))}
        if kind == "ahead":
            more["extrapolation"] = float(rng.uniform(-0.5, 0.8))
        learner = {"once": sv.OnlineSGD, "ahead": sv.Extragradient, "twice": sv.RepeatedSGD}[kind](*shared, **more)
        truth = apart.descent(
            g,
            lambda h: erf(h / np.sqrt(2)),
            lambda h: np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2),
            kind,
        )
        model = sv.MultiIndex(target, noise=chance(rng, lambda: float(log_uniform(rng, 0.01, 0.5))))
        return model, learner, {"alpha": log_uniform(rng, 0.3, 10, 1)}, truth

    return draw


def lazy(rng) -> Point:
    """The closed form, also close to where the labels are interpolated."""
    law = pick(rng, ("marchenko-pastur:0.5", "semicircle", "discrete:-1,0,1@0.1,0.8,0.1"))
    penalty, noise = (chance(rng, lambda: float(log_uniform(rng, 1e-8, 10))) for _ in range(2))
    near = 0.5 + rng.choice((-1, 1), 2) * log_uniform(rng, 1e-8, 0.1, 2)
    alpha = np.concatenate([log_uniform(rng, 1e-4, 1e4, 2), near])
    network = sv.QuadraticNetwork(float(log_uniform(rng, 0.1, 5)), noise)
    model = network if rng.random() < 0.3 else sv.MatrixSensing(law, noise)
    return model, sv.Lazy(penalty), {"alpha": alpha}, apart.lazy


LINEAR_PARTS = {
    "sign(z)": (0.0, math.sqrt(2 / math.pi), 1.0),
    "z + z**2": (1.0, 1.0, 3.0),
    "z1*z2 + z1/2": (0.0, 0.5, 1.25),
    "relu(z)": (1 / math.sqrt(2 * math.pi), 0.5, 0.5 - 1 / (2 * math.pi)),
    "sin(z)": (0.0, math.exp(-0.5), (1 - math.exp(-2)) / 2),
}
"""Mean, linear coefficient and variance of targets."""


def kernel(rng) -> Point:
    target = pick(rng, list(LINEAR_PARTS))
    penalty = None if rng.random() < 0.3 else float(log_uniform(rng, 1e-6, 10))
    model = sv.MultiIndex(target, noise=chance(rng, lambda: float(log_uniform(rng, 1e-3, 3))))
    learner = sv.Kernel(int(rng.integers(2, 6)), penalty)
    return model, learner, {"alpha": log_uniform(rng, 1e-3, 100, 4)}, apart.kernel(LINEAR_PARTS[target])


def student(rng) -> Point:
    """As many features as the student has neurons."""
    model, _, alpha, truth = wide(rng)
    return model, sv.BayesStudent(int(rng.integers(1, 15))), alpha, truth


MORE_NODES: dict[tuple[Any, str], Any] = {
    (averages, "NODES"): 80,
    (logistic, "STEP"): logistic.STEP / 1.7,
    (logistic, "_CUT_NODES"): 20,
    (grid, "NODES"): 20,
    (bulk, "_LABEL_NODES"): 20,
    (bulk, "_NOISE_STEP"): (0.4, 0.5),
    (bulk, "_NOISE_REACH"): (9.5, 8.0),
}
"""Of features: more nodes than theory takes."""


def classes(rng) -> Point:
    """Logistic regression on random features."""
    target, activation = pick(rng, ("sign(z)", "sign(z + z**3)")), pick(rng, ("tanh(z)", "erf", "relu", "sign(z)"))
    width, penalty = float(log_uniform(rng, 0.3, 3)), float(log_uniform(rng, 1e-3, 1))
    model = sv.TwoLayer(target, activation, width)
    truth = finer.with_constants(MORE_NODES, (averages.moments,))
    return model, sv.RandomFeatures(penalty, "logistic"), {"alpha": log_uniform(rng, 0.2, 5, 4)}, truth


def exact_bulk(rng) -> Point:
    """One step, with the exact law of its rows."""
    width, penalty, noise = (float(log_uniform(rng, *ends)) for ends in ((0.5, 2), (0.03, 1), (0.01, 0.5)))
    learner = sv.OneStep(penalty, float(rng.uniform(0.3, 2)), float(rng.uniform(1, 6)), bulk="exact")
    model = sv.TwoLayer(pick(rng, ("tanh(z)", "sin(z)")), "tanh", width, noise)
    truth = finer.with_constants(MORE_NODES, (averages.moments,))
    return model, learner, {"alpha": log_uniform(rng, 0.3, 4, 4)}, truth


def layerwise(rng) -> Point:
    """Features of a hierarchical target, with a finer law of the labels and more features solved for."""
    features = pick(rng, (None, 5, 100))
    noise = float(log_uniform(rng, 0.01, 1)) if rng.random() < 0.6 else 0.0
    model = sv.HierarchicalTarget(float(rng.uniform(0.7, 2)), features=features, noise=noise)
    learner = sv.LayerwiseSpectral(pick(rng, ("tanh", "clip")), float(log_uniform(rng, 0.5, 2)))
    constants = {(labels, "NODES"): (16, 10), (labels, "STEP"): (0.035, 0.06), (layers, "_INTERPOLATED"): 32}
    truth = finer.with_constants(constants, (labels.labels,))
    return model, learner, {"alpha": log_uniform(rng, 0.3, 1000, 4)}, truth


def batch(rng) -> Point:
    steps, rate = int(rng.integers(1, 5)), float(rng.uniform(0.02, 0.3))
    noise, decay = chance(rng, lambda: float(log_uniform(rng, 0.01, 0.5))), chance(rng, lambda: float(rng.random()))
    start = float(rng.uniform(0, 0.5))
    learner = sv.BatchGD(steps, rate, activation="z", start=start, decay=decay)

    def truth(model, learner, alpha, found):
        M, Q = linear_descent(alpha, rate, steps, noise, decay, start)
        return {"cosine": M[-1] / np.sqrt(Q[-1]), "generalization_error": 1 - 2 * M[-1] + Q[-1]}

    return sv.MultiIndex("z", noise=noise), learner, {"alpha": log_uniform(rng, 0.2, 4, 2)}, truth


DRAWS: dict[str, tuple[Draw, int]] = {
    "spiked matrix": (spiked_matrix, 100),
    "spiked tensor": (spiked_tensor, 100),
    "spiked covariance": (spiked_covariance, 60),
    "principal component": (principal, 100),
    "matrix and tensor, Bayes and AMP": (matrix_tensor(either, apart.factors(False)), 100),
    "matrix and tensor, likelihood": (matrix_tensor(lambda rng: sv.MaximumLikelihood(), apart.factors(True)), 100),
    "matrix and tensor, curriculum": (matrix_tensor(lambda rng: sv.Curriculum(), apart.one_by_one), 100),
    "machine": (machine, 100),
    "machine, ascent": (ascent, 20),
    "wide teacher": (wide, 24),
    "wide network": (wide_network, 100),
    "averaged descent": (averaged, 100),
    "random features": (random_features, 100),
    "one step": (one_step, 40),
    "power law": (power_law, 40),
    "attention, softmax": (softmax, 100),
    "attention, hardmax": (hardmax, 60),
    "one layer": (one_layer, 60),
    "untied layer": (untied, 4),
    "sequence": (sequence, 4),
    "one pass": (descent("once"), 6),
    "a look ahead": (descent("ahead"), 6),
    "twice": (descent("twice"), 6),
    "batch": (batch, 30),
    "lazy": (lazy, 100),
    "kernel": (kernel, 100),
    "student of a wide teacher": (student, 24),
    "random features, logistic": (classes, 24),
    "one step, exact bulk": (exact_bulk, 24),
    "layer by layer": (layerwise, 24),
}
"""What is drawn, and at how many points: a hundred where a point is cheap."""
QUICK = ("lazy", "kernel", "spiked matrix", "matrix and tensor, Bayes and AMP", "random features", "batch")


@pytest.mark.parametrize("name", QUICK)
def test_a_few_uncertainties_cover_the_true_error(name):
    found = judged(DRAWS[name][0], 6, seed=1)
    assert found.covered >= COVERED, found.worst


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_uncertainties_cover_the_true_error_and_are_not_huge(name):
    assert_honest(name, *DRAWS[name])
