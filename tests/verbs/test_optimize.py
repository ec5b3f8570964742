"""The best hyper-parameter: where it is known in closed form, at a bound, on flat and broken landscapes."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import ridge as toy

import solvable as sv

MODEL = toy.Regression(noise=0.25)


class Knob(sv.Learner):
    """A learner with one number, whose theory a test writes."""

    x: float = 1.0
    count: int = 3
    word: str = eqx.field(default="a", static=True)
    shape: str = eqx.field(default="", static=True)

    def __check_init__(self):
        if self.x < 0:
            raise ValueError("x must not be negative")


LANDSCAPES = {
    "two valleys": lambda x: 1 + (jnp.log(x) ** 2 - 4) ** 2 + 0.1 * jnp.log(x),
    "falling": lambda x: 1 / x,
    "flat": lambda x: 0 * x + 2.0,
    "wrong derivative": lambda x: jax.lax.stop_gradient((jnp.log(x) - 1) ** 2),
    "kink": lambda x: jnp.abs(jnp.log(x) - 1),
    "linear": lambda x: (x + 0.5) ** 2,
    "hole": lambda x: jnp.where(x < 2, jnp.nan, jnp.log(x / 3) ** 2),
    "nothing": lambda x: x * jnp.nan,
    "loop": lambda x: jax.lax.while_loop(lambda s: s[1] < 60, lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1), (x, 0))[0],
}


@sv.theory(toy.Regression, Knob)
def _(model, learner, alpha):
    value = LANDSCAPES[learner.shape](jnp.asarray(learner.x))
    return sv.Prediction({"estimation_error": value + 0 * alpha, "overlap": -value + 0 * alpha})


@pytest.mark.sampled(1)
@pytest.mark.parametrize("noise", [0.01, 0.25, 3.0])
def test_ridge_has_its_best_penalty_at_the_noise(noise):
    found = sv.optimize(toy.Regression(noise=noise), toy.Ridge(), alpha=1.3)
    assert found.value == pytest.approx(noise, rel=1e-9)
    assert (found.method, found.metric, found.over) == ("gradient", "estimation_error", "penalty")
    assert found.converged and not found.at_bound and found.evaluations > 25
    assert found.learner.penalty == found.value
    assert found.prediction["estimation_error"] == sv.predict(found.model, found.learner, alpha=1.3)["estimation_error"]


def test_a_theory_that_cannot_be_traced_is_optimised_without_derivatives():
    found = sv.optimize(MODEL, toy.RidgeByHand(), alpha=1.3)
    assert found.method == "derivative-free" and found.converged
    assert found.value == pytest.approx(0.25, rel=1e-6)


def test_an_overlap_is_made_large():
    best = sv.optimize(MODEL, toy.Ridge(), metric="overlap", alpha=1.3)
    assert best.value == pytest.approx(0.25, rel=1e-6)


def test_a_field_of_the_model_when_the_learner_has_none():
    best = sv.optimize(MODEL, toy.Ridge(), over="noise", bounds=(0.0, 2.0), alpha=1.3)
    assert best.value == 0.0 and best.at_bound and best.converged
    assert best.model.noise == 0.0


def landscape(shape, **options):
    return sv.optimize(MODEL, Knob(shape=shape), over="x", alpha=1.0, **options)


def test_the_deeper_of_two_valleys_is_found():
    best = landscape("two valleys")
    root = min(np.roots([4, 0, -16, 0.1]).real)
    assert np.log(best.value) == pytest.approx(root, abs=1e-9)


def test_an_optimum_at_a_bound_is_reported_as_such():
    best = landscape("falling", bounds=(0.1, 50.0))
    assert best.value == 50.0 and best.at_bound and best.converged and best.bounds == (0.1, 50.0)
    assert "at a bound" in repr(best)


def test_a_flat_metric_keeps_the_value():
    best = landscape("flat")
    assert (best.value, best.method, best.at_bound) == (1.0, "flat", False)


def test_a_derivative_that_disagrees_with_the_theory_is_not_used():
    best = landscape("wrong derivative")
    assert best.method == "derivative-free" and best.value == pytest.approx(np.e, rel=1e-6)


def test_a_kink_and_natural_bounds():
    assert landscape("kink").value == pytest.approx(np.e, rel=1e-6)
    best = landscape("linear", bounds=(-1.0, 1.0))
    assert best.value == pytest.approx(0.0, abs=1e-6)  # the field refuses what is below zero


def test_points_without_a_solution_are_avoided():
    best = landscape("hole")
    assert best.value == pytest.approx(3.0, rel=1e-6) and best.converged
    with pytest.raises(sv.ConvergenceError, match="no value of x between 0.0001 and 10000 gave a converged prediction"):
        landscape("nothing")


def test_derivatives_pass_through_while_loops():
    assert landscape("loop", bounds=(0.5, 8.0)).method == "gradient"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"over": "missing"}, r"over = 'missing' .* a real-valued field of Knob \(x\) or .* Regression \(noise\)"),
        ({"over": "word"}, r"over = 'word' is not allowed: over must be a real-valued field of Knob \(x\)"),
        ({"over": "count"}, "over = 'count' is not allowed"),
        ({"over": "x", "metric": "beauty"}, "metric = 'beauty' .* one of: estimation_error, overlap"),
        ({"over": "x", "bounds": (2.0, 1.0)}, "bounds = .* two finite numbers, the lower one first"),
        ({"over": "x", "bounds": 3.0}, r"bounds = 3.0 .* a pair of numbers \(lowest, highest\)"),
        ({"over": "x", "alpha": [1.0, 2.0]}, "alpha must be a single number here"),
    ],
)
def test_bad_requests(options, message):
    with pytest.raises(ValueError, match=message):
        sv.optimize(MODEL, Knob(shape="flat"), **{"alpha": 1.0} | options)
