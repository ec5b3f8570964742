"""Lines of theory, markers of simulation, and thresholds, along one axis."""

from __future__ import annotations

import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvable.core.status import Status
from solvable.lab.curve.entries import entry_groups, entry_symbol, group_mean
from solvable.lab.plots.jumps import with_gaps
from solvable.lab.plots.style import (
    COLORS,
    DASHES,
    MARKERS,
    PARTS,
    Places,
    axis_label,
    name_ticks,
    places,
    tint,
    words,
)
from solvable.lab.verdict import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from solvable.lab.curve import Curve

PALEST = 0.45
"""The share of its colour that the smallest of several sizes keeps."""

_styles: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()
"""For each axes, the learners drawn on it and the number of their style."""


def draw_lines(curve: Curve, metric: str, ax: Axes, parts: Collection[str] = PARTS, alone: bool = True) -> int:
    """Lines of theory where it converged, markers of the runs, thresholds.

    Theory is interrupted where it jumps at a threshold. A marker is the mean of the runs that settled with its standard
    error, or the median with the central 68 % of runs in two groups; every run that did not settle is a cross.

    The curve has one axis, which may be the dimension d, or none: then the learners stand side by side. Curves drawn
    on the same axes share the style of a learner. Of a matrix metric the diagonal entries are drawn: the colour then
    tells the learner, dashes and markers the entry. Of several sizes the larger are darker, and of a scalar they have
    different markers. Texts on the axis are categories, and theory a dash at each. Where `alone` is false, thresholds
    and legend are left out: they wait until the other panels are drawn.

    **Returns:** the number of rows of the legend that stand above the axes.
    """
    (axis,) = curve.axes or (None,)
    titles = [str(title) for title in curve.dataset["title"].values]
    place = Places(np.array([0]), np.arange(len(titles)), titles) if axis is None else places(curve, axis)
    order, categories = place.order, place.names is not None
    thresholds = curve.thresholds if axis is not None and axis == curve.model_axis else {}
    for i, group, style in _series(curve, metric, ax):
        name = ", ".join([titles[i], "{}", *([_entries(group)] if group else [])])
        x = place.positions if axis is not None else np.array([i])
        if categories and axis is not None:
            x = x + 0.18 * (i - (len(titles) - 1) / 2)
        line = np.atleast_1d(_theory(curve, metric, i, group))[order] if "theory" in parts else np.array([])
        if np.any(np.isfinite(line)):
            along, line = with_gaps(x, line, thresholds) if thresholds else (x, line)
            look: dict[str, Any] = {"color": style.color, "linewidth": style.width, "linestyle": style.dash}
            lonely = np.ones(line.shape, dtype=bool) if categories else _lonely(line)
            if np.any(lonely):
                look |= {"marker": "_", "markersize": 9, "mew": 1.4, "markevery": lonely.tolist()}
            if categories:
                look["linestyle"] = "none"
            ax.plot(along, line, label=name.format("theory"), **look)
        for run in _runs(curve, metric, i, group, style) if "simulation" in parts else ():
            value, *bars = (part[order] for part in run.shown)
            if np.any(np.isfinite(value)):
                look = {"fmt": run.marker, "color": run.color, "mfc": run.face, "mew": 0.9, "elinewidth": 0.9}
                ax.errorbar(x, value, np.nan_to_num(bars), label=name.format(run.label), **look)
            if np.any(np.isfinite(run.loose)):
                label = name.format(f"{run.label}, not settled")
                loose = run.loose[order]
                across = np.broadcast_to(x[:, None], loose.shape)
                look = {"marker": "x", "linestyle": "none", "color": run.color, "alpha": 0.5, "markersize": 2.8}
                ax.plot(across.ravel(), loose.ravel(), label=label, mew=0.7, zorder=1.5, **look)
    name_ticks(ax, "x", place)
    ax.set_xlabel("" if axis is None else axis_label(curve, axis))
    ax.set_ylabel(" ".join(filter(None, [words(metric), entry_symbol(curve, metric)])))
    if axis == "d":
        ax.set_xticks(place.positions)
    if categories:
        ax.set_xlim(place.positions[0] - 0.5, place.positions[-1] + 0.5)
    if not alone:
        return 0
    mark_curve(curve, ax, parts)
    return _add_legend(ax)


def mark_curve(curve: Curve, ax: Axes, parts: Collection[str]) -> None:
    """The thresholds of a curve whose axis is the model's first, beside its theory."""
    if "theory" in parts and curve.axes == (curve.model_axis,):
        x = curve.dataset[curve.model_axis].values
        mark_thresholds(ax, curve.thresholds, x.min(), x.max())


def _add_legend(ax: Axes) -> int:
    """The legend, among the lines or above them; how many rows are above."""
    labels = ax.get_legend_handles_labels()[1]
    if len(labels) > 4:  # too many to find room among the lines
        columns = 2 if max(map(len, labels)) <= 24 else 1  # wider than the axes, they would squeeze them
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
        return -(-len(labels) // columns)
    if labels:
        ax.legend()
    return 0


class _Style(NamedTuple):
    color: str
    dash: str
    marker: str
    width: float | None


def _series(curve: Curve, metric: str, ax: Axes) -> list[tuple[int, tuple[int, ...], _Style]]:
    """What is drawn: the number of the learner, the group of diagonal entries (none for a scalar), and the style."""
    groups = entry_groups(curve, metric) if curve.has_entries(metric) else [()]
    styles = _styles.setdefault(ax, {})
    found = []
    for i, title in enumerate(str(title) for title in curve.dataset["title"].values):
        learner = styles.setdefault(title, len(styles))
        for k, group in enumerate(groups):
            look = k if group else learner
            # Entries of learners that agree lie on top of each other in the same dashes: the lower ones are wider.
            width = 1.4 + 1.2 * (len(curve.learners) - 1 - i) if group else None
            color, dash, marker = (
                styles_of[number % len(styles_of)]
                for styles_of, number in ((COLORS, learner), (DASHES, look), (MARKERS, look))
            )
            found.append((i, group, _Style(color, dash, marker, width)))
    return found


def _theory(curve: Curve, metric: str, i: int, group: tuple[int, ...]) -> np.ndarray:
    """What theory says of one learner, NaN where it did not converge."""
    if f"{metric}_theory" not in curve.dataset:
        return np.full(curve.dataset["status"].values[i].shape, np.nan)
    values = curve.theory(metric).where(curve.dataset["status"] == Status.CONVERGED).isel(learner=i)
    return (group_mean(values, group) if group else values).values


class _Runs(NamedTuple):
    """Runs of one size: what stands for the settled ones at each point, with its bars, and all the others."""

    label: str
    shown: np.ndarray
    loose: np.ndarray
    color: Any
    marker: str
    face: str = "white"


def _runs(curve: Curve, metric: str, i: int, group: tuple[int, ...], style: _Style) -> list[_Runs]:
    """The runs of one learner, for each size that has some."""
    if f"{metric}_simulation" not in curve.dataset:
        return []
    runs = curve.simulation(metric).isel(learner=i)
    runs = group_mean(runs, group) if group else runs
    settled = curve.settled.isel(learner=i)
    if "d" in curve.axes or "d" not in runs.dims:
        label = f"${curve.size_name} = {curve.sizes[0]}$" if curve.sizes and "d" not in curve.axes else "simulation"
        found = [_Runs(label, *_drawn_apart(runs, settled), style.color, style.marker)]
    else:
        found = []
        shares = np.linspace(PALEST, 1, len(curve.sizes))
        for k, place in enumerate(np.argsort(curve.sizes)):
            marker = style.marker if group else MARKERS[k % len(MARKERS)]
            parts = _drawn_apart(runs.isel(d=int(place)), settled.isel(d=int(place)))
            label = f"${curve.size_name} = {curve.sizes[place]}$"
            # Markers of different sizes lie close to each other: one must not hide another.
            found.append(_Runs(label, *parts, color=tint(style.color, shares[k]), marker=marker, face="none"))
    return [one for one in found if np.any(np.isfinite(one.shown[0])) or np.any(np.isfinite(one.loose))]


def _drawn_apart(runs: Any, settled: Any) -> tuple[np.ndarray, np.ndarray]:
    """What stands for the runs that settled at each point, with its bars, and the values of the others."""
    kept, loose = (part.transpose(..., "seed").values for part in (runs.where(settled), runs.where(~settled)))
    kept, loose = np.atleast_2d(kept), np.atleast_2d(loose)
    return np.transpose([shown(row) for row in kept]), loose


def _lonely(line: np.ndarray) -> np.ndarray:
    """The points of a line whose neighbours are missing, which a line alone would not show."""
    known = np.concatenate([[False], np.isfinite(line), [False]])
    return known[1:-1] & ~known[:-2] & ~known[2:]


def _entries(group: tuple[int, ...]) -> str:
    return f"$k = {', '.join(map(str, group))}$"


def mark_thresholds(ax: Axes, thresholds: dict[str, float], low: float, high: float) -> None:
    """A labelled vertical line for each threshold between `low` and `high`; equal ones share a line.

    The name stands at the upper or the lower end, where it covers less of what is drawn already.
    """
    marks: dict[float, list[str]] = {}
    for name, value in sorted(thresholds.items(), key=lambda item: item[1]):
        if not low <= value <= high:
            continue
        near = next((place for place in marks if np.isclose(place, value, rtol=1e-6, atol=0)), value)
        marks.setdefault(near, []).append(words(name))
    positions = list(marks)
    drawn = _drawn(ax)
    for i, value in enumerate(positions):
        ax.axvline(value, color="0.45", linewidth=0.7, linestyle=(0, (1, 1.5)), zorder=0)
        crowded = i + 1 < len(positions) and positions[i + 1] - value < 0.06 * (high - low)
        text = " = ".join(marks[value])
        at_top = _covered(ax, drawn, value, text, crowded, top=True) <= _covered(ax, drawn, value, text, crowded, False)
        ax.annotate(
            text,
            (value, 0.94 if at_top else 0.06),
            xycoords=("data", "axes fraction"),
            xytext=(-2 if crowded else 2, 0),
            textcoords="offset points",
            rotation=90,
            ha="right" if crowded else "left",
            va="top" if at_top else "bottom",
            fontsize=6,
            color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
            zorder=1,  # under the data
        )


def _drawn(ax: Axes) -> np.ndarray:
    """Points along all that is drawn, as shares of the axes' width and height."""
    found = [np.empty((0, 2))]
    ax.autoscale_view()  # the transformations are brought up to date with the data only now
    for line in ax.lines:
        points = line.get_transform().transform(np.column_stack(line.get_data()).astype(float))
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) > 1:
            steps = np.linspace(0, len(points) - 1, 30 * len(points))
            points = np.column_stack([np.interp(steps, np.arange(len(points)), part) for part in points.T])
        found.append(ax.transAxes.inverted().transform(points) if len(points) else points)
    return np.concatenate(found)


def _covered(ax: Axes, drawn: np.ndarray, value: float, text: str, left: bool, top: bool) -> int:
    """How many of the drawn points lie where a name would stand beside a threshold."""
    points = 72 / ax.figure.dpi  # pixels as points
    width, height = 10 / (ax.bbox.width * points), 3.4 * len(text) / (ax.bbox.height * points)
    x = ax.transAxes.inverted().transform(ax.transData.transform((value, 0.0)))[0]
    x0, y0 = x - width if left else x, 0.94 - height if top else 0.06
    inside = (np.abs(drawn[:, 0] - x0 - width / 2) < width / 2) & (np.abs(drawn[:, 1] - y0 - height / 2) < height / 2)
    return int(np.count_nonzero(inside))
