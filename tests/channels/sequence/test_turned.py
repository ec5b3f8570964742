"""A layer of rank two: labels undone up to a turn, posteriors against drawn turns, small overlaps in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.channels.sequence.base import SequenceChannel
from solvable.channels.sequence.turned import TurnedChannel

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("tokens", [3, 5])
def test_a_label_shows_its_projections_up_to_a_turn(tokens):
    z = RNG.standard_normal((6, tokens, 2))
    scores = z @ z.swapaxes(1, 2)
    log_y = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    u = TurnedChannel(tokens).observe(log_y)
    np.testing.assert_allclose(u @ u.swapaxes(1, 2), scores, atol=1e-9)


@pytest.mark.parametrize("V", [np.diag([0.9, 0.5]), np.array([[0.3, 0.1], [0.1, 0.2]])], ids=["diagonal", "mixed"])
def test_posteriors_are_those_of_drawn_turns(V):
    channel, inverse = TurnedChannel(3), np.linalg.inv(V)
    u, Omega = RNG.standard_normal((2, 1, 3, 2))
    found = channel.moments(u, Omega, V)
    turn = np.linalg.qr(RNG.standard_normal((200_000, 2, 2)))[0] * RNG.choice([-1.0, 1.0], (200_000, 1, 2))
    z = u[0] @ turn
    left = z - Omega[0]
    log_p = -np.einsum("kta,ab,ktb->k", left, inverse, left, optimize=True) / 2
    p = np.exp(log_p - log_p.max())
    flat = z.reshape(len(z), -1)
    mean = p @ flat / p.sum()
    error = np.sqrt(p**2 @ (flat - mean) ** 2) / p.sum()
    assert np.all(np.abs(found.mean[0] - mean) < 4 * error + 1e-12)
    square = np.einsum("k,ka->a", p, (flat - mean) ** 2) / p.sum()
    np.testing.assert_allclose(np.diag(found.covariance[0]), square, rtol=0.05)
    norm = -3 / 2 * np.linalg.slogdet(2 * np.pi * V)[1]
    assert found.log_Z[0] == pytest.approx(np.log(p.mean()) + log_p.max() + norm, abs=0.03)


def test_averages_do_not_change_with_finer_angles():
    for v in (0.8, 0.05):
        channel, V = TurnedChannel(3), v * np.eye(2)
        points = channel._points(V, 0, 1.0)
        one, two = (channel.moments(points.shown, points.Omega, V, fineness=f) for f in (1.0, 3.0))
        np.testing.assert_allclose(one.mean, two.mean, atol=1e-6)


def test_small_overlaps_grow_as_in_closed_form():
    channel = TurnedChannel(4)
    drawn = SequenceChannel.linearisation(channel, np.zeros((2, 2)), np.eye(2))
    closed = channel.linearisation(np.zeros((2, 2)), np.eye(2)).easy
    np.testing.assert_allclose(closed, 10 * np.eye(4))
    assert np.abs(drawn.easy - closed).max() < 4 * drawn.error
