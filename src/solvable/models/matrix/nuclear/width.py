r"""Nuclear-norm learning with a student of limited width: a matrix S of rank at most r = share x d.

The equations are those of the unlimited student, with $R = A^* + \delta Z$ and a denoiser that keeps only the largest
r eigenvalues of R: f(x) = x - theta for x > c, 0 below, where c is the larger of theta and q, the eigenvalue with mass
`share` above it. With $D_f = 2 \int f h \mu_R$ and theta = penalty x epsilon,

    1 / epsilon = 2 (2 alpha - D_f),                  mse = 2 alpha delta^2 - Delta / 2,
    mse = E A*^2 - 2 E x f + E f^2 + 2 delta^2 D_f = mmse(delta^2) + E (f - f*)^2,

with f* = x - 2 delta^2 h the best denoiser: in the second form nothing cancels.

Below r = rank of the unlimited solution the problem is not convex and these equations are an ansatz. The law of R is
that of free probability also where the law of A* is a list of d eigenvalues: each is an atom of mass 1/d.

For given delta, theta is unique. Cut at a fixed place D_f = a - b theta with $a = 2\int_{x>c} x h \mu_R$ and
$b = 2 \int_{x>c} h \mu_R$, so that theta is the positive root of b theta^2 + (2 alpha - a) theta = penalty / 2; where
that exceeds q the width is no limit. One equation in delta is left. It is searched for all its roots: close to where a
narrow student just interpolates there can be several. Reported is the one that message passing reaches from a zero
estimate, delta^2 = (E A*^2 + Delta/2) / (2 alpha) at the start, and the point is marked as ambiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.status import Status
from solvable.models.matrix.nuclear.few_samples import FEW, FewSamples, few_samples
from solvable.numerics.roots import crossing
from solvable.spectra import Law
from solvable.spectra.convolution import NODES
from solvable.spectra.thresholded import overlap_and_square
from solvable.spectra.upper_part import Moments, UpperPart

_PER_DECADE = 20
"""Values of delta in which roots are looked for, per factor of ten."""
_SMALLEST = 1e-6
"""The smallest delta, over the root mean square of the eigenvalues: errors below its square are rounding."""
_DOUBLINGS = 40
_RESIDUAL = 1e-7
_COARSE_NODES = 3 * NODES // 4
_SHIFT = 1e-4
"""The change of log delta by which derivatives are taken."""
_ROUNDING = 1e-13


FIGURES = ("estimation_error", "fit", "reg", "rank", "overlap", "square")
"""What is found at each alpha, with a numerical error."""


class _Point(NamedTuple):
    """One state: `excess` is mse + Delta/2 - 2 alpha delta^2, which vanishes at the solution; `slack` 2 alpha - D_f."""

    delta: float
    theta: float
    excess: float
    error: float
    slack: float
    kept: Moments


class WidthTheory:
    """The student of limited rank, for many widths, penalties and noises on one law, which share the evaluations of its
    convolution."""

    def __init__(self, law: Law):
        self.law = law
        self.second_moment = float(law.second_moment)
        self._smallest = _SMALLEST * math.sqrt(self.second_moment) if self.second_moment > 0 else _SMALLEST
        self._parts: dict[float, UpperPart] = {}

    def solve(self, noise: float, penalty: float, share: float, alpha: np.ndarray) -> dict[str, np.ndarray]:
        """The student of rank at most share x d, for an array of alpha; share = 1 is no limit.

        Keys: delta, theta, epsilon (infinite where the student interpolates), estimation_error, fit (sum of squared
        residuals over d^2), reg (penalty x mean eigenvalue), rank (share of positive eigenvalues), overlap (with A*),
        square (of the student; both over d), residual, status; and the numerical errors of the figures, each under
        its name with `_uncertainty`.
        """
        if not 0 < share <= 1:
            raise bad_parameter("share", share, "a number of hidden units per dimension, above 0 and at most 1")
        if not 0 <= penalty < np.inf:
            raise bad_parameter("penalty", penalty, "zero or a positive number")
        lost = self._lost(share)
        rows = [self._row(noise, penalty, share, float(a), lost) for a in np.ravel(alpha)]
        return {key: np.array([row[key] for row in rows]) for key in rows[0]} if rows else {}

    def _lost(self, share: float) -> float:
        """The least error of a positive matrix of that rank: the square of all other eigenvalues of A*."""
        part = self._part(self._smallest, keep=True)
        cut = part.cut_of_mass(share)
        positive = crossing(lambda cut: part.at(cut)[0], 0.0, float(len(part.edges)))
        lost = part.at(max(cut, positive))[1].missed
        return lost if lost > 1e-9 * self.second_moment else 0.0

    def _row(self, noise: float, penalty: float, share: float, alpha: float, lost: float) -> dict[str, float]:

        def figures(point: _Point) -> np.ndarray:
            return _figures(point, penalty, self.second_moment)

        if alpha == 0:
            nothing = Moments(0.0, 0.0, 0.0, 0.0, 0.0, self.second_moment)
            point = _Point(math.inf, math.inf, 0.0, self.second_moment, 0.0, nothing)
            return _outputs(point, figures(point), noise, Status.CONVERGED, np.zeros(len(FIGURES)))
        if alpha < FEW and self.second_moment + noise > 0:
            limit = few_samples(self.law, noise, penalty, np.array([alpha]))
            if limit.rank[0] < share:  # the width is no limit
                return _few(limit, penalty)

        def at(delta: float, keep: bool = False) -> _Point:
            return _state(self._part(delta, keep), noise, penalty, share, alpha)

        def coarse(delta: float) -> _Point:
            return _state(UpperPart(self.law, delta**2, _COARSE_NODES), noise, penalty, share, alpha)

        # The error is at least that of the best matrix of this rank: no root lies below.
        lowest = max(math.sqrt((0.999 * lost + noise / 2) / (2 * alpha)), self._smallest)
        start = max(math.sqrt((self.second_moment + noise / 2) / (2 * alpha)), 2 * lowest)
        points = [at(lowest), *(at(delta, keep=True) for delta in _grid(lowest, 4 * start))]
        while points[-1].excess > 0:
            if points[-1].delta > start * 2.0**_DOUBLINGS:
                last = points[-1]
                return _outputs(last, figures(last), noise, Status.DIVERGED, np.full(len(FIGURES), np.inf))
            points.append(at(2 * points[-1].delta, keep=True))
        falls = [i for i in range(len(points) - 1) if points[i].excess > 0 >= points[i + 1].excess]
        # Where the excess is positive the iteration moves up, elsewhere down: to the root on that side of the start.
        at_start = next(i for i, point in enumerate(points) if point.delta >= start)
        upwards = points[at_start].excess > 0
        reached = [i for i in falls if i >= at_start][:1] if upwards else [i for i in falls if i < at_start][-1:]
        if reached:
            bracket = math.log(points[reached[0]].delta), math.log(points[reached[0] + 1].delta)
            point = at(math.exp(crossing(lambda log: -at(math.exp(log)).excess, *bracket, tolerance=1e-12)))
        elif penalty == 0 and noise == 0:  # the excess is negative down to the smallest delta: recovery
            point = points[0]._replace(delta=0.0, error=0.0, excess=0.0)
        else:
            point = points[0]
        several = len(falls) + (points[0].excess <= 0) > 1
        exact = np.zeros(len(FIGURES))
        errors = _errors(at, coarse, figures, point, noise, alpha) if point.delta > 0 else exact
        status = Status.AMBIGUOUS_BRANCH if several else Status.CONVERGED
        return _outputs(point, figures(point), noise, status, errors)

    def _part(self, delta: float, keep: bool = False) -> UpperPart:
        if delta in self._parts:
            return self._parts[delta]
        part = UpperPart(self.law, delta**2)
        if keep:
            self._parts[delta] = part
        return part


def _grid(low: float, high: float) -> list[float]:
    """The values between `low` and `high` of a list that is the same for every alpha, and one beyond."""
    first, last = math.floor(math.log10(low) * _PER_DECADE) + 1, math.ceil(math.log10(high) * _PER_DECADE)
    return [10.0 ** (i / _PER_DECADE) for i in range(first, last + 1)]


def _state(part: UpperPart, noise: float, penalty: float, share: float, alpha: float) -> _Point:
    """theta at this delta, and how far the equation of delta is from being met."""
    theta, kept = _limited(part, share, alpha, penalty) or _unlimited(part, alpha, penalty)
    divergence = 2 * (kept.cross - theta * kept.hilbert)
    # Above the cut f - f* = 2 D h - theta, below it is -f*.
    above = 4 * part.D**2 * kept.square - 4 * part.D * theta * kept.hilbert + theta**2 * kept.mass
    error = part.mmse + above + kept.missed
    slack = penalty / (2 * theta) if theta > 0 else 2 * alpha - divergence
    delta = math.sqrt(part.D)
    return _Point(delta, theta, error + noise / 2 - 2 * alpha * part.D, error, slack, kept)


def _threshold(kept: Moments, alpha: float, penalty: float) -> float:
    """The positive root theta of b theta^2 + (2 alpha - a) theta = penalty / 2, or 0 in the limit of no penalty."""
    b, c = 2 * kept.hilbert, 2 * alpha - 2 * kept.cross
    root = math.sqrt(max(c**2 + 2 * b * penalty, 0.0))
    if c > 0:
        return penalty / (c + root)
    return (root - c) / (2 * b) if b > 0 else math.inf


def _limited(part: UpperPart, share: float, alpha: float, penalty: float) -> tuple[float, Moments] | None:
    """theta where only the largest eigenvalues are kept, or None where that is no limit."""
    if share == 1:
        return None
    q, kept = part.at(part.cut_of_mass(share))
    theta = _threshold(kept, alpha, penalty)
    return (theta, kept) if theta <= q else None


def _unlimited(part: UpperPart, alpha: float, penalty: float) -> tuple[float, Moments]:
    """theta where all eigenvalues above it are kept: 2 (2 alpha - D_f(theta)) - penalty / theta, rising, vanishes."""

    def excess(theta: float, kept: Moments) -> float:
        if theta <= 0:
            return -math.inf
        return 2 * (2 * alpha - 2 * (kept.cross - theta * kept.hilbert)) - penalty / theta

    # Down from the largest eigenvalue: the ends of the intervals, with the moments of what lies above.
    for k in reversed(range(len(part.edges))):
        low, high = part.edges[k]
        higher = part.beyond(k + 1)
        if high <= 0 or excess(high, higher) < 0:
            return _threshold(higher, alpha, penalty), higher  # theta lies in the gap above this interval
        if low <= 0 or excess(low, part.beyond(k)) < 0:
            bottom = crossing(lambda cut: part.at(cut)[0], float(k), k + 1.0)
            positive = part.at(bottom)[1]
            if low <= 0 and penalty == 0 and 2 * alpha >= 2 * positive.cross:
                return 0.0, positive
            return part.at(crossing(lambda cut: excess(*part.at(cut)), bottom, k + 1.0))
    everything = part.beyond(0)
    return _threshold(everything, alpha, penalty), everything


def _figures(point: _Point, penalty: float, second_moment: float) -> np.ndarray:
    """The `FIGURES` of a point."""
    fit = 0.0 if point.slack == 0 else (point.delta * point.slack) ** 2
    kept, theta = point.kept, point.theta
    if not kept.mass:
        return np.array([point.error, fit, 0.0, 0.0, 0.0, 0.0])
    trace, divergence = kept.first - theta * kept.mass, 2 * (kept.cross - theta * kept.hilbert)
    lowered = theta if point.delta else 0.0  # by nothing where A* is recovered
    similar = overlap_and_square(second_moment, point.error, point.delta**2, divergence, lowered, trace, kept.mass)
    return np.array([point.error, fit, penalty * trace, kept.mass, *similar])


def _errors(
    at: Callable[[float], _Point],
    coarse: Callable[[float], _Point],
    figures: Callable[[_Point], np.ndarray],
    point: _Point,
    noise: float,
    alpha: float,
) -> np.ndarray:
    """The numerical errors of the figures: what fewer nodes change, there and by moving the root in delta."""
    low, high, other = at(point.delta * math.exp(-_SHIFT)), at(point.delta * math.exp(_SHIFT)), coarse(point.delta)
    slope = abs(high.excess - low.excess) / (2 * _SHIFT)
    size = abs(point.error) + noise / 2 + 2 * alpha * point.delta**2
    wrong = abs(other.excess - point.excess) + abs(point.excess) + _ROUNDING * size
    move = wrong / slope if slope > 0 else math.inf
    here, there = figures(point), figures(other)
    rate = np.abs(figures(high) - figures(low)) / (2 * _SHIFT)
    return np.abs(there - here) + np.where(rate > 0, rate * move, 0.0) + _ROUNDING * np.abs(here)


def _few(limit: FewSamples, penalty: float) -> dict[str, float]:
    """The outputs in the limit of few samples."""
    D, theta, b, rank, K, mse, overlap, square, error, share, tilt = (float(part[0]) for part in limit)
    delta = math.sqrt(D)
    kept = Moments(rank, K + theta * rank, 0.0, 0.0, 0.0, 0.0)
    figures = np.array([mse, (delta * b) ** 2, penalty * K, rank, overlap, square])
    errors = share * np.abs(figures)
    errors[0], errors[4] = error, errors[4] + tilt
    return _outputs(_Point(delta, theta, 0.0, mse, b, kept), figures, 0.0, Status.CONVERGED, errors)


def _outputs(point: _Point, figures: np.ndarray, noise: float, status: Status, errors: np.ndarray) -> dict[str, float]:
    residual = abs(point.excess) / max(abs(point.error) + noise / 2, 1e-300)
    if status == Status.CONVERGED and not residual < _RESIDUAL:
        status = Status.MAX_STEPS
    found = {
        "delta": point.delta,
        "theta": point.theta,
        "epsilon": 1 / (2 * point.slack) if point.slack > 0 else math.inf,
        "residual": residual,
        "status": int(status),
    }
    found |= dict(zip(FIGURES, figures.tolist(), strict=True))
    return found | {f"{name}_uncertainty": float(value) for name, value in zip(FIGURES, errors, strict=True)}
