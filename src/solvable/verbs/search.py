"""The minimum of a function of one or a few numbers that may have several minima and points without a value.

Each number is searched on its own scale: logarithmic where the bounds are positive and span a decade, that of the
inverse hyperbolic sine where they span zero (linear around it, logarithmic beyond), linear otherwise. A coarse grid
comes first; then, around its lowest points, a method that uses the derivative where there is one that agrees with
finite differences of the function, and function values otherwise.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

GRID = {1: 25, 2: 6, 3: 5}
STARTS = {1: 3, 2: 2, 3: 2}
_NEAR_ZERO = 0.1
"""Where the bounds span zero, the scale is linear up to this share of the nearer bound."""

Values = tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Scale:
    """The scale on which one number is searched between two bounds: `to` and `back` are inverse to each other."""

    low: float
    high: float

    @property
    def kind(self) -> str:
        """`"log"`, `"asinh"` or `"linear"`."""
        if self.low > 0 and self.high >= 10 * self.low:
            return "log"
        return "asinh" if self.low <= 0 < self.high and self.high >= 10 * self._unit else "linear"

    @property
    def _unit(self) -> float:
        return max(_NEAR_ZERO * min(abs(self.low), self.high), 1e-4 * self.high)

    def to(self, value: float) -> float:
        forms = {"log": lambda x: math.log(max(x, self.low)), "asinh": lambda x: math.asinh(x / self._unit)}
        return forms.get(self.kind, float)(value)

    def back(self, t: float) -> float:
        """The number at t, exactly a bound at the ends."""
        if t <= self.to(self.low) or t >= self.to(self.high):
            return self.low if t <= self.to(self.low) else self.high
        forms = {"log": math.exp, "asinh": lambda x: math.sinh(x) * self._unit}
        return min(max(forms.get(self.kind, float)(t), self.low), self.high)

    def slope(self, value: float) -> float:
        """d value / dt."""
        forms = {"log": lambda x: x, "asinh": lambda x: math.hypot(x, self._unit)}
        return forms.get(self.kind, lambda x: 1.0)(value)

    def grid(self, count: int) -> np.ndarray:
        return np.linspace(self.to(self.low), self.to(self.high), count)


class Search:
    """Minimise `objective` between bounds, counting the evaluations; `gradient` may be None, and may be found wrong."""

    def __init__(
        self,
        objective: Callable[[Values], float],
        gradient: Callable[[Values], Sequence[float]] | None,
        bounds: Sequence[tuple[float, float]],
    ):
        self.scales = [Scale(*pair) for pair in bounds]
        self.evaluations = 0
        self._objective, self._gradient = objective, gradient

    def run(self, current: Values) -> tuple[Values | None, str]:
        """The best values (None if no point has any) and the method that found them; `current` is kept if flat."""
        count = len(self.scales)
        grids = [scale.grid(GRID[count]) for scale in self.scales]
        heights = np.array([self.height(t) for t in itertools.product(*grids)]).reshape([len(g) for g in grids])
        finite = np.isfinite(heights)
        if not finite.any():
            return None, "none"
        if np.ptp(heights[finite]) <= 1e-12 * np.abs(heights[finite]).max():
            inside = [min(max(value, scale.low), scale.high) for value, scale in zip(current, self.scales, strict=True)]
            return tuple(inside), "flat"
        valleys = _valleys(heights)[: STARTS[count]]
        if count > 1:  # a second start is worth its cost only where the grid could not tell
            valleys = [
                index for index in valleys if heights[index] - heights[valleys[0]] < 0.3 * abs(heights[valleys[0]])
            ]
        boxes = [_box(grids, index) for index in valleys]
        if self._gradient is not None and not self._trustworthy(boxes[0]):
            self._gradient = None
        method = "derivative-free" if self._gradient is None else "gradient"
        candidates = [
            (float(heights[index]), tuple(float(g[i]) for g, i in zip(grids, index, strict=True))) for index in valleys
        ]
        for (_, start), box in zip(list(candidates), boxes, strict=True):
            t = self._refine_one(*box[0], start[0]) if count == 1 else self._refine(box, start)
            candidates.append((self.height(t), t))
        return self.values(min(candidates)[1]), method

    def values(self, t: Sequence[float]) -> Values:
        return tuple(scale.back(x) for scale, x in zip(self.scales, t, strict=True))

    def height(self, t: Any) -> float:
        self.evaluations += 1
        height = self._objective(self.values(t))
        return height if math.isfinite(height) else math.inf

    def slopes(self, t: Any) -> np.ndarray:
        assert self._gradient is not None
        self.evaluations += 1
        values = self.values(t)
        inner = [scale.slope(value) for scale, value in zip(self.scales, values, strict=True)]
        return np.asarray(self._gradient(values), float) * inner

    def _trustworthy(self, box: Sequence[tuple[float, float]]) -> bool:
        """Whether the derivative agrees with central differences near two opposite corners of the box."""
        steps = [1e-4 * (high - low) for low, high in box]
        corners = [
            [low + 2 * step for (low, _), step in zip(box, steps, strict=True)],
            [high - 2 * step for (_, high), step in zip(box, steps, strict=True)],
        ]
        judged = 0
        for corner in corners:
            for i, step in enumerate(steps):
                shift = np.eye(len(box))[i] * step
                above, below = self.height(corner + shift), self.height(corner - shift)
                if not (math.isfinite(above) and math.isfinite(below)):
                    continue  # the corner has no prediction: the other one must do
                difference, slope = (above - below) / (2 * step), float(self.slopes(corner)[i])
                noise = 1e-10 * max(abs(above), abs(below)) / step
                if not abs(difference - slope) <= 0.01 * max(abs(difference), abs(slope)) + noise:
                    return False
                judged += 1
        return judged >= len(box)

    def _refine_one(self, left: float, right: float, middle: float) -> tuple[float]:
        from scipy.optimize import brentq, minimize_scalar

        if self._gradient is not None:

            def slope(t: float) -> float:
                return float(self.slopes((t,))[0])

            if slope(left) < 0 < slope(right):
                return (float(brentq(slope, left, right, xtol=1e-12, rtol=1e-12)),)  # type: ignore[arg-type]
            if middle in (left, right):
                return (middle,)  # the slope points out of the interval: the bound itself
        # Infinite heights make its parabolas NaN, and it then takes golden sections.
        with np.errstate(invalid="ignore"):
            options = {"xatol": 1e-9}
            found = minimize_scalar(
                lambda t: self.height((t,)), bounds=(left, right), method="bounded", options=options
            )
        return (float(found.x),)  # type: ignore[attr-defined]

    def _refine(self, box: Sequence[tuple[float, float]], start: Values) -> Values:
        """From the lowest point of the box within all bounds; a point without a value counts as a steep wall."""
        from scipy.optimize import minimize

        bounds = [(scale.to(scale.low), scale.to(scale.high)) for scale in self.scales]
        height = self.height(start)
        scale = max(abs(height), 1e-300)

        def wall(t: np.ndarray) -> float:
            value = self.height(t)
            return value / scale if math.isfinite(value) else 1e3

        if self._gradient is None:
            simplex = np.array([start, *(np.array(start) + 0.2 * np.diag([h - low for low, h in box]))])
            options = {"xatol": 1e-7, "fatol": 1e-12, "maxiter": 400, "initial_simplex": simplex}
            found = minimize(wall, np.array(start), method="Nelder-Mead", bounds=bounds, options=options)
        else:

            def both(t: np.ndarray) -> tuple[float, np.ndarray]:
                value = wall(t)
                slopes = self.slopes(t) / scale
                return value, np.where(np.isfinite(slopes), slopes, 0.0)

            options = {"ftol": 1e-12, "gtol": 1e-7, "maxiter": 60}
            found = minimize(both, np.array(start), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return tuple(float(x) for x in found.x)


def _valleys(heights: np.ndarray) -> list[tuple[int, ...]]:
    """The places of the local minima of a grid, lowest first."""
    padded = np.pad(heights, 1, constant_values=math.inf)
    lowest = np.isfinite(heights)
    for axis in range(heights.ndim):
        for shift in (-1, 1):
            window = [slice(1, -1)] * heights.ndim
            window[axis] = slice(1 + shift, padded.shape[axis] - 1 + shift)
            lowest &= heights <= padded[tuple(window)]
    places = [tuple(int(i) for i in index) for index in np.argwhere(lowest)]
    return sorted(places, key=lambda index: float(heights[index]))


def _box(grids: list[np.ndarray], index: tuple[int, ...]) -> list[tuple[float, float]]:
    """The neighbours of a grid point on each axis."""
    return [(float(g[max(i - 1, 0)]), float(g[min(i + 1, len(g) - 1)])) for g, i in zip(grids, index, strict=True)]
