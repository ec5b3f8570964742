"""Untied keys and queries: the closed growth of small overlaps, the posterior against draws from the definition."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.channels.sequence.base import SequenceChannel
from solvable.channels.sequence.untied import UntiedChannel


@pytest.mark.parametrize("tokens", [2, 3, 5])
def test_small_overlaps_grow_by_the_closed_map(tokens):
    """Closed form against the average over labels of the posterior's own second moments, and against the threshold."""
    channel, nothing = UntiedChannel(tokens), np.zeros((2, 2))
    closed = channel.linearisation(nothing, np.eye(2))
    rate, push = closed.growing_overlap()
    assert 1 / rate == pytest.approx(1 / ((tokens - 1) * (tokens + np.sqrt(tokens**2 + 1))), rel=1e-12)
    assert push[0, 0] / push[1, 1] == pytest.approx((1 + np.sqrt(tokens**2 + 1)) / tokens, rel=1e-9)
    assert rate <= 2 * tokens * (tokens + 1)
    found = SequenceChannel.linearisation(channel, nothing, np.eye(2))
    np.testing.assert_allclose(found.easy, closed.easy, atol=6 * found.error)
    assert np.abs(found.trivial).max() < 1e-12


def test_the_posterior_is_that_of_draws_whose_label_comes_close():
    rng, T = np.random.default_rng(0), 2
    V, Omega = np.array([[0.6, 0.2], [0.2, 0.5]]), np.array([[0.4, -0.8], [0.9, 0.3]])
    truth = Omega + rng.standard_normal((T, 2)) @ np.linalg.cholesky(V).T
    z = Omega + rng.standard_normal((1_000_000, T, 2)) @ np.linalg.cholesky(V).T
    rows = z[:, :, 0] * (z[:, :1, 1] - z[:, 1:, 1])
    seen = truth[:, 0] * (truth[0, 1] - truth[1, 1])
    drawn = z[np.sum((rows - seen) ** 2, 1) < 0.05**2].reshape(-1, 2 * T)
    channel = UntiedChannel(T)
    found = channel.moments(channel.shown(truth[None]), Omega[None], V)
    errors = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert len(drawn) > 200 and np.all(np.abs(drawn.mean(axis=0) - found.mean[0]) < 4 * errors + 0.02)
    assert np.abs(np.cov(drawn.T) - found.covariance[0]).max() < 6 / np.sqrt(len(drawn))


def test_the_posterior_is_the_slope_of_its_evidence():
    rng, V = np.random.default_rng(1), np.diag([0.7, 0.5])
    channel, Omega = UntiedChannel(3), rng.standard_normal((5, 3, 2))
    shown = channel.shown(Omega + rng.standard_normal(Omega.shape))
    found = channel.moments(shown, Omega, V)
    for t, k in np.ndindex(3, 2):
        step = np.zeros((3, 2))
        step[t, k] = 1e-4
        up, down = (channel.moments(shown, Omega + sign * step, V).log_Z for sign in (1, -1))
        g = (found.mean.reshape(5, 3, 2) - Omega)[:, t, k] / V[k, k]
        np.testing.assert_allclose((up - down) / 2e-4, g, atol=1e-5)


@pytest.mark.parametrize(("v", "right", "most"), [(1e-4, True, 1e-8), (1e-2, False, 1e-5)])
def test_more_nodes_change_nothing_near_exact_recovery_and_at_fields_that_are_wrong(v, right, most):
    """A finer rule moves the mean by far less than its standard deviation; message passing may pass wrong fields.

    Fields that are wrong by e standard deviations have steps sqrt(81 + e^2) / 9 times as long, and fewer digits.
    """
    rng, channel, V = np.random.default_rng(2), UntiedChannel(2), v * np.array([[1, 0.5], [0.5, 1]])
    Omega = rng.standard_normal((100, 2, 2))
    near = Omega + rng.standard_normal(Omega.shape) @ np.linalg.cholesky(V).T
    shown = channel.shown(near if right else rng.standard_normal(Omega.shape))
    found, finer = (channel.moments(shown, Omega, V, fineness=fineness) for fineness in (1.0, 10.0))
    assert np.abs(found.mean - finer.mean).max() < most * np.sqrt(v)
    assert np.abs(found.covariance - finer.covariance).max() < most * v
    np.testing.assert_allclose(found.log_Z, finer.log_Z, atol=most)
