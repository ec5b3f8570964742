"""Theory of the spectral methods: their equations by SciPy, closed forms, thresholds, and their place below AMP."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

import solvable as sv

SYMMETRIC, ASYMMETRIC = sv.Spectral("symmetric"), sv.Spectral("asymmetric")
ABS = sv.MultiIndex("abs(z)")
WINDOW = sv.MultiIndex("abs(z) < 1")
NOISY_SQUARE = sv.MultiIndex("z**2", noise=0.25)
both_kinds = pytest.mark.parametrize("learner", [SYMMETRIC, ASYMMETRIC], ids=["symmetric", "asymmetric"])

INSIDE = norm.cdf(1) - norm.cdf(-1)
WINDOW_LAW = np.array([[INSIDE, -2 * norm.pdf(1) / INSIDE], [1 - INSIDE, 2 * norm.pdf(1) / (1 - INSIDE)]]).T
"""Probability and G = E[z^2|y] - 1 of the two labels of 1{|z| < 1}."""


def abs_mean(function) -> float:
    """E f(G), G = z^2 - 1."""
    return 2 * quad(lambda z: norm.pdf(z) * function(z**2 - 1), 0, 12, limit=200, epsabs=1e-13, epsrel=1e-12)[0]


def window_mean(function) -> float:
    probability, G = WINDOW_LAW
    return float(np.sum(probability * function(G)))


@pytest.mark.parametrize("alpha", [0.501, 0.6, 1.0, 2.0, 5.0])
def test_symmetric_overlap_solves_its_equation(alpha):
    """alpha (1 - q) E[G^2 / (1 + q G)] = 1."""
    q = sv.predict(ABS, SYMMETRIC, alpha=alpha)["squared_overlap"]
    assert alpha * (1 - q) * abs_mean(lambda G: G**2 / (1 + q * G)) == pytest.approx(1, abs=3e-6)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 5.0])
def test_symmetric_overlap_of_a_binary_label(alpha):
    expected = brentq(lambda q: alpha * (1 - q) * window_mean(lambda G: G**2 / (1 + q * G)) - 1, 0, 1)
    assert sv.predict(WINDOW, SYMMETRIC, alpha=alpha)["squared_overlap"] == pytest.approx(expected, abs=1e-8)


def test_asymmetric_overlap_of_abs_in_closed_form():
    alpha = np.array([0.5001, 0.6, 1.0, 2.0, 7.0, 1000.0])
    found = sv.predict(ABS, ASYMMETRIC, alpha=alpha)
    np.testing.assert_allclose(found["squared_overlap"], (2 * alpha - 1) / (2 * alpha + 4), atol=1e-9)
    np.testing.assert_allclose(found.order_parameters["outlier"], 2 * alpha, rtol=1e-9)
    np.testing.assert_allclose(found.order_parameters["bulk_edge"], np.sqrt(2 * alpha), rtol=1e-9)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 5.0])
def test_asymmetric_overlap_of_a_binary_label(alpha):
    second, third = window_mean(lambda G: G**2), window_mean(lambda G: G**3)
    gamma = alpha * second
    expected = (gamma**2 - gamma) / (gamma**2 + alpha * third)
    assert sv.predict(WINDOW, ASYMMETRIC, alpha=alpha)["squared_overlap"] == pytest.approx(expected, abs=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("alpha", [0.6, 0.8, 1.0, 2.0])
def test_symmetric_bulk_edge_is_the_minimum_of_its_function(alpha):
    """1/m + alpha E[T / (1 - m T)], T = 1 - 1/z^2, over m in (0, 1)."""

    def bulk(m: float) -> float:
        return 1 / m + alpha * abs_mean(lambda G: G / (1 + G - m * G))

    edge = minimize_scalar(bulk, bounds=(1e-3, 1 - 1e-9), method="bounded", options={"xatol": 1e-9}).fun
    found = sv.predict(ABS, SYMMETRIC, alpha=alpha).order_parameters
    assert found["bulk_edge"] == pytest.approx(edge, abs=1e-7)
    assert found["bulk_edge"] < found["outlier"] == 1


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.45])
def test_symmetric_bulk_of_an_unbounded_label_ends_at_one_below_the_threshold(alpha):
    """T = 1 - 1/z^2 comes as close to 1 as one likes, so m < 1; up to there the function falls, to 1 + alpha E[G]."""
    found = sv.predict(ABS, SYMMETRIC, alpha=alpha).order_parameters
    assert found["bulk_edge"] == pytest.approx(1, abs=1e-6) and found["outlier"] == found["bulk_edge"]


@pytest.mark.parametrize("alpha", [0.3, 0.9, 1.5])
def test_symmetric_bulk_edge_of_a_binary_label(alpha):
    probability, G = WINDOW_LAW
    T = G / (1 + G)

    def bulk(m: float) -> float:
        return 1 / m + alpha * float(np.sum(probability * T / (1 - m * T)))

    edge = minimize_scalar(bulk, bounds=(1e-3, (1 - 1e-9) / T.max()), method="bounded", options={"xatol": 1e-10}).fun
    found = sv.predict(WINDOW, SYMMETRIC, alpha=alpha).order_parameters
    assert found["bulk_edge"] == pytest.approx(edge, abs=1e-7)
    assert found["outlier"] == (1.0 if alpha > 0.925 else found["bulk_edge"])


@both_kinds
@pytest.mark.parametrize("model", [ABS, WINDOW, NOISY_SQUARE], ids=["abs", "window", "noisy square"])
def test_both_methods_start_at_weak_recovery(model, learner):
    weak = sv.diagnose(model).alpha_weak
    found = sv.predict(model, learner, alpha=weak * np.array([0.0, 0.5, 0.9999, 1.0001, 1.01, 1.02]))
    squared = found["squared_overlap"]
    assert np.all(squared[:3] == 0) and np.all(squared[3:] > 0) and np.all(np.diff(squared[3:]) > 0)
    # It starts linearly: twice the distance, twice the squared overlap.
    assert squared[5] / squared[4] == pytest.approx(2, rel=0.05)
    np.testing.assert_allclose(found["cosine"] ** 2, squared, atol=1e-15)


@both_kinds
@pytest.mark.parametrize("target", ["sign(z)", "z**2*exp(-z**2)"])
def test_labels_that_say_nothing_of_the_second_moment_are_never_learned(target, learner):
    """E[z^2|y] = 1 for both, although message passing learns a sign from any number of samples."""
    found = sv.predict(sv.MultiIndex(target), learner, alpha=np.array([0.1, 1.0, 1e3, 1e6]))
    assert np.all(found["squared_overlap"] == 0) and np.all(found["estimation_error"] == 1)
    assert np.all(found.converged)


@both_kinds
def test_the_sign_of_z_adds_nothing(learner):
    """y = z tells |z|, and E[z^2|y] = y^2 in both cases."""
    alpha = np.array([0.4, 0.8, 3.0])
    clean, folded = (sv.predict(model, learner, alpha=alpha)["squared_overlap"] for model in (sv.MultiIndex("z"), ABS))
    np.testing.assert_allclose(clean, folded, atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(ABS, id="abs"),
        pytest.param(WINDOW, id="window", marks=pytest.mark.slow),
        pytest.param(NOISY_SQUARE, id="noisy square", marks=pytest.mark.slow),
    ],
)
def test_spectral_methods_stay_below_message_passing(model):
    alpha = np.linspace(0.0, 6.0, 40)
    amp, symmetric, asymmetric = (
        sv.predict(model, learner, alpha=alpha) for learner in (sv.AMP(), SYMMETRIC, ASYMMETRIC)
    )
    assert np.all(amp["squared_overlap"] >= symmetric["squared_overlap"] - 1e-12)
    assert np.all(symmetric["squared_overlap"] >= asymmetric["squared_overlap"] - 1e-12)
    for found in (symmetric, asymmetric):
        assert np.all(np.diff(found["squared_overlap"]) >= 0)
        assert np.all((found["squared_overlap"] >= 0) & (found["squared_overlap"] < 1))
        np.testing.assert_allclose(found["estimation_error"], 1 - found["squared_overlap"], atol=1e-14)
        assert np.all(np.diff(found["generalization_error"]) <= 1e-9)


@both_kinds
def test_metrics_are_those_of_the_estimate_scaled_to_its_overlap(learner):
    """At equal q the errors of the scaled eigenvector are those of a posterior mean."""
    found = sv.predict(NOISY_SQUARE, learner, alpha=2.0)
    q, V = found["squared_overlap"], found["estimation_error"]
    assert found["generalization_error"] == pytest.approx(4 * V * q + 2 * V**2, rel=1e-7)
    assert set(found.metrics) == {"cosine", "squared_overlap", "estimation_error", "generalization_error"}
    assert "classification_error" in sv.predict(WINDOW, learner, alpha=2.0).metrics


@both_kinds
def test_the_prior_does_not_matter(learner):
    """Eigenvectors know nothing of the weights' law."""
    squared = [
        sv.predict(sv.MultiIndex("abs(z)", prior=prior), learner, alpha=1.5)["squared_overlap"]
        for prior in ("gaussian", "rademacher", "gauss-bernoulli:0.1")
    ]
    assert squared[0] == squared[1] == squared[2] > 0


@both_kinds
def test_many_alphas_at_once_equal_one_at_a_time(learner):
    grid = np.array([[0.0, 0.4, 0.7], [1.0, 3.0, 20.0]])
    together = sv.predict(ABS, learner, alpha=grid)
    for index, alpha in np.ndenumerate(grid):
        alone = sv.predict(ABS, learner, alpha=alpha)
        for group in ("metrics", "order_parameters", "uncertainty"):
            for key, value in getattr(alone, group).items():
                assert value == pytest.approx(getattr(together, group)[key][index], rel=1e-9, abs=1e-12), key


@both_kinds
def test_uncertainty_covers_the_error(learner):
    alpha = np.array([0.6, 1.0, 3.0, 30.0])
    found = sv.predict(ABS, learner, alpha=alpha)
    if learner.kind == "asymmetric":
        exact = (2 * alpha - 1) / (2 * alpha + 4)
    else:
        exact = np.array([symmetric_overlap_of_abs(a) for a in alpha])
    assert np.all(np.abs(found["squared_overlap"] - exact) < 5 * found.uncertainty["squared_overlap"] + 1e-8)
    assert np.all(np.abs(found["cosine"] - np.sqrt(exact)) < 5 * found.uncertainty["cosine"] + 1e-8)
    assert np.all(found.uncertainty["squared_overlap"] < 1e-4)


def symmetric_overlap_of_abs(alpha: float) -> float:
    """The root, with E[G^2 / (1 + q G)] in pieces so that the pole near z = 0 at q -> 1 is resolved."""

    def equation(q: float) -> float:
        def integrand(z):
            return norm.pdf(z) * (z**2 - 1) ** 2 / (1 - q + q * z**2)

        ends = np.minimum([0.0, *np.sqrt(1 - q) * np.array([1.0, 4.0, 16.0]), 12.0], 12.0)
        pieces = [quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pairwise(ends)]
        return alpha * (1 - q) * 2 * sum(pieces) - 1

    return brentq(equation, 1e-9, 1 - 1e-9, xtol=1e-13)


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind = 'diagonal' is not allowed: kind must be 'symmetric' or 'asymmetric'"):
        sv.Spectral("diagonal")
