"""Bounds on the error with the best penalty: known values, where they are reached, runs between them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import solvable as sv
from solvable.models.features.one_step.bounds import span_bounds
from solvable.targets.target import Target

MODEL = sv.TwoLayer("sin(z)", "tanh", 1.0)


def test_known_values():
    """Of one spike 0.9, and of second layers of finite support, by a trapezoidal rule of 40001 nodes.

    The sheet's values with u = 4, 2.685e-7 and 8.705e-5, are those of 120 Gauss-Hermite nodes, too few for its slope.
    """
    assert span_bounds(Target("sin(z)"), Target("tanh(z)"), [0.9]) == pytest.approx(
        (0.0016690533, 0.0291049006), abs=1e-9
    )
    layers = [1.0], [1.0, 2.0], [0.5, 1.0, 2.0], [0.5, 1.0, 2.0, 4.0]
    found = [span_bounds(Target("sin(z)"), Target("erf(z)"), u) for u in layers]
    assert [one.lower for one in found] == pytest.approx([3.216e-3, 3.372e-4, 4.7139e-7, 2.6434e-7], rel=1e-3)
    assert [one.upper for one in found] == pytest.approx([2.227e-2, 8.592e-3, 1.6627e-4, 8.7040e-5], rel=1e-3)


def test_a_gaussian_second_layer_by_atoms():
    """The values of a trapezoidal rule, as above."""
    u = [u for u, _ in sv.OneStep(0.1, 1.0, 1.0, "gaussian:8").second_layer if u > 0]
    assert len(u) == 4
    assert span_bounds(Target("sin(z)"), Target("erf(z)"), u) == pytest.approx((2.90442e-6, 1.31375e-3), rel=1e-4)


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        (MODEL, sv.RandomFeatures(1e7)),
        (sv.TwoLayer("z + 0.4*z**2", "relu", 1.0, noise=0.2), sv.RandomFeatures(1e7)),
        (MODEL, sv.OneStep(1e7, 3.0, 0.5, bulk="isotropic")),
        (MODEL, sv.OneStep(1e7, 1.2, math.inf, bulk="isotropic")),
    ],
)
def test_the_upper_bound_is_the_error_of_a_large_penalty(model, learner):
    error = sv.predict(model, learner, alpha=0.7)["generalization_error"]
    assert sv.risk_bounds(model, learner).upper == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("batch", [0.5, math.inf])
def test_the_lower_bound_is_approached_by_many_samples_and_units(batch):
    learner = sv.OneStep(1.0, 3.0, batch, bulk="isotropic")
    lower, upper = sv.risk_bounds(MODEL, learner)
    wide = sv.predict(sv.TwoLayer("sin(z)", "tanh", 1e4), learner, alpha=1e8)["generalization_error"]
    assert lower < wide < lower + 0.01 * (upper - lower)


def test_random_features_learn_the_linear_part_only():
    """sin(z): E[sin^2] - E[z sin]^2 = (1 - e^-2)/2 - e^-1."""
    lower, upper = sv.risk_bounds(MODEL, sv.RandomFeatures(0.1))
    assert (lower, upper) == pytest.approx(((1 - math.exp(-2)) / 2 - math.exp(-1), (1 - math.exp(-2)) / 2), abs=1e-12)
    still = sv.risk_bounds(MODEL, sv.OneStep(0.1, 0.0, 0.5))
    assert still == pytest.approx((lower, upper), abs=1e-9)


def test_the_best_step():
    learner = sv.OneStep(0.1, 3.0, math.inf)
    best = sv.best_step_bounds(MODEL, learner)
    for step in (0.5, best.lower_step * 1.05, best.upper_step * 0.95, 8.0):
        found = sv.risk_bounds(MODEL, sv.OneStep(0.1, step, math.inf))
        assert found.lower >= best.lower - 1e-12 and found.upper >= best.upper - 1e-12
    at = sv.risk_bounds(MODEL, sv.OneStep(0.1, best.upper_step, math.inf))
    assert at.upper == pytest.approx(best.upper, abs=1e-12)


def test_a_classifier_has_no_bounds():
    with pytest.raises(ValueError, match="loss = 'logistic' is not allowed"):
        sv.risk_bounds(sv.TwoLayer("sign(z)", "tanh", 1.0), sv.RandomFeatures(0.1, "logistic"))


@pytest.mark.slow
def test_runs_lie_between_the_bounds_at_two_sizes():
    """With the penalty that theory finds best; the error of few samples is close to the upper bound."""
    learner = sv.OneStep(0.1, 3.0, 20.0)
    lower, upper = sv.risk_bounds(MODEL, learner)
    few, many = (sv.optimize(MODEL, learner, alpha=alpha) for alpha in (0.1, 3.0))
    assert lower < many.prediction["generalization_error"] < few.prediction["generalization_error"] < upper
    for d in (150, 300):
        runs = [
            sv.simulate(MODEL, sv.OneStep(many.value, 3.0, 20.0), alpha=3.0, d=d, seed=seed)["generalization_error"]
            for seed in range(8)
        ]
        error = np.std(runs, ddof=1) / math.sqrt(len(runs))
        assert np.mean(runs) - 4 * error < upper and np.mean(runs) + 4 * error > lower
        expected = many.prediction["generalization_error"]
        assert abs(np.mean(runs) - expected) < 4 * error + 1.5 / d
