"""Figures of curves in one house style, legible at the width of a journal's column.

Learners differ by colour (the Okabe-Ito palette, told apart by colour-blind readers), by line style and by marker.
Nothing here opens a window; figures are made without pyplot unless the user has already loaded it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.status import Status
from solvable.lab.curve import over_seeds
from solvable.lab.matrices import entry_groups, group_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from solvable.lab.curve import Curve

# Okabe and Ito's palette without its yellow, which is too light for lines on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = (".png", ".pdf", ".svg")
WIDTH, HEIGHT = 3.4, 2.7
PARTS = ("theory", "simulation")

_styles: weakref.WeakKeyDictionary[Any, dict[str, int]] = weakref.WeakKeyDictionary()
"""For each axes, the learners drawn on it and the number of their style."""

STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "errorbar.capsize": 1.5,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "solvable",
}


def draw(curve: Curve, metric: str, ax: Axes | None = None, parts: Collection[str] = PARTS) -> Axes:
    """Draw a metric of a curve on `ax`, or on a new figure; of two axes always the heat map."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        if ax is None:
            ax = _new_figure().add_subplot()
        if len(curve.axes) == 1:
            draw_lines(curve, metric, ax, parts)
        else:
            draw_map(curve, metric, ax)
    return ax


def save_figure(curve: Curve, metric: str, path: str | Path) -> Path:
    """Draw a metric and write it as PNG, PDF or SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise bad_parameter("path", str(path), f"a file name that ends in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise bad_parameter("path", str(path), "in a folder that exists")
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        draw(curve, metric, figure.add_subplot())
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    return path


def draw_lines(curve: Curve, metric: str, ax: Axes, parts: Collection[str] = PARTS) -> None:
    """Lines of theory where it converged, markers with standard errors of the mean of the runs, thresholds.

    Curves drawn on the same axes share the style of a learner. Of a matrix metric the diagonal entries are drawn: the
    colour then tells the learner, dashes and markers the entry.
    """
    (axis,) = curve.axes
    x = np.asarray(curve.dataset[axis].values)
    order = np.argsort(x)
    for i, group, style in _series(curve, metric, ax):
        name = ", ".join([str(curve.dataset["title"].values[i]), "{}", *([_entries(group)] if group else [])])
        line = _theory(curve, metric, i, group)[order] if "theory" in parts else np.array([])
        if np.any(np.isfinite(line)):
            ax.plot(x[order], line, style.dash, color=style.color, linewidth=style.width, label=name.format("theory"))
        mean, error = _runs(curve, metric, i, group) if "simulation" in parts else (np.array([]), np.array([]))
        if np.any(np.isfinite(mean)):
            bars = np.nan_to_num(error[order])
            label = name.format(f"$d = {curve.dataset.attrs['d']}$")
            look = {"fmt": style.marker, "color": style.color, "mfc": "white", "mew": 0.9, "elinewidth": 0.9}
            ax.errorbar(x[order], mean[order], bars, label=label, **look)
    ax.set_xlabel(_axis_label(curve, axis))
    ax.set_ylabel(f"{_words(metric)} $(k, k)$" if curve.is_matrix(metric) else _words(metric))
    if "theory" in parts:
        mark_thresholds(ax, curve.thresholds, x.min(), x.max())
    labels = ax.get_legend_handles_labels()[1]
    if len(labels) > 4:  # too many to find room among the lines
        columns = 2 if max(map(len, labels)) <= 24 else 1  # wider than the axes, they would squeeze them
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)
    elif labels:
        ax.legend()


class _Style(NamedTuple):
    color: str
    dash: str
    marker: str
    width: float | None


def _series(curve: Curve, metric: str, ax: Axes) -> list[tuple[int, tuple[int, ...], _Style]]:
    """What is drawn: the number of the learner, the group of diagonal entries (none for a scalar), and the style."""
    groups = entry_groups(curve, metric) if curve.is_matrix(metric) else [()]
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


def _runs(curve: Curve, metric: str, i: int, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of one learner's runs and its standard error; nothing if there are no runs."""
    if f"{metric}_simulation" not in curve.dataset:
        return np.array([]), np.array([])
    runs = curve.simulation(metric).isel(learner=i)
    mean, error, _ = over_seeds(group_mean(runs, group) if group else runs)
    return mean.values, error.values


def _entries(group: tuple[int, ...]) -> str:
    return f"$k = {', '.join(map(str, group))}$"


def draw_map(curve: Curve, metric: str, ax: Axes) -> None:
    """A heat map of the first learner's theory (of its mean run if it has none); grey where there is no value."""
    x_name, y_name = curve.axes
    values = _values(curve, f"{metric}_theory", metric)
    if values is not None and np.any(np.isfinite(values[0])):
        cells = np.where(curve.dataset["status"].values[0] == Status.CONVERGED, values[0], np.nan)
    else:
        _values(curve, f"{metric}_simulation", metric)
        cells = curve.summary(metric)[0].values[0]
    x, y = (np.asarray(curve.dataset[name].values) for name in (x_name, y_name))
    across, up = np.argsort(x), np.argsort(y)
    ax.set_facecolor("0.8")
    mesh = ax.pcolormesh(
        x[across], y[up], np.ma.masked_invalid(cells[np.ix_(across, up)].T), shading="nearest", cmap="cividis"
    )
    figure = ax.figure
    figure.colorbar(mesh, ax=ax, label=_words(metric))
    ax.set_xlabel(_axis_label(curve, x_name))
    ax.set_ylabel(_axis_label(curve, y_name))
    ax.set_title(str(curve.dataset["title"].values[0]))


def mark_thresholds(ax: Axes, thresholds: dict[str, float], low: float, high: float) -> None:
    """A labelled vertical line for each threshold between `low` and `high`; equal ones share a line."""
    places: dict[float, list[str]] = {}
    for name, value in sorted(thresholds.items(), key=lambda item: item[1]):
        if not low <= value <= high:
            continue
        near = next((place for place in places if np.isclose(place, value, rtol=1e-6, atol=0)), value)
        places.setdefault(near, []).append(_words(name))
    positions = list(places)
    for i, value in enumerate(positions):
        ax.axvline(value, color="0.45", linewidth=0.7, linestyle=(0, (1, 1.5)), zorder=0)
        crowded = i + 1 < len(positions) and positions[i + 1] - value < 0.06 * (high - low)
        ax.annotate(
            " = ".join(places[value]),
            (value, 0.94),
            xycoords=("data", "axes fraction"),
            xytext=(-2 if crowded else 2, 0),
            textcoords="offset points",
            rotation=90,
            ha="right" if crowded else "left",
            va="top",
            fontsize=6,
            color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
        )


def _new_figure() -> Figure:
    """A figure; through pyplot if the user has loaded it, so that notebooks show it."""
    if "matplotlib.pyplot" in sys.modules:
        return sys.modules["matplotlib.pyplot"].figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, HEIGHT), layout="constrained")


def _values(curve: Curve, name: str, metric: str) -> np.ndarray | None:
    if name not in curve.dataset:
        return None
    if curve.is_matrix(metric):
        raise ValueError(f"{metric} is a matrix at each point; a map shows a scalar, such as {curve.default_metric}.")
    return curve.dataset[name].values


def _axis_label(curve: Curve, name: str) -> str:
    greek = ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "rho", "sigma", "tau")
    symbol = rf"$\{name}$" if name in greek else _words(name)
    scaling = curve.dataset.attrs.get("scaling", "")
    right = scaling.split("=")[-1].strip()
    return rf"{symbol} = $n/d$" if (name, right) == ("alpha", "alpha d") else symbol


def _words(name: str) -> str:
    return name.replace("_", " ")
