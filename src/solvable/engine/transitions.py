"""Thresholds of a scalar state evolution, read off its curve of fixed points and its free entropy.

As alpha grows, the iteration from nothing climbs the curve alpha(qhat) and jumps wherever the curve falls below an
earlier maximum (a spinodal). Between the alpha where the free entropy already prefers the far side and that spinodal,
learning is possible but the iteration does not find it: a hard phase.
"""

from __future__ import annotations

import numpy as np

from solvable.engine.state_evolution import ScalarStateEvolution
from solvable.engine.thresholds import Thresholds

_DROP = 1e-6
"""The curve must fall by this much (in log alpha), and by well more than its error, for a jump to count."""


def find_thresholds(evolution: ScalarStateEvolution) -> Thresholds:
    """The thresholds of a channel and a prior."""
    weak = evolution.alpha_weak
    algorithmic = _last_jump(evolution)
    if algorithmic is None:
        return Thresholds(weak_recovery=weak, algorithmic=weak, information_theoretic=weak)
    return Thresholds(
        weak_recovery=weak, algorithmic=algorithmic, information_theoretic=_hard_phase_start(evolution, algorithmic)
    )


def _last_jump(evolution: ScalarStateEvolution) -> float | None:
    """The largest alpha at which the uninformed fixed point jumps, infinite if it never leaves q = 0."""
    if np.isinf(evolution.alpha_weak):
        return np.inf
    curve = evolution.log_curve
    start = np.log(evolution.alpha_weak) if evolution.alpha_weak > 0 else -np.inf
    highest = np.maximum.accumulate(np.maximum(curve, start))
    fallen = np.nonzero(highest - curve > _DROP + 10 * evolution.log_error)[0]
    return float(np.exp(highest[fallen[-1]])) if fallen.size else None


def _hard_phase_start(evolution: ScalarStateEvolution, algorithmic: float) -> float:
    """The smallest alpha from which on, up to the algorithmic threshold, Bayes-optimal learning beats AMP."""

    def better(alpha: np.ndarray) -> np.ndarray:
        return evolution.optimal(alpha).q > evolution.uninformed(alpha).q + 1e-6

    top = 1e4 if np.isinf(algorithmic) else algorithmic * (1 - 1e-7)
    grid = np.geomspace(1e-4, 1.0, 400) * top
    hard = better(grid)
    if not hard[-1]:
        return algorithmic
    start = int(np.nonzero(~hard)[0].max(initial=-1)) + 1
    if start == 0:
        return 0.0
    low, high = grid[start - 1], grid[start]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if better(np.array([middle]))[0] else (middle, high)
    return float((low + high) / 2)
