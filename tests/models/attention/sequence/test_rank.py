"""Layers of attention of several directions: where they begin to be learned, overlaps, what is refused, runs."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.cli.app import run
from solvable.models.attention.sequence.growth import measured_growth

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


@pytest.mark.parametrize(("tokens", "rank"), [(4, 3), (6, 5), (12, 4)])
def test_thresholds_of_one_layer_are_closed(tokens, rank):
    found = sv.thresholds(sv.DeepAttention(1, tokens, rank=rank))
    assert found["weak_recovery"] == pytest.approx(rank / (tokens * (tokens + 1)))
    # A label has tokens x rank numbers, but for those of a turn.
    assert found["strong_recovery"] == pytest.approx(2 / (2 * tokens - rank + 1))


@pytest.mark.slow
def test_all_directions_of_rank_three_are_known_alike():
    """At a fixed point of the equations with finer draws, and by runs at two sizes."""
    rank, alpha = 3, 0.22
    model = sv.DeepAttention(1, 4, rank=rank)
    found = sv.predict(model, sv.AMP(), alpha=alpha)
    q, error = found["overlap_1"], found.uncertainty["overlap_1"]
    np.testing.assert_allclose(found["overlap"], q * np.eye(rank), atol=1e-8)
    again = model.channel.average((1 - q) * np.eye(rank), 2.0)
    learned = alpha * again.information[0, 0]
    assert found.converged and q > 0.1 and learned / (1 + learned) == pytest.approx(q, abs=error + alpha * again.error)
    for d in (100, 300):
        runs = [sv.simulate(model, sv.AMP(max_steps=80), alpha=alpha, d=d, seed=seed) for seed in range(6)]
        own = np.array([np.trace(run["overlap"]) / rank for run in runs])
        spread = own.std(ddof=1) / np.sqrt(len(runs))
        assert spread < 0.06 and abs(own.mean() - q) < 4 * np.hypot(spread, error) + 2 / d


REFUSED = (
    (
        {"layers": 1, "tokens": 2, "rank": 2},
        "rank = 2 is not allowed: rank must be below the number of tokens, 2.*SequenceIndex",
    ),
    ({"layers": 1, "tokens": 3, "tied": False, "rank": 2}, "rank = 2 .* must be 1 with tied = False.*SequenceIndex"),
    ({"layers": 2, "tokens": 4, "rank": 3}, "rank = 3 .* must be 1 or 2 for several layers"),
    ({"layers": 1, "tokens": 8, "rank": 6}, "rank = 6 .* must be at most 5"),
    ({"layers": 4, "tokens": 3, "rank": 2}, "layers = 4 .* must be at most 3 where a layer has several directions"),
    ({"layers": 4, "tokens": 3, "tied": False}, "layers = 4 .* must be at most 3 where a layer has several directions"),
    ({"layers": 2, "tokens": 2, "tied": False, "residual": 0.5}, "residual = 0.5 .* from 1 to 100 with tied = False"),
    ({"layers": 1, "tokens": 2, "tied": 0}, "tied = 0 is not allowed: tied must be True or False"),
)


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=lambda part: part if isinstance(part, str) else None)
def test_what_has_no_such_channel_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        sv.DeepAttention(**arguments)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("layers=1 tokens=3 rank=3", "rank = 3 is not allowed: rank must be below the number of tokens, 3"),
        ("layers=2 tokens=4 rank=3", "rank = 3 is not allowed: rank must be 1 or 2 for several layers"),
        ("layers=1 tokens=3 rank=2 tied=false", "rank = 2 is not allowed: rank must be 1 with tied = False"),
        ("layers=1 tokens=3 rank=two", "rank = 'two' is not allowed: rank must be an integer"),
    ],
)
def test_the_command_line_names_what_it_refuses(parameters, words, capsys):
    given = [part for text in parameters.split() for part in ("--param", text)]
    assert run(["predict", "--model", "deep-attention", *given, "--alpha", "0.2"]) == 2
    assert words in capsys.readouterr().err


def test_thresholds_of_a_layer_are_printed_by_the_command_line(capsys):
    given = ["--param", "layers=1", "--param", "tokens=4", "--param", "rank=3"]
    assert run(["thresholds", "--model", "deep-attention", *given]) == 0
    printed = capsys.readouterr().out
    assert "0.15" in printed and "0.333" in printed


@pytest.mark.parametrize("arguments", [{"rank": 2}, {"tied": False}, {"tied": False, "layers": 2}], ids=str)
def test_descent_is_for_layers_of_one_direction(arguments):
    with pytest.raises(sv.NotSimulable, match="rank"):
        sv.simulate(sv.DeepAttention(**{"layers": 1, "tokens": 3, **arguments}), sv.GradientDescent(), alpha=0.5, d=10)


SEVERAL = {"rank 2": sv.DeepAttention(2, 3, rank=2), "untied": sv.DeepAttention(2, 2, tied=False)}


@pytest.mark.parametrize("model", SEVERAL.values(), ids=SEVERAL)
def test_what_labels_hide_of_each_layer_does_not_change_scores(model):
    rng = np.random.default_rng(1)
    data = model.sample(rng, 40, alpha=0.5)
    estimate = 0.6 * data.truth + 0.3 * rng.standard_normal(data.truth.shape)
    turns = np.linalg.qr(rng.standard_normal((2, 2, 2)))[0] if model.tied else np.array([-np.eye(2), np.eye(2)])
    other = np.concatenate([estimate[:, :2] @ turns[0], estimate[:, 2:] @ turns[1]], axis=1)
    one, two = (model.scores(W, data, np.random.default_rng(2)) for W in (estimate, other))
    np.testing.assert_allclose(one["overlap"], two["overlap"], atol=1e-12)
    for name in ("estimation_error", "overlap_4", "cosine_1", "cosine_4"):
        assert one[name] == pytest.approx(two[name]) and name in model.definitions
    turned = one["overlap"] - one["overlap"].T
    assert not model.tied or np.abs(turned[:2, :2]).max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("model", SEVERAL.values(), ids=SEVERAL)
def test_below_the_threshold_of_one_layer_nothing_is_learned_of_several(model):
    found = sv.predict(model, sv.AMP(), alpha=0.1)
    assert found.converged and not found["overlap"].any()
    least, other = found["generalization_error"], found["plug_in_error"]
    assert 0 < least < other + found.uncertainty["generalization_error"] + found.uncertainty["plug_in_error"]


def test_runs_of_several_layers_tell_all_their_directions():
    for model in SEVERAL.values():
        run = sv.simulate(model, sv.AMP(max_steps=3), alpha=0.6, d=30, seed=0)
        assert run["overlap"].shape == (4, 4) and np.isfinite(run["overlap"]).all()
        assert {"overlap_4", "cosine_4", "plug_in_error"} <= set(run.metrics)


def test_runs_of_two_untied_layers_fulfil_coarse_equations():
    """Few and small runs well above the threshold, against equations with a quarter of the nodes and of the draws."""
    model, alpha, M = SEVERAL["untied"], 1.0, np.diag([0.0, 0.0, 0.9, 0.65])
    for _ in range(4):
        learned = alpha * model.channel.average(np.eye(4) - M, 0.25).information[2:, 2:]
        M[2:, 2:] = np.eye(2) - np.linalg.inv(np.eye(2) + learned)
    runs = [sv.simulate(model, sv.AMP(max_steps=40), alpha=alpha, d=64, seed=seed) for seed in range(4)]
    for name, known in (("overlap_3", M[2, 2]), ("overlap_4", M[3, 3])):
        found = np.array([run[name] for run in runs])
        error = found.std(ddof=1) / np.sqrt(len(runs))
        assert error < 0.07 and abs(found.mean() - known) < 4 * error + 0.02
    assert np.abs([run["overlap"][:2, :2] for run in runs]).max() < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "alpha", "sizes"),
    [(SEVERAL["rank 2"], 0.5, (128, 256)), (SEVERAL["untied"], 1.0, (64, 128))],
    ids=SEVERAL,
)
def test_runs_of_several_layers_agree_with_theory_at_two_sizes(model, alpha, sizes):
    """The mean over runs within four standard errors and a shift of size 1/d; runs know how much they know."""
    theory, seeds = sv.predict(model, sv.AMP(), alpha=alpha), 8
    assert theory.converged and not theory["overlap"][:2].any()
    for d in sizes:
        runs = [sv.simulate(model, sv.AMP(max_steps=60), alpha=alpha, d=d, seed=seed) for seed in range(seeds)]
        found = np.array([np.diag(run["overlap"])[2:] for run in runs])
        if model.tied:
            found = found.mean(axis=1, keepdims=True)
        known = np.diag(theory["overlap"])[2 : 2 + found.shape[1]]
        error = found.std(axis=0, ddof=1) / np.sqrt(seeds)
        assert np.all(error < 0.05)
        assert np.all(np.abs(found.mean(axis=0) - known) < 4 * np.hypot(error, theory.uncertainty["overlap_3"]) + 2 / d)
        doubt = np.array([np.trace(run["overlap"] - run.details["self_overlap"]) for run in runs])
        assert abs(doubt.mean()) < 4 * doubt.std(ddof=1) / np.sqrt(seeds) + 4 / d


@pytest.mark.slow
def test_the_last_untied_layer_is_learned_first():
    model = SEVERAL["untied"]
    found = sv.thresholds(model)
    assert 2 * found["weak_recovery"] < found["layer_1"] and found["layer_2"] == found["weak_recovery"]
    # Not before a single layer, whose threshold is closed.
    assert found["layer_2"] > sv.thresholds(sv.DeepAttention(1, 2, tied=False))["weak_recovery"]
    low, high = (found["layer_2"] * factor for factor in (0.97, 1.15))
    known = sv.predict(model, sv.AMP(), alpha=[low, high])["overlap"]
    assert not known[0].any() and known[1][2, 2] > known[1][3, 3] > 0 and not known[1][:2].any()


@pytest.mark.slow
def test_both_directions_of_the_last_layer_are_known_alike():
    found = sv.predict(SEVERAL["rank 2"], sv.AMP(), alpha=0.4)
    M = found["overlap"]
    assert found.converged and M[2, 2] > 0.1 and M[2, 2] == pytest.approx(M[3, 3]) and not M[:2].any()


@pytest.mark.slow
def test_small_overlaps_grow_on_data_of_several_layers_as_the_thresholds_say():
    for model in SEVERAL.values():
        r = model.directions
        rate = model.channel.linearisation(np.zeros((r, r)), np.eye(r)).growing_overlap()[0]
        alpha = 4 / rate
        grown = np.array([measured_growth(model, alpha, 400, seed) for seed in range(4)])
        assert abs(grown.mean() - 4) < 4 * grown.std(ddof=1) / 2 + 0.4


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
