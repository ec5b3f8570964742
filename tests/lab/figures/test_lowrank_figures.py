"""The figures of low-rank models: their values of theory, and every picture from made-up or small material."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import solvable as sv
from solvable.lab.figures.entries import matrix_tensor, wide_teacher
from solvable.lab.figures.entry import Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.run import reproduce
from solvable.lab.figures.verdict import Verdict

NOISES = np.array([0.2, 0.5, 0.6])


def curve(learners, seeds=None):
    """Squared overlaps of four factors that fall along the noise of the matrix, of theory or of runs."""
    falls = (1 - NOISES)[None] * np.ones((learners, 1))
    names, variables = [f"squared_overlap_{k}" for k in "uvxy"], {}
    for name in names:
        if seeds:
            scatter = 0.01 * np.random.default_rng(0).standard_normal((*falls.shape, seeds))
            variables[f"{name}_simulation"] = (("learner", "matrix_noise", "seed"), falls[..., None] + scatter)
        else:
            variables[f"{name}_theory"] = (("learner", "matrix_noise"), falls)
    return sv.Curve(xr.Dataset(variables, {"learner": list(map(str, range(learners))), "matrix_noise": NOISES}))


def texts(figure):
    found = []
    for ax in figure.axes:
        legend = ax.get_legend()
        found += [ax.get_xlabel(), ax.get_ylabel(), ax.get_title()]
        found += [text.get_text() for text in legend.get_texts()] if legend else []
    return set(found)


def test_the_entries_of_low_rank_models_are_found():
    assert {"matrix-tensor", "wide-teacher"} <= set(all_entries())


def test_the_lines_of_the_plane_of_both_noises():
    steps = matrix_tensor._steps(0.5)
    assert steps["tensor_step"] == pytest.approx(0.5, abs=1e-12)
    # The root of 1 = Dm^2 + Dm^3 / Dt.
    assert steps["joint_matrix_noise"] == pytest.approx(0.657298, abs=5e-7)
    assert matrix_tensor._steps(0.3)["algorithmic"] == pytest.approx(0.691427, abs=5e-7)


def test_the_figure_of_a_matrix_and_a_tensor():
    curves = {"theory": curve(4), "runs": curve(3, 4), "unequal_theory": curve(1), "unequal": curve(1, 4)}
    curves |= {"quoted": curve(1, 4), "joint": curve(1, 4)}
    values = {"plane": matrix_tensor._plane(6, 0.3431522), "steps": matrix_tensor._steps(0.3), "fold": 0.3431522}
    sizes = {name: {"d": [20], "seeds": [4]} for name in ("runs", "unequal", "quoted", "joint")}
    found = Material(values, curves, sizes)
    verdicts = [Verdict(claim, 0.6, Estimate(0.65, 0.02)) for claim in matrix_tensor.ENTRY.claims]
    labels = texts(matrix_tensor.draw(found, verdicts))
    assert {
        "Bayes optimal",
        "curriculum",
        "hard phase",
        "spinodal",
        "runs, 3 s.e.",
        "runs at $d = 20$",
        "$y$",
    } <= labels
    assert matrix_tensor.theory_at("theory", 1, 0.5, "x")(found) == pytest.approx(0.5)
    assert matrix_tensor.runs_at("runs", 0, 0.5, "x")(found).value == pytest.approx(0.5, abs=0.02)


def test_the_figure_of_a_wide_teacher():
    trained = {
        "widths": np.array([1, 2, 4]),
        "runs": np.array([[0.3, 0.31], [0.1, 0.12], [0.2, 0.25]]),
        "theory_widths": np.arange(1, 5),
        "theory": np.array([0.2, 0.1, 0.05, 0.05]),
        "best": 0.05,
        "learned": 3.0,
    }
    values = {
        "laws": {name: wide_teacher._law(*law[:2], 12) for name, law in wide_teacher.LAWS.items()},
        "overlaps": wide_teacher._overlaps(10),
        "sizes": {alpha: wide_teacher._against_width(alpha, 4) for alpha in wide_teacher.TABLE},
        "transition": wide_teacher._transition(),
        "trained": dict.fromkeys(wide_teacher.RATIOS, trained),
    }
    found = Material(values, sizes={"adam": {"d": [40], "seeds": [2]}})
    claims = {claim.name: claim for claim in wide_teacher.ENTRY.claims}
    labels = texts(wide_teacher.draw(found, [Verdict(claim, 0.1) for claim in claims.values()]))
    assert {"$n/d$", "features learned", "Adam, $d = 40$", r"$\beta = 1$, $k = 1000$"} <= labels
    known = {
        "transition of a cubic feature, kappa": 1.4557767,
        "error at n/d = 1000, any width": 0.022507,
        "error at n/d = 10000, student of width 30": 0.033133,
        "error at n/d = 100000, student of width 300": 0.003589,
        "features learned at n/d = 10000": 253,
    }
    for name, value in known.items():
        compute = claims[name].compute
        assert compute is not None and compute(found) == pytest.approx(value, abs=1e-6)
    for name, (_, _, power) in wide_teacher.LAWS.items():
        assert wide_teacher.slope(found, name) == pytest.approx(power, abs=0.02)
    assert wide_teacher.best_of_runs(20.0)(found).value == pytest.approx(0.11)
    assert wide_teacher.best_width(20.0)(found).value == 2.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matrix-tensor", "wide-teacher"])
def test_quick_figures_from_end_to_end(name, tmp_path):
    found = reproduce(name, tmp_path, quick=True, progress=False)
    assert found.expected and (tmp_path / f"{name}.png").exists()
