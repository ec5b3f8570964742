"""How far the metrics at the end of a course may be off, from the scatter of its sets and a second course.

Averages are over samples where they are not over grids. The stated uncertainty is `ERRORS` standard errors of them, and
by what a second, rougher way to the same overlaps disagrees beyond its own scatter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.engine.dynamics.dmft import Course

ERRORS = 4.0
"""Standard errors of the mean of eight that the uncertainty is: beyond it lies one in two hundred."""
Metrics = Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]
"""Metrics of networks with overlaps M (k, p, r) and Q (k, p, p), each an array of k numbers."""


def judged(metrics: Metrics, found: Course, other: Course) -> tuple[dict[str, float], dict[str, float]]:
    """The metrics at the last step of the mean course, and how far they may be off."""
    first, second = (_scattered(metrics, course) for course in (found, other))
    values = {name: value for name, (value, _) in first.items()}
    uncertainty = {}
    for name, (value, error) in first.items():
        rough, rough_error = second[name]
        hidden = max(abs(value - rough) - ERRORS * np.hypot(error, rough_error), 0.0)
        uncertainty[name] = float(ERRORS * error + hidden)
    return values, uncertainty


def _scattered(metrics: Metrics, course: Course) -> dict[str, tuple[float, float]]:
    """Each metric at the mean of the sets, and its standard error by how it scatters among them."""
    sets = len(course.M)
    M, Q = (np.concatenate([path[:, -1].mean(axis=0, keepdims=True), path[:, -1]]) for path in (course.M, course.Q))
    if sets == 1:
        M, Q = M[:1], Q[:1]
    with np.errstate(invalid="ignore"):
        found = metrics(M, Q)
    if sets == 1:
        return {name: (float(value[0]), 0.0) for name, value in found.items()}
    return {name: (float(v[0]), float(np.std(v[1:], ddof=1) / np.sqrt(sets))) for name, v in found.items()}
