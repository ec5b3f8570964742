"""Numerical errors: of a quadrature, by what fewer nodes change; of averages over draws, by their scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.98
"""The share of means of independent estimates that lie within their stated error."""
COARSER = 0.7
"""The fineness of the second rule, relative to the first, whose difference from it is the estimate."""
_FAST, _GUARD = 1 / 6, 1 / 20


def told_by_two(xp: Any, near: Any, far: Any) -> tuple[Any, Any]:
    """The weights with which what two coarser rules change, `near` and `far` (sizes), tell the error of a rule.

    Where the change falls fast from the far rule to the near one it goes on doing so: the near change alone is safe,
    and the far one hundreds of times too large. It counts a twentieth there, since the near rule may agree by accident.
    Where it does not fall fast, as errors do that are powers of the number of nodes, the larger of the two counts.
    """
    fast = near < _FAST * far
    guarded = xp.where(fast, near < _GUARD * far, near < far)
    return xp.where(guarded, 0.0, 1.0), xp.where(guarded, xp.where(fast, _GUARD, 1.0), 0.0)


def standard_errors(count: int) -> float:
    """How many standard errors, as told by the scatter of so many estimates, their mean may be off: Student's law.

    One standard error would be exceeded by every third mean, and more often the fewer estimates tell it.
    """
    return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))


def error_of_mean(estimates: np.ndarray) -> Any:
    """How far the mean of independent estimates (along the first axis) may be off."""
    return standard_errors(len(estimates)) * np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
