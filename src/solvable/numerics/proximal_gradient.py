r"""Accelerated proximal gradient for $\min_x f(F x) + r(x)$: F linear, f smooth and convex, r with a known prox.

From the point y, which extrapolates the last two iterates, a step is

    x <- prox_{r/L}(y - F* f'(F y) / L),    prox_{r/L}(v) = argmin_x L |x - v|^2 / 2 + r(x),

with L a bound on the curvature of f(F .), which is raised when a step shows that it is none: then the Bregman
divergence D(F x, F y) = f(F x) - f(F y) - f'(F y).(F x - F y) exceeds L |x - y|^2 / 2. The momentum is that of
[beck2009fast], restarted where it would go uphill, (y - x).(x - x_before) > 0 [odonoghue2015adaptive]. F x is
extrapolated along with x, so that a step costs one product with F and one with its transpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


class Iterate(NamedTuple):
    """An iterate `x` with `image` = F x and the bound `L`; `gradient` is that at x if it is linear, else None.

    `move` = |x - y| is the length of the step and `change` = |x - x_before| that of the iteration.
    """

    x: np.ndarray
    image: np.ndarray
    gradient: np.ndarray | None
    L: float
    move: float
    change: float


def proximal_gradient(
    forward: Function,
    gradient: Function,
    prox: Callable[[np.ndarray, float], np.ndarray],
    divergence: Callable[[np.ndarray, np.ndarray], float],
    start: np.ndarray,
    L: float,
    *,
    linear: bool = False,
) -> Iterator[Iterate]:
    """The iterates from `start`, for ever: the caller decides when to stop, and counts.

    `forward` is F; `gradient` takes an image F y to F* f'(F y); `prox`(v, L) is that of r / L; `divergence`(a, b) is
    D(a, b) between images, with a margin for rounding taken off if need be. It is asked right after the gradient at b,
    so that it may use what was computed there. A gradient that is `linear` in y (f quadratic) is extrapolated along
    with x, and so is known at every iterate, as a certificate of optimality needs.
    """
    x, t = start, 1.0
    image = forward(x)
    slope = gradient(image)
    y, y_image, y_slope = x, image, slope
    while True:
        while True:
            new = prox(y - y_slope / L, L)
            new_image = forward(new)
            move = new - y
            moved, bent = float(np.vdot(move, move)), 2 * float(divergence(new_image, y_image))
            if not bent > L * moved * (1 + 1e-9):
                break
            L = 1.05 * bent / moved if moved > 0 else 2 * L
        change = new - x
        uphill = float(np.vdot(move, change)) < 0
        t_new = 1.0 if uphill else (1 + math.sqrt(1 + 4 * t**2)) / 2
        momentum = 0.0 if uphill else (t - 1) / t_new
        new_slope = gradient(new_image) if linear else None
        yield Iterate(new, new_image, new_slope, L, math.sqrt(moved), float(np.linalg.norm(change)))
        y, y_image = new + momentum * change, new_image + momentum * (new_image - image)
        y_slope = gradient(y_image) if new_slope is None else new_slope + momentum * (new_slope - slope)
        x, image, slope, t = new, new_image, slope if new_slope is None else new_slope, t_new
