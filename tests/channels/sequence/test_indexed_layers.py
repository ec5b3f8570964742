"""Layers of extensive rank: labels against networks written out, posteriors against draws whose label is close."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.channels.sequence.indexed_layers import (
    IndexedLayersChannel,
    coordinates,
    last_scores,
    scores_of,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("layers", "tokens", "residual", "beta"), [(2, 2, 1.0, 1.0), (3, 3, 1.5, 0.7)])
def test_labels_are_those_of_a_network_written_out(layers, tokens, residual, beta):
    d = 20
    S = RNG.standard_normal((layers, d, d))
    S += S.transpose(0, 2, 1)
    X = x = RNG.standard_normal((tokens, d))
    h = np.stack([X @ layer @ X.T / 40 for layer in S], axis=-1)[None]
    for layer in S:
        scores = x @ layer @ x.T / 40
        weights = np.exp(beta * scores)
        weights /= weights.sum(axis=1, keepdims=True)
        x = (residual * np.eye(tokens) + weights) @ x
    np.testing.assert_allclose(last_scores(h, residual, beta)[0], scores, rtol=1e-10)


def test_a_common_shift_of_scores_is_not_seen():
    h = RNG.standard_normal((4, 3, 3, 2))
    h += h.swapaxes(1, 2)
    shifted = h + RNG.standard_normal((4, 1, 1, 2))
    seen = [coordinates(last_scores(part, 1.0, 1.3)) for part in (h, shifted)]
    np.testing.assert_allclose(*seen, atol=1e-12)
    z = RNG.standard_normal((4, 5, 1))
    np.testing.assert_allclose(coordinates(scores_of(z, 3)[..., 0]), z[..., 0], atol=1e-12)


def test_posteriors_are_those_of_draws_whose_label_is_close():
    """Draws around the label by a Gaussian of width e leave a bias of order e^2, which two widths take out."""
    channel = IndexedLayersChannel(2, 2, 1.0, 1.0)
    V, Omega = np.diag([0.8, 0.6]), np.array([[[0.3, -0.2], [0.5, 0.4]]])
    label = channel.shown(Omega + np.array([[[0.4, -0.5], [-0.3, 0.2]]]))
    z = Omega + RNG.standard_normal((1_000_000, 2, 2)) @ np.sqrt(V)
    distance = np.sum((channel.shown(z) - label) ** 2, axis=1)
    drawn = []
    for width in (0.1, 0.2):
        weight = np.exp(-distance / (2 * width**2)) / (2 * np.pi * width**2)
        mean = weight @ z.reshape(-1, 4) / weight.sum()
        error = np.sqrt((weight**2) @ (z.reshape(-1, 4) - mean) ** 2) / weight.sum()
        drawn.append((mean, error, np.log(weight.mean())))
    found = channel.moments(label, Omega, V)
    limit, error = (4 * drawn[0][0] - drawn[1][0]) / 3, 4 / 3 * drawn[0][1] + drawn[1][1] / 3
    assert np.all(np.abs(found.mean[0] - limit) < 4 * error + 2e-3)
    assert found.log_Z[0] == pytest.approx((4 * drawn[0][2] - drawn[1][2]) / 3, abs=0.03)


@pytest.mark.parametrize("fineness", [0.5, pytest.param(1.0, marks=pytest.mark.slow)])
def test_averages_agree_with_those_of_finer_nodes_within_their_error(fineness):
    channel, V = IndexedLayersChannel(2, 2, 1.0, 1.0), np.diag([0.7, 0.3])
    one, two = channel.average(V, fineness), channel.average(V, 2 * fineness)
    assert np.abs(one.information - two.information).max() < 4 * one.error
    assert np.abs(one.information - np.diag(np.diag(one.information))).max() == 0


def test_the_scores_of_two_layers_are_not_correlated_given_their_label():
    """By the draws themselves, without the symmetry that the averages use."""
    channel, V = IndexedLayersChannel(2, 2, 1.0, 1.0), np.diag([0.7, 0.4])
    Omega = RNG.standard_normal((4096, 2, 2)) @ np.sqrt(np.eye(2) - V)
    z = Omega + RNG.standard_normal(Omega.shape) @ np.sqrt(V)
    g = channel.moments(channel.shown(z), Omega, V).mean.reshape(Omega.shape) - Omega
    each = np.sum(g[:, :, 0] * g[:, :, 1], axis=1)
    assert abs(each.mean()) < 4 * each.std() / np.sqrt(len(each))
    sizes = [np.mean(np.sum(g[:, :, k] ** 2, axis=1)) for k in (0, 1)]
    assert abs(each.mean()) < 0.1 * np.sqrt(np.prod(sizes))


def test_a_strong_residual_hides_the_first_layer_and_shows_the_last():
    channel, V = IndexedLayersChannel(2, 2, 100.0, 1.0), np.diag([0.8, 0.5])
    information = channel.average(V, 1.0).information
    assert information[0, 0] < 1e-2
    assert information[1, 1] == pytest.approx(2 / 0.5, rel=2e-2)


@pytest.mark.slow
def test_draws_of_three_layers_agree_with_themselves():
    """The three forms of the average, of which `average` combines two, at another number of draws."""
    channel, V = IndexedLayersChannel(3, 2, 1.0, 1.0), np.diag([0.9, 0.8, 0.5])
    one, two = channel.average(V, 1.0), channel.average(V, 4.0)
    assert np.abs(one.information - two.information).max() < 4 * (one.error + two.error)
