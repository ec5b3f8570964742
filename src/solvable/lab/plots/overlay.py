"""Thresholds as lines over a heat map, each with its name beside it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from solvable.lab.curve.selection import THRESHOLD, threshold_names
from solvable.lab.plots.style import Places, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from solvable.lab.curve import Curve

SIZE = 6.0
"""The height of the names, in points."""
WIDE = 0.65
"""The width of a letter as a share of its height, with some room for a map that shrinks when it is laid out."""
SHARES = (0.5, 0.35, 0.65, 0.2, 0.8, 0.1, 0.9)
"""Where along a line its name is tried."""


class _Line(NamedTuple):
    """A threshold: its names, and the points of its line in the map's coordinates, NaN where it is interrupted."""

    names: list[str]
    points: np.ndarray

    @property
    def text(self) -> str:
        return " = ".join(self.names)


def overlay_thresholds(curve: Curve, ax: Axes, axes: tuple[str, str], places: tuple[Places, Places]) -> None:
    """A line with its name for each threshold that passes through the map; equal ones share a line.

    `axes` are the curve's axes from left to right and upwards. Thresholds are values of the model's first axis, so the
    lines run along the other one.
    """
    upright = axes[0] == curve.model_axis
    other, place = (axes[1], places[1]) if upright else (axes[0], places[0])
    lines = _lines(curve, other, place, ax.get_ylim() if upright else ax.get_xlim(), upright)
    found = [(line, _visible(line.points, ax)) for line in lines]
    shown = [(line, part) for line, part in found if len(part.points) > 1]
    for line, _ in shown:
        ax.plot(*line.points.T, color="white", linewidth=0.9, path_effects=_rim(1.8))
    _name_lines(ax, [line.text for line, _ in shown], [part for _, part in shown])


def _lines(curve: Curve, other: str, place: Places, ends: tuple[float, float], upright: bool) -> list[_Line]:
    """The lines over the values of the other axis; a threshold that is constant runs through the whole map."""
    found: list[_Line] = []
    every = {name: (np.full(2, value), np.asarray(ends)) for name, value in curve.thresholds.items()}
    for name in threshold_names(curve.dataset):
        variable = curve.dataset[name + THRESHOLD]
        if variable.dims != (other,):
            continue
        values, at = variable.values[place.order].astype(float), np.asarray(place.positions, dtype=float)
        if place.names is not None:  # nothing lies between two texts: a piece for each
            values = np.ravel(np.column_stack([values, values, np.full(at.size, np.nan)]))
            at = np.ravel(np.column_stack([at - 0.5, at + 0.5, at]))
        every[name] = values, at
    for name, (values, at) in every.items():
        values = np.where(np.isfinite(values), values, np.nan)
        points = np.column_stack([values, at] if upright else [at, values])
        same = (
            line
            for line in found
            if line.points.shape == points.shape and np.allclose(line.points, points, rtol=1e-6, equal_nan=True)
        )
        twin = next(same, None)
        if twin is None:
            found.append(_Line([words(name)], points))
        else:
            twin.names.append(words(name))
    return found


class _Visible(NamedTuple):
    """The part of a line inside the map: points in fine steps, and the direction of the line at each."""

    points: np.ndarray
    ahead: np.ndarray


def _visible(points: np.ndarray, ax: Axes) -> _Visible:
    steps = np.linspace(0, len(points) - 1, 40 * len(points))
    fine = np.column_stack([np.interp(steps, np.arange(len(points)), part) for part in points.T])
    ahead = np.diff(points, axis=0)[np.minimum(steps.astype(int), len(points) - 2)]
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    x, y = fine.T
    inside = (x >= left) & (x <= right) & (y >= low) & (y <= high)
    return _Visible(fine[inside], ahead[inside])


def _name_lines(ax: Axes, texts: list[str], lines: list[_Visible]) -> None:
    """Each name beside its line and turned like it, where it meets other names, lines and the border least."""
    scale = 72 / ax.figure.dpi
    unit = (ax.transData.transform((1, 1)) - ax.transData.transform((0, 0))) * scale
    drawn = [ax.transData.transform(line.points) * scale for line in lines]
    border = np.array([[ax.bbox.x0, ax.bbox.y0], [ax.bbox.x1, ax.bbox.y1]]) * scale
    taken = np.empty((0, 2))
    for text, line, own in zip(texts, lines, drawn, strict=True):
        tried = []
        for share, side in itertools.product(SHARES, (1, -1)):
            k = int(share * (len(own) - 1))
            ahead = line.ahead[k] * unit
            steep = abs(ahead[0]) < 0.1 * abs(ahead[1])
            ahead = ahead / np.hypot(*ahead) * np.sign(ahead[1] if steep else ahead[0])  # no text upside down
            shift = side * 0.9 * SIZE * np.array([ahead[1], -ahead[0]])
            along = np.linspace(-0.5, 0.5, len(text) + 1)[:, None] * WIDE * SIZE * len(text)
            letters = own[k] + shift + along * ahead
            cost = 3 * _meetings(letters, taken, 1.3 * SIZE) + 2 * _outside(letters, border)
            cost += _meetings(letters, np.concatenate(drawn), 0.6 * SIZE)
            cost += len(letters) - _meetings(letters, own, 1.8 * SIZE)  # letters beyond the end of the line
            tried.append((cost, len(tried), line.points[k], ahead / unit, shift, letters))
        _, _, place, ahead, shift, letters = min(tried, key=lambda one: one[:2])
        taken = np.concatenate([taken, letters])
        _write(ax, text, place, ahead, shift)


def _meetings(letters: np.ndarray, points: np.ndarray, distance: float) -> int:
    """How many letters are closer than a distance to some of the points."""
    if not len(points):
        return 0
    apart = np.hypot(*(letters[:, None] - points[None]).transpose(2, 0, 1))
    return int(np.count_nonzero(apart.min(axis=1) < distance))


def _outside(letters: np.ndarray, border: np.ndarray) -> int:
    return int(np.count_nonzero(np.any((letters < border[0] + SIZE / 2) | (letters > border[1] - SIZE / 2), axis=1)))


def _write(ax: Axes, text: str, place: np.ndarray, ahead: np.ndarray, shift: np.ndarray) -> None:
    """A text moved off its place by some points, turned along a direction of the map's coordinates."""
    from matplotlib.transforms import ScaledTranslation

    ax.text(
        float(place[0]),
        float(place[1]),
        text,
        transform=ax.transData + ScaledTranslation(shift[0] / 72, shift[1] / 72, ax.figure.dpi_scale_trans),
        rotation=np.degrees(np.arctan2(ahead[1], ahead[0])),
        rotation_mode="anchor",
        transform_rotates_text=True,
        ha="center",
        va="center",
        fontsize=SIZE,
        color="white",
        path_effects=_rim(1.4),
        clip_on=True,
    )


def _rim(width: float) -> list:
    """A dark rim, so that white is legible on any colour of the map."""
    from matplotlib import patheffects

    return [patheffects.withStroke(linewidth=width, foreground="0.15")]
