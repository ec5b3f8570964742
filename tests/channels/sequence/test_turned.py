"""A layer of several directions: labels undone up to a turn, posteriors against drawn turns, growth in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.channels.sequence.angles import average_over_angles
from solvable.channels.sequence.base import SequenceChannel
from solvable.channels.sequence.turned import TurnedChannel
from solvable.channels.sequence.turns import average_over_turns


@pytest.mark.parametrize(("tokens", "rank"), [(3, 2), (5, 2), (4, 3), (6, 5)])
def test_a_label_shows_its_projections_up_to_a_turn(tokens, rank):
    z = np.random.default_rng(0).standard_normal((6, tokens, rank))
    scores = z @ z.swapaxes(1, 2)
    log_y = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    u = TurnedChannel(tokens, rank).observe(log_y)
    np.testing.assert_allclose(u @ u.swapaxes(1, 2), scores, atol=1e-9)


COVARIANCES = {
    "diagonal": np.diag([0.9, 0.5]),
    "mixed": np.array([[0.3, 0.1], [0.1, 0.2]]),
    "three, alike": 0.6 * np.eye(3),
    "three, mixed": np.array([[0.5, 0.1, 0.0], [0.1, 0.4, 0.0], [0.0, 0.0, 0.9]]),
    "four": 0.7 * np.eye(4),
}


SETS, EVEN_TURNS = 12, 200_000


@pytest.mark.parametrize("V", COVARIANCES.values(), ids=COVARIANCES)
def test_posteriors_are_those_of_drawn_turns(V):
    """The mean of twelve sets of draws against even turns; the scatter of the sets tells their error, and both errors
    are small."""
    rng, r = np.random.default_rng(0), len(V)
    channel = TurnedChannel(max(r + 1, 3), r)
    T = channel.tokens
    u, Omega = rng.standard_normal((2, 1, T, r)) / (1 if r < 3 else 1.5)
    sets = [channel.moments(u, Omega, V, draw=number, fineness=1.0 if r == 2 else 8.0) for number in range(SETS)]
    turn = np.linalg.qr(rng.standard_normal((EVEN_TURNS, r, r)))[0] * rng.choice([-1.0, 1.0], (EVEN_TURNS, 1, r))
    z = u[0] @ turn
    left = z - Omega[0]
    log_p = -np.einsum("kta,ab,ktb->k", left, np.linalg.inv(V), left, optimize=True) / 2
    p = np.exp(log_p - log_p.max())
    flat = z.reshape(len(z), -1)
    mean = p @ flat / p.sum()
    off = (flat - mean) ** 2
    square = p @ off / p.sum()
    norm = -T / 2 * np.linalg.slogdet(2 * np.pi * V)[1]
    found = [
        (
            np.array([part.log_Z[0] for part in sets]),
            np.log(p.mean()) + log_p.max() + norm,
            p.std() / p.mean() / len(p) ** 0.5,
        ),
        (np.array([part.mean[0] for part in sets]), mean, np.sqrt(p**2 @ off) / p.sum()),
        (
            np.array([np.diag(part.covariance[0]) for part in sets]),
            square,
            np.sqrt(p**2 @ (off - square) ** 2) / p.sum(),
        ),
    ]
    for values, known, known_error in found:
        error = np.hypot(known_error, values.std(axis=0, ddof=1).max() / np.sqrt(SETS))
        assert np.max(error) < 0.02
        assert np.max(np.abs(values.mean(axis=0) - known) / error) < 4.5


def test_a_posterior_on_data_has_more_draws_and_leaves_the_channel_as_it_is():
    rng, V = np.random.default_rng(6), 0.5 * np.eye(3)
    channel, twin = TurnedChannel(4, 3), TurnedChannel(4, 3)
    u, Omega = rng.standard_normal((2, 5, 4, 3))
    before = dict(vars(channel))
    found = channel.posterior(u, Omega.reshape(20, 3), V)
    assert vars(channel) == before and channel == twin
    np.testing.assert_array_equal(found.mean.reshape(5, 12), twin.moments(u, Omega, V, fineness=8.0).mean)


def turned_case(V, tokens, count, rng):
    """A, G and the precision of samples whose fields and labels are those of a covariance left."""
    r, inverse = len(V), np.linalg.inv(V)
    Omega = rng.standard_normal((count, tokens, r)) @ np.linalg.cholesky(np.eye(r) - V).T
    u = Omega + rng.standard_normal(Omega.shape) @ np.linalg.cholesky(V).T
    u = u @ np.linalg.qr(rng.standard_normal((count, r, r)))[0]
    return np.einsum("nti,nta,ab->nib", u, Omega, inverse), np.einsum("nti,ntj->nij", u, u), inverse


@pytest.mark.parametrize(("V", "most"), [(0.5 * np.eye(2), 0.02), (0.01 * np.eye(2), 0.02), (np.diag([0.9, 0.3]), 0.1)])
def test_draws_agree_with_the_angle(V, most):
    A, G, precision = turned_case(V, 3, 40, np.random.default_rng(3))
    exact = average_over_angles(A, G, precision, np.sqrt(np.diag(V).min() / 12))
    drawn = average_over_turns(A, G, precision, 12, 0)
    # A turn is known to about sqrt(V).
    assert np.abs(drawn.first - exact.first).max() < most * np.sqrt(np.diag(V).min())
    assert np.abs(drawn.second - exact.second).max() < 2 * most * np.sqrt(np.diag(V).min())
    np.testing.assert_allclose(drawn.log_Z, exact.log_Z, atol=most)


@pytest.mark.parametrize(("rank", "v", "most"), [(3, 0.9, 0.02), (3, 0.1, 0.02), (3, 1e-3, 0.02), (4, 0.2, 0.15)])
def test_two_sets_of_draws_of_turns_agree(rank, v, most):
    """Within a share of the standard deviation that the posterior has anyway, whatever is known."""
    A, G, precision = turned_case(v * np.eye(rank), rank + 1, 60, np.random.default_rng(4))
    sets = [average_over_turns(A, G, precision, 9, number).first for number in range(4)]
    scatter = np.sqrt(np.mean(np.var(sets, axis=0, ddof=1)))
    spread = np.sqrt(np.mean(1 - np.sum(np.mean(sets, axis=0) ** 2, axis=1)))
    assert scatter < most * spread


def test_a_turn_of_all_fields_turns_the_posterior():
    rng, channel, V = np.random.default_rng(5), TurnedChannel(4, 3), np.diag([0.5, 0.6, 0.7])
    u, Omega = rng.standard_normal((2, 10, 4, 3))
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    one, two = channel.moments(u, Omega, V), channel.moments(u, Omega @ turn, turn.T @ V @ turn)
    np.testing.assert_allclose(one.mean.reshape(u.shape) @ turn, two.mean.reshape(u.shape), atol=1e-10)


def test_the_uncertainty_of_averages_over_draws_covers_finer_ones():
    channel = TurnedChannel(4, 3)
    for v in (0.8, 0.3):
        coarse, fine = channel.average(v * np.eye(3), 0.25), channel.average(v * np.eye(3), 1.0)
        assert np.abs(coarse.information - fine.information).max() < 3 * (coarse.error + fine.error)
        np.testing.assert_allclose(fine.information, fine.information[0, 0] * np.eye(3))


def test_averages_do_not_change_with_finer_angles():
    for v in (0.8, 0.05):
        channel, V = TurnedChannel(3), v * np.eye(2)
        points = channel._points(V, 0, 1.0)
        one, two = (channel.moments(points.shown, points.Omega, V, fineness=f) for f in (1.0, 3.0))
        np.testing.assert_allclose(one.mean, two.mean, atol=1e-6)


@pytest.mark.parametrize(("tokens", "rank"), [(4, 2), (4, 3)])
def test_small_overlaps_grow_as_in_closed_form(tokens, rank):
    channel, nothing = TurnedChannel(tokens, rank), np.zeros((rank, rank))
    drawn = SequenceChannel.linearisation(channel, nothing, np.eye(rank))
    closed = channel.linearisation(nothing, np.eye(rank)).easy
    np.testing.assert_allclose(closed, tokens * (tokens + 1) / rank * np.eye(rank**2))
    assert np.abs(drawn.easy - closed).max() < 4 * drawn.error
