"""Figures: what is drawn, in which files, and never a window."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest
from matplotlib.figure import Figure
from toys import ridge as toy

import solvable as sv
from solvable.lab.plots.jumps import with_gaps
from solvable.lab.plots.style import new_figure

MODEL, RIDGE = toy.Regression(noise=0.25), toy.Ridge(penalty=0.5)
GRID = np.linspace(0.5, 2, 4)


@pytest.fixture(scope="module")
def curve():
    return sv.learning_curve(MODEL, [RIDGE, toy.Mean()], alpha=GRID, d=20, seeds=3)


def test_lines_markers_and_thresholds(curve):
    ax = curve.plot()
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["Ridge, theory", "Ridge, $d = 20$", "Mean, $d = 20$"]
    (line,) = [line for line in ax.lines if line.get_label() == "Ridge, theory"]
    np.testing.assert_array_equal(line.get_ydata(), curve["overlap"].values[0])
    mean, error, _ = curve.summary("overlap")
    bars = handles[1]
    np.testing.assert_allclose(bars.lines[0].get_ydata(), mean.values[0], rtol=1e-14)  # sums of another order
    segment = bars.lines[2][0].get_segments()[0]
    assert segment[1, 1] - segment[0, 1] == pytest.approx(2 * error.values[0, 0])
    assert [text.get_text() for text in ax.texts] == ["interpolation"]
    assert ax.get_ylabel() == "overlap" and ax.get_xlabel() == r"$\alpha$ = $n/d$"


def test_points_that_did_not_converge_are_not_drawn(curve):
    dataset = curve.dataset.copy(deep=True)
    dataset["status"].values[0, 1] = sv.Status.MAX_STEPS
    line = sv.Curve(dataset).plot("estimation_error").lines[0]
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False, False]


def test_coinciding_thresholds_share_a_line(curve):
    dataset = curve.dataset.assign_attrs(
        thresholds='{"weak_recovery": 1.0, "algorithmic": 1.0, "other": 1.02, "far": 9}'
    )
    ax = sv.Curve(dataset).plot()
    assert [text.get_text() for text in ax.texts] == ["weak recovery = algorithmic", "other"]
    assert [text.get_ha() for text in ax.texts] == ["right", "left"]


def test_runs_that_did_not_settle_are_crosses_beside_the_mean_of_the_others(curve):
    dataset = curve.dataset.copy(deep=True)
    dataset["converged_simulation"].values[0, 1, 0] = False
    stuck = sv.Curve(dataset)
    ax = stuck.plot("overlap")
    handles, labels = ax.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    runs = curve.simulation("overlap").values[0]
    assert shown["Ridge, $d = 20$"].lines[0].get_ydata()[1] == pytest.approx(runs[1, 1:].mean())
    crosses = shown["Ridge, $d = 20$, not settled"]
    drawn = np.isfinite(crosses.get_ydata())
    assert crosses.get_marker() == "x" and crosses.get_ydata()[drawn] == [runs[1, 0]]
    assert crosses.get_xdata()[drawn] == [GRID[1]] and "Mean, $d = 20$, not settled" not in labels


def test_runs_in_two_groups_are_drawn_by_their_median(curve):
    dataset = curve.dataset.isel(seed=np.zeros(16, int)).assign_coords(seed=np.arange(16)).copy(deep=True)
    dataset["overlap_simulation"].values[0, 1] = [0.1, 0.11, 0.12, 0.13, 0.14, *np.linspace(0.8, 0.82, 11)]
    bars = sv.Curve(dataset).plot("overlap").get_legend_handles_labels()[0][1]
    assert bars.lines[0].get_ydata()[1] == np.median(dataset["overlap_simulation"].values[0, 1])
    low, high = bars.lines[2][0].get_segments()[1][:, 1]
    assert low < 0.2 and high < 0.83


def test_lines_are_interrupted_where_they_jump_at_a_threshold_and_only_there():
    x = np.linspace(0.0, 2.0, 21)
    jump = np.where(x < 1.04, 0.2 * x, 1.0)
    along, line = with_gaps(x, jump, {"onset": 0.5, "jump": 1.04, "far": 9.0, "never": np.inf})
    assert np.isnan(line).sum() == 1 and along[np.isnan(line)] == pytest.approx([1.05]) and np.all(np.diff(along) > 0)
    assert with_gaps(x, np.where(x > 0.95, 1.0, 0.0), {"jump": 1.0})[0][10] == pytest.approx(0.95)
    onset, root = np.maximum(x - 0.52, 0.0), np.sqrt(np.maximum(x - 0.501, 0.0))
    for continuous in (onset, root, np.exp(3 * x)):
        assert np.isfinite(with_gaps(x, continuous, {"root": 0.501, "onset": 0.52, "other": 1.04})[1]).all()
    assert np.isfinite(with_gaps(x, jump, {"onset": 0.5})[1]).all()  # unknown thresholds are not guessed


@pytest.mark.slow
def test_no_stroke_crosses_the_end_of_a_hard_phase():
    curve = sv.learning_curve(sv.MultiIndex("abs(z)"), [sv.BayesOptimal(), sv.AMP()], alpha=np.linspace(0.3, 1.7, 29))
    lines = {line.get_label(): line for line in curve.plot("overlap").lines}
    for label, threshold in (("Bayes optimal, theory", 1.0), ("AMP, theory", curve.thresholds["algorithmic"])):
        broken = np.isnan(lines[label].get_ydata())
        assert lines[label].get_xdata()[broken] == pytest.approx([threshold], abs=0.03)


def test_on_given_axes(curve):
    ax = Figure().add_subplot()
    assert curve.plot("overlap", ax=ax) is ax


def test_heat_map(curve):
    diagram = sv.phase_diagram(MODEL, RIDGE, x=("alpha", GRID), y=("noise", [0.5, 0.1, 0.9]))
    ax = diagram.plot()
    (mesh,) = ax.collections
    np.testing.assert_array_equal(mesh.get_array(), diagram["overlap"].values[0][:, [1, 0, 2]].T)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == (r"$\alpha$ = $n/d$", "noise", "Ridge")


def test_heat_map_of_simulations_only():
    diagram = sv.phase_diagram(MODEL, toy.Mean(), x=("alpha", GRID), y=("noise", [0.1, 0.9]), d=10, seeds=2)
    assert diagram.plot().collections[0].get_array().shape == (2, 4)


@pytest.mark.parametrize("ending", ["png", pytest.param("pdf", marks=pytest.mark.slow), "svg", "PNG"])
def test_files(curve, tmp_path, ending):
    path = curve.figure(tmp_path / f"figure.{ending}")
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending.lower()]
    assert path.read_bytes().startswith(start)


def test_bad_requests(curve, tmp_path):
    with pytest.raises(ValueError, match="path must be a file name that ends in .png, .pdf, .svg"):
        curve.figure(tmp_path / "figure.gif")
    with pytest.raises(ValueError, match="path must be in a folder that exists"):
        curve.figure(tmp_path / "missing" / "figure.png")
    with pytest.raises(ValueError, match="metric = 'beauty' is not allowed: metric must be one of: overlap"):
        curve.plot("beauty")


def test_pyplot_is_not_needed(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    sv.learning_curve(toy.Regression(), toy.Ridge(), alpha=[0.5, 1.0]).plot()
    assert "matplotlib.pyplot" not in sys.modules


NOTEBOOK = """
import sys, types
import solvable as sv
from toys import ridge as toy
axes = {"x": ("alpha", [0.5, 1.0]), "y": ("noise", [0.1, 0.2])}
curve = sv.phase_diagram(toy.Regression(), toy.Ridge(), **axes, marks=False, progress=False)
alone = curve.select(noise=0.1)
ax = alone.plot()
assert "matplotlib.pyplot" not in sys.modules
assert ax._repr_png_().startswith(b"\\x89PNG") and ax.figure._repr_png_().startswith(b"\\x89PNG")
events = types.SimpleNamespace(register=lambda *call: None)
shell = types.SimpleNamespace(kernel="of a notebook", events=events)
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell, version_info=(9, 0))
shown, panels = alone.plot(), curve.plot(kind="lines")
from matplotlib import pyplot
assert [pyplot.figure(n) for n in pyplot.get_fignums()] == [shown.figure, panels[0].figure]
assert not hasattr(shown, "_repr_png_")  # the notebook shows it, once
print("shown")
"""


def test_a_notebook_is_given_figures_of_pyplot(monkeypatch):
    """As if nobody had imported pyplot; without a kernel nothing is shown."""
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    shell = types.SimpleNamespace(events=types.SimpleNamespace(register=lambda *call: None))
    ipython = types.SimpleNamespace(get_ipython=lambda: shell, version_info=(9, 0))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert hasattr(new_figure(), "_repr_png_")
    shell.kernel = "of a notebook"
    figure = new_figure()
    assert not hasattr(figure, "_repr_png_")
    assert figure in [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close(figure)


@pytest.mark.slow
def test_a_notebook_shows_the_figure_without_pyplot_being_imported_first():
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, env=environment)
    assert done.stdout == "shown\n", done.stderr
