"""Runs of networks trained layer by layer on tree targets, against known numbers and against the limit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import solvable as sv
from solvable.models.depth.tree.scores import explained, share_in_span
from solvable.models.depth.tree.spectral import leading, polynomials

MODEL = sv.TreeTarget(inner="he2(z)/2 + he3(z)/6")
LEARNERS = {"kernel": sv.Kernel(2), "one": sv.Layerwise(1), "two": sv.Layerwise(2)}


def runs(learner, d, kappa, seeds, model=MODEL):
    return [sv.simulate(model, learner, d=d, seed=seed, kappa=kappa) for seed in range(seeds)]


def mean(found, metric):
    values = np.array([run[metric] for run in found])
    return values.mean(), values.std(ddof=1) / math.sqrt(len(values))


def test_polynomials_are_orthonormal_and_all_of_their_degree():
    z = np.random.default_rng(0).standard_normal((200_000, 3))
    F = polynomials(z, 3)
    assert F.shape[1] == 3 + 6 + 10
    np.testing.assert_allclose(F.T @ F / len(z), np.eye(19), atol=0.08)


def test_leading_directions_are_those_of_a_quadratic_label():
    X = np.random.default_rng(0).standard_normal((20_000, 6))
    V = leading(X, X[:, 2] ** 2 - X[:, 4] ** 2, 2)
    np.testing.assert_allclose(np.abs(V[[2, 4]]).sum(0), 1, atol=0.05)


def test_shares_are_what_they_say():
    truth = 3 * np.eye(5)[:, :2]
    assert share_in_span(np.array([[2.0, 0], [0, 0], [0, 1], [2.0, 0], [0, 0]]), truth) == pytest.approx(0.25)
    x = np.random.default_rng(0).standard_normal((4000, 2))
    assert explained(x[:, :1], x[:, 0] + x[:, 1]) == pytest.approx(0.5, abs=0.05)
    assert explained(x, 3 * x[:, 0] - x[:, 1] + 2) == pytest.approx(1, abs=1e-12)


def test_runs_are_reproducible():
    first, second = (sv.simulate(MODEL, sv.Layerwise(2), d=36, seed=4, kappa=1.8) for _ in range(2))
    assert dict(first) == dict(second)


def test_layers_are_ordered_and_have_the_known_overlaps():
    """d = 64, n = 4096: errors .239, .282 and first layer .898, second .813^2 of another code (two seeds, +- .03)."""
    found = {name: runs(LEARNERS[name], 64, 2.0, 6) for name in ("one", "two")}
    one, two = (mean(found[name], "generalization_error")[0] for name in ("one", "two"))
    assert one == pytest.approx(0.282, abs=0.03) and two == pytest.approx(0.239, abs=0.03) and two < one
    assert mean(found["two"], "first_layer")[0] == pytest.approx(0.898, abs=0.02)
    assert mean(found["two"], "second_layer")[0] == pytest.approx(0.813**2, abs=0.06)


@pytest.mark.slow
def test_a_kernel_is_behind_both():
    """d = 64, n = 4096: .363 of another code."""
    value, error = mean(runs(LEARNERS["kernel"], 64, 2.0, 4), "generalization_error")
    assert value == pytest.approx(0.363, abs=0.03)
    one, spread = mean(runs(LEARNERS["one"], 64, 2.0, 4), "generalization_error")
    assert value - one > 4 * math.hypot(error, spread)


@pytest.mark.slow
def test_above_the_threshold_layers_are_learned_better_at_larger_size():
    """Towards overlaps of one above kappa = 3/2, and not at it."""
    above, at = ([runs(sv.Layerwise(2), d, kappa, 8) for d in (64, 144)] for kappa in (1.85, 1.5))
    for metric in ("first_layer", "second_layer"):
        (small, e), (large, f) = (mean(found, metric) for found in above)
        assert large - small > 3 * math.hypot(e, f)
        (small, e), (large, f) = (mean(found, metric) for found in at)
        assert large - small < 3 * math.hypot(e, f)


@pytest.mark.slow
def test_errors_come_down_to_the_limit():
    """At kappa = 2.1 the limit of one layer is .132, that of two 0."""
    for learner in (sv.Layerwise(1), sv.Layerwise(2)):
        limit = sv.predict(MODEL, learner, kappa=2.1)["generalization_error"]
        gaps = [mean(runs(learner, d, 2.1, 4), "generalization_error")[0] - limit for d in (36, 100)]
        assert 0 < gaps[1] < 0.75 * gaps[0]


@pytest.mark.slow
def test_several_branches_are_learned_by_their_sum():
    model = sv.TreeTarget(2, inner="he2(z)/2 + he3(z)/6")
    found = {layers: runs(sv.Layerwise(layers), 64, 2.3, 4, model) for layers in (1, 2)}
    assert mean(found[2], "second_layer")[0] > 0.5
    assert mean(found[2], "generalization_error")[0] < mean(found[1], "generalization_error")[0]


def test_noise_and_fresh_labels_are_told_apart():
    noisy = sv.TreeTarget(noise=0.5)
    found = sv.simulate(noisy, sv.Layerwise(1), d=36, seed=0, kappa=2.0)
    clean = sv.simulate(sv.TreeTarget(), sv.Layerwise(1), d=36, seed=0, kappa=2.0)
    assert clean["generalization_error"] < found["generalization_error"] < 0.5 + clean["generalization_error"]


def test_too_few_samples_are_refused():
    with pytest.raises(ValueError, match=r"kappa = .* larger: 8 samples"):
        sv.simulate(MODEL, sv.Layerwise(), d=36, seed=0, kappa=0.5)


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"layers": 3}, "layers = 3"), ({"degree": 0}, "degree = 0"), ({"training": "adam"}, "training = 'adam'")],
)
def test_what_is_no_training_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        sv.Layerwise(**fields)


def test_curves_have_the_thresholds_and_both_sides():
    curve = sv.learning_curve(
        MODEL, list(itertools.islice(LEARNERS.values(), 1, 3)), kappa=[1.4, 1.9], d=25, seeds=2, progress=False
    )
    assert curve.simulation("generalization_error").shape == curve.theory("generalization_error").shape + (2,)
    assert curve.thresholds["first_layer"] == 1.5
