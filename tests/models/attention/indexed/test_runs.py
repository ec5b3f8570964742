"""Attention-indexed models in runs: operators and labels against their definitions, message passing against theory."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.engine.token_pairs import OrderedPairs, TokenPairs, pairs
from solvable.models.attention.indexed.model import scores
from solvable.models.attention.indexed.softmax import measurements, visible, visible_of_row


@pytest.fixture
def tokens():
    return np.random.default_rng(0).standard_normal((5, 3, 7))


def test_pairs_of_tokens_are_features_of_a_symmetric_matrix(tokens):
    d, rng = 7, np.random.default_rng(1)
    first, second, scale = pairs(3)
    Z = np.array(
        [
            [
                ((np.outer(x[a], x[b]) + np.outer(x[b], x[a])) / 2 - (a == b) * np.eye(d)) / np.sqrt(d) / c
                for a, b, c in zip(first, second, scale, strict=True)
            ]
            for x in tokens
        ]
    )
    S = rng.standard_normal((d, d))
    S += S.T
    for basis in (np.eye(6), visible(3)):
        G = np.einsum("kp,npij->nkij", basis, Z).reshape(-1, d, d)
        features = TokenPairs(tokens, basis)
        g = rng.standard_normal(features.samples)
        np.testing.assert_allclose(features.forward(S), np.einsum("kij,ij->k", G, S), atol=1e-12)
        np.testing.assert_allclose(features.adjoint(g), np.einsum("k,kij->ij", g, G), atol=1e-12)
        np.testing.assert_allclose(features.norms(), np.sqrt((G**2).sum((1, 2))), atol=1e-12)


def test_ordered_pairs_are_an_operator_and_its_adjoint(tokens):
    rng, P = np.random.default_rng(1), visible_of_row(3)
    operator = OrderedPairs(tokens, P)
    S, g = rng.standard_normal((49, 1)), rng.standard_normal((operator.samples, 1))
    matrix = S.reshape(7, 7)
    h = np.einsum("nai,ij,nbj->nab", tokens, matrix, tokens) - np.eye(3) * np.trace(matrix)
    np.testing.assert_allclose(operator.forward(S)[:, 0], ((h @ P.T) / operator.norms).ravel(), atol=1e-12)
    assert np.vdot(g, operator.forward(S)) == pytest.approx(np.vdot(operator.adjoint(g), S))
    unit = np.eye(operator.samples)
    np.testing.assert_allclose([np.sum(operator.adjoint(row[:, None]) ** 2) for row in unit], 1.0, atol=1e-12)


@pytest.mark.parametrize("beta", [1.0, 40.0])
def test_a_softmax_label_shows_all_but_one_direction_of_the_scores(beta):
    """Also where entries of the label underflow: labels are kept by their logarithms."""
    model, rng = sv.AttentionIndexed(0.5, 4, beta=beta), np.random.default_rng(2)
    data = model.sample(rng, 12, alpha=0.2)
    first, second, scale = pairs(4)
    h = scores(data.X, data.truth)
    np.testing.assert_allclose(np.exp(data.y).sum(-1), 1, rtol=1e-12)
    expected = (h[:, first, second] / scale) @ visible(4).T
    np.testing.assert_allclose(measurements(data.y, beta), expected, atol=1e-10)


def test_scores_have_the_variances_of_the_definition():
    rng = np.random.default_rng(3)
    W = rng.standard_normal((60, 30))
    S = W @ W.T / np.sqrt(30 * 60)
    h = scores(rng.standard_normal((4000, 2, 60)), S)
    power = np.sum(S**2) / 60
    assert np.var(h[:, 0, 0]) == pytest.approx(2 * power, rel=0.15) and np.var(h[:, 0, 1]) == pytest.approx(
        power, rel=0.15
    )


def test_a_run_of_each_kind_finds_something():
    for model, alpha in (
        (sv.AttentionIndexed(0.5, 3, beta=2.0), 0.045),
        (sv.AttentionIndexed(0.5, 2, "hardmax"), 0.45),
        (sv.AttentionIndexed(0.5, 3, "hardmax"), 0.2),
        (sv.AttentionIndexed(0.5, 2, tied=False), 0.3),
    ):
        learner = sv.AMP(max_steps=12)
        found = sv.simulate(model, learner, alpha=alpha, d=24, seed=0)
        assert found["estimation_error"] < 0.75 and 0.5 < found["cosine"] <= 1
    found = sv.simulate(sv.AttentionIndexed(0.5, 2), sv.GradientDescent(runs=2, max_steps=50), alpha=0.15, d=12, seed=0)
    assert found.details["single_run_error"] > found["estimation_error"]


CASES = {
    "softmax": (sv.AttentionIndexed(0.5, 2), 0.1),
    "three tokens": (sv.AttentionIndexed(0.5, 3), 0.04),
    "hardmax": (sv.AttentionIndexed(0.5, 2, "hardmax"), 0.458),
    "hardmax of three": (sv.AttentionIndexed(0.5, 3, "hardmax"), 0.2),
    "untied": (sv.AttentionIndexed(0.5, 2, tied=False), 0.3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_message_passing_approaches_theory(name):
    """Its excess over the theory falls with the size, like 1/(alpha d)."""
    model, alpha = CASES[name]
    theory = sv.predict(model, sv.AMP(), alpha=alpha)["estimation_error"]
    excess, scatter = [], []
    for d, seeds in ((30, 8), (60, 6)):
        found = np.array(
            [sv.simulate(model, sv.AMP(), alpha=alpha, d=d, seed=s)["estimation_error"] for s in range(seeds)]
        )
        excess.append(found.mean() - theory)
        scatter.append(found.std(ddof=1) / np.sqrt(seeds))
    assert abs(excess[1]) < 4 * scatter[1] + 0.15 * theory
    assert abs(excess[1]) < abs(excess[0]) + 2 * np.hypot(*scatter)
