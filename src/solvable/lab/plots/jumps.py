"""Lines that jump are not drawn through the jump."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvable.lab.curve.selection import NEAR

STEEPER = 3.0
"""A step is a jump if it is this many times steeper than the lines beside it; that of a square root is 2.4 times."""
STEEPER_AT_AN_END = 1.5
"""The same at the ends of a hard phase, where curves do jump, but after a rise that is steep itself."""
ENDS = ("information_theoretic", "algorithmic")
"""The ends of a hard phase, if they are not the same."""
VISIBLE = 0.02
"""Smaller steps, as a part of the line's range, are not interrupted."""


def with_gaps(x: np.ndarray, line: np.ndarray, thresholds: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """The line with a missing point wherever it jumps at a threshold, so that no stroke crosses the jump.

    A line jumps between two neighbouring points if a threshold lies between them, or at one of them, and the step is
    much steeper than both of its neighbours: a continuous onset is not. With theory computed on both sides of a
    threshold the gap is narrow.
    """
    known = {name: place for name, place in thresholds.items() if np.isfinite(place)}
    ends = [known[name] for name in ENDS if name in known]
    ends = np.array(ends if len(ends) == 2 and not np.isclose(ends[0], ends[1]) else [])
    places = np.array(list(known.values()))
    found = []
    for left in range(len(x) - 1):
        steeper = STEEPER_AT_AN_END if _crossed(x, left, ends) else STEEPER
        if _crossed(x, left, places) and _jumps(x, line, left, steeper):
            found.append(left)
    middles = [(x[left] + x[left + 1]) / 2 for left in found]
    after = np.array(found, dtype=int) + 1
    return np.insert(np.asarray(x, dtype=float), after, middles), np.insert(line, after, np.nan)


def _crossed(x: np.ndarray, left: int, places: np.ndarray) -> bool:
    """Whether a threshold lies between a point and the next, or at one of them."""
    near = NEAR * np.abs(places)
    return bool(np.any((x[left] - near <= places) & (places <= x[left + 1] + near)))


def _jumps(x: np.ndarray, line: np.ndarray, left: int, steeper: float) -> bool:
    step = abs(line[left + 1] - line[left])
    slopes = [_slope(x, line, left - 1), _slope(x, line, left + 1)]
    beside = max((slope for slope in slopes if np.isfinite(slope)), default=np.nan)
    return bool(step > VISIBLE * np.ptp(line[np.isfinite(line)]) and step > steeper * beside * (x[left + 1] - x[left]))


def _slope(x: np.ndarray, line: np.ndarray, left: int) -> float:
    """How steep the line is from one point to the next; NaN outside of it."""
    if not 0 <= left < len(x) - 1:
        return np.nan
    return abs(line[left + 1] - line[left]) / (x[left + 1] - x[left])
