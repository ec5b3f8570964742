"""Piecewise linear links: their posterior by brute force, and that fitting undoes the blur of projections."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from solvable.estimators.links import KINKS, PiecewiseLinear, fitted
from solvable.targets.target import Target

LINK = PiecewiseLinear(0.3, 0.5, np.array([0.2, -0.4, 0.6, 0.9, -0.3, 0.1, -0.2]), 0.05)


@pytest.mark.parametrize(("V", "noise"), [(1.0, 0.05), (0.3, 0.3), (0.01, 1e-3)])
def test_the_posterior_is_that_of_brute_force(V, noise):
    link = PiecewiseLinear(LINK.offset, LINK.slope, LINK.bends, noise)
    rng = np.random.default_rng(0)
    omega = np.sqrt(1 - V) * rng.standard_normal((40,))
    y = np.asarray(link.value(omega + np.sqrt(V) * rng.standard_normal(40)) + np.sqrt(noise) * rng.standard_normal(40))
    found = link.posterior(link.observe(y), np.asarray(omega)[:, None], np.array([[V]]))
    centre = np.asarray(omega)[:, None]
    z = centre + np.sqrt(V) * np.linspace(-9, 9, 20_001)
    log_weight = -((y[:, None] - link.value(z)) ** 2) / (2 * noise) - (z - centre) ** 2 / (2 * V)
    step = np.sqrt(V) * 18 / 20_000
    log_Z = logsumexp(log_weight, axis=1) + np.log(step) - np.log(2 * np.pi) - np.log(noise * V) / 2
    weight = np.exp(log_weight - np.reshape(logsumexp(log_weight, axis=1), (-1, 1)))
    mean = np.asarray(np.sum(weight * z, axis=1))
    np.testing.assert_allclose(found.log_Z, log_Z, atol=1e-5)
    np.testing.assert_allclose(found.mean[:, 0], mean, atol=1e-5)
    np.testing.assert_allclose(
        found.covariance[:, 0, 0], np.sum(weight * (z - mean.reshape(-1, 1)) ** 2, axis=1), rtol=1e-3, atol=1e-8
    )


def test_labels_far_from_every_value_have_a_posterior():
    y = np.array([-1e4, 1e4, 0.0])
    found = LINK.posterior(y, np.array([[0.0], [5.0], [-40.0]]), np.array([[1e-4]]))
    assert all(np.isfinite(part).all() for part in found) and np.all(found.covariance >= 0)


def test_its_averages_and_its_text():
    omega = np.linspace(-3, 3, 13)
    nodes, weight = np.polynomial.legendre.leggauss(2000)
    for V in (1.0, 0.1):
        x = 9 * nodes
        density = 9 * weight * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        exact = LINK.value(omega[:, None] + np.sqrt(V) * x) @ density
        np.testing.assert_allclose(LINK.smoothed(omega, V), exact, atol=1e-5)
    np.testing.assert_allclose(Target(LINK.text).numpy(omega[:, None]), LINK.value(omega), atol=1e-4)
    low, high, a, b = LINK.pieces
    for k, point in enumerate((-3.0, -1.5, -0.9, -0.3, 0.3, 0.9, 1.5, 3.0)):
        assert low[k] < point < high[k]
        assert a[k] + b[k] * point == pytest.approx(float(LINK.value(np.array(point))))


@pytest.mark.parametrize("V", [0.02, 0.4])
def test_fitting_undoes_the_blur(V):
    rng = np.random.default_rng(1)
    omega = np.sqrt(1 - V) * rng.standard_normal(40_000)
    z = omega + np.sqrt(V) * rng.standard_normal(40_000)
    y = np.abs(z) + 0.2 * rng.standard_normal(40_000)
    link = fitted(omega, V, y)
    at = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    np.testing.assert_allclose(link.value(at), np.abs(at), atol=0.1 if V < 0.1 else 0.3)
    # Seven kinks bend no further: what they cannot follow counts as noise.
    assert link.noise == pytest.approx(0.04, abs=0.01 if V < 0.1 else 0.04)
    assert len(link.bends) == len(KINKS)
