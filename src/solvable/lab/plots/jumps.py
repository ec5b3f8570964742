"""Lines that jump are not drawn through the jump."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from solvable.lab.curve.selection import NEAR

STEEPER = 3.0
"""A step is a jump if it is this many times steeper than the lines beside it; that of a square root is 2.4 times."""
VISIBLE = 0.02
"""Smaller steps, as a part of the line's range, are not interrupted."""


def with_gaps(x: np.ndarray, line: np.ndarray, thresholds: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
    """The line with a missing point at each threshold where it jumps, so that no stroke crosses it.

    A line jumps between two neighbouring points if a threshold lies between them and the step is much steeper than both
    of its neighbours: a continuous onset is not. Compute theory on both sides of a threshold, and the gap is narrow.
    """
    places = np.array([place for place in thresholds if np.isfinite(place)])
    # A point of the grid may be a threshold: the jump is then on either side of it.
    found = [left for left in range(len(x) - 1) if _crossed(x, left, places) and _jumps(x, line, left)]
    middles = [(x[left] + x[left + 1]) / 2 for left in found]
    after = np.array(found, dtype=int) + 1
    return np.insert(np.asarray(x, dtype=float), after, middles), np.insert(line, after, np.nan)


def _crossed(x: np.ndarray, left: int, places: np.ndarray) -> bool:
    """Whether a threshold lies between a point and the next, or at one of them."""
    near = NEAR * np.abs(places)
    return bool(np.any((x[left] - near <= places) & (places <= x[left + 1] + near)))


def _jumps(x: np.ndarray, line: np.ndarray, left: int) -> bool:
    step = abs(line[left + 1] - line[left])
    slopes = [_slope(x, line, left - 1), _slope(x, line, left + 1)]
    beside = max((slope for slope in slopes if np.isfinite(slope)), default=np.nan)
    return bool(step > VISIBLE * np.ptp(line[np.isfinite(line)]) and step > STEEPER * beside * (x[left + 1] - x[left]))


def _slope(x: np.ndarray, line: np.ndarray, left: int) -> float:
    """How steep the line is from one point to the next; NaN outside of it."""
    if not 0 <= left < len(x) - 1:
        return np.nan
    return abs(line[left + 1] - line[left]) / (x[left + 1] - x[left])
