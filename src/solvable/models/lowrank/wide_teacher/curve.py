r"""The self-consistent error of a wide teacher, on a curve that is explicit.

The error is one unknown: with $u = (n/d)/(\Delta + \epsilon)$ every feature knows its overlap, and so

    n/d = u (Delta + eps(u)).

All its solutions at a given n/d are crossings of this curve, stable where it rises. It falls by a jump wherever a
feature is learned. Bayes-optimal is the solution with the least

    F = (n/2d) log(Delta + eps) + (1/2) sum_j h(q_j),

the mutual information per dimension up to a constant, whose stationarity the equations are. For given u it is
separable, which is why the features take their best overlaps one by one.

Without noise, and with more samples than `dimension` times the number of weights, F falls without bound as u grows:
the features are known exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.core.status import Status
from solvable.models.lowrank.wide_teacher.features import Features
from solvable.numerics.roots import golden_section, regula_falsi

_PER_FOLD = 40
"""Points of the curve for each factor of e."""
_SIDE = 1e-12
"""How far from a jump its two sides are taken, relatively."""
_EQUAL = 1e-9
"""Values of F that differ by less, relatively, are the same."""
_SHIFT = 1e-5
"""The change of log u by which derivatives are taken."""


class Solution(NamedTuple):
    """The Bayes-optimal solution at each n/d: the rate u, eps, the number of features learned, F, and how it was found.

    `slope` is d log(n/d) / d log u along the curve, by which errors of eps are passed on.
    """

    u: np.ndarray
    error: np.ndarray
    learned: np.ndarray
    free_energy: np.ndarray
    slope: np.ndarray
    residual: np.ndarray
    status: np.ndarray


class Curve:
    """The curve of a model with these features and this noise."""

    def __init__(self, features: Features, noise: float):
        self.features, self.noise = features, noise
        self._reach = 0.0
        self._points = np.zeros(0), np.zeros(0)

    def log_alpha(self, x: np.ndarray) -> np.ndarray:
        """log n/d at x = log u."""
        return x + np.log(self.noise + self.features.error(np.exp(x)))

    def recovers(self, alpha: np.ndarray) -> np.ndarray:
        """Whether all weights are known exactly."""
        features = self.features
        if self.noise > 0 or features.limit < features.width:
            return np.zeros(np.shape(alpha), bool)
        return np.asarray(alpha) > features.feature.kernel.dimension * features.width

    def optimal(self, alpha: np.ndarray) -> Solution:
        """The solution of least F at each n/d, an array."""
        alpha = np.asarray(alpha, float)
        row, x = self._stable(alpha)
        cost = self.features.cost(np.exp(x))
        F = self._free_energy(alpha[row], x, cost)
        order = np.lexsort((-F, row))
        last = np.searchsorted(row[order], np.arange(len(alpha)), side="right") - 1
        best, second = order[last], order[np.maximum(last - 1, 0)]
        rival = (row[second] == row[best]) & (last > 0)
        close = rival & (np.abs(F[best] - F[second]) <= _EQUAL * np.maximum(1.0, cost[best]))
        return self._solution(alpha, x[best], F[best], close)

    def _solution(self, alpha: np.ndarray, x: np.ndarray, F: np.ndarray, close: np.ndarray) -> Solution:
        known, some = self.recovers(alpha), alpha > 0
        error, above, below = np.split(self.features.error(np.exp(np.concatenate([x, x + _SHIFT, x - _SHIFT]))), 3)
        # A jump lies on one side at most, where it makes the curve seem to fall.
        at, up, down = (np.log(self.noise + part) for part in (error, above, below))
        slope = 1 + np.maximum(up - at, at - down) / _SHIFT
        with np.errstate(divide="ignore", invalid="ignore"):
            residual = np.abs(np.exp(x) * (self.noise + error) / alpha - 1)
        residual, slope = np.where(some & ~known, residual, 0.0), np.where(some, slope, 1.0)
        status = np.where(residual < 1e-8, Status.CONVERGED, Status.MAX_STEPS)
        return Solution(
            np.where(known, np.inf, np.exp(x)),
            np.where(known, 0.0, error),
            np.where(known, self.features.limit, self.features.learned(np.exp(x))),
            np.where(known, -np.inf, F),
            slope,
            residual,
            np.where(close & ~known, Status.AMBIGUOUS_BRANCH, status),
        )

    def _free_energy(self, alpha: np.ndarray, x: np.ndarray, cost: np.ndarray) -> np.ndarray:
        some = alpha > 0
        log_noise = np.log(np.where(some, alpha, 1.0)) - np.where(some, x, 0.0)
        return (alpha * log_noise + cost) / 2

    def _stable(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every stable solution as (row of alpha, log u); where no feature is learned it is in closed form."""
        nothing = self.noise + self.features.unlearned
        first = np.log(self.features.jumps(np.inf)[0])
        with np.errstate(divide="ignore"):
            level = np.log(alpha)
        rows, found = [], []
        low = level - np.log(nothing) < first
        rows.append(np.nonzero(low)[0])
        found.append((level - np.log(nothing))[low])
        if alpha.max(initial=0.0) > 0:
            grid, curve = self._grid(first, float(alpha.max()))
            above = curve >= level[:, None]
            row, cell = np.nonzero(above[:, 1:] & ~above[:, :-1])
            ends = curve[cell] - level[row], curve[cell + 1] - level[row]
            root = regula_falsi(
                lambda x, level: self.log_alpha(x) - level,
                grid[cell],
                grid[cell + 1],
                level[row],
                ends=ends,
                tolerance=1e-14,
                precision=1e-15,
                halve_every=4,
            )
            rows.append(row)
            found.append(root.x)
            # What rises beyond the grid without noise: more samples than the last point, fewer than recovery takes.
            lost = np.setdiff1d(np.arange(len(alpha)), np.concatenate(rows))
            rows.append(lost)
            found.append(np.full(len(lost), grid[-1]))
        return np.concatenate(rows), np.concatenate(found)

    def _grid(self, first: float, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """log u from the first transition on, as far as solutions up to this n/d lie, and log n/d there.

        Both sides of each jump are in it. Between neighbours the curve is monotone, but for jumps of features so far
        down that they hardly matter. It is kept, since it serves every n/d.
        """
        if alpha <= self._reach:
            return self._points
        reach = max(2 * alpha, self._reach)
        top = max(np.log(self.features.highest(reach, self.noise)), first) + 1.0
        jumps = np.log(self.features.jumps(np.exp(top)))
        even = np.linspace(first, top, 2 + int(_PER_FOLD * (top - first)))
        grid = np.unique(np.concatenate([even[1:], jumps - _SIDE, jumps + _SIDE]))
        grid = grid[grid >= first]
        curve = self.log_alpha(grid)
        jump = np.diff(grid) < 3 * _SIDE
        inside = ~jump[1:] & ~jump[:-1]
        turns = 1 + np.nonzero(inside & ((curve[1:-1] - curve[:-2]) * (curve[2:] - curve[1:-1]) < 0))[0]
        sign = np.sign(curve[turns] - curve[turns - 1])
        extrema = golden_section(lambda x: -sign * self.log_alpha(x), grid[turns - 1], grid[turns + 1], 30).middle
        grid, order = np.unique(np.concatenate([grid, extrema]), return_index=True)
        self._reach, self._points = reach, (grid, np.concatenate([curve, self.log_alpha(extrema)])[order])
        return self._points
