"""What a figure of a curve shows: lines or a map, on one panel or on one for each value of the other axes."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.lab.curve import Curve
from solvable.lab.plots.lines import draw_lines, mark_curve
from solvable.lab.plots.maps import draw_map, map_cells
from solvable.lab.plots.style import (
    HEIGHT,
    PARTS,
    STYLE,
    WIDTH,
    bare_figure,
    check_path,
    displayed,
    new_figure,
    value_label,
    words,
    write_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("lines", "map")
MOST_PANELS = 12
LEGEND_ROW = 0.15
"""The height of a row of the legend, in inches."""
MAP_VALUES = 5
"""Two axes of at least so many numbers each are drawn as a map unless told."""


class _Panel(NamedTuple):
    """The part of the curve that is drawn on one panel, and the values of the other axes there."""

    curve: Curve
    chosen: dict[str, Any]

    @property
    def title(self) -> str:
        return ", ".join(value_label(name, value) for name, value in self.chosen.items())


def draw(
    curve: Curve,
    metric: str,
    ax: Axes | None = None,
    parts: Collection[str] = PARTS,
    x: str | None = None,
    kind: str | None = None,
) -> Axes | np.ndarray:
    """Draw a metric of a curve on `ax`, or on a new figure (see `Curve.plot`)."""
    import matplotlib

    panels, x, kind = _plan(curve, metric, parts, x, kind)
    if ax is not None and len(panels) > 1:
        raise ValueError(f"one Axes cannot hold {len(panels)} panels: {_hint(curve, panels[0].chosen)}")
    with matplotlib.rc_context(STYLE):
        if len(panels) > 1:
            return _draw_panels(new_figure(*_size(len(panels))), panels, metric, parts, x, kind)
        if ax is None:
            return displayed(_draw_alone(new_figure(), panels[0], metric, parts, x, kind))
        _draw_one(panels[0], metric, ax, parts, x, kind)
    return ax


def save_figure(curve: Curve, metric: str, path: str | Path, x: str | None = None, kind: str | None = None) -> Path:
    """Draw a metric and write it as PNG, PDF or SVG."""
    import matplotlib

    path = check_path(path)
    panels, x, kind = _plan(curve, metric, PARTS, x, kind)
    with matplotlib.rc_context(STYLE):
        if len(panels) > 1:
            figure = bare_figure(*_size(len(panels)))
            _draw_panels(figure, panels, metric, PARTS, x, kind)
        else:
            figure = bare_figure()
            _draw_alone(figure, panels[0], metric, PARTS, x, kind)
    return write_figure(figure, path)


def _plan(
    curve: Curve, metric: str, parts: Collection[str], x: str | None, kind: str | None
) -> tuple[list[_Panel], str | None, str]:
    """The panels, the axis from left to right (None if the curve has none) and the kind."""
    if kind not in (None, *KINDS):
        raise bad_parameter("kind", kind, f"one of: {', '.join(KINDS)}")
    known = [*curve.axes, *(["d"] if "d" in curve.dataset.dims else [])]
    if x is not None and x not in known:
        raise bad_parameter("x", x, f"one of: {', '.join(known)}" if known else "left out: the curve has no axis")
    if kind == "map" and (len(curve.axes) < 2 or x == "d"):
        raise bad_parameter("kind", kind, "lines here: a map needs two axes of the grid")
    if kind is None:
        kind = "map" if x != "d" and _is_map(curve) else "lines"
    if kind == "map":
        x = curve.axes[0] if x is None else x
        drawn = (x, _second(curve, x))
    else:
        x = _default_x(curve) if x is None else x
        drawn = (x,)
    others = [name for name in curve.axes if name not in drawn]
    panels = []
    _check_count(curve, others, math.prod(curve.dataset.sizes[name] for name in others))
    for values in itertools.product(*(curve.dataset[name].values.tolist() for name in others)):
        chosen = dict(zip(others, values, strict=True))
        part = curve.select(**chosen) if chosen else curve
        if kind == "map":
            panels += [_Panel(one, chosen) for one in _maps(part, metric, parts)]
        else:
            panels.append(_Panel(_along_sizes(part) if x == "d" else part, chosen))
    _check_count(curve, others, len(panels))
    return panels, x, kind


def _check_count(curve: Curve, others: list[str], count: int) -> None:
    if count > MOST_PANELS:
        hint = _hint(curve, {name: curve.dataset[name].values.tolist()[0] for name in others})
        raise ValueError(f"{count} panels are too many, at most {MOST_PANELS} are drawn: {hint}")


def _is_map(curve: Curve) -> bool:
    if len(curve.axes) != 2:
        return False
    attributes = curve.dataset.attrs
    # Phase diagrams name their metric; those of earlier versions are the only curves of two axes without either mark.
    if "metric" in attributes or not {"model_axes", "provenance"} & set(attributes):
        return True
    values = [curve.dataset[name].values for name in curve.axes]
    return all(each.dtype.kind in "iuf" and each.size >= MAP_VALUES for each in values)


def _default_x(curve: Curve) -> str | None:
    """The model's first axis, or else the longest; the sizes where the grid has no axis."""
    if curve.model_axis in curve.axes:
        return curve.model_axis
    longest = max(curve.axes, key=lambda name: curve.dataset.sizes[name], default=None)
    return "d" if longest is None and "d" in curve.dataset.dims else longest


def _second(curve: Curve, x: str) -> str:
    """The other axis of a map: the longest, numbers before texts."""
    others = [name for name in curve.axes if name != x]
    return max(others, key=lambda name: (curve.dataset[name].dtype.kind in "iuf", curve.dataset.sizes[name]))


def _maps(curve: Curve, metric: str, parts: Collection[str]) -> list[Curve]:
    """A curve for each map: every learner with values, and every size where runs are drawn."""
    found = []
    for label in curve.learners:
        part = curve.select(learner=label) if len(curve.learners) > 1 else curve
        cells, run = map_cells(part, metric, parts)
        if np.any(np.isfinite(cells)):
            found += [part.select(d=d) for d in part.sizes] if run and "d" in part.dataset.dims else [part]
    return found or [curve]


def _along_sizes(curve: Curve) -> Curve:
    """The curve with the dimension d as its axis; theory, of infinite d, is the same all along."""
    dataset = curve.dataset
    flat = [name for name in dataset.data_vars if "learner" in dataset[name].dims and "d" not in dataset[name].dims]
    wide = dataset.assign({name: dataset[name].expand_dims(d=dataset["d"]) for name in flat})
    order = [dim for dim in ("learner", *curve.axes, "d", "seed") if dim in wide.dims]
    return Curve(wide.transpose(*order, ...).assign_attrs(axes=json.dumps([*curve.axes, "d"])))


def _draw_alone(figure: Figure, panel: _Panel, metric: str, parts: Collection[str], x: str | None, kind: str) -> Axes:
    """A figure of one panel, higher where a long legend above it would squeeze the axes."""
    ax = figure.add_subplot()
    rows = _draw_one(panel, metric, ax, parts, x, kind)
    if kind == "lines":
        figure.set_figheight(HEIGHT + LEGEND_ROW * max(0, rows - 2))
    return ax


def _draw_one(
    panel: _Panel, metric: str, ax: Axes, parts: Collection[str], x: str | None, kind: str, **options: Any
) -> Any:
    """One panel; a map's title names the learner before the values. Returns what the drawing function does."""
    if kind == "lines":
        rows = draw_lines(panel.curve, metric, ax, parts, **options)
        ax.set_title(panel.title or ax.get_title())
        return rows
    mesh = draw_map(panel.curve, metric, ax, parts, x, **options)
    ax.set_title(", ".join(filter(None, [ax.get_title(), panel.title])))
    return mesh


def _draw_panels(
    figure: Figure, panels: list[_Panel], metric: str, parts: Collection[str], x: str | None, kind: str
) -> np.ndarray:
    """Small multiples with the same axes, one legend or one colour bar."""
    rows, columns = _shape(len(panels))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    axes = grid.ravel()[: len(panels)]
    for spare in grid.ravel()[len(panels) :]:
        spare.remove()
    limits = _limits(panels, metric, parts) if kind == "map" else None
    meshes = []
    for k, (panel, ax) in enumerate(zip(panels, axes, strict=True)):
        options: dict[str, Any] = {"alone": False} if kind == "lines" else {"limits": limits, "bar": False}
        meshes.append(_draw_one(panel, metric, ax, parts, x, kind, **options))
        lowest = k + columns >= len(panels)
        ax.tick_params(labelbottom=lowest)
        if not lowest:
            ax.set_xlabel("")
        if k % columns:
            ax.set_ylabel("")
    if kind == "map":
        figure.colorbar(meshes[0], ax=list(axes), label=words(metric))
        return axes
    entries: dict[str, Any] = {}
    for panel, ax in zip(panels, axes, strict=True):
        mark_curve(panel.curve, ax, parts)
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        width = max(map(len, entries))
        fits = max(1, int(columns * 40 / (width + 6)))
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=min(fits, 4, len(entries)))
    return axes


def _limits(panels: list[_Panel], metric: str, parts: Collection[str]) -> tuple[float, float] | None:
    cells = np.concatenate([map_cells(panel.curve, metric, parts)[0].ravel() for panel in panels])
    cells = cells[np.isfinite(cells)]
    return (float(cells.min()), float(cells.max())) if cells.size else None


def _shape(count: int) -> tuple[int, int]:
    columns = count if count < 4 else 2 if count == 4 else 3
    return -(-count // columns), columns


def _size(count: int) -> tuple[float, float]:
    rows, columns = _shape(count)
    return WIDTH * (1.6 if columns == 2 else 2.1), HEIGHT * (0.2 + 0.8 * rows)


def _hint(curve: Curve, chosen: dict[str, Any]) -> str:
    """How to come to one panel, such as that of the chosen values."""
    example = ", ".join(f"{name}={value!r}" for name, value in (chosen or {"learner": curve.learners[0]}).items())
    return f"fix axes or learners first, as in curve.select({example})."
