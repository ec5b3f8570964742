r"""A network that descends on the labels of a target, as the `Signal` of the dynamical mean-field theory.

A sample has z ~ N(0, I_r) and the label $y = g(z) + \sqrt\Delta\, u$; its force on the fields h of the network is
$F_i(y, h)$ of `Student`, and weight decay takes $\eta\lambda$ of the weights away at every step.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from solvable.engine.dynamics.student import Student
from solvable.targets.target import Target

_STEP = 1e-6


class Labels(NamedTuple):
    """The `target` with label noise of variance `noise`, the `student`, and its weight decay lambda."""

    target: Target
    student: Student
    noise: float = 0.0
    decay_rate: float = 0.0

    @property
    def width(self) -> int:
        return self.student.width

    @property
    def directions(self) -> int:
        return self.target.projections

    @property
    def extra(self) -> int:
        return int(self.noise > 0)

    @property
    def kinked(self) -> bool:
        return kinked(self.student.activation)

    def context(self, z: np.ndarray, extra: np.ndarray) -> np.ndarray:
        y = self.target.numpy(z.T)
        return y + np.sqrt(self.noise) * extra[0] if self.extra else y

    def force(self, h: Any, context: Any) -> Any:
        return self.student.force(context, h.T).T

    def direction(self, z: np.ndarray, context: Any) -> np.ndarray:
        return z

    def shift(self, M: np.ndarray, context: Any) -> None:
        return None

    def decay(self, Q: np.ndarray, alpha: float) -> np.ndarray:
        return self.decay_rate * np.eye(len(Q))


@functools.lru_cache(maxsize=64)
def kinked(activation: Target) -> bool:
    """Whether the slope of an activation jumps at one of its breaks."""
    breaks = activation.breaks
    if not len(breaks):
        return False
    left, right = (activation.value_and_slope(breaks + side * _STEP)[1] for side in (-1, 1))
    # A smooth slope changes by the curvature times two steps; a break that is no kink may be listed.
    with np.errstate(invalid="ignore"):
        return bool(np.any(~(np.abs(right - left) < 1e3 * _STEP * (1 + np.abs(left) + np.abs(right)))))
