"""No number that cannot be right is marked converged, and none that is hardly known."""

from __future__ import annotations

import numpy as np
import pytest
from toys import ridge as toy
from toys.probes import ANSWER, Probe

import solvable as sv
from solvable.core.model import Learner
from solvable.core.ranges import UNIT, Range, guarded, usual_range
from solvable.core.results import Prediction

MODEL = toy.Regression()


@pytest.fixture
def answer():
    yield ANSWER
    ANSWER.clear()


def judged(metrics, uncertainty=None, ranges=None, status=0):
    """The guard's answer for one point."""
    arrays = [{k: np.asarray(v, float)[None] for k, v in part.items()} for part in (metrics, uncertainty or {})]
    return guarded(Prediction(arrays[0], status=np.array([status]), uncertainty=arrays[1]), ranges or {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimation_error", -1e-3),
        ("generalization_error", -1e266),
        ("cosine", 1.001),
        ("cosine", -1.001),
        ("squared_overlap", -0.01),
        ("squared_overlap", 1.01),
        ("classification_error", 1.2),
        ("rank", -0.1),
    ],
)
def test_a_metric_out_of_its_range_is_never_converged(name, value):
    assert judged({name: value}, {name: 1e-6}).status[0] == sv.Status.OUT_OF_RANGE
    assert judged({name: value}).status[0] == sv.Status.OUT_OF_RANGE


def test_errors_are_not_above_what_the_model_allows():
    assert judged({"estimation_error": 1.5}).status[0] == sv.Status.CONVERGED
    found = judged({"estimation_error": 1.5}, ranges={"estimation_error": Range(0.0, 1.0)})
    assert found.status[0] == sv.Status.OUT_OF_RANGE


@pytest.mark.parametrize(("matrix", "good"), [([[0.5, 0.4], [0.4, 0.5]], True), ([[0.5, 0.6], [0.6, 0.5]], False)])
def test_of_a_matrix_the_eigenvalues_count(matrix, good):
    found = judged({"overlap": matrix}, {"overlap": np.full((2, 2), 1e-6)}, {"overlap": UNIT})
    assert found.converged[0] == good
    assert judged({"overlap": matrix}, {"overlap": 0.06}, {"overlap": UNIT}).status[0] != sv.Status.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("name", "value", "error", "back"),
    [
        ("estimation_error", -3e-14, 0.0, 0.0),
        ("estimation_error", -5e-10, 1e-9, 0.0),
        ("cosine", 1 + 1e-7, 1e-6, 1.0),
        ("squared_overlap", -1e-9, 1e-8, 0.0),
    ],
)
def test_what_the_uncertainty_brings_back_is_put_on_the_bound(name, value, error, back):
    found = judged({name: value}, {name: error})
    assert found.converged[0] and found.metrics[name][0] == back


@pytest.mark.parametrize("error", [0.05, 0.2, np.inf, np.nan])
def test_a_result_known_to_a_tenth_of_its_value_is_imprecise(error):
    assert judged({"overlap": 0.5}, {"overlap": error}).status[0] == sv.Status.IMPRECISE


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("estimation_error", 0.0, 0.0),
        ("estimation_error", 1e-12, 1e-12),
        ("squared_overlap", 0.0, 2e-6),
        ("overlap", 0.5, 0.049),
        ("rank", 1e-7, 1e-6),
    ],
)
def test_small_errors_of_small_numbers_are_precise(name, value, error):
    assert judged({name: value}, {name: error}).converged[0]


def test_one_entry_of_a_matrix_may_be_small():
    assert judged({"overlap": np.diag([0.5, 1e-4])}, {"overlap": np.full((2, 2), 1e-3)}).converged[0]


@pytest.mark.parametrize("status", [s for s in sv.Status if s])
def test_a_status_that_says_more_is_kept(status):
    assert judged({"estimation_error": -1.0}, status=int(status)).status[0] == status


def test_not_finite_comes_before_out_of_range_before_imprecise():
    bad = {"estimation_error": -1.0, "overlap": np.nan}
    assert judged(bad, {"estimation_error": 0.5}).status[0] == sv.Status.NONFINITE
    assert judged({"estimation_error": -1.0}, {"estimation_error": 0.5}).status[0] == sv.Status.OUT_OF_RANGE


def test_a_single_point_out_of_range_says_which_metric(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"estimation_error": -0.25 + 0 * alpha})
    with pytest.raises(sv.ConvergenceError, match=r"estimation_error = -0.25 \+- 0, not between 0 and inf") as caught:
        sv.predict(MODEL, Probe(), alpha=1.0)
    assert "a metric lies outside the range of what it means" in str(caught.value)
    kept = sv.predict(MODEL, Probe(), alpha=1.0, throw=False)
    assert kept.status is sv.Status.OUT_OF_RANGE and kept["estimation_error"] == -0.25


def test_a_single_imprecise_point_says_its_value_and_uncertainty(answer):
    answer["theory"] = lambda alpha: sv.Prediction({"overlap": 0.25 + 0 * alpha}, uncertainty={"overlap": 0.03})
    with pytest.raises(sv.ConvergenceError, match=r"a tenth of a metric or more \(overlap = 0.25 \+- 0.03\)"):
        sv.predict(MODEL, Probe(), alpha=1.0)
    kept = sv.predict(MODEL, Probe(), alpha=[1.0, 2.0])
    assert kept.status.tolist() == [sv.Status.IMPRECISE] * 2 and not kept.converged.any()


def test_a_matrix_out_of_range_is_told_by_its_eigenvalues():
    class Backwards(sv.Model):
        def ranges(self, learner: Learner):
            return {"overlap": UNIT}

    sv.theory(Backwards, Probe)(
        lambda model, learner, alpha: sv.Prediction({"overlap": np.array([[[0.0, 0.5], [0.5, 0.0]]])})
    )
    with pytest.raises(sv.ConvergenceError, match=r"overlap = \[-0.5  0.5\] \+- 0, not between 0 and 1"):
        sv.predict(Backwards(), Probe(), alpha=1.0)


MODELS = {
    "one projection": (sv.MultiIndex("sign(z)"), {"estimation_error": 1.0, "generalization_error": 1.0}),
    "two projections": (sv.MultiIndex("sign(z1*z2)"), {"estimation_error": 2.0, "classification_error": 0.5}),
    "matrix": (sv.QuadraticNetwork(0.5), {"estimation_error": 1.0, "generalization_error": 2.0}),
    "sensing": (sv.MatrixSensing("semicircle:2.0"), {"estimation_error": 2.0}),
    "bilinear": (sv.BilinearSequence(0.5), {"estimation_error": 1.0}),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_says_what_knowing_nothing_gives(name):
    model, expected = MODELS[name]
    ranges = model.ranges(sv.BayesOptimal())
    assert {metric: ranges[metric].high for metric in expected} == pytest.approx(expected, rel=1e-8)
    assert ranges["overlap"] == UNIT


def test_a_minimiser_may_be_worse_than_knowing_nothing():
    model = sv.MultiIndex("sign(z)")
    assert "estimation_error" not in model.ranges(sv.ERM())
    assert sv.predict(sv.MultiIndex("z", noise=4.0), sv.ERM("square", 0.01), alpha=1.0)["estimation_error"] > 1


@pytest.mark.parametrize("learner", [sv.BayesOptimal(), sv.AMP()])
def test_the_guard_stands_before_the_theories_of_the_house(monkeypatch, learner):
    """A theory that is made to return an error above the prior's variance is not believed."""
    model = sv.MultiIndex("z", noise=0.5)
    right = type(model).prediction

    def wrong(self, points):
        found = right(self, points)
        return Prediction(
            {name: value + 2.0 for name, value in found.metrics.items()},
            status=found.status,
            uncertainty=found.uncertainty,
        )

    ranges = model.ranges(learner)
    monkeypatch.setattr(type(model), "prediction", wrong)
    monkeypatch.setattr(type(model), "ranges", lambda self, learner: ranges)
    assert sv.predict(model, learner, alpha=0.1, throw=False).status is sv.Status.OUT_OF_RANGE


def test_usual_ranges_go_by_the_name():
    assert usual_range("training_error").low == 0 and usual_range("training_loss").low == -np.inf
