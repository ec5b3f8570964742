"""Probabilities of orthants against mpmath, SciPy, quadrature and differences.

Quadrants of Gaussian pairs, in the bulk and far into the tails; the number of positive coordinates among three."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal

from solvable.numerics.gaussian import normal_density, panels
from solvable.numerics.orthants import (
    log_quadrant,
    mean_sign,
    positive_counts,
    quadrant,
    quadrant_probabilities,
    same_sign,
    standardised,
)

RHOS = (0.0, 0.3, -0.6, 0.95, -0.95, 0.9999, -0.9999)


def steepness(rho):
    return float(np.sqrt((1 - rho) * (1 + rho)))


@pytest.mark.parametrize("rho", RHOS)
def test_bulk_against_scipy(rho):
    a, b = np.random.default_rng(0).standard_normal((2, 12))
    exact = multivariate_normal([0, 0], [[1, rho], [rho, 1]], allow_singular=True).cdf(np.stack([a, b], 1))
    assert np.allclose(np.exp(log_quadrant(a, b, rho, steepness(rho))), exact, atol=1e-7)
    both, none = quadrant_probabilities(a, b, rho)
    assert np.allclose(both, exact, atol=1e-7)
    minus, plus = same_sign(a, b, rho, steepness(rho))
    assert np.allclose(np.exp(plus.log_P), both + none, atol=1e-12)
    assert np.allclose(np.exp(minus.log_P), 1 - both - none, atol=1e-12)
    assert np.allclose(mean_sign(a, b, rho, steepness(rho)), 2 * (both + none) - 1, atol=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rho", [r for r in RHOS if abs(r) < 0.99])
def test_tails_against_mpmath(rho):
    """log P to nine digits down to exp(-several thousand): one-dimensional integrals with twenty digits."""
    s = mpmath.sqrt(1 - mpmath.mpf(rho) ** 2)
    with mpmath.workdps(20):
        for a, b in ((-3.0, -4.0), (1.0, -9.0), (-20.0, -25.0), (3.0, -45.0)):
            # Integrated along the coordinate whose constraint is active at the nearest point of the quadrant.
            first, second = (b, a) if (b < 0 and rho * b < a) else (a, b)
            ends = [mpmath.mpf(0), *(mpmath.mpf(2) ** j for j in range(-8, 7))]

            def density(t, first=first, second=second):
                return mpmath.npdf(t - first) * mpmath.ncdf((second + rho * (t - first)) / s)

            exact = mpmath.log(mpmath.quad(density, ends))
            found = log_quadrant(np.array([a]), np.array([b]), rho, steepness(rho))[0]
            assert abs(found - float(exact)) < 1e-9 * max(1.0, abs(float(exact)))


def test_impossible_labels_have_the_nearest_half_plane():
    """Beyond underflow, P(z1 z2 < 0) at a = b is twice the tail of one coordinate."""
    minus, _ = same_sign(np.array([50.0, 300.0]), np.array([50.0, 300.0]), 0.2, steepness(0.2))
    assert np.allclose(minus.log_P, np.log(2) + log_ndtr([-50.0, -300.0]), atol=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.4, -0.9])
def test_slopes(rho):
    s, h = steepness(rho), 1e-4
    a, b = 1.5 * np.random.default_rng(1).standard_normal((2, 20))
    for function in (
        quadrant,
        lambda *args: same_sign(*args)[0],
        lambda *args: same_sign(*args)[1],
    ):
        here = function(a, b, rho, s)
        steps = ((h, 0.0), (0.0, h))
        for j, (da, db) in enumerate(steps):
            up, down = function(a + da, b + db, rho, s), function(a - da, b - db, rho, s)
            assert np.allclose((up.log_P - down.log_P) / (2 * h), here.slope[:, j], rtol=1e-5, atol=1e-6)
            change = (up.slope - down.slope) / (2 * h)
            expected = here.curvature[:, j] - here.slope[:, [j]] * here.slope
            assert np.allclose(change, expected, rtol=1e-4, atol=1e-5)


def test_the_origin_and_the_axes():
    zero = np.zeros(1)
    for rho in (0.3, -0.8):
        exact = 0.25 + np.arcsin(rho) / (2 * np.pi)
        assert np.exp(log_quadrant(zero, zero, rho, steepness(rho)))[0] == pytest.approx(exact, abs=1e-14)
    assert np.exp(log_quadrant(zero, np.array([1.0]), 0.0, 1.0))[0] == pytest.approx(0.5 * 0.8413447460685429)


def test_standardised_keeps_the_determinant():
    V = 0.5 * np.array([[1, -(1 - 1e-10)], [-(1 - 1e-10), 1]])
    a, b, rho, s, scale = standardised(np.array([[0.5, 1.0]]), V)
    assert s == pytest.approx(np.sqrt(2e-10), rel=1e-5) and rho == pytest.approx(-1)
    assert a[0] * scale[0] == pytest.approx(0.5) and b[0] * scale[1] == pytest.approx(1.0)


# Three coordinates

CORRELATIONS = {
    "mild": np.array([[1, 0.3, -0.2], [0.3, 1, 0.5], [-0.2, 0.5, 1]]),
    "negative": 1.45 * np.eye(3) - 0.45,
    "strong": np.array([[1, 0.97, 0.9], [0.97, 1, 0.95], [0.9, 0.95, 1]]),
}
A = np.random.default_rng(0).standard_normal((12, 3))


def test_independent_coordinates():
    found = positive_counts(A, np.eye(3))
    assert np.allclose(found.P[:, 3], ndtr(A).prod(1), atol=1e-15)
    assert np.allclose(found.P.sum(1), 1, atol=1e-15)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_orthants_against_quadrature(name):
    """P(z > 0) = int phi(x) P(z_2 > 0, z_3 > 0 | x_1 = x) dx over x > -a_1, and the mean number of positive z."""
    rho = CORRELATIONS[name]
    found = positive_counts(A, rho)
    s = np.sqrt(1 - rho[0, 1:] ** 2)
    partial = (rho[1, 2] - rho[0, 1] * rho[0, 2]) / s.prod()
    for a, P in zip(A, found.P, strict=True):
        x, weight = panels(np.linspace(-a[0], 10.0, 40), 12, graded=False)
        both, _ = quadrant_probabilities((a[1] + rho[0, 1] * x) / s[0], (a[2] + rho[0, 2] * x) / s[1], partial)
        assert P[3] == pytest.approx(np.sum(weight * normal_density(x) * both), abs=2e-8)
    assert np.allclose(found.P.sum(1), 1, atol=1e-14)
    assert np.allclose(found.P @ np.arange(4), ndtr(A).sum(1), atol=1e-7)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_derivatives_of_the_counts(name):
    rho, h = CORRELATIONS[name], 1e-4
    here = positive_counts(A, rho)
    for i in range(3):
        step = h * np.eye(3)[i]
        up, down = positive_counts(A + step, rho), positive_counts(A - step, rho)
        assert np.allclose((up.P - down.P) / (2 * h), here.gradient[:, :, i], atol=1e-6)
        assert np.allclose((up.gradient - down.gradient) / (2 * h), here.hessian[:, :, i], atol=1e-6)
