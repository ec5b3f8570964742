"""Two and three layers of extensive rank: limits, what is exact and what is not, message passing at two sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import solvable as sv
from solvable.core.errors import ConvergenceError
from solvable.core.status import Status

LAYERS = ("overlap_1", "overlap_2")
TWO = sv.DeepAttentionIndexed(0.5, 2, 2)


def overlaps(model, alpha, learner=None):
    found = sv.predict(model, learner or sv.AMP(), alpha=alpha)
    return np.array([found[name] for name in LAYERS])


def test_known_overlaps():
    """Values of this code, with the error of their scramblings; runs below are what they are compared with."""
    np.testing.assert_allclose(overlaps(TWO, 0.1), [0.17563, 0.46220], atol=2e-3)


@pytest.mark.slow
def test_a_strong_residual_leaves_one_layer():
    """The last layer is then learned as if it were alone, and the first not at all."""
    first, last = overlaps(sv.DeepAttentionIndexed(0.5, 2, 2, residual=100.0), 0.1)
    alone = sv.predict(sv.AttentionIndexed(0.5, 2), sv.BayesOptimal(), alpha=0.1)["estimation_error"]
    assert first < 5e-3
    assert last == pytest.approx(1 - alone, abs=5e-3)


@pytest.mark.slow
def test_large_and_small_ranks_tend_to_their_limits():
    wide = overlaps(sv.DeepAttentionIndexed(math.inf, 2, 2), 0.2)
    np.testing.assert_allclose(overlaps(sv.DeepAttentionIndexed(200.0, 2, 2), 0.2), wide, atol=5e-3)
    narrow, rho = overlaps(sv.DeepAttentionIndexed(0.0, 2, 2), 0.8), 0.001
    np.testing.assert_allclose(overlaps(sv.DeepAttentionIndexed(rho, 2, 2), 0.8 * rho), narrow, atol=0.02)


@pytest.mark.slow
def test_layers_of_small_rank_are_seen_last_layer_first():
    model = sv.DeepAttentionIndexed(0.0, 2, 2)
    found = sv.thresholds(model)
    assert found["layer_2"] < found["layer_1"] < found["strong_recovery"] == 1.0
    # No label of T tokens shows more than T (T + 1)/2 - 1 numbers.
    assert found["layer_2"] > 1 / 4
    first, last = overlaps(model, np.array([0.98, 1.02]) * found["layer_2"])
    np.testing.assert_array_equal(first, 0.0)
    assert last[0] == 0 < last[1]


def test_three_layers_of_finite_rank_are_never_marked_converged():
    found = sv.predict(sv.DeepAttentionIndexed(0.5, 3, 2), sv.BayesOptimal(), alpha=2.0, throw=False)
    assert found.status == Status.OUT_OF_DOMAIN and not found.converged


@pytest.mark.slow
def test_the_scores_of_three_layers_are_seen_with_correlated_noise():
    model = sv.DeepAttentionIndexed(0.5, 3, 2)
    found = sv.predict(model, sv.AMP(), alpha=0.02, throw=False)
    assert found.status == Status.OUT_OF_DOMAIN and not found.converged
    field = found.order_parameters["Mhat"]
    assert abs(field[0, 1]) > 0.05 * np.sqrt(field[0, 0] * field[1, 1])
    with pytest.raises(ConvergenceError, match="outside the range where the theory holds"):
        sv.predict(model, sv.AMP(), alpha=0.02)


def test_recovery_is_where_labels_have_as_many_numbers_as_the_layers_unknowns():
    assert sv.thresholds(sv.DeepAttentionIndexed(math.inf, 2, 3))["strong_recovery"] == pytest.approx(2 / 10)
    beyond = sv.predict(TWO, sv.BayesOptimal(), alpha=0.5)
    assert beyond["estimation_error"] == 0 and beyond.converged


@pytest.mark.slow
def test_the_iteration_from_nothing_recovers_both_layers_from_the_threshold_on():
    """Below, what is left unknown vanishes in proportion to the distance from it; above, nothing is left."""
    below = sv.predict(TWO, sv.AMP(), alpha=np.array([0.365, 0.37]), throw=False)
    left = 1 - below["overlap_1"]
    assert left[1] / left[0] == pytest.approx(0.5, abs=0.1) and left[0] < 0.05
    for alpha in (0.377, 0.4):
        found = sv.predict(TWO, sv.AMP(), alpha=alpha)
        assert found.converged and found["estimation_error"] == 0


def test_labels_pin_both_layers_alike_at_any_small_scale():
    """Of two numbers a label has, V_1 I_11 + V_2 I_22 is two where little is left unknown, whatever its scale."""
    for scale in (1e-2, 1e-4, 3e-5):
        V = scale * np.array([1.0, 0.1])
        found = TWO.channel.average(np.diag(V), 1.0)
        assert V @ np.diag(found.information) == pytest.approx(2, abs=0.01)
        assert TWO.channel.resolution < V.min()


def test_what_is_no_model_is_refused():
    for name, arguments in (
        ("layers", (0.5, 1, 2)),
        ("layers", (0.5, 4, 2)),
        ("rho", (-0.5, 2, 2)),
        ("rho", (math.nan, 2, 2)),
        ("tokens", (0.5, 2, 1)),
        ("residual", (0.5, 2, 2, 0.5)),
        ("beta", (0.5, 2, 2, 1.0, 0.0)),
    ):
        with pytest.raises(ValueError, match=rf"{name} = "):
            sv.DeepAttentionIndexed(*arguments)
    with pytest.raises(ValueError, match="rho = 0 is not allowed"):
        sv.simulate(sv.DeepAttentionIndexed(0.0, 2, 2), sv.AMP(), alpha=0.1, d=10)


def test_a_run_is_reproducible_and_labels_are_those_of_its_layers():
    data = TWO.sample(np.random.default_rng(3), 12, alpha=0.1)
    x = data.X[0]
    for layer in data.truth:
        u = x @ layer @ x.T / np.sqrt(12)
        weights = np.exp(u) / np.exp(u).sum(axis=1, keepdims=True)
        x = x + weights @ x
    np.testing.assert_allclose(data.y[0], np.log(weights), atol=1e-10)
    np.testing.assert_allclose(np.trace(data.truth, axis1=1, axis2=2), 0, atol=1e-12)
    one, two = (sv.simulate(TWO, sv.AMP(max_steps=3), alpha=0.1, d=12, seed=1) for _ in range(2))
    np.testing.assert_array_equal(one["overlap"], two["overlap"])


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.5, math.inf])
def test_message_passing_comes_nearer_as_the_dimension_grows(rho):
    model, alpha = sv.DeepAttentionIndexed(rho, 2, 2), 0.2
    theory, left = overlaps(model, alpha), []
    for d, seeds in ((30, 8), (80, 6)):
        runs = [sv.simulate(model, sv.AMP(max_steps=100), alpha=alpha, d=d, seed=seed) for seed in range(seeds)]
        found = np.array([[float(run[name]) for name in LAYERS] for run in runs])
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(seeds)
        left.append(np.abs(mean - theory).sum())
        assert np.all(np.abs(mean - theory) < 4 * error + 4 / d)
    assert left[1] < left[0]
