"""The equations of random-feature ridge regression for any list of eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from reference import random_feature_ridge as reference
from scipy.optimize import brentq

from solvable.models.features.equivalent import Sums, gaps, risk


def solved(values, squares, n, p, penalty, noise, counts=1.0):
    """Risk, gaps and sums from eigenvalues that occur `counts` times, by bisection in log nu."""

    def sums(nu):
        s = values / (values + nu)
        parts = (counts * s**2, counts * s * (1 - s), squares * s**2, squares * s * (1 - s), squares * (1 - s) ** 2)
        return Sums(*(float(np.sum(part)) for part in parts))

    def equation(t):
        return sums(np.exp(t)).freedom - (n - float(gaps(np, n, p, penalty / np.exp(t)).samples))

    nu = np.exp(brentq(equation, -40, 40, xtol=1e-14))
    gap = gaps(np, n, p, penalty / nu)
    return risk(n, p, noise, gap, sums(nu)), gap, sums(nu)


@pytest.mark.parametrize(("n", "p", "penalty"), [(50, 80, 0.1), (80, 50, 0.1), (60, 60, 1e-3), (50, np.inf, 0.2)])
def test_it_is_what_was_published(n, p, penalty):
    k = np.arange(1.0, 401)
    found, gap, sums = solved(k**-1.4, k**-2.3, n, p, penalty, 0.3)
    bias, variance, _, _ = reference.published(reference.power_law(1.4, 1.3 / 2.8, 400), n, p, penalty, 0.3)
    assert found.bias == pytest.approx(bias, rel=1e-8) and found.variance == pytest.approx(variance, rel=1e-8)
    assert gap.samples == pytest.approx(n - sums.freedom) and gap.features == pytest.approx(1 - sums.freedom / p)
    # |f - f*|^2 = |f|^2 - 2 f.f* + |f*|^2
    assert found.norm - 2 * found.inner + np.sum(k**-2.3) == pytest.approx(bias + variance, rel=1e-8)


def test_a_layer_of_random_neurons_is_a_list_of_two_eigenvalues():
    """tanh features and a sine as target, n = 1.37 d, p = .83 d: test error with noise .479144, training .135763."""
    d, many, noise, penalty = 1e5, 1e12, 0.1, 0.05
    x, w = np.polynomial.hermite_e.hermegauss(200)
    w = w / w.sum()
    mu1 = w @ (x * np.tanh(x))
    rest = w @ np.tanh(x) ** 2 - mu1**2
    t1, second = np.exp(-0.5), (1 - np.exp(-2.0)) / 2
    values = np.array([mu1**2 / d, rest / many])
    squares = np.array([t1**2, second - t1**2])
    found, _, _ = solved(values, squares, 1.37 * d, 0.83 * d, penalty * 1.0, noise, np.array([d, many]))
    test = found.bias + found.variance + noise
    assert test == pytest.approx(0.4791437878, abs=1e-8)
    assert found.shrinkage**2 * test == pytest.approx(0.1357633623, abs=1e-8)
