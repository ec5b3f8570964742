"""Several layers of several directions: what labels show, posteriors against draws from the definition, limits."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.channels.sequence.base import SequenceChannel
from solvable.channels.sequence.network import last_projections, log_attention
from solvable.channels.sequence.turned import TurnedChannel
from solvable.channels.sequence.turned_layers import TurnedLayersChannel
from solvable.channels.sequence.untied import UntiedChannel
from solvable.channels.sequence.untied_layers import UntiedLayersChannel

MIXED = np.array([[0.5, 0.1, 0.0, 0.1], [0.1, 0.5, 0.0, 0.0], [0.0, 0.0, 0.4, 0.1], [0.1, 0.0, 0.1, 0.3]])


def network(X, W, c, tied):
    """The attention matrix of the last layer, from tokens (n, T, d) and the directions (d, w) of each layer."""
    d = X.shape[-1]
    for number, w in enumerate(W):
        queries, keys = (X @ w, X @ w) if tied else (X @ w[:, :1], X @ w[:, 1:])
        scores = queries @ keys.swapaxes(1, 2) / d
        A = np.exp(scores - scores.max(axis=-1, keepdims=True))
        A /= A.sum(axis=-1, keepdims=True)
        if number < len(W) - 1:
            X = c * X + A @ X
    return A


def fields(rng, V, count, tokens):
    """Omega and projections with the covariance V left."""
    Omega = rng.standard_normal((count, tokens, len(V))) @ np.linalg.cholesky(np.eye(len(V)) - V).T
    return Omega, Omega + rng.standard_normal(Omega.shape) @ np.linalg.cholesky(V).T


@pytest.mark.parametrize(("tied", "layers", "tokens"), [(True, 2, 3), (False, 2, 2), (False, 3, 3)])
def test_what_a_label_shows_is_seen_in_the_labels_of_the_network(tied, layers, tokens):
    rng, d, c = np.random.default_rng(0), 20, 1.3
    channel = (TurnedLayersChannel if tied else UntiedLayersChannel)(layers, tokens, c)
    X, W = rng.standard_normal((30, tokens, d)), rng.standard_normal((layers, d, 2))
    z = np.concatenate([X @ w for w in W], axis=-1) / np.sqrt(d)
    seen, known = channel.observe(np.log(network(X, W, c, tied))), channel.shown(z)
    if tied:
        np.testing.assert_allclose(seen @ seen.swapaxes(1, 2), known @ known.swapaxes(1, 2), atol=1e-5)
        return
    one, two = (p.size[:, None, None] * p.query[:, :, None] * p.key[:, None, :] for p in (seen, known))
    np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_behind_a_strong_residual_connection_the_last_layer_is_a_single_one(tied):
    rng, T = np.random.default_rng(1), 3
    layers, one = (
        (TurnedLayersChannel(2, T, 1e4), TurnedChannel(T))
        if tied
        else (UntiedLayersChannel(2, T, 1e4), UntiedChannel(T))
    )
    V = MIXED.copy()
    V[:2, 2:] = V[2:, :2] = 0.0
    Omega, z = fields(rng, V, 5, T)
    found = layers.moments(layers.shown(z), Omega, V, fineness=4.0)
    alone = one.moments(one.shown(z[..., 2:]), Omega[..., 2:], V[2:, 2:])
    mean, both = found.mean.reshape(5, T, 4), found.covariance.reshape(5, T, 4, T, 4)
    np.testing.assert_allclose(mean[..., 2:].reshape(5, -1), alone.mean, atol=3e-3)
    np.testing.assert_allclose(both[:, :, 2:, :, 2:].reshape(5, 2 * T, 2 * T), alone.covariance, atol=3e-3)
    np.testing.assert_allclose(mean[..., :2], Omega[..., :2], atol=0.01)


@pytest.mark.parametrize("tied", [True, False])
def test_once_the_first_layer_is_known_the_second_is_a_single_one_behind_a_known_matrix(tied):
    """z_2 = B^-1 u_2, B = c + softmax(..): up to a turn, or up to the split and the mean, as a layer of its own."""
    rng, T, c = np.random.default_rng(2), 3, 1.2
    layers, one = (
        (TurnedLayersChannel(2, T, c), TurnedChannel(T)) if tied else (UntiedLayersChannel(2, T, c), UntiedChannel(T))
    )
    V = np.diag([1e-12, 1e-12, 0.5, 0.4])
    Omega, z = fields(rng, V, 4, T)
    u = last_projections(z, c, 2, tied)
    B = c * np.eye(T) + np.exp(log_attention(Omega[..., :2], tied))
    if tied:
        turned = u @ np.linalg.qr(rng.standard_normal((4, 2, 2)))[0]
        shown, alone = turned, one.shown(np.linalg.solve(B, turned))
    else:
        shown, alone = layers.shown(z), one.shown(np.linalg.solve(B, u))
    other = Omega + np.array([0, 0, 0.3, -0.2])

    def found(where):
        both = layers.moments(shown, where, V, fineness=16.0)
        return both, one.moments(alone, where[..., 2:], V[2:, 2:])

    (both, single), (shifted, moved) = found(Omega), found(other)
    mean, covariance = both.mean.reshape(4, T, 4), both.covariance.reshape(4, T, 4, T, 4)
    np.testing.assert_allclose(mean[..., 2:].reshape(4, -1), single.mean, atol=2e-3)
    np.testing.assert_allclose(covariance[:, :, 2:, :, 2:].reshape(4, 2 * T, 2 * T), single.covariance, atol=2e-3)
    np.testing.assert_allclose(shifted.log_Z - both.log_Z, moved.log_Z - single.log_Z, atol=4e-3)
    if tied:
        np.testing.assert_allclose(both.log_Z, single.log_Z - 2 * np.linalg.slogdet(B)[1], atol=4e-3)


def test_labels_of_untied_layers_tell_nothing_of_the_mean_key_of_any_layer():
    """Rows of a softmax do not change with a number added to all keys, and B takes what tokens share to the same."""
    rng, T = np.random.default_rng(4), 3
    channel, V = UntiedLayersChannel(3, T, 1.0), np.diag([0.5, 0.6, 0.4, 0.3, 0.5, 0.4])
    Omega, z = fields(rng, V, 3, T)
    shifted = z + np.array([0, 0.7, 0, -0.4, 0, 1.1])
    one, two = (log_attention(last_projections(part, 1.0, 2, tied=False), tied=False) for part in (z, shifted))
    np.testing.assert_allclose(one, two, atol=1e-12)
    sets = [channel.moments(channel.shown(z), Omega, V, draw, 4.0) for draw in range(8)]
    keys = np.array([part.mean.reshape(3, T, 6).mean(axis=1)[:, 1::2] for part in sets])
    left = keys - Omega.mean(axis=1)[:, 1::2]
    np.testing.assert_allclose(left[..., -1], 0, atol=1e-12)
    assert np.abs(left.mean(axis=0)).max() < 5 * left.std(axis=0, ddof=1).max() / np.sqrt(8) < 0.1
    spread = sets[0].covariance.reshape(3, T, 6, T, 6)[:, :, 5, :, 5].mean(axis=(1, 2))
    np.testing.assert_allclose(spread, V[5, 5] / T, atol=1e-12)


@pytest.mark.parametrize("layers", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_turns_of_the_directions_of_a_layer_turn_the_posterior(layers):
    """The label does not change with them: fields and covariance turned in each layer turn the means, up to draws."""
    rng, T = np.random.default_rng(5), 3
    channel, V = TurnedLayersChannel(layers, T, 1.0), np.diag([0.6, 0.4] * layers)
    Omega, z = fields(rng, V, 4, T)
    turns = np.linalg.qr(rng.standard_normal((layers, 2, 2)))[0]
    turn = np.zeros((2 * layers, 2 * layers))
    for number, own in enumerate(turns):
        turn[2 * number : 2 * number + 2, 2 * number : 2 * number + 2] = own
    shown = channel.shown(z)
    np.testing.assert_allclose(channel.shown(z @ turn), shown @ turns[-1], atol=1e-12)
    one = np.array([channel.moments(shown, Omega, V, draw, 2.0).mean for draw in range(8)])
    two = np.array([channel.moments(shown, Omega @ turn, turn.T @ V @ turn, draw, 2.0).mean for draw in range(8)])
    gap = one.mean(axis=0).reshape(Omega.shape) @ turn - two.mean(axis=0).reshape(Omega.shape)
    error = np.sqrt((one.var(axis=0, ddof=1).max() + two.var(axis=0, ddof=1).max()) / 8)
    assert np.abs(gap).max() < 4.5 * error < 0.1


def test_the_posterior_of_untied_layers_is_that_of_draws_whose_label_comes_close():
    rng, T = np.random.default_rng(7), 2
    channel = UntiedLayersChannel(2, T, 1.0)
    Omega = 0.7 * rng.standard_normal((1, T, 4))
    root = np.linalg.cholesky(MIXED).T

    def rows(z):
        log_y = log_attention(last_projections(z, 1.0, 2, tied=False), tied=False)
        return (log_y - log_y.mean(axis=-1, keepdims=True))[:, :, 0]

    truth = Omega + rng.standard_normal(Omega.shape) @ root
    z = Omega + rng.standard_normal((1_500_000, T, 4)) @ root
    drawn = z[np.sum((rows(z) - rows(truth)) ** 2, axis=1) < 0.06**2].reshape(-1, 4 * T)
    found = channel.moments(channel.shown(truth), Omega, MIXED, fineness=8.0)
    errors = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert len(drawn) > 200 and np.all(np.abs(drawn.mean(axis=0) - found.mean[0]) < 4 * errors + 0.02)
    assert np.abs(np.cov(drawn.T) - found.covariance[0]).max() < 6 * 0.5 / np.sqrt(len(drawn)) + 0.02


def test_the_posterior_of_turned_layers_is_that_of_drawn_turns():
    """Even turns of the last layer instead of those around a mode, by NumPy's inverses."""
    rng, T, c = np.random.default_rng(3), 3, 1.0
    channel = TurnedLayersChannel(2, T, c)
    Omega, z = fields(rng, MIXED, 1, T)
    u = channel.shown(z)[0]
    early = Omega[0] + rng.standard_normal((400_000, T, 4)) @ np.linalg.cholesky(MIXED).T
    B = c * np.eye(T) + np.exp(log_attention(early[..., :2]))
    angle, sign = 2 * np.pi * rng.random(len(early)), rng.choice([-1.0, 1.0], len(early))
    cos, sin = np.cos(angle), np.sin(angle)
    turn = np.stack([cos, -sign * sin, sin, sign * cos], 1).reshape(-1, 2, 2)
    last = np.linalg.solve(B, u @ turn)
    slope = np.linalg.solve(MIXED[:2, :2], MIXED[:2, 2:])
    left = np.linalg.inv(MIXED[2:, 2:] - MIXED[2:, :2] @ slope)
    off = last - Omega[0, :, 2:] - (early[..., :2] - Omega[0, :, :2]) @ slope
    log_p = -0.5 * np.einsum("nta,ab,ntb->n", off, left, off, optimize=True) - 2 * np.log(np.linalg.det(B))
    p = np.exp(log_p - log_p.max())
    drawn = np.concatenate([early[..., :2], last], axis=2).reshape(len(p), -1)
    mean = p @ drawn / p.sum()
    error = np.sqrt(p**2 @ (drawn - mean) ** 2) / p.sum()
    found = channel.moments(u[None], Omega, MIXED, fineness=8.0)
    assert error.max() < 0.03 and np.all(np.abs(found.mean[0] - mean) < 4 * error + 0.003)
    spread = np.einsum("n,na,nb->ab", p, drawn - mean, drawn - mean, optimize=True) / p.sum()
    assert np.abs(found.covariance[0] - spread).max() < 0.03


@pytest.mark.parametrize("channel", [TurnedLayersChannel(2, 3, 1.0), UntiedLayersChannel(2, 2, 1.0)], ids=str)
def test_what_labels_leave_open_is_independent_of_what_they_tell(channel):
    """With the z that made a label, z - E[z|y] has no correlation with what is known, and the stated covariance."""
    rng, V, count = np.random.default_rng(8), np.diag([0.6, 0.6, 0.4, 0.4]), 3000
    Omega, z = fields(rng, V, count, channel.tokens)
    found = channel.moments(channel.shown(z), Omega, V)
    mean = found.mean.reshape(z.shape)
    left = z - mean

    def deviations(terms):
        return terms.mean(axis=0) / (terms.std(axis=0) / np.sqrt(count))

    # What is learned of all four directions shows far above the error of the test.
    learned = mean - Omega
    assert np.all(deviations(np.sum(learned**2, axis=1)) > 10)
    for known in (learned, Omega, mean**3):
        assert np.abs(deviations(np.sum(left * known, axis=1))).max() < 4
    flat = left.reshape(count, -1)
    squares = deviations(flat[:, :, None] * flat[:, None, :] - found.covariance)
    assert np.abs(squares).max() < 4.5 and np.sqrt(np.mean(squares**2)) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channel", "most"),
    [
        (TurnedLayersChannel(2, 3, 1.0), 3 * 4 / 2),
        (TurnedLayersChannel(3, 3, 1.0), 3 * 4 / 2),
        (UntiedLayersChannel(2, 2, 1.0), 2 + np.sqrt(5)),
        (UntiedLayersChannel(2, 3, 4.0), 2 * (3 + np.sqrt(10))),
    ],
    ids=str,
)
def test_the_last_layer_is_seen_first_and_never_below_the_threshold_of_one_layer(channel, most):
    r = channel.projections
    lin = channel.linearisation(np.zeros((r, r)), np.eye(r))
    rate, push = lin.growing_overlap()
    assert rate <= most + 3 * lin.error and not lin.trivial.any()
    assert np.diag(push)[:-2].max() < 0.05 * np.diag(push)[-1]


def test_information_has_the_symmetries_of_labels():
    found = TurnedLayersChannel(2, 3, 1.0)._symmetric(np.ones((1, 4, 4)), np.diag([0.9, 0.9, 0.5, 0.5]))
    np.testing.assert_array_equal(found[0], np.eye(4))
    found = UntiedLayersChannel(2, 2, 1.0)._symmetric(np.ones((1, 4, 4)), np.diag([0.9, 0.8, 0.5, 0.4]))
    np.testing.assert_array_equal(found[0], np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layers", "one"),
    [(TurnedLayersChannel(2, 3, 100.0), TurnedChannel(3)), (UntiedLayersChannel(2, 2, 100.0), UntiedChannel(2))],
    ids=str,
)
def test_behind_a_strong_residual_connection_small_overlaps_grow_as_those_of_one_layer(layers, one):
    """The sampled map of two layers against the closed one of a layer."""
    lin = SequenceChannel.linearisation(layers, np.zeros((4, 4)), np.eye(4))
    closed = one.linearisation(np.zeros((2, 2)), np.eye(2)).growing_overlap()[0]
    assert lin.growing_overlap()[0] == pytest.approx(closed, abs=4 * lin.error + 0.05)
