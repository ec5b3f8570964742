"""Errors and predictions of labels next to recovery, where V is narrower than level sets resolve."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.channels.generic import GenericChannel
from solvable.targets.target import Target

NEARLY = {"alike": [3e-3, 3e-3, 3e-3], "first alone": [0.113, 1e-6, 1e-6]}


def pairs(target, V, n, seed):
    """omega, and two z with this posterior."""
    rng, r = np.random.default_rng(seed), target.projections
    omega = rng.multivariate_normal(np.zeros(r), np.eye(r) - V, n)
    return omega, *(omega + rng.multivariate_normal(np.zeros(r), V, n) for _ in range(2))


@pytest.mark.parametrize("text", ["where(z1>0,z2,z3)", "z1*z2*z3", "z1*z2+0.3*z1**3"])
@pytest.mark.parametrize("v", NEARLY.values(), ids=NEARLY)
def test_errors_next_to_recovery_are_half_those_of_two_draws(text, v):
    target = Target(text)
    V = np.diag(v[: target.projections])
    value, error = (part[0] for part in GenericChannel(target).predictor.errors(V[None])["generalization_error"])
    _, one, two = pairs(target, V, 100_000, 1)
    half = (target.numpy(one) - target.numpy(two)) ** 2 / 2
    assert abs(value - half.mean()) < error + 4 * half.std() / np.sqrt(len(half))
    assert error < 0.1 * value


@pytest.mark.parametrize("text", ["where(z1>0,z2,z3)", "z1*z2*z3"])
@pytest.mark.parametrize("v", NEARLY.values(), ids=NEARLY)
def test_predictions_next_to_recovery_are_posterior_means(text, v):
    """What they miss of one draw and of another, times each other, is what no prediction can avoid missing."""
    target, V = Target(text), np.diag(v)
    omega, one, two = pairs(target, V, 20_000, 2)
    predicted = GenericChannel(target).predictor.predict(omega, V)
    one, two = target.numpy(one), target.numpy(two)
    excess = ((one - predicted) ** 2 + (two - predicted) ** 2 - (one - two) ** 2) / 2
    least = np.mean((one - two) ** 2) / 2
    assert abs(excess.mean()) < 4 * excess.std() / np.sqrt(len(excess)) + 0.01 * least
    assert excess.std() / np.sqrt(len(excess)) < 0.05 * least


def test_the_most_probable_label_next_to_recovery():
    target, V = Target("sign(z1)+sign(z2)+sign(z3)"), np.diag([1e-3, 2e-3, 1e-3])
    omega, z, _ = pairs(target, V, 4000, 3)
    found = GenericChannel(target).predictor.classify(omega, V)
    # Each sign is the more probable one by itself.
    np.testing.assert_array_equal(found[np.abs(omega).min(1) > 0.02], target.numpy(omega)[np.abs(omega).min(1) > 0.02])
    assert np.mean(found != target.numpy(z)) < 1.2 * np.mean(target.numpy(omega) != target.numpy(z))
