"""Two layers, and untied keys and queries: theory, errors of labels, message passing at two sizes."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.models.attention.sequence.growth import measured_growth
from solvable.models.attention.sequence.metrics import label_errors

TWO, UNTIED = sv.DeepAttention(2, 2), sv.DeepAttention(1, 2, tied=False)


def test_errors_of_labels_without_samples_are_known():
    """The error of the label of a zero estimate was computed independently for one layer and two."""
    for layers, known in ((1, 0.2345), (2, 0.38698)):
        model = sv.DeepAttention(layers, 2)
        *_, value, error = label_errors(model.labels(), 2, np.eye(layers))
        assert value == pytest.approx(known, abs=5e-4 + 4 * error)
        nothing = sv.predict(model, sv.BayesOptimal(), alpha=0.0)
        assert nothing["generalization_error"] < nothing["plug_in_error"] == pytest.approx(value)


@pytest.mark.slow
def test_the_last_layer_is_learned_first():
    """Known to one percent: q = 0.0, 0.2188 at alpha 0.3063."""
    found = sv.predict(TWO, sv.AMP(), alpha=[0.15, 0.3063])
    assert np.all(found.converged) and not found["overlap_1"].any() and found["overlap_2"][0] == 0
    assert found["overlap_2"][1] == pytest.approx(0.2188, abs=4 * found.uncertainty["overlap_2"][1] + 0.01)


@pytest.mark.slow
def test_the_thresholds_of_both_layers_are_the_known_ones():
    found = sv.thresholds(TWO)
    assert found["layer_2"] == found["weak_recovery"] == pytest.approx(0.185478, abs=1e-6)
    assert found["layer_1"] == pytest.approx(0.719, abs=0.004 + 3 * found.errors["layer_1"])
    assert found["strong_recovery"] == 1


@pytest.mark.parametrize("tokens", [2, 4])
def test_untied_thresholds_are_closed(tokens):
    found = sv.thresholds(sv.DeepAttention(1, tokens, tied=False))
    assert found["weak_recovery"] == pytest.approx(1 / ((tokens - 1) * (tokens + np.sqrt(tokens**2 + 1))))


def test_small_overlaps_grow_on_data_as_the_thresholds_say():
    """The linearised iteration on data, without the truth: alpha over the threshold, up to the size."""
    for model, weak in ((TWO, 0.185478), (UNTIED, 0.236068)):
        alpha = 4 * weak
        grown = np.array([measured_growth(model, alpha, 400, seed) for seed in range(4)])
        assert abs(grown.mean() - 4) < 4 * grown.std(ddof=1) / 2 + 0.3


@pytest.mark.slow
def test_runs_of_untied_attention_agree_with_theory_at_two_sizes():
    theory = sv.predict(UNTIED, sv.AMP(), alpha=0.6)
    for d, seeds in ((200, 8), (500, 8)):
        runs = [sv.simulate(UNTIED, sv.AMP(), alpha=0.6, d=d, seed=seed) for seed in range(seeds)]
        for name in ("overlap_1", "overlap_2"):
            found = np.array([run[name] for run in runs])
            error = found.std(ddof=1) / np.sqrt(seeds) + theory.uncertainty[name]
            assert abs(found.mean() - theory[name]) < 4 * error + 12 / d
        own = np.array([np.trace(run.details["self_overlap"]) for run in runs])
        both = np.array([np.trace(run["overlap"]) for run in runs])
        assert abs(np.mean(own - both)) < 4 * np.std(own - both, ddof=1) / np.sqrt(seeds) + 10 / d


@pytest.mark.slow
def test_runs_of_two_layers_agree_with_theory_at_two_sizes():
    theory = sv.predict(TWO, sv.AMP(), alpha=0.5)
    for d, seeds in ((100, 6), (250, 6)):
        runs = [sv.simulate(TWO, sv.AMP(max_steps=150), alpha=0.5, d=d, seed=seed) for seed in range(seeds)]
        found = np.array([run["overlap_2"] for run in runs])
        error = found.std(ddof=1) / np.sqrt(seeds) + theory.uncertainty["overlap_2"]
        assert abs(found.mean() - theory["overlap_2"]) < 4 * error + 12 / d


def test_a_learning_curve_is_zero_below_the_threshold():
    curve = sv.learning_curve(sv.DeepAttention(2, 2), [sv.AMP()], alpha=[0.1, 0.15], progress=False)
    assert not curve.theory("overlap_2").values.any()
