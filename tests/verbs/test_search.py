"""The search for the best values of one or several numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import solvable as sv
from solvable.verbs.search import Scale, Search

OUTLIERS = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.3, slope=0.0, noise=5.0))


@pytest.mark.parametrize("bounds", [(1e-4, 1e4), (-3.0, 1e3), (0.0, 50.0), (-1.0, 1.0), (2.0, 5.0), (-7.0, -2.0)])
def test_a_scale_goes_back_and_forth(bounds):
    scale = Scale(*bounds)
    for value in np.linspace(*bounds, 17):
        assert scale.back(scale.to(value)) == pytest.approx(value, rel=1e-12, abs=1e-12)
        step = 1e-6
        t = scale.to(0.3 * bounds[0] + 0.7 * bounds[1])
        slope = (scale.back(t + step) - scale.back(t - step)) / (2 * step)
        assert scale.slope(scale.back(t)) == pytest.approx(slope, rel=1e-5)
    assert scale.back(scale.to(bounds[0])) == bounds[0] and scale.back(scale.to(bounds[1])) == bounds[1]


def valley(values):
    x, y = values
    return (math.log(x) - 1) ** 2 + (y + 0.7) ** 2 + 0.5 * (math.log(x) - 1) * (y + 0.7)


def slopes(values):
    x, y = values
    return [(2 * (math.log(x) - 1) + 0.5 * (y + 0.7)) / x, 2 * (y + 0.7) + 0.5 * (math.log(x) - 1)]


@pytest.mark.parametrize("gradient", [slopes, None, lambda values: [1.0, 1.0]])
def test_two_numbers_are_found_with_and_without_a_derivative(gradient):
    search = Search(valley, gradient, [(0.01, 100.0), (-2.0, 1e3)])
    values, method = search.run((1.0, 0.0))
    assert values == pytest.approx((math.e, -0.7), abs=1e-4)
    assert method == ("gradient" if gradient is slopes else "derivative-free")


def test_regions_without_a_value_are_avoided():
    search = Search(lambda v: math.inf if v[0] < 0.5 else v[0] ** 2 + v[1] ** 2, None, [(-3.0, 3.0), (-2.0, 3.0)])
    values, _ = search.run((1.0, 1.0))
    assert values == pytest.approx((0.5, 0.0), abs=1e-3)


def test_no_value_anywhere():
    assert Search(lambda v: math.nan, None, [(0.0, 1.0), (0.0, 1.0)]).run((0.5, 0.5)) == (None, "none")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("alpha", "best", "error"), [(2.0, 0.21261, None), (5.0, -0.43016, 0.15281), (20.0, -4.69077, 0.039997)]
)
def test_the_best_ridge_may_be_negative(alpha, best, error):
    model = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(0.3, slope=0.0, noise=0.1))
    found = sv.optimize(model, sv.ERM(sv.losses.Square(), sv.Ridge(0.1)), over="penalty", alpha=alpha)
    assert found.value == pytest.approx(best, abs=2e-5) and found.method == "gradient" and not found.at_bound
    assert error is None or found.prediction["estimation_error"] == pytest.approx(error, abs=1e-5)


@pytest.mark.slow
def test_scale_and_penalty_together_with_the_bound():
    learner = sv.ERM(sv.losses.Tukey(2.0), sv.Ridge(0.1))
    found = sv.optimize(OUTLIERS, learner, over=("scale", "penalty"), alpha=10.0)
    assert found.value == pytest.approx((1.3080, 0.0691), abs=2e-3) and found.method == "gradient"
    assert found.prediction["estimation_error"] == pytest.approx(0.022801, abs=1e-6)
    assert found.learner.loss.scale == found.value[0]
    assert found.bayes_optimal["estimation_error"] == pytest.approx(0.022705, abs=1e-6)
    assert found.prediction["estimation_error"] > found.bayes_optimal["estimation_error"]
    assert repr(found).startswith("Optimum(scale=1.308")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "outliers", "huber", "tukey", "bayes"),
    [
        (10.0, (0.1, 1.0, 5.0), (0.3747, 0.1030, 0.015997), (1.5607, 0.0899, 0.014014), 0.013878),
        (10.0, (0.3, 0.0, 5.0), (0.2139, -0.0985, 0.036155), (1.3080, 0.0691, 0.022801), 0.022705),
        (10.0, (0.3, 0.0, 1.0), (0.2394, -0.2856, 0.035209), (1.2574, -0.0173, 0.025982), 0.024914),
        (3.0, (0.3, 0.0, 5.0), (0.1809, 0.0877, 0.229433), (1.4863, 0.1378, 0.143649), 0.137637),
    ],
)
def test_table_of_optimised_losses(alpha, outliers, huber, tukey, bayes):
    model = sv.MultiIndex("z", noise=0.1, contamination=sv.Contamination(*outliers))
    for loss, (scale, strength, error) in ((sv.losses.Huber(1.0), huber), (sv.losses.Tukey(2.0), tukey)):
        found = sv.optimize(model, sv.ERM(loss, sv.Ridge(0.1)), over=("scale", "penalty"), alpha=alpha)
        assert found.value == pytest.approx((scale, strength), abs=2e-3)
        assert found.prediction["estimation_error"] == pytest.approx(error, abs=2e-6)
        assert found.bayes_optimal["estimation_error"] == pytest.approx(bayes, abs=1e-6)


def test_what_cannot_be_optimised_is_refused():
    learner = sv.ERM(sv.losses.Square(), sv.Ridge(0.1))
    with pytest.raises(ValueError, match=r"over = 'scale' is not allowed: over must be a real-valued field of ERM"):
        sv.optimize(OUTLIERS, learner, over="scale", alpha=3.0)
    with pytest.raises(ValueError, match=r"over = \('penalty', 'penalty'\) is not allowed"):
        sv.optimize(OUTLIERS, learner, over=("penalty", "penalty"), alpha=3.0)
    with pytest.raises(
        ValueError, match=r"bounds = .* is not allowed: bounds must be a pair of numbers for each field"
    ):
        sv.optimize(OUTLIERS, learner, over=("penalty", "noise"), bounds=(0.1, 1.0, 2.0), alpha=3.0)
