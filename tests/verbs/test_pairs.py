"""What every theory owes: a residual on one scale, an uncertainty of each metric, numbers within their ranges."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from pairs import PAIRS, POINTS, missing

import solvable as sv
from solvable.engine.erm.theory import _step as step
from solvable.engine.sides import Evolution

SOLVED = 1e-7
"""The largest residual of a converged point; the solvers stop between 1e-13 and 1e-8."""


def test_every_pair_with_a_theory_has_an_example():
    assert not missing()


LONG = {
    "one projection, lasso",
    "one projection, ERM",
    "one projection, extragradient",
    "one projection, repeated",
    "network, descent",
    "sensing, descent",
    "two layers, one step",
    "sequence, Bayes",
    "places, ERM",
} | {
    f"{model}, {learner}"
    for model in ("network", "sensing", "bilinear")
    for learner in ("Bayes", "AMP", "nuclear", "width")
}
"""Pairs that take long to compile."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in PAIRS])
def test_a_converged_point_has_a_small_residual_and_uncertainties(name):
    model, learner, alpha = PAIRS[name]
    check(model, sv.predict(model, learner, alpha=np.array(alpha)), len(alpha))


@pytest.mark.parametrize("name", POINTS)
def test_a_converged_point_of_a_model_without_alpha_has_them_too(name):
    model, learner, axes = POINTS[name]
    found = sv.predict(model, learner, **{axis: np.array([value]) for axis, value in axes.items()})
    check(model, found, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "alpha"),
    [
        (sv.DeepAttention(1, 2, tied=False), 0.8),
        (sv.SequenceIndex("sign(z1[1]*z1[2])", 2), 3.0),
        (sv.SequenceIndex("z1[1]*z1[2]", 2, noise=0.1), 0.8),
    ],
    ids=str,
)
def test_where_labels_are_read_by_draws_the_residual_is_below_what_their_scatter_leaves(model, alpha):
    """A residual changes log V, and its change of V is part of the uncertainty: no step is finer than the draws."""
    found = sv.predict(model, sv.AMP(), alpha=alpha, throw=False)
    left = 1 - np.linalg.eigvalsh(np.atleast_2d(found["overlap"]))
    assert found.residual < 5e-3 and found.residual * left.max() < found.uncertainty["estimation_error"]


def check(model, found, count):
    assert np.all(found.converged)
    assert np.all(found.residual < SOLVED)
    assert set(found.uncertainty) == set(found.metrics)
    for metric, value in found.metrics.items():
        error = found.uncertainty[metric]
        assert np.all(np.isfinite(error)) and np.all(error >= 0)
        assert metric in model.definitions or metric.startswith("overlap"), metric
        assert np.shape(np.atleast_1d(value))[0] == count


def test_the_residual_of_a_minimiser_is_what_one_more_step_changes():
    model, learner, _ = PAIRS["one projection, huber"]
    found = sv.predict(model, learner, alpha=0.5)
    m, q, V = (found.order_parameters[name] for name in ("m", "q", "V"))
    x = np.array([m / np.sqrt(q), np.log(q), np.log(V)])
    with jax.enable_x64(True):
        risk = Evolution(model.likelihood().with_loss(learner.loss), model.signal_side().with_penalty(learner.penalty))
        change = np.max(np.abs(np.asarray(step(x, risk, 0.5)) - x))
        away = np.max(np.abs(np.asarray(step(x + 1e-3, risk, 0.5)) - (x + 1e-3)))
    assert change <= 10 * found.residual + 1e-14 and found.residual <= 10 * change + 1e-14
    assert 1e-5 < away < 1e-2


def test_the_residual_of_an_overlap_is_the_ratio_of_both_sides():
    model, learner, _ = PAIRS["one projection, AMP"]
    found = sv.predict(model, learner, alpha=4.0)
    qhat = found.order_parameters["qhat"]
    with jax.enable_x64(True):
        information = model.channel.information(np.array([[[1 / (1 + qhat)]]])).information[0, 0, 0]
    assert abs(np.log(4.0 * information / qhat)) < found.residual + 1e-6
