"""How the figures of learning curves are drawn: theory as lines, runs as markers, thresholds labelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.lab import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from solvable.lab.curve import Curve
    from solvable.lab.figures.verdict import Verdict

PER_SQUARE = r"$\alpha = n/d^2$"
"""The label of the axis where the number of samples is compared with that of the entries of a matrix."""


def new_figure(width: float = 1.35, height: float = 1.2) -> Figure:
    """An empty figure, its size in units of a journal's column."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width * plots.WIDTH, height * plots.HEIGHT), layout="constrained")


def learning_figure(exact: Curve, runs: Sequence[Curve], metric: str, verdicts: Sequence[Verdict] = ()) -> Figure:
    """Curves of theory and runs on one pair of axes, and the thresholds read off the runs as horizontal error bars."""
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        exact.plot(metric, ax)
        for curve in runs:
            curve.plot(metric, ax, parts=["simulation"])
        mark_estimates(ax, verdicts)
    return figure


def mark_estimates(ax: Axes, verdicts: Sequence[Verdict], height: float = 0.03) -> None:
    """A horizontal error bar, three standard errors long each way, for each threshold read off the runs."""
    found = [verdict.simulated for verdict in verdicts if verdict.simulated is not None]
    found = [estimate for estimate in found if np.isfinite(estimate.value) and np.isfinite(estimate.error)]
    if not found:
        return
    limits = ax.get_xlim()
    ax.errorbar(
        [estimate.value for estimate in found],
        [height] * len(found),
        xerr=[3 * estimate.error for estimate in found],
        fmt="x",
        color="black",
        markersize=3.5,
        elinewidth=0.9,
        transform=ax.get_xaxis_transform(),
        label="threshold of the runs, 3 s.e.",
        zorder=4,
    )
    ax.set_xlim(limits)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def draw_theory(ax: Axes, x: Any, y: Any, number: int, label: str | None, **look: Any) -> None:
    """A line in the colour and dashes of that number."""
    look = {"color": plots.COLORS[number], "linestyle": plots.DASHES[number % len(plots.DASHES)], **look}
    ax.plot(x, y, label=label, **look)


def draw_runs(ax: Axes, x: Any, values: Any, number: int, label: str | None, **look: Any) -> None:
    """The means of `values` over their last axis, as markers with standard errors; NaN is a run that gave nothing."""
    values = np.asarray(values, dtype=float)
    count = np.sum(np.isfinite(values), axis=-1)
    error = np.nanstd(values, axis=-1, ddof=1) / np.sqrt(count)
    draw_points(ax, x, np.nanmean(values, axis=-1), error, number, label, **look)


def draw_points(ax: Axes, x: Any, y: Any, error: Any, number: int, label: str | None, **look: Any) -> None:
    """Markers with error bars in the colour and shape of that number."""
    look = {"fmt": plots.MARKERS[number], "color": plots.COLORS[number], "mfc": "white", **look}
    ax.errorbar(x, y, np.nan_to_num(error), label=label, mew=0.9, elinewidth=0.9, **look)
