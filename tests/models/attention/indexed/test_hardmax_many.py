"""Hardmax of three and four tokens: sequential draws against the closed form of two tokens and drawn scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import solvable as sv
from solvable.engine.token_pairs import pairs
from solvable.models.attention.indexed import hardmax_many
from solvable.models.attention.indexed.hardmax import HardmaxLabels, sample_information
from solvable.models.attention.indexed.hardmax_many import ManyHardmaxLabels, ManyHardmaxOutput


def test_cycles_of_three_are_no_labels():
    found = [
        sum(hardmax_many.order_of(y) is not None for y in itertools.product(range(T), repeat=T)) for T in (2, 3, 4)
    ]
    assert found == [4, 25, 218]


def test_probabilities_of_all_labels_sum_to_one():
    labels = np.array([y for y in itertools.product(range(3), repeat=3) if hardmax_many.order_of(y) is not None])
    omega = np.tile(np.random.default_rng(0).standard_normal(6), (len(labels), 1))
    shifts = np.random.default_rng(1).random((len(labels), 2, 3))
    assert np.exp(hardmax_many.moments(omega, labels, shifts, 2048).log_P).sum() == pytest.approx(1, abs=2e-3)


def test_two_tokens_have_the_closed_denoiser():
    rng, V = np.random.default_rng(2), np.full((1, 1), 0.4)
    signs = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] * 50)
    labels = np.where(signs > 0, np.arange(2), 1 - np.arange(2))
    Omega = 0.7 * rng.standard_normal((600, 1))
    closed, drawn = HardmaxLabels(signs)(Omega, V), ManyHardmaxLabels(labels)(Omega, V)
    error = drawn.g - closed.g
    assert np.sqrt(np.mean(error**2)) < 0.05 * np.sqrt(np.mean(closed.g**2)) and abs(error.mean()) < 0.01
    assert drawn.minus_derivative[0, 0] == pytest.approx(closed.minus_derivative[0, 0], rel=0.02)
    assert np.mean(drawn.log_Z()) == pytest.approx(np.mean(closed.log_Z()), abs=0.01)


def test_ties_of_two_tokens_are_the_limit_of_the_closed_form():
    t = 1e-3
    assert hardmax_many.tie_limit(2) == pytest.approx(sample_information(1 / t**2 - 1) / t, rel=1e-4)


@pytest.mark.parametrize(("tokens", "published", "error"), [(3, 0.1755, 0.0003), (4, 0.1051, 0.0002)])
def test_narrow_thresholds(tokens, published, error):
    found = sv.thresholds(sv.AttentionIndexed(0.5, tokens, "hardmax"))
    narrow, own = found["narrow_weak_recovery"] / 0.5, found.errors["narrow_weak_recovery"] / 0.5
    assert abs(narrow - published) < error + own and own < 2e-4


def test_information_at_any_knowledge_is_that_of_drawn_labels():
    """Scores are drawn in numbers at one mean, and pairs of one label give the square of the posterior mean."""
    rng, V, known, T = np.random.default_rng(0), 0.3, 0.5, 3
    first, second, scale = pairs(T)
    found = []
    for _ in range(400):
        delta = rng.standard_normal((2000, 6))
        h = np.zeros((2000, T, T))
        h[:, first, second] = h[:, second, first] = (
            np.sqrt(1 + known - V) * rng.standard_normal(6) + np.sqrt(V) * delta
        ) * scale
        label = h.argmax(-1) @ [9, 3, 1]
        total = 0.0
        for one in np.unique(label):
            inside = delta[label == one]
            if len(inside) > 1:
                total += (np.sum(inside.sum(0) ** 2) - np.sum(inside**2)) / (len(inside) - 1)
        found.append(total / 2000 / V)
    error = np.std(found) / np.sqrt(len(found))
    output = ManyHardmaxOutput(known, T)
    assert abs(np.mean(found) - output.information(V)) < 4 * error and error < 0.05 * output.information(V)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [3, 4])
def test_the_table_is_what_its_code_gives(tokens):
    t = 0.7
    found = [hardmax_many.drawn_information(tokens, 1 / t**2 - 1, 10, 64, 20 + k) for k in range(4)]
    output, V = ManyHardmaxOutput(0.0, tokens), t**2
    stated = output.information_error(V) * output.information(V) * V
    assert abs(np.mean(found) - V * output.information(V)) < 4 * np.std(found, ddof=1) / 2 + stated


@pytest.mark.parametrize("tokens", [(2, 3), pytest.param((3, 4), marks=pytest.mark.slow)])
def test_more_tokens_tell_more(tokens):
    errors = [
        sv.predict(sv.AttentionIndexed(0.5, T, "hardmax"), sv.BayesOptimal(), alpha=[0.0, 0.05, 0.3, 3.0])
        for T in tokens
    ]
    assert all(np.all(found.converged) for found in errors)
    values = np.array([found["estimation_error"] for found in errors])
    assert (
        np.all(values[:, 0] == 1) and np.all(np.diff(values, axis=1) < 0) and np.all(np.diff(values[:, 1:], axis=0) < 0)
    )
    stated = errors[1].uncertainty["estimation_error"][1:] / values[1, 1:]
    assert np.all(stated < 5e-3) and np.all(stated > 1e-6)
