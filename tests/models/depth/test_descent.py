"""Networks trained by descent on tree targets, layer by layer and as a whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

import solvable as sv
from solvable.models.depth.tree import descent, joint
from solvable.models.depth.tree.scores import explained, share_in_span

MODEL = sv.TreeTarget(inner="he2(z)/2 + he3(z)/6")
LAYERS = sv.Layerwise(2, training="gradient", width=60, steps=40)
WHOLE = sv.JointTraining(3, width=30, second_width=10, epochs=40, learning_rate=0.005)


@pytest.fixture(scope="module")
def data():
    return MODEL.sample(np.random.default_rng(0), 16, kappa=2.4)


def test_first_layer_is_a_power_iteration(data):
    """Its neurons lie in the span of the target's directions as the leading eigenvectors do, far above chance."""
    X, y = 4 * data.X, data.y - data.y.mean()
    W, b = descent.first_layer(X, y, 200, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1, atol=1e-12)
    assert b.shape == (200,) and share_in_span(W, data.truth) > 0.6 > 2 * 4 / 16


@pytest.mark.parametrize("learner", [LAYERS, sv.Layerwise(1, training="gradient", width=60), WHOLE])
def test_runs_are_reproducible_and_better_than_nothing(learner):
    first, second = (sv.simulate(MODEL, learner, d=16, seed=3, kappa=2.4) for _ in range(2))
    assert dict(first) == dict(second)
    assert first["generalization_error"] < 0.55 and 0.3 < first["cosine"] < 1
    assert 0 < first["first_layer"] < 1 and 0 <= first.get("second_layer", 0) < 1


def test_the_samples_set_aside_choose_the_width(monkeypatch):
    monkeypatch.setattr(joint, "WIDTHS", (5, 40))
    data = MODEL.sample(np.random.default_rng(0), 16, kappa=1.8)
    found = joint.learn(sv.JointTraining(2, width=None, epochs=8), data, np.random.default_rng(1))
    assert found.directions.shape[1] in (5, 40) and 0 < found.aside < 1


def test_hidden_features_are_those_of_the_network(data):
    found = joint.learn(WHOLE, data, np.random.default_rng(0))
    hidden = found.features(data.X)
    assert hidden.shape == (len(data.X), 10) and np.all(hidden >= 0)
    assert explained(hidden, found.predict(data.X)) == pytest.approx(1, abs=1e-9)  # the output is linear in them


def test_theory_is_of_the_limit_whatever_the_training():
    for layers in (1, 2):
        gradient, spectral = (
            sv.predict(MODEL, sv.Layerwise(layers, training=training), kappa=[1.2, 1.7])["generalization_error"]
            for training in ("gradient", "spectral")
        )
        np.testing.assert_array_equal(gradient, spectral)
    assert sv.predict(MODEL, sv.Layerwise(1, training="gradient"), kappa=3.2)["generalization_error"] == pytest.approx(
        MODEL.degrees.variance - MODEL.degrees.learned(6)
    )
    with pytest.raises(sv.NotSolvable):
        sv.predict(MODEL, WHOLE, kappa=1.7)


@pytest.mark.slow
def test_two_trained_layers_beat_one_and_a_kernel():
    """d = 64, n = 11585: .106 by linear algebra of another code; descent comes near it, one layer does not."""
    errors = {}
    for layers in (1, 2):
        learner = sv.Layerwise(layers, training="gradient")
        runs = [sv.simulate(MODEL, learner, d=64, seed=seed, kappa=2.25) for seed in range(3)]
        values = np.array([run["generalization_error"] for run in runs])
        errors[layers] = values.mean(), values.std(ddof=1) / math.sqrt(3)
        assert np.mean([run["first_layer"] for run in runs]) > 0.93
    assert errors[2][0] < 0.14
    assert errors[1][0] - errors[2][0] > 3 * math.hypot(errors[1][1], errors[2][1])


@pytest.mark.slow
def test_the_third_layer_helps_a_whole_network_from_enough_samples():
    """d = 49: at kappa = 2 the widths of another code have .347 (two layers) and .355, at 2.25 .280 and .238."""
    found = {}
    for kappa in (2.0, 2.25):
        for layers in (2, 3):
            runs = [sv.simulate(MODEL, sv.JointTraining(layers), d=49, seed=seed, kappa=kappa) for seed in range(3)]
            found[kappa, layers] = np.mean([run["generalization_error"] for run in runs])
    assert found[2.0, 2] == pytest.approx(0.347, abs=0.04) and found[2.0, 3] == pytest.approx(0.355, abs=0.04)
    assert found[2.25, 3] < found[2.25, 2] - 0.02


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"layers": 4}, "layers = 4"), ({"width": 0}, "width = 0"), ({"decay": -1.0}, "decay = -1.0")]
    + [({"learning_rate": 0.0}, "learning_rate = 0.0"), ({"batch": 0}, "batch = 0")],
)
def test_what_is_no_training_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        sv.JointTraining(**fields)
