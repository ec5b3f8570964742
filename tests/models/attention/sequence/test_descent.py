"""Gradient descent on deep attention: its slope and batches, the shape of a run, and which layer comes first."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import solvable as sv
from solvable.core.errors import NotSimulable
from solvable.models.attention.sequence.descent import _batches, _squares

TWO = sv.DeepAttention(2, 2)
PUBLISHED = {"step": 15.0, "batch": 0.4, "passes": 3, "decay": 0.07}


@pytest.mark.parametrize("layers", [1, 3])
def test_the_loss_is_that_of_the_labels_and_vanishes_at_the_truth(layers):
    model, rng = sv.DeepAttention(layers, 3, 0.5), np.random.default_rng(0)
    data = model.sample(rng, 8, alpha=1.0)
    W, y = rng.standard_normal((8, layers)), np.exp(data.y)
    with jax.enable_x64(True):
        assert float(_squares(data.truth, data.X, y, 0.5)) < 1e-20
        assert float(_squares(W, data.X, y, 0.5)) == pytest.approx(np.sum((model.labels()(data.X @ W) - y) ** 2))


def test_an_epoch_has_no_sample_twice():
    order = _batches(11, 3, 7, np.random.default_rng(0))
    assert order.shape == (7, 3) and len(set(order[:3].ravel())) == len(set(order[3:6].ravel())) == 9


def test_a_run_has_metrics_a_path_and_an_end():
    found = sv.simulate(TWO, sv.GradientDescent(**PUBLISHED, max_steps=60), alpha=15.0, d=20, seed=1)
    path = found.details["cosine_path"]
    assert path.shape == (21, 2) and found.details["iterations"] == 60 and not found.converged
    assert path[-1] == pytest.approx([found["cosine_1"], found["cosine_2"]]) and "overlap" not in found.metrics
    assert found["generalization_error"] == found["plug_in_error"] and set(found.metrics) <= set(TWO.definitions)
    again = sv.simulate(TWO, sv.GradientDescent(**PUBLISHED, max_steps=60), alpha=15.0, d=20, seed=1)
    assert np.array_equal(again.estimate, found.estimate)


def test_one_layer_is_learned_to_the_end_from_all_samples():
    found = sv.simulate(sv.DeepAttention(1, 2), sv.GradientDescent(step=0.5), alpha=6.0, d=20, seed=0)
    assert found.converged and found["training_error"] < 1e-5 and found["cosine"] > 0.999


def test_steps_that_are_too_long_do_not_converge():
    assert not sv.simulate(TWO, sv.GradientDescent(step=1e3, max_steps=100), alpha=5.0, d=20, seed=0).converged


def test_what_is_not_written_is_refused():
    with pytest.raises(NotSimulable, match="runs = 1"):
        sv.simulate(TWO, sv.GradientDescent(runs=2), alpha=1.0, d=10)
    with pytest.raises(NotSimulable, match="tied = True"):
        sv.simulate(sv.DeepAttention(1, 2, tied=False), sv.GradientDescent(), alpha=1.0, d=10)
    with pytest.raises(NotSimulable, match="batch, passes and decay"):
        sv.simulate(sv.AttentionIndexed(0.5, 2), sv.GradientDescent(batch=0.4), alpha=0.1, d=10)
    with pytest.raises(ValueError, match="batch"):
        sv.GradientDescent(batch=-1.0)


@pytest.mark.slow
def test_descent_has_the_last_layer_first():
    learner = sv.GradientDescent(**PUBLISHED, max_steps=6000)
    for seed in range(3):
        path = sv.simulate(TWO, learner, alpha=15.0, d=100, seed=10 + seed).details["cosine_path"]
        first, last = (int(np.argmax(path[:, layer] > 0.5)) for layer in (0, 1))
        assert 0 < 3 * last < first and path[-1, 1] > 0.97
