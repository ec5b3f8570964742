"""Ridge regression on symmetric matrices is ridge regression on vectors, two samples counting as one for an unknown."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv

ALPHA = np.array([0.05, 0.2, 0.45, 0.5, 0.6, 1.5, 20.0])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("penalty", [1e-3, 0.1, 2.0])
@pytest.mark.parametrize(("rho", "noise"), [(0.5, 0.3), (0.5, 0.0), (3.0, 0.3)])
def test_lazy_training_is_least_squares_with_a_ridge(rho, noise, penalty):
    """alpha -> 2 alpha, gamma^2 = E A^2, Delta -> Delta / 2: one closed form serves both families."""
    network = sv.QuadraticNetwork(rho, noise)
    power = network.law.second_moment
    lazy = sv.predict(network, sv.Lazy(penalty), alpha=ALPHA)
    vector = sv.MultiIndex(f"{float(np.sqrt(power))!r} * z", noise / 2)
    ridge = sv.predict(vector, sv.ERM("square", penalty), alpha=2 * ALPHA)
    scale = 1 + power
    np.testing.assert_allclose(lazy["estimation_error"], ridge["generalization_error"], atol=2e-14 * scale)
    # Half of the squared residual of a label of half the variance.
    np.testing.assert_allclose(lazy["training_error"], 4 * ridge["training_loss"], atol=2e-14 * scale)


def test_without_penalty_both_interpolate_and_then_recover():
    network = sv.QuadraticNetwork(0.5)
    vector = sv.MultiIndex(f"{float(np.sqrt(network.law.second_moment))!r} * z")
    lazy = sv.predict(network, sv.Lazy(0.0), alpha=ALPHA)["estimation_error"]
    ridge = sv.predict(vector, sv.ERM("square", 0.0), alpha=2 * ALPHA)["generalization_error"]
    np.testing.assert_allclose(lazy, ridge, atol=1e-14)
    assert np.all(ridge[ALPHA >= 0.5] < 1e-14) and np.all(lazy[ALPHA < 0.5] > 0.01)
