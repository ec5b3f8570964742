"""Bayes-optimal learning of matrices: reference values, closed-form limits, edges and properties."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import solvable as sv
from solvable.engine.signals.eigenvalues import EigenvalueSignal

VALUES = json.loads((Path(__file__).parents[2] / "reference" / "quadratic_values.json").read_text())
BAYES = [(*entry["params"].values(), *entry["value"]) for entry in VALUES if entry["id"].startswith("bo_0")]
BAYES += [(*entry["params"].values(), *entry["value"]) for entry in VALUES if entry["id"].startswith("bo_1")]


def error(model, alpha):
    return sv.predict(model, sv.BayesOptimal(), alpha=alpha)["estimation_error"]


@pytest.mark.parametrize(("rho", "alpha", "noise", "expected", "effective_noise"), BAYES)
def test_reference_values(rho, alpha, noise, expected, effective_noise):
    for learner in (sv.BayesOptimal(), sv.AMP()):
        found = sv.predict(sv.QuadraticNetwork(rho, noise), learner, alpha=alpha)
        assert found["estimation_error"] == pytest.approx(expected, abs=1e-9)
        assert found["generalization_error"] == pytest.approx(2 * expected, abs=2e-9)
        assert found.order_parameters["effective_noise"] == pytest.approx(effective_noise, abs=1e-8)
        assert found.uncertainty["estimation_error"] < 1e-9


def test_there_are_reference_values():
    assert len(BAYES) == 7


@pytest.mark.slow
def test_narrow_networks():
    """rho -> 0 at alpha = a rho: x = (1-a) + sqrt((1-a)^2 + Delta/2), error 2x - x^2 where x < 1."""
    assert narrow_gaps(1e-6).max() < 1e-4


def narrow_gaps(rho: float) -> np.ndarray:
    """How far the errors at rho are from their limit."""
    a, noise = np.array([0.3, 0.7, 0.9, 1.4]), 0.1
    x = np.minimum((1 - a) + np.sqrt((1 - a) ** 2 + noise / 2), 1.0)
    return np.abs(error(sv.QuadraticNetwork(rho, noise), a * rho) - (2 * x - x**2))


@pytest.mark.slow
def test_narrower_networks_are_closer_to_their_limit():
    assert np.all(narrow_gaps(1e-6) < narrow_gaps(1e-4))


@pytest.mark.slow
def test_wide_networks():
    """As rho grows A* becomes Gaussian about its mean, and the error 1 - 2 alpha without noise."""
    alpha = np.array([0.1, 0.3, 0.45, 0.7])
    assert np.allclose(error(sv.QuadraticNetwork(1e6), alpha), np.maximum(1 - 2 * alpha, 0), atol=1e-5)


@pytest.mark.slow
def test_a_semicircle_is_solved_in_closed_form():
    """mmse = s D / (s + D), so that 4 alpha D (s + D) = Delta (s + D) + 2 s D."""
    s, noise, alpha = 1.7, 0.3, np.array([0.05, 0.4, 2.0])
    b = 4 * alpha * s - noise - 2 * s
    D = (-b + np.sqrt(b**2 + 16 * alpha * noise * s)) / (8 * alpha)
    assert np.allclose(error(sv.MatrixSensing(sv.spectra.Semicircle(s, 0.4), noise), alpha), s * D / (s + D), rtol=1e-9)


@pytest.mark.parametrize("noise", [1e-3, 1e-12, 1e-20])
def test_many_samples(noise):
    """From alpha well above recovery on the error is Delta (2 rho - rho^2) / (4 alpha - 2 (2 rho - rho^2))."""
    rho, alpha = 0.4, 1e3
    slope = 2 * rho - rho**2
    expected = slope * noise / (4 * alpha - 2 * slope)
    assert error(sv.QuadraticNetwork(rho, noise), alpha) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "recovery"),
    [
        (sv.QuadraticNetwork(0.5), 0.375),
        (sv.QuadraticNetwork(1.0), 0.5),
        (sv.QuadraticNetwork(3.0), 0.5),
        pytest.param(sv.MatrixSensing([-2.0, -1.0, 1.0, 2.0]), 0.375, marks=pytest.mark.slow),
        pytest.param(
            sv.MatrixSensing(sv.spectra.Discrete([-1.0, 0.0, 1.0, 2.0], [0.1, 0.7, 0.1, 0.1])),
            0.24,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_perfect_recovery_without_noise(model, recovery):
    found = error(model, recovery + np.array([-1e-2, -1e-4, -1e-6, 0.0, 1e-6, 1.0]))
    assert np.all(found[3:] == 0)
    assert np.all(found[:3] > 0)
    assert np.all(np.diff(found[:4]) < 0)


def test_no_samples():
    found = sv.predict(sv.QuadraticNetwork(0.3, 0.1), sv.BayesOptimal(), alpha=[0.0, 1e-9])
    assert np.allclose(found["estimation_error"], 1.0)
    assert found.converged.all()


def test_a_multiple_of_the_identity_is_known_beforehand():
    assert np.all(error(sv.MatrixSensing([2.0], 0.1), np.array([0.0, 0.5])) == 0)


def test_the_error_falls_with_samples_and_rises_with_noise():
    alpha = np.linspace(0.01, 1.5, 30)
    curves = np.array([error(sv.QuadraticNetwork(0.35, noise), alpha) for noise in (0.0, 0.01, 0.3, 5.0)])
    assert np.all(np.diff(curves, axis=1) <= 0)
    assert np.all(np.diff(curves, axis=0) >= 0)


@pytest.mark.slow
def test_the_fixed_point_is_unique_for_random_laws():
    """mmse(D)/D falls with D, so that the equation of D has one solution at every alpha."""
    rng = np.random.default_rng(3)
    qhat = np.geomspace(0.02, 1e4, 32)
    for _ in range(6):
        law = sv.spectra.Discrete(rng.normal(size=4) * rng.choice([0.1, 1.0, 5.0], 4), rng.dirichlet(np.ones(4)))
        assert np.all(np.diff(qhat * EigenvalueSignal(law).measured(qhat)[0]) > -1e-9)


def test_a_point_does_not_depend_on_its_neighbours():
    model, alpha = sv.QuadraticNetwork(0.4, 0.1), np.linspace(0.05, 0.9, 40)
    together = sv.predict(model, sv.BayesOptimal(), alpha=alpha)
    assert error(model, alpha[7]) == pytest.approx(together["estimation_error"][7], rel=1e-12)
    assert together.converged.all()


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf, "wide", None])
def test_a_bad_width_is_refused(rho):
    with pytest.raises(ValueError, match="rho"):
        sv.QuadraticNetwork(rho)


def test_bad_noise_and_features_are_refused():
    with pytest.raises(ValueError, match="noise"):
        sv.QuadraticNetwork(0.5, -1.0)
    with pytest.raises(ValueError, match="features"):
        sv.QuadraticNetwork(0.5, 0.0, "cubic")
    with pytest.raises(ValueError, match="d = 3"):
        sv.QuadraticNetwork(0.1).sample(np.random.default_rng(0), 3, alpha=1.0)
