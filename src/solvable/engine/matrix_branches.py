"""The fixed points of one computation: each continued from those that the same computation has found.

Continuing a curve from its neighbours is cheap, but leaves rounding behind that depends on which neighbours there were.
So a computation (a grid of alpha, a search for thresholds) has a memory of its own, empty when it starts.
"""

from __future__ import annotations

import dataclasses
import threading

import numpy as np

from solvable.core.status import Status
from solvable.engine.matrix_climb import climb
from solvable.engine.matrix_output import MatrixOutput
from solvable.engine.matrix_points import Point
from solvable.numerics.cache import Kept
from solvable.numerics.subspaces import complement
from solvable.numerics.symmetric import one_minus_exp

_INFORMED = 1e-3
"""The V from which informed starts set out."""
_MOST_CHILDREN = 64


class Branches:
    """Fixed points at the alphas asked for so far, with those of the channels in which some directions are known.

    `lock` is for a computation that threads share: the order of its questions is part of its result.
    """

    def __init__(self, output: MatrixOutput):
        self.output = output
        self.lock = threading.RLock()
        self._children = Kept(lambda directions: Branches(output.frozen(directions)), _MOST_CHILDREN)
        self._climbed: dict[float, Point] = {}
        self._largest: dict[float, Point] = {}
        self._optimal: dict[float, Point] = {}

    def uninformed_point(self, alpha: float) -> Point:
        """The uninformed fixed point at one alpha, continued from the nearest smaller alpha already solved."""
        alpha = float(alpha)
        if alpha not in self._climbed:
            below = [p for p in self._climbed.values() if p.alpha < alpha and p.status == Status.CONVERGED]
            before = max(below, key=lambda p: p.alpha, default=None)
            self._climbed[alpha] = self.climb(alpha, before)
        return self._climbed[alpha]

    def optimal_point(self, alpha: float) -> Point:
        """The fixed point of largest free entropy at one alpha, among those that different starts lead to."""
        alpha = float(alpha)
        if alpha not in self._optimal:
            self._optimal[alpha] = self._best(alpha)
        return self._optimal[alpha]

    def largest_point(self, alpha: float) -> Point:
        """The fixed point below everything known, continued from the nearest larger alpha already solved."""
        alpha = float(alpha)
        if alpha not in self._largest:
            above = [p for p in self._largest.values() if p.alpha > alpha and p.status == Status.CONVERGED]
            start = min(above, key=lambda p: p.alpha, default=None)
            if start is None or start.exact is not None:
                start = _known(np.eye(self.output.projections), alpha)
            self._largest[alpha] = self.climb(alpha, start)
        return self._largest[alpha]

    def climb(self, alpha: float, start: Point | None = None, within: np.ndarray | None = None) -> Point:
        """Follow the iteration from `start` (nothing, if None) to a stable fixed point.

        `within` (r x w) restricts learning to a subspace: what the labels say of other directions is ignored.
        """
        r = self.output.projections
        within = np.eye(r) if within is None else within
        if alpha <= 0:
            return Point(alpha, np.zeros((r, r)), np.zeros((r, 0)), np.zeros((0, 0)), 0.0, 0.0)
        if start is not None and start.exact is not None and self.output.pins(start.exact, alpha):
            return self._exactly(start.exact, alpha, start, within)
        end = climb(self.output, alpha, start, within)
        return end if isinstance(end, Point) else self._exactly(end, alpha, None, within)

    def _best(self, alpha: float) -> Point:
        uninformed = self.uninformed_point(alpha)
        found = [uninformed]
        subspaces = self.output.subspaces
        for U in subspaces:
            if self.output.pins(U, alpha):
                found.append(self._exactly(U, alpha, None, np.eye(self.output.projections), optimal=True))
        # Exact recovery has an infinite free entropy: where it is possible the rest need not be tried.
        if max(point.rate for point in found) <= 0:
            largest = self.largest_point(alpha)
            if not _same(uninformed, largest):
                found += [largest, *(self.climb(alpha, _known(U, alpha)) for U in subspaces[:-1])]
        found = [p for p in found if p.status == Status.CONVERGED] or found
        best = max(found, key=lambda p: (round(p.rate, 9), p.value))
        for other in found:
            close = abs(other.value - best.value) <= 1e-8 + other.value_error + best.value_error
            if close and abs(other.rate - best.rate) < 1e-9 and not _same(other, best):
                return dataclasses.replace(best, status=Status.AMBIGUOUS_BRANCH)
        return best

    def _exactly(
        self, exact: np.ndarray, alpha: float, start: Point | None, within: np.ndarray, optimal: bool = False
    ) -> Point:
        """The point with these directions known exactly and the others where that knowledge leads them."""
        r, rest = self.output.projections, complement(exact)
        M = exact @ exact.T
        rate = (alpha * self.output.mass(exact) - exact.shape[1]) / 2
        empty = np.zeros((r, 0)), np.zeros((0, 0))
        remaining = _inside(rest, within)
        if not remaining.shape[1]:
            return Point(alpha, M, *empty, 0.0, 0.0, rate=rate, exact=exact)
        child = self._children(exact)
        if optimal:
            inner = child.optimal_point(alpha)
        elif remaining.shape[1] == rest.shape[1]:
            inner = child.uninformed_point(alpha)
        else:
            inner = child.climb(alpha, start.inner if start is not None else None, rest.T @ remaining)
        return Point(
            alpha,
            M + rest @ inner.M @ rest.T,
            *empty,
            inner.value,
            inner.value_error,
            inner.status,
            inner.residual,
            inner.uncertainty,
            inner.radius,
            inner.speed,
            inner.evaluations,
            rate + inner.rate,
            exact,
            inner,
        )


def _known(U: np.ndarray, alpha: float) -> Point:
    """A start that knows the directions U, up to V = 1e-3, and nothing else."""
    L = -np.log(_INFORMED) * np.eye(U.shape[1])
    return Point(alpha, U @ one_minus_exp(L) @ U.T, U, L, 0.0, 0.0)


def _inside(rest: np.ndarray, within: np.ndarray) -> np.ndarray:
    """The part (r x k) of the span of `rest` that lies in the span of `within`."""
    if within.shape[0] == within.shape[1]:
        return rest
    left, size, _ = np.linalg.svd(rest.T @ within, full_matrices=False)
    return rest @ left[:, size > 1 - 1e-6]


def _same(a: Point, b: Point) -> bool:
    return bool(np.abs(a.M - b.M).max() <= 1e-5 + a.uncertainty + b.uncertainty)
