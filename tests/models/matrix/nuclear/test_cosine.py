"""The cosine of a network trained with weight decay, against another way to its two integrals."""

from __future__ import annotations

import numpy as np
import pytest
from reference.trace_signal import TraceSignal

import solvable as sv
from solvable.core.precision import float64
from solvable.engine.sides import Field
from solvable.models.matrix.nuclear.theory import nuclear_points, penalty_slopes

LAW = sv.QuadraticNetwork(0.5).law
ALPHA = np.array([0.1, 0.3, 0.6])


@pytest.mark.parametrize(("noise", "penalty"), [(0.25, 0.2), pytest.param(0.0, 0.0, marks=pytest.mark.slow)])
def test_overlap_and_square_are_those_of_the_signal_side(noise, penalty):
    points = float64(nuclear_points)(LAW, noise, penalty, ALPHA[1:2])
    found = float64(TraceSignal(LAW, 2 * float(points.theta[0])).average)(Field(np.ones(1), points.D, np.ones(1)))
    assert points.m[0] == pytest.approx(float(found.m[0]), rel=1e-7)
    assert points.q[0] == pytest.approx(float(found.q[0]), rel=1e-7)


@pytest.mark.slow
def test_slopes_in_the_penalty_are_those_measured():
    points, up, down = (float64(nuclear_points)(LAW, 0.25, penalty, ALPHA) for penalty in (0.2, 0.2001, 0.1999))
    slopes = penalty_slopes(points, 0.2, ALPHA)
    for name in ("cosine", "squared_overlap"):
        measured = (up.metrics[name] - down.metrics[name]) / 2e-4
        np.testing.assert_allclose(slopes[name], measured, rtol=1e-4)


@pytest.mark.slow
def test_a_limited_width_that_is_no_limit_changes_nothing():
    model = sv.QuadraticNetwork(0.3, noise=0.1)
    wide, narrow = (sv.predict(model, sv.NuclearNorm(0.3, width=width), alpha=0.2) for width in (None, 0.9))
    assert narrow["cosine"] == pytest.approx(wide["cosine"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner", [sv.NuclearNorm(0.2), sv.NuclearNorm(0.2, width=0.2, solver="network"), sv.Lazy(0.1)]
)
def test_runs_approach_the_predicted_cosine(learner):
    model = sv.QuadraticNetwork(0.5, noise=0.25)
    predicted = sv.predict(model, learner, alpha=0.3)["cosine"]
    off = [np.mean([sv.simulate(model, learner, alpha=0.3, d=d, seed=s)["cosine"] for s in range(6)]) for d in (30, 90)]
    assert abs(off[1] - predicted) < 0.02 and abs(off[1] - predicted) < abs(off[0] - predicted) + 0.005
