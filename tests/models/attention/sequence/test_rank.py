"""One layer of attention of rank two: where it begins to be learned, its overlaps, message passing."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv

MODEL = sv.DeepAttention(1, 3, rank=2)


def test_it_begins_to_be_learned_at_twice_the_threshold_of_rank_one():
    found = sv.thresholds(MODEL)
    assert found["weak_recovery"] == pytest.approx(2 * sv.thresholds(sv.DeepAttention(1, 3))["weak_recovery"])
    assert found["strong_recovery"] == 2 / 5
    low, high = sv.predict(MODEL, sv.AMP(), alpha=[0.15, 0.2])["overlap"]
    np.testing.assert_allclose(low, 0.0, atol=1e-6)
    assert np.all(np.diag(high) > 0.03)


def test_both_directions_are_known_alike():
    found = sv.predict(MODEL, sv.AMP(), alpha=0.3)
    assert abs(found["overlap_1"] - found["overlap_2"]) < 3 * found.uncertainty["overlap_1"]
    assert found["overlap_1"] == pytest.approx(0.417, abs=0.012)


def test_a_turn_of_the_estimate_does_not_change_its_scores():
    rng = np.random.default_rng(1)
    data = MODEL.sample(rng, 40, alpha=0.5)
    estimate = 0.6 * data.truth + 0.3 * rng.standard_normal(data.truth.shape)
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    one, two = (MODEL.scores(W, data, np.random.default_rng(2)) for W in (estimate, estimate @ turn))
    np.testing.assert_allclose(one["overlap"], two["overlap"], atol=1e-12)
    assert one["estimation_error"] == pytest.approx(two["estimation_error"])


def test_what_has_no_such_channel_is_refused():
    for arguments in (
        {"layers": 2, "tokens": 3},
        {"layers": 1, "tokens": 2},
        {"layers": 1, "tokens": 3, "tied": False},
    ):
        with pytest.raises(ValueError, match="rank = 2 is not allowed: rank must be 1, or 2 for one layer of tied"):
            sv.DeepAttention(rank=2, **arguments)
    with pytest.raises(sv.NotSimulable, match="rank"):
        sv.simulate(MODEL, sv.GradientDescent(), alpha=0.5, d=10)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "theory"), [(0.25, 0.2145), (0.3, 0.417)])
def test_message_passing_at_two_sizes(alpha, theory):
    left = []
    for d in (150, 600):
        runs = [np.trace(sv.simulate(MODEL, sv.AMP(), alpha=alpha, d=d, seed=seed)["overlap"]) / 2 for seed in range(8)]
        error = np.std(runs, ddof=1) / np.sqrt(len(runs))
        assert abs(np.mean(runs) - theory) < 4 * error + 0.01
        left.append(np.std(runs))
    assert left[1] < left[0]
