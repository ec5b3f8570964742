"""Any function of the scores: the sampled channel against the closed forms it must meet."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.models.attention.indexed.hardmax import HardmaxLabels, HardmaxOutput
from solvable.models.attention.indexed.sampled import SampledLabels, SampledOutput


def largest(h):
    return h.argmax(-1)


def differences(h):
    """What a softmax label of two tokens shows: here with noise."""
    return np.stack([h[:, 0, 0] - h[:, 0, 1], h[:, 1, 1] - h[:, 0, 1]], -1)


V = np.array([1.0, 0.6, 0.3, 0.1])


def test_hardmax_as_a_function_has_the_closed_information():
    sampled, closed = SampledOutput(largest, 2, 0.5), HardmaxOutput(0.5)
    off = np.abs(sampled.information(V) / closed.information(V) - 1)
    stated = sampled.information_error(V)
    assert np.all(off <= stated) and np.all(stated < 0.03) and sampled.monotone


@pytest.mark.slow
def test_linear_labels_with_noise_have_the_closed_information():
    """With A the map from scores in units of their deviations to labels, I = Tr A^T (V A A^T + noise)^-1 A."""
    noise, A = 0.3, np.array([[np.sqrt(2), -1, 0], [0, -1, np.sqrt(2)]])
    sampled = SampledOutput(differences, 2, 0.5, noise)
    closed = np.array([np.trace(A.T @ np.linalg.inv(v * A @ A.T + noise * np.eye(2)) @ A) for v in V])
    off = np.abs(sampled.information(V) / closed - 1)
    stated = sampled.information_error(V)
    assert np.all(off <= stated) and np.all(stated < 0.1)


def test_a_function_has_theory_thresholds_and_runs():
    model, alpha = sv.AttentionIndexed(0.5, 2, largest), 0.458
    found = sv.predict(model, sv.BayesOptimal(), alpha=alpha)
    stated = float(found.uncertainty["estimation_error"])
    assert found.converged and abs(found["estimation_error"] - 0.23730) <= stated and stated < 0.01
    narrow = sv.thresholds(model)
    assert abs(narrow["narrow_weak_recovery"] / 0.5 - 0.403411) < 2 * narrow.errors["narrow_weak_recovery"] / 0.5
    run = sv.simulate(model, sv.AMP(max_steps=12), alpha=alpha, d=20, seed=0)
    assert 0.5 < run["cosine"] < 1


def test_the_denoiser_of_a_function_is_the_closed_one_up_to_draws():
    rng, v = np.random.default_rng(0), np.full((1, 1), 0.5)
    Omega, signs = 0.5 * rng.standard_normal((300, 1)), np.tile([[1.0, 1.0], [1.0, -1.0]], (50, 1))
    y = np.where(signs > 0, np.arange(2), 1 - np.arange(2))
    closed, drawn = HardmaxLabels(signs)(Omega, v), SampledLabels(SampledOutput(largest, 2, 0.5), y)(Omega, v)
    assert np.sqrt(np.mean((closed.g - drawn.g) ** 2)) < 0.15 * np.sqrt(np.mean(closed.g**2))
    assert drawn.minus_derivative[0, 0] == pytest.approx(closed.minus_derivative[0, 0], rel=0.03)


def test_labels_that_are_all_different_need_noise():
    with pytest.raises(ValueError, match="noise = 0.0 is not allowed: noise must be positive for an output"):
        sv.predict(sv.AttentionIndexed(0.5, 2, differences), sv.BayesOptimal(), alpha=0.1)
    with pytest.raises(ValueError, match="noise = 0.1 is not allowed: noise must be 0 for hardmax"):
        sv.AttentionIndexed(0.5, 2, "hardmax", noise=0.1)
