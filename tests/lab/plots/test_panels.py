"""Figures of curves with several axes and sizes: lines, panels, categories, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from toys import ridge as toy
from toys.curves import TARGETS, sweep, with_thresholds

import solvable as sv
from solvable.lab.plots.style import COLORS, tint

RIDGE = toy.Ridge(penalty=0.5)
ALPHA, RHO, SIZES = (0.5, 1.0, 2.0), (0.2, 0.5), (20, 10)


@pytest.fixture(scope="module")
def curve():
    return sweep([RIDGE, toy.Mean()], SIZES, rho=RHO, alpha=ALPHA)


@pytest.fixture(scope="module")
def texts():
    return sweep([RIDGE, toy.Mean()], SIZES, target=TARGETS, alpha=ALPHA[:2])


def legend_of(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_several_sizes_share_a_colour_and_the_larger_is_darker(curve):
    ax = curve.select(rho=0.2).plot()
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["Ridge, theory", "Ridge, $d = 10$", "Ridge, $d = 20$", "Mean, $d = 10$", "Mean, $d = 20$"]
    small, large = (bars.lines[0] for bars in handles[1:3])
    assert large.get_color() == tint(COLORS[0], 1.0) and sum(small.get_color()) > sum(large.get_color())
    assert small.get_marker() != large.get_marker()
    mean = curve.select(rho=0.2, d=10, learner="ridge").summary("overlap")[0]
    np.testing.assert_allclose(small.get_ydata(), mean.values[0], rtol=1e-14)  # sums of another order


def test_a_long_legend_does_not_squeeze_the_axes(curve):
    part = curve.select(rho=0.2)
    short, long = part.select(learner="ridge").plot(), part.plot()
    for ax in (short, long):
        ax.figure.draw_without_rendering()
    assert long.figure.get_figheight() > short.figure.get_figheight()
    assert long.bbox.height > 0.75 * short.bbox.height


def test_other_axes_are_panels(curve):
    axes = curve.plot("estimation_error")
    assert isinstance(axes, np.ndarray) and [ax.get_title() for ax in axes] == [r"$\rho$ = 0.2", r"$\rho$ = 0.5"]
    assert [ax.get_ylabel() for ax in axes] == ["estimation error", ""]
    assert axes[0].get_ylim() == axes[1].get_ylim() and axes[0].get_xlim() == axes[1].get_xlim()
    np.testing.assert_array_equal(axes[1].lines[0].get_ydata(), curve["estimation_error"].values[0, 1])
    assert legend_of(axes[0].figure)[0] == "Ridge, theory" and axes[0].get_legend() is None


def test_lines_run_along_the_axis_asked_for(curve):
    axes = curve.plot(x="rho")
    assert [ax.get_title() for ax in axes] == [r"$\alpha$ = 0.5", r"$\alpha$ = 1", r"$\alpha$ = 2"]
    np.testing.assert_array_equal(axes[2].lines[0].get_xdata(), RHO)
    np.testing.assert_array_equal(axes[2].lines[0].get_ydata(), curve["overlap"].values[0, :, 2])


def test_without_the_models_first_axis_the_longest_runs_from_left_to_right():
    curve = sweep([RIDGE], rho=RHO, noise=(0.1, 0.2, 0.3), tau=(1.0, 2.0))
    axes = curve.plot()
    assert len(axes) == 4 and axes[-1].get_xlabel() == "noise" and axes[0].get_xlabel() == ""
    assert axes[1].get_title() == r"$\rho$ = 0.2, $\tau$ = 2"


def test_each_panel_has_its_own_thresholds(curve):
    marked = with_thresholds(curve, weak=(("rho",), [0.6, 1.4]), never=(("rho",), [np.inf, np.nan]))
    axes = marked.plot()
    assert [[text.get_text() for text in ax.texts] for ax in axes] == [["weak"], ["weak"]]
    assert [ax.texts[0].xy[0] for ax in axes] == [0.6, 1.4]
    assert [ax.texts for ax in marked.plot(x="rho")[:2]] and not marked.plot(x="rho")[0].texts
    assert not marked.plot(parts=["simulation"])[0].texts


def test_a_threshold_is_named_where_nothing_is_drawn():
    curve = sweep([RIDGE], alpha=np.linspace(0.5, 2.0, 40))
    for height, end in ((0.95, "bottom"), (0.05, "top")):
        dataset = curve.dataset.copy(deep=True).assign_attrs(thresholds=json.dumps({"weak": 1.2}))
        dataset["overlap_theory"].values[:] = np.linspace(0.9 * height, height, 40)
        dataset["overlap_theory"].values[0, 0] = 1 - height
        (text,) = sv.Curve(dataset).plot().texts
        assert text.get_va() == end


def test_texts_are_categories(texts):
    axes = texts.plot(x="target")
    ax = axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["abs(z)", "z**2 + 1", r"price in \$"]
    line = ax.lines[0]
    assert line.get_linestyle() == "None" and line.get_marker() == "_"
    np.testing.assert_allclose(line.get_xdata(), [-0.09, 0.91, 1.91])
    np.testing.assert_array_equal(line.get_ydata(), texts["overlap"].values[0, :, 0])
    assert [ax.get_title() for ax in texts.plot()] == [
        "target = abs(z)",
        "target = z**2 + 1",
        r"target = price in \$",
    ]


def test_a_point_between_missing_ones_is_seen(curve):
    part = curve.select(rho=0.2, learner="ridge")
    for hidden, seen in (((0, 1), [2]), ((1,), [0, 2]), ((), [])):
        dataset = part.dataset.copy(deep=True)
        dataset["status"].values[0, list(hidden)] = -2
        line = sv.Curve(dataset).plot(parts=["theory"]).lines[0]
        assert np.flatnonzero(line.get_markevery() or []).tolist() == seen


def test_along_the_sizes(curve):
    part = curve.select(rho=0.2, alpha=1.0)
    ax = part.plot()
    assert ax.get_xlabel() == "dimension $d$" and ax.get_xticks().tolist() == [10, 20]
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["Ridge, theory", "Ridge, simulation", "Mean, simulation"]
    assert handles[0].get_ydata().tolist() == [part["overlap"].values[0]] * 2
    np.testing.assert_array_equal(handles[1].lines[0].get_ydata(), part.summary("overlap")[0].values[0, ::-1])
    assert len(curve.plot(x="d")) == 6


def test_a_single_point_shows_the_learners_side_by_side(curve):
    ax = curve.select(rho=0.2, alpha=1.0, d=10).plot()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["Ridge", "Mean"] and ax.get_xlabel() == ""
    assert ax.get_legend_handles_labels()[1] == ["Ridge, theory", "Ridge, $d = 10$", "Mean, $d = 10$"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("count", "shape"), [(4, (2, 2)), (2, (1, 2)), (12, (4, 3)), (5, (2, 3))])
def test_panels_fill_rows(count, shape):
    axes = sweep([RIDGE], alpha=ALPHA, rho=np.linspace(0.1, 0.9, count)).plot(kind="lines")
    assert len(axes) == count == len(axes[0].figure.axes)
    assert axes[0].get_subplotspec().get_gridspec().get_geometry() == shape
    assert [bool(ax.get_xlabel()) for ax in axes] == [k + shape[1] >= count for k in range(count)]


def test_too_many_panels(curve, tmp_path):
    many = sweep([RIDGE], alpha=ALPHA, rho=np.linspace(0.1, 0.9, 13))
    message = r"13 panels are too many, at most 12 are drawn: fix axes or learners first, as in curve.select\(rho=0.1\)"
    with pytest.raises(ValueError, match=message):
        many.plot(kind="lines")
    with pytest.raises(ValueError, match=r"one Axes cannot hold 2 panels: .* curve.select\(rho=0.2\)"):
        curve.plot(ax=Figure().add_subplot())
    ax = Figure().add_subplot()
    assert curve.select(rho=0.2).plot(ax=ax) is ax
    assert curve.figure(tmp_path / "panels.svg").read_text().count("Ridge, theory") == 1


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"kind": "bars"}, "kind = 'bars' is not allowed: kind must be one of: lines, map"),
        ({"x": "noise"}, "x = 'noise' is not allowed: x must be one of: rho, alpha, d"),
        ({"x": "d", "kind": "map"}, "kind must be lines here: a map needs two axes of the grid"),
    ],
)
def test_bad_requests(curve, request_, message):
    with pytest.raises(ValueError, match=message):
        curve.plot(**request_)
    with pytest.raises(ValueError, match="kind must be lines here"):
        curve.select(rho=0.2).plot(kind="map")
