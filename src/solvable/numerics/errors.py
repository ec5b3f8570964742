"""Numerical error by coarser rules: what fewer nodes change estimates the error of a quadrature."""

from __future__ import annotations

from typing import Any

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
