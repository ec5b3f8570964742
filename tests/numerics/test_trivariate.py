"""The number of positive coordinates among three correlated Gaussians, against products, quadrature and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from solvable.numerics.bivariate import quadrant_probabilities
from solvable.numerics.gaussian import normal_density, panels
from solvable.numerics.trivariate import positive_counts

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
def test_derivatives(name):
    rho, h = CORRELATIONS[name], 1e-4
    here = positive_counts(A, rho)
    for i in range(3):
        step = h * np.eye(3)[i]
        up, down = positive_counts(A + step, rho), positive_counts(A - step, rho)
        assert np.allclose((up.P - down.P) / (2 * h), here.gradient[:, :, i], atol=1e-6)
        assert np.allclose((up.gradient - down.gradient) / (2 * h), here.hessian[:, :, i], atol=1e-6)
