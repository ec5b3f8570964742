"""Heat maps of one metric over two axes, with the thresholds as lines over them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from solvable.core.status import Status
from solvable.lab.plots.overlay import overlay_thresholds
from solvable.lab.plots.style import PARTS, Places, axis_label, name_ticks, places, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

    from solvable.lab.curve import Curve


def draw_map(
    curve: Curve,
    metric: str,
    ax: Axes,
    parts: Collection[str] = PARTS,
    x: str | None = None,
    limits: tuple[float, float] | None = None,
    bar: bool = True,
) -> QuadMesh:
    """A heat map of the first learner's theory (of its mean run if it has none); grey where there is no value.

    `x` is the axis from left to right (the first unless told), `limits` the ends of the colour scale, `bar` whether
    that is shown. Thresholds that vary along an axis are lines over the map, each with its name.
    """
    x_name, y_name = sorted(curve.axes, key=lambda name: name != (x or curve.axes[0]))
    across, up = places(curve, x_name), places(curve, y_name)
    values, run = map_cells(curve, metric, parts)
    if curve.axes != (x_name, y_name):
        values = values.T
    cells = np.ma.masked_invalid(values[np.ix_(across.order, up.order)].T)
    low, high = (None, None) if limits is None else limits
    x_edges, y_edges = _edges(across), _edges(up)
    ax.set_facecolor("0.8")
    mesh = ax.pcolormesh(x_edges, y_edges, cells, cmap="cividis", vmin=low, vmax=high, rasterized=True)
    ax.set_xlim(x_edges[0], x_edges[-1])
    ax.set_ylim(y_edges[0], y_edges[-1])
    if bar:
        ax.figure.colorbar(mesh, ax=ax, label=words(metric))
    for which, name, place in (("x", x_name, across), ("y", y_name, up)):
        name_ticks(ax, which, place)
        getattr(ax, f"set_{which}label")(axis_label(curve, name))
    title = str(curve.dataset["title"].values[0])
    ax.set_title(f"{title}, ${curve.size_name} = {curve.sizes[0]}$" if run and curve.sizes else title)
    if curve.model_axis in (x_name, y_name):
        overlay_thresholds(curve, ax, (x_name, y_name), (across, up))
    return mesh


def map_cells(curve: Curve, metric: str, parts: Collection[str] = PARTS) -> tuple[np.ndarray, bool]:
    """The values of the first learner over the curve's axes, NaN where there is none, and whether they are of runs."""
    if curve.has_entries(metric):
        raise ValueError(f"{metric} is a matrix at each point; a map shows a scalar, such as {curve.default_metric}.")
    if "theory" in parts and f"{metric}_theory" in curve.dataset:
        theory = curve.theory(metric).where(curve.dataset["status"] == Status.CONVERGED).isel(learner=0)
        if theory.notnull().any() or f"{metric}_simulation" not in curve.dataset or "simulation" not in parts:
            return theory.values, False
    if "simulation" in parts and f"{metric}_simulation" in curve.dataset:
        return curve.summary(metric)[0].isel(learner=0).values, True
    return np.full([curve.dataset.sizes[name] for name in curve.axes], np.nan), False


def _edges(place: Places) -> np.ndarray:
    """The borders of the cells: half way between neighbours."""
    at = np.asarray(place.positions, dtype=np.float64)
    if at.size == 1:
        return at[0] + np.array([-0.5, 0.5])
    middle = (at[1:] + at[:-1]) / 2
    return np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
