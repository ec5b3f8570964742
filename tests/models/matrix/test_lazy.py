"""Ridge regression on matrix features: closed form and runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import solvable as sv
from solvable.core.status import Status
from solvable.models.matrix import QuadraticNetwork, lazy
from solvable.models.matrix.lazy import Lazy, ridge
from solvable.spectra import Discrete
from solvable.verbs.simulate import generators

VALUES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parents[2] / "reference" / "quadratic_values.json").read_text())
}
MIXED = Discrete([-1.0, 0.0, 2.0])


def instance(rho=0.5, alpha=0.6, noise=0.5, d=16, seed=0, features="quadratic"):
    return QuadraticNetwork(rho, noise, features).sample(np.random.default_rng(seed), d, alpha=alpha)


def redrawn(model, alpha, d, seed=0):
    """The data that `simulate` draws."""
    return model.sample(generators(seed, d, {"alpha": alpha})[0], d, alpha=alpha)


def design(operator) -> np.ndarray:
    """The features as rows, n x d^2."""
    units = np.eye(operator.samples)
    return np.array([operator.adjoint(unit).ravel() for unit in units])


def test_lazy():
    found = sv.predict(QuadraticNetwork(0.5, 0.5), sv.Lazy(0.2), alpha=0.3)
    assert found["estimation_error"] == pytest.approx(0.8132873289402778, rel=1e-12)
    assert 0.3 * found["training_error"] == pytest.approx(0.04438419743451566, rel=1e-12)
    assert "rank" not in found.metrics


def test_lazy_without_penalty():
    alpha = np.array([0.0, 0.2, 0.4, 0.7, 100.0])
    clean = sv.predict(QuadraticNetwork(0.2), sv.Lazy(0.0), alpha=alpha)
    assert np.allclose(clean["estimation_error"], 1.2 * np.maximum(1 - 2 * alpha, 0), atol=1e-14)
    noisy = sv.predict(QuadraticNetwork(0.2, 0.5), sv.Lazy(0.0), alpha=alpha)
    extra = 0.5 * np.where(alpha < 0.5, alpha / np.abs(1 - 2 * alpha), 1 / (4 * np.abs(alpha - 0.5)))
    assert np.allclose(noisy["estimation_error"] - clean["estimation_error"], extra, rtol=1e-12)
    assert np.allclose(noisy["training_error"], 0.5 * np.maximum(1 - 1 / np.maximum(2 * alpha, 1), 0), atol=1e-14)
    nearly = sv.predict(QuadraticNetwork(0.2, 0.5), sv.Lazy(1e-8), alpha=alpha)
    assert np.allclose(nearly["estimation_error"], noisy["estimation_error"], rtol=1e-5)
    assert sv.predict(QuadraticNetwork(0.2), sv.Lazy(0.0), alpha=0.5)["estimation_error"] == 0
    diverged = sv.predict(QuadraticNetwork(0.2, 0.5), sv.Lazy(0.0), alpha=0.5, throw=False)
    assert diverged.status == Status.NONFINITE
    with pytest.raises(sv.ConvergenceError):
        sv.predict(QuadraticNetwork(0.2, 0.5), sv.Lazy(0.0), alpha=0.5)


@pytest.mark.slow
def test_lazy_in_the_penalty():
    # Among linear estimators the best is that for a Gaussian A* of the same second moment: penalty = noise / (2 E A^2).
    best = sv.optimize(QuadraticNetwork(0.2, 0.5), sv.Lazy(0.1), alpha=0.6)
    assert (best.method, best.value) == ("gradient", pytest.approx(0.5 / 2.4, rel=1e-6))
    alpha, step = np.array([0.2, 0.5, 0.9]), 1e-5
    low, at, high = (
        sv.predict(sv.MatrixSensing(MIXED, 0.3), sv.Lazy(0.2 + h), alpha=alpha) for h in (-step, 0.0, step)
    )
    slope = (high["training_loss"] - low["training_loss"]) / (2 * step)
    square = (at["training_loss"] - alpha * at["training_error"]) / 0.2
    assert np.allclose(slope, square, rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.2, 0.7])
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_lazy_is_ridge_regression(alpha, penalty):
    model, d = QuadraticNetwork(0.5, 0.5), 10
    outcome = sv.simulate(model, Lazy(penalty), alpha=alpha, d=d)
    data = redrawn(model, alpha, d)
    G = design(data.operator)
    if penalty:
        expected = np.linalg.solve(G.T @ G + penalty * d * np.eye(d * d), G.T @ data.y)
    else:
        expected = np.linalg.pinv(G) @ data.y
    np.testing.assert_allclose(outcome.estimate.ravel(), expected, atol=1e-7)
    np.testing.assert_allclose(outcome.estimate, outcome.estimate.T, atol=1e-12)
    fit = np.sum((data.y - G @ expected) ** 2)
    assert outcome.converged and "rank" not in outcome.metrics
    assert outcome["training_loss"] == pytest.approx(fit / d**2 + penalty / d * np.sum(expected**2), abs=1e-9)
    assert outcome["training_error"] == pytest.approx(fit / len(data.y), abs=1e-9)
    assert outcome["generalization_error"] == pytest.approx(2 * np.sum((expected - data.truth.ravel()) ** 2) / d)


def test_ridge_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(lazy, "_STEPS", 2)
    data = instance()
    assert not ridge(data.operator, data.y, 1.0)[2]


@pytest.mark.slow
def test_lazy_of_gaussian_features_is_that_of_theory():
    entry = VALUES["ridge_0.5_0.3_0.5_0.2"]
    mse, fit = entry["value"]
    model = QuadraticNetwork(0.5, 0.5, "gaussian")
    runs = [sv.simulate(model, Lazy(0.2), alpha=0.3, d=50, seed=seed) for seed in range(12)]
    for metric, expected in (("estimation_error", mse), ("training_error", fit / 0.3)):
        values = np.array([run[metric] for run in runs])
        assert abs(values.mean() - expected) < 4 * values.std(ddof=1) / np.sqrt(len(values)) + 0.02 * expected


def test_without_samples_every_metric_and_its_uncertainty_are_the_limit():
    model = QuadraticNetwork(0.5, 0.3)
    found = sv.predict(model, sv.Lazy(0.5), alpha=np.array([0.0, 1e-9]))
    # A single label of variance 2 (1 + rho) + noise is fitted to 1 / (1 + penalty).
    assert found["training_error"][0] == pytest.approx(3.3 / 9, rel=1e-12)
    assert found["estimation_error"][0] == 1.5 and found["training_loss"][0] == 0
    for name, value in found.metrics.items():
        # The cosine starts like sqrt(alpha).
        assert value[1] == pytest.approx(value[0], rel=1e-7, abs=1e-4 if name == "cosine" else 1e-8)
        error = found.uncertainty[name]
        assert np.all(np.isfinite(error)) and np.all(error <= 1e-13 * np.maximum(value, 1e-9))
        assert error[0] == pytest.approx(error[1], rel=30, abs=1e-18) and (error[0] > 0) == (value[0] > 0)


def test_uncertainties_cover_the_rounding_error():
    """Against sixty digits."""
    import mpmath as mp

    rng = np.random.default_rng(0)
    ratios = []
    with mp.workdps(60):
        for i in range(60):
            near = 0.5 * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-8, -1))
            alpha = float(near if i % 3 == 0 else 10 ** rng.uniform(-3, 1))
            noise, penalty = float(rng.choice([0.0, 10 ** rng.uniform(-6, 1)])), float(10 ** rng.uniform(-8, 2))
            found = sv.predict(QuadraticNetwork(0.5, noise), sv.Lazy(penalty), alpha=alpha)
            Q, a = mp.mpf(1.5), 2 * mp.mpf(alpha)
            total = 1 + a + mp.mpf(penalty)
            k = 2 * a / (total + mp.sqrt(total**2 - 4 * a))
            D = (Q * (1 - k) ** 2 + mp.mpf(noise) / 2) / (a - k**2)
            fit = D * (a - k) ** 2
            exact = {
                "estimation_error": Q * (1 - k) ** 2 + k**2 * D,
                "training_error": 2 * fit / a,
                "training_loss": fit + mp.mpf(penalty) * k**2 * (Q + D),
            }
            ratios += [float(abs(found[name] - value)) / found.uncertainty[name] for name, value in exact.items()]
    assert max(ratios) <= 1 and np.median(ratios) > 1e-3
