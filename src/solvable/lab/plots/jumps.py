"""Lines that jump are not drawn through the jump."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

STEEPER = 3.0
"""A step is a jump if it is this many times steeper than the lines beside it; that of a square root is 2.4 times."""
VISIBLE = 0.02
"""Smaller steps, as a part of the line's range, are not interrupted."""


def with_gaps(x: np.ndarray, line: np.ndarray, thresholds: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
    """The line with a missing point at each threshold where it jumps, so that no stroke crosses it.

    A line jumps between two neighbouring points if a threshold lies between them and the step is much steeper than both
    of its neighbours: a continuous onset is not. Compute theory on both sides of a threshold, and the gap is narrow.
    """
    places = sorted({float(place) for place in thresholds if np.isfinite(place)})
    found = [place for place in places if _jumps(x, line, place)]
    at = np.searchsorted(x, found)
    return np.insert(np.asarray(x, dtype=float), at, found), np.insert(line, at, np.nan)


def _jumps(x: np.ndarray, line: np.ndarray, place: float) -> bool:
    right = int(np.searchsorted(x, place))
    if not 0 < right < len(x):
        return False
    left = right - 1
    step = abs(line[right] - line[left])
    slopes = [_slope(x, line, left - 1), _slope(x, line, right)]
    beside = max((slope for slope in slopes if np.isfinite(slope)), default=np.nan)
    return bool(step > VISIBLE * np.ptp(line[np.isfinite(line)]) and step > STEEPER * beside * (x[right] - x[left]))


def _slope(x: np.ndarray, line: np.ndarray, left: int) -> float:
    """How steep the line is from one point to the next; NaN outside of it."""
    if not 0 <= left < len(x) - 1:
        return np.nan
    return abs(line[left + 1] - line[left]) / (x[left + 1] - x[left])
