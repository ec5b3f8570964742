"""Layers of selected features: what emerges when, and the learner on models."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.engine.lofi.layers import Neurons, largest, seen_from, select
from solvable.verbs.simulate import simulate_many


def planted(n, D, feature, scale, rng):
    """Gaussian directions of standard deviations `scale`, and labels that go with the square of one of them."""
    F = rng.standard_normal((n, D))
    y = np.tanh(0.5 * (F[:, feature] ** 2 - 1) + rng.standard_normal(n))
    return F * scale, y - y.mean()


def known(feature, scale):
    """n_k of the planted feature, its eigenvalue, and E[y^2 h^2]/E[y^2], close to one for weak features only."""
    rng = np.random.default_rng(0)
    F, y = planted(400_000, 1, 0, np.ones(1), rng)
    strength, power = float(np.mean(y * F[:, 0] ** 2)), float(np.mean(y**2))
    beside = float(np.mean(y**2 * F[:, 0] ** 2)) / power
    return power * np.sum(scale**2) / (strength * scale[feature]) ** 2, strength * scale[feature] ** 2, beside


@pytest.mark.parametrize(("D", "decay", "feature"), [(100, 0.0, 0), (200, 0.0, 0), (200, 0.5, 0)])
def test_a_feature_is_seen_from_n_k_samples(D, decay, feature):
    """Squared overlaps 1 - n_k/n, to within the next order in n_k/n, also where directions have different variances."""
    scale = np.arange(1.0, D + 1) ** -decay
    n_k, eigenvalue, beside = known(feature, scale)
    for ratio in (4, 10):
        found, values, told = [], [], []
        for seed in range(12):
            n = round(ratio * n_k)
            Z, y = planted(n, D, feature, scale, np.random.default_rng(seed))
            value, vectors = largest((Z * y[:, None]).T @ Z / n, 1)
            found.append(vectors[feature, 0] ** 2)
            values.append(value[0])
            spread = np.mean((Z @ vectors) ** 2, axis=0)
            told.append(seen_from(value, np.mean(y**2) * spread * np.mean(np.sum(Z**2, axis=1)) / n)[0] * n)
        error = np.std(found) / np.sqrt(12)
        assert abs(np.mean(found) - (1 - beside / ratio)) < 4 * error + (beside / ratio) ** 2
        assert np.mean(values) / eigenvalue == pytest.approx(1 + 1 / ratio, abs=0.1)
        assert np.median(told) == pytest.approx(n_k, rel=0.35)


def test_noise_emerges_never_or_barely():
    """At the edge of the bulk n_k/n is one; with finitely many samples a direction it lies somewhat further out."""
    rng = np.random.default_rng(1)
    Z, y = rng.standard_normal((2000, 100)), rng.standard_normal(2000)
    values, vectors = largest((Z * y[:, None]).T @ Z / 2000, 5)
    found = seen_from(values, np.mean(y**2) * np.mean((Z @ vectors) ** 2, axis=0) * 100 / 2000)
    assert np.min(found) > 0.5
    assert seen_from(np.array([3.0]), np.array([0.0])).tolist() == [0.0]


def test_what_a_layer_keeps_goes_with_the_label():
    rng = np.random.default_rng(2)
    h = rng.standard_normal((500, 8))
    y = (h[:, 0] ** 2 - 1)[:, None]
    stack = select(h, y - y.mean(), 6, 2, 60, False, rng)
    first = stack.layers[0]
    assert isinstance(first, Neurons) and first.V is not None
    np.testing.assert_allclose(first.V.T @ first.V, np.eye(6), atol=1e-12)
    Z = first.values
    C = (Z * (y - y.mean())).T @ Z / 500
    np.testing.assert_allclose(C @ first.V, first.V * stack.eigenvalues[0], atol=1e-12)
    np.testing.assert_allclose(stack(h), stack.output, atol=1e-12)
    assert stack(h, 1).shape == (500, 6)


def test_the_first_layer_finds_a_direction_and_the_error_falls():
    model, learner = sv.MultiIndex("tanh(z**2 - 1)"), sv.NeuralLoFi(10, 1, 300)
    runs = {alpha: simulate_many(model, learner, 30, range(4), alpha=alpha) for alpha in (2.0, 20.0)}
    share, error = (
        {a: np.mean([run[name] for run in found]) for a, found in runs.items()}
        for name in ("share_1", "generalization_error")
    )
    assert share[20.0] > 0.85 > share[2.0] and error[20.0] < 0.7 * error[2.0]
    chance = np.mean([run["share_1"] for run in simulate_many(model, learner, 30, range(4), alpha=0.3)])
    assert chance < 0.6


def test_infinitely_many_neurons_are_the_limit_of_many():
    model = sv.MultiIndex("sign(z1*z2)")
    found = [
        np.mean(
            [
                run["generalization_error"]
                for run in simulate_many(model, sv.NeuralLoFi(6, 1, width), 12, range(4), alpha=30.0)
            ]
        )
        for width in (30, 1000, "kernel")
    ]
    assert abs(found[1] - found[2]) < 0.12 < abs(found[0] - found[2])


def test_trees_and_hierarchies():
    tree = sv.simulate(sv.TreeTarget(inner="he2(z)/2 + he3(z)/6"), sv.NeuralLoFi(8, 2, 300), kappa=2.2, d=25)
    assert tree["first_layer"] > 0.6 and 0 <= tree["second_layer"] <= 1 and tree["generalization_error"] < 0.6
    for inputs in ("gaussian", "hermite"):
        model = sv.HierarchicalTarget(1.0, features=4, inputs=inputs)
        run = sv.simulate(model, sv.NeuralLoFi(10, 1, 300), alpha=16.0, d=8)
        assert run["feature_overlap"].min() >= 0 and run["feature_overlap"].max() > 0.1
        assert run["generalization_error"] < 1


def test_runs_with_hardly_any_samples_and_bad_parameters():
    run = sv.simulate(sv.MultiIndex("z"), sv.NeuralLoFi(3, 1, 20), alpha=0.0, d=10)
    assert np.isfinite(run["generalization_error"])
    for values, message in (
        ({"width": "wide"}, "width = 'wide' is not allowed: width must be a number of neurons, or 'kernel'"),
        ({"layers": 0}, "layers = 0"),
        ({"features": 0}, "features = 0"),
        ({"penalty": -1.0}, "penalty = -1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            sv.NeuralLoFi(**values)  # pyright: ignore[reportArgumentType]
