"""Penalties: averages over the teacher's weights by quadrature, denoisers and their response, text, and refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.integrate import quad

import solvable as sv
from solvable.priors import Lasso, Ridge, as_penalty, as_prior

PRIORS = ["gaussian", "rademacher", "gauss-bernoulli:0.2"]
PENALTIES = [Ridge(0.3), Ridge(-0.4), Ridge(0.0), Lasso(0.5), Lasso(0.0), Lasso(4.0)]
FIELDS = {"m_hat": 0.9, "q_hat": 0.7, "V_hat": 1.3}


def minimiser(penalty, b, V_hat):
    """argmin_w V_hat w^2/2 - b w + r(w), from the definition."""
    if isinstance(penalty, Ridge):
        return b / (V_hat + penalty.strength)
    return np.sign(b) * np.maximum(np.abs(b) - penalty.strength, 0) / V_hat


def integrate(function, mean, scale, cuts):
    """E function(b) over b ~ N(mean, scale^2)."""

    def density(b):
        return np.exp(-(((b - mean) / scale) ** 2) / 2) / np.sqrt(2 * np.pi) / scale

    low, high = mean - 10 * scale, mean + 10 * scale
    inside = [cut for cut in (*cuts, mean) if low < cut < high]
    return quad(lambda b: density(b) * function(b), low, high, points=inside, limit=400, epsabs=1e-14, epsrel=1e-12)[0]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_averages_against_quadrature_over_the_field(penalty, prior):
    mixture = as_prior(prior).mixture()
    m_hat, q_hat, V_hat = FIELDS.values()
    with jax.enable_x64(True):
        found = penalty.average(**FIELDS, mixture=tuple(np.array(column) for column in zip(*mixture, strict=True)))
    lasso = isinstance(penalty, Lasso)
    cuts = (-penalty.strength, penalty.strength) if lasso else ()
    slope = 1 / V_hat if lasso else 1 / (V_hat + penalty.strength)
    expected = np.zeros(6)
    for share, mean, variance in mixture:
        S, centre = np.sqrt(m_hat**2 * variance + q_hat), m_hat * mean

        def average(function, centre=centre, S=S):
            return integrate(function, centre, S, cuts)

        def teacher(b, mean=mean, variance=variance, centre=centre, S=S):
            return mean + m_hat * variance * (b - centre) / S**2

        def w(b):
            return minimiser(penalty, b, V_hat)

        active = average(lambda b: float(abs(b) > penalty.strength)) if lasso else 1.0
        cost = average(lambda b: penalty.strength * (abs(w(b)) if lasso else w(b) ** 2 / 2))
        moments = average(lambda b: teacher(b) * w(b)), average(lambda b: w(b) ** 2)
        expected += share * np.array([*moments, active * slope, active * slope**2, cost, active])
    assert np.array([float(part) for part in found[:6]]) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.margin == pytest.approx(V_hat if lasso else V_hat + penalty.strength)


def test_no_minimum_over_the_weights_has_a_negative_margin():
    mixture = (np.ones(1), np.zeros(1), np.ones(1))
    assert Ridge(-1.4).average(**FIELDS, mixture=mixture).margin < 0
    assert Ridge(-1.2).average(**FIELDS, mixture=mixture).margin > 0


@pytest.mark.parametrize("threshold", [5.0, 20.0, 29.9, 30.1, 35.0])
def test_a_strong_lasso_leaves_its_tail(threshold):
    """Weights that are almost all zero: the averages stay positive and follow the Gaussian tail, to all digits."""
    from mpmath import mp, mpf, npdf
    from mpmath import quad as integral

    mixture = (np.ones(1), np.zeros(1), np.ones(1))
    with jax.enable_x64(True):
        found = Lasso(threshold).average(0.6, 0.64, 1.0, mixture)  # S = 1
    with mp.workdps(40):
        t = mpf(threshold)
        ends = [t, t + 1, t + 4, t + 12]
        size = 2 * integral(lambda b: npdf(b) * (b - t), ends)
        square = 2 * integral(lambda b: npdf(b) * (b - t) ** 2, ends)
    # Up to 30 the exact form loses digits as t^4; beyond, the leading tail lacks 6/t^2.
    allowed = 1e-14 * threshold**4 if threshold < 30 else 6 / threshold**2
    assert float(found.q) == pytest.approx(float(square), rel=allowed)
    assert float(found.cost) == pytest.approx(float(t * size), rel=allowed)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_denoised_fields_and_their_mean_response(penalty):
    b = np.random.default_rng(0).standard_normal(400) * 2
    for A in (0.6, 2.7):
        w, response = penalty.denoise(b, A)
        assert w == pytest.approx(minimiser(penalty, b, A), abs=1e-14)
        step = 1e-6
        slopes = (penalty.denoise(b + step, A)[0] - penalty.denoise(b - step, A)[0]) / (2 * step)
        assert response == pytest.approx(np.mean(slopes), abs=1e-8)


@pytest.mark.parametrize("penalty", [Ridge(0.3), Lasso(0.5)], ids=str)
def test_denoised_fields_are_minima(penalty):
    """No weight beside w is better: A w^2/2 - b w + r(w) on a grid around it."""
    A = 1.7
    for b in (-3.0, -0.5, -0.2, 0.0, 0.49, 0.51, 2.0):
        w = penalty.denoise(np.array([b]), A)[0][0]
        costs = [A * v**2 / 2 - b * v + penalty.value(np.array([v])) for v in w + np.linspace(-0.5, 0.5, 101)]
        assert np.argmin(costs) == 50


def test_values_of_the_penalties():
    w = np.array([1.0, -2.0, 0.0])
    assert Ridge(0.5).value(w) == pytest.approx(1.25)
    assert Lasso(0.5).value(w) == pytest.approx(1.5)


@pytest.mark.parametrize(
    "given, expected",
    [
        (0.3, Ridge(0.3)),
        (-1, Ridge(-1.0)),
        ("0.3", Ridge(0.3)),
        ("-0.3", Ridge(-0.3)),
        ("ridge:0.1", Ridge(0.1)),
        (" Ridge:-0.1 ", Ridge(-0.1)),
        ("l2:2", Ridge(2.0)),
        ("ridge", Ridge()),
        ("lasso:0.3", Lasso(0.3)),
        ("l1:0", Lasso(0.0)),
        ("lasso", Lasso()),
        (np.float64(0.4), Ridge(0.4)),
        (Lasso(0.2), Lasso(0.2)),
    ],
)
def test_text_and_numbers_make_penalties(given, expected):
    assert as_penalty(given) == expected
    assert sv.ERM(penalty=given).penalty == expected


@pytest.mark.parametrize("given", ["elastic:0.3", "lasso:-1", "ridge:x", "ridge:nan", "", True, [0.1], "lasso:inf", 1j])
def test_other_penalties_are_refused_in_plain_words(given):
    words = "a penalty, a number (the strength of a ridge), 'ridge:STRENGTH' or 'lasso:STRENGTH'"
    with pytest.raises(ValueError) as caught:
        as_penalty(given)
    assert str(caught.value) == f"penalty = {given!r} is not allowed: penalty must be {words}."


@pytest.mark.parametrize("given", [None])
def test_no_penalty_given_is_a_ridge_of_strength_one(given):
    assert sv.ERM(penalty=given).penalty == Ridge(1.0)


@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda: Ridge(float("nan")),
            "strength = nan is not allowed: strength must be a finite number; it may be negative.",
        ),
        (lambda: Ridge("1"), "strength = '1' is not allowed: strength must be a finite number; it may be negative."),
        (lambda: Ridge(True), "strength = True is not allowed: strength must be a finite number; it may be negative."),
        (lambda: Lasso(-0.1), "strength = -0.1 is not allowed: strength must be a finite number, zero or positive."),
        (
            lambda: Lasso(float("inf")),
            "strength = inf is not allowed: strength must be a finite number, zero or positive.",
        ),
    ],
)
def test_bad_strengths_are_refused_in_plain_words(make, words):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == words


def test_numbers_given_as_penalty_are_checked_too():
    with pytest.raises(ValueError, match="nan is not allowed"):
        as_penalty(float("nan"))
