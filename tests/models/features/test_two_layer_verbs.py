"""Two-layer networks in every verb, and at the edges of their parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from typer.testing import CliRunner

import solvable as sv
from solvable.cli.app import app

MODEL = sv.TwoLayer("sin(z)", "tanh", 0.8, noise=0.1)
FROZEN = sv.RandomFeatures(0.1)
STEPPED = sv.OneStep(0.1, 3.0, 2.0, bulk="isotropic")
ERROR = "generalization_error"


def test_a_phase_diagram_over_samples_and_width():
    """More units than samples or fewer: the peak is where they are equal."""
    grid = np.array([0.5, 1.0, 2.0])
    plane = sv.phase_diagram(
        MODEL, sv.RandomFeatures(1e-3), x=("alpha", grid), y=("width", grid), metric=ERROR, progress=False
    ).theory(ERROR)
    values = np.asarray(plane.squeeze().transpose("width", "alpha"))
    assert np.all(np.argmax(values, axis=1) == [0, 1, 2])


def test_a_sweep_over_step_and_penalty(tmp_path):
    learners = [sv.RandomFeatures(penalty) for penalty in (0.1, 1.0)]
    swept = sv.sweep(MODEL, learners, store=tmp_path / "store", alpha=[0.5, 1.5], d=20, seeds=2, workers=1)
    expected = [sv.predict(MODEL, learner, alpha=np.array([0.5, 1.5]))[ERROR] for learner in learners]
    assert np.sort(swept.theory(ERROR).values.ravel()) == pytest.approx(np.sort(np.ravel(expected)), abs=1e-9)


def test_the_command_line():
    model = ["sin(z)", "--model", "two-layer", "--param", "activation=tanh", "--param", "width=0.8", "--noise", "0.1"]
    for learner, same in (
        ("random-features:penalty=0.1", FROZEN),
        ("one-step:penalty=0.1,step=3,batch=2,bulk=isotropic", STEPPED),
    ):
        found = CliRunner().invoke(app, ["predict", *model, "--alpha", "0.7", "--learner", learner, "--json"])
        assert found.exit_code == 0, found.output
        assert f"{sv.predict(MODEL, same, alpha=0.7)[ERROR]:.8f}"[:8] in found.output


@pytest.mark.slow
def test_the_best_penalty_and_the_best_step():
    """A point to both sides of an optimum is no better."""
    for learner, over in ((FROZEN, "penalty"), (STEPPED, "penalty"), (STEPPED, "step")):
        best = sv.optimize(MODEL, learner, alpha=1.2, over=over)
        least = best.prediction[ERROR]
        for factor in (0.9, 1.1):
            near = sv.predict(MODEL, learner.with_field(over, factor * float(np.squeeze(best.value))), alpha=1.2)
            assert near[ERROR] > least - 1e-9, over


@pytest.mark.parametrize("learner", [FROZEN, STEPPED], ids=["frozen", "stepped"])
def test_few_samples_are_those_of_none(learner):
    none, few = (sv.predict(MODEL, learner, alpha=alpha) for alpha in (0.0, 1e-9))
    assert few[ERROR] == pytest.approx(none[ERROR], abs=1e-8)
    assert none[ERROR] == pytest.approx(sv.risk_bounds(MODEL, learner).upper, abs=1e-12 if learner is FROZEN else 1e-3)


@pytest.mark.parametrize("learner", [FROZEN, STEPPED], ids=["frozen", "stepped"])
def test_narrow_and_wide_networks(learner):
    narrow, wide, kernel = (
        sv.predict(sv.TwoLayer("sin(z)", "tanh", width, 0.1), learner, alpha=1.2) for width in (1e-9, 1e9, math.inf)
    )
    assert narrow[ERROR] == pytest.approx(sv.risk_bounds(MODEL, learner).upper, abs=1e-6)
    assert wide[ERROR] == pytest.approx(kernel[ERROR], abs=1e-7)
    assert wide["training_error"] == pytest.approx(kernel["training_error"], abs=1e-7)


def test_a_step_on_few_samples_finds_nothing():
    found = sv.predict(MODEL, sv.OneStep(1e6, 3.0, 1e-3, bulk="isotropic"), alpha=1.0)
    assert found.order_parameters["alignment"] < 0.05
    assert found[ERROR] == pytest.approx(sv.risk_bounds(MODEL, STEPPED.with_field("batch", 1e-3)).upper, rel=1e-5)


def test_a_small_step_and_no_step_differ_unless_the_units_are_counted():
    """However small the spike, the mean of infinitely many features is fitted for free; of a few it is not."""
    tiny = STEPPED.with_field("step", 1e-4)
    frozen = sv.predict(MODEL, FROZEN, alpha=1.2)[ERROR]
    assert sv.predict(MODEL, tiny, alpha=1.2)[ERROR] < frozen - 0.05
    counted = sv.OneStep(0.1, 1e-4, 2.0, bulk="isotropic", units=200)
    assert sv.predict(MODEL, counted, alpha=1.2)[ERROR] == pytest.approx(frozen, abs=1e-3)
