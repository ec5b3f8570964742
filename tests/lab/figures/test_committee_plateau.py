"""The figure of committees on a plateau: its theory by the closed flow, and its picture from made-up curves."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray as xr

import solvable as sv
from solvable.engine.dynamics.committees import average, committee_rules, label_error
from solvable.engine.dynamics.flow import follow
from solvable.engine.dynamics.moves import Move, Rates
from solvable.lab.figures.entries import committee_plateau as entry
from solvable.lab.figures.entry import Material
from solvable.lab.figures.verdict import judge


def risks(setting, times):
    """The risk of a setting of the entry at these alpha."""
    model, learner = setting
    move = Move(learner.student, spherical=learner.spherical)
    with jax.enable_x64(True):
        rules = committee_rules(model.target, float(model.noise), move)
        assert rules is not None
        start = learner.first_overlaps(model.target.projections)
        path = follow(average, move, Rates(learner.learning_rate), rules, start, np.array(times))
        error = jax.jit(jax.vmap(label_error, (None, None, 0, 0)), static_argnums=0)
        return np.asarray(error(learner.student, rules[0], path.M, path.Q)) / 2


@pytest.mark.slow
def test_three_neurons_reach_the_risk_of_the_reference():
    start, _, end = risks(entry.three_neurons(), [0.0, 2.0, entry.END])
    assert [start, end] == pytest.approx([0.385270, 0.029314], abs=5e-7)


@pytest.mark.slow
def test_two_neurons_stay_on_a_plateau_and_leave_it():
    times = [entry.ON_PLATEAU, 20.0, 80.0]  # escapes at about 25 and 55
    near, far = (risks(entry.two_neurons(difference), times) for difference in entry.DIFFERENCES)
    assert abs(far[1] - far[0]) < 0.05 * far[0] and abs(near[0] - far[0]) < 0.1 * far[0]
    assert near[1] < 0.8 * near[0] and near[2] < 2e-4 and far[2] < 0.1 * far[0]


def curve(part, alpha, seeds=None):
    error = np.linspace(0.8, 0.1, len(alpha))[None]
    if seeds is None:
        variables = {f"{entry.METRIC}_{part}": (("learner", "alpha"), error)}
    else:
        scatter = 0.01 * np.random.default_rng(0).standard_normal((1, len(alpha), seeds))
        variables = {f"{entry.METRIC}_{part}": (("learner", "alpha", "seed"), error[..., None] + scatter)}
    return sv.Curve(xr.Dataset(variables, {"learner": ["sgd"], "title": ("learner", ["sgd"]), "alpha": alpha}))


def test_the_figure_and_its_numbers():
    names = ("three_theory", "two_theory_0", "two_theory_1")
    curves = {name: curve("theory", np.linspace(0, 10, 11)) for name in names}
    curves |= {f"{name}_runs": curve("simulation", np.array([5.0, 10.0]), 8) for name in ("three", "two")}
    found = Material({}, curves, {name: {"d": [100], "seeds": [8]} for name in ("three", "two")})
    verdicts = [judge(claim, found) for claim in entry.ENTRY.claims]
    assert [verdict.computed for verdict in verdicts] == pytest.approx([0.4, 0.225, 0.05])
    assert verdicts[2].simulated.value == pytest.approx(0.05, abs=0.01) and verdicts[2].simulated.freedom == 7
    figure = entry.draw(found, verdicts)
    texts = {text.get_text() for ax in figure.axes for text in ax.get_legend().get_texts()}
    assert {"theory", "theory, neurons differ by 0.1", "runs at $d = 100$"} <= texts
