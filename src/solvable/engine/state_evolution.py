"""The state evolution of Bayes-optimal learning with one overlap, through its explicit curve of fixed points.

The state evolution q -> overlap(alpha I(1 - q)) has its fixed points on the explicit curve

    alpha(qhat) = qhat / I(V),        V = mmse(qhat) = 1 - q,

so that neither fixed points nor thresholds are ever iterated for, however slow the iteration is near criticality.
A fixed point is stable where the curve rises. The free entropy whose stationary points they are is

    Phi(q, qhat) = potential(qhat) - q qhat / 2 + alpha (Psi(V) - Psi(1)).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from solvable.core.status import Status
from solvable.numerics import interpolation
from solvable.numerics.interpolation import PiecewiseChebyshev
from solvable.numerics.roots import illinois

_EDGES = np.array([-12.0, -7.0, -4.0, -2.0, -0.5, 1.0, 2.5, 4.0, 6.0, 9.0, 13.0, 18.0, 24.0, 31.0, 40.0])
_DEGREE = 10
_PROBES = np.linspace(-10.0, 38.0, 13)
_LOG_QHAT = np.linspace(-12.0, 60.0, 3601)


class OutputSide(Protocol):
    """What the state evolution needs of a channel."""

    @property
    def continuous_mass(self) -> float: ...
    @property
    def sharp(self) -> bool: ...
    @property
    def settled_entropy(self) -> float: ...
    @property
    def deepest(self) -> float: ...
    def scalar_information(self, V: np.ndarray, fineness: float = 1.0) -> tuple[np.ndarray, np.ndarray]: ...


class SignalSide(Protocol):
    """What the state evolution needs of a prior."""

    entropy: ClassVar[float]

    @property
    def dimension(self) -> float: ...
    def mmse(self, qhat: np.ndarray) -> np.ndarray: ...
    def overlap(self, qhat: np.ndarray) -> np.ndarray: ...
    def potential(self, qhat: np.ndarray) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True)
class InformationTable:
    """I and Psi of a channel over t = log(q / V), and an estimate of the relative error of I.

    Past the ends of the table log I and Psi continue linearly in t, their exact behaviour for V -> 0 and q -> 0.
    """

    log_information: PiecewiseChebyshev
    entropy: PiecewiseChebyshev
    probes: np.ndarray
    probe_error: np.ndarray

    @classmethod
    def of(cls, channel: OutputSide) -> InformationTable:
        """Tabulate a channel once; the rule with fewer nodes at a few probes tells the error."""
        edges, probes = _EDGES[channel.deepest >= _EDGES], _PROBES[channel.deepest > _PROBES]
        nodes = interpolation.chebyshev_nodes(edges, _DEGREE)
        information, entropy = channel.scalar_information(1 / (1 + np.exp(nodes.ravel())))
        floor = np.maximum(information, 1e-30).reshape(nodes.shape)
        log_information = interpolation.fit(edges, _DEGREE, np.log(floor))
        coarse = channel.scalar_information(1 / (1 + np.exp(probes)), fineness=0.7)[0]
        probe_error = np.abs(coarse / np.exp(log_information(probes)) - 1)
        entropy = interpolation.fit(edges, _DEGREE, entropy.reshape(nodes.shape))
        return cls(log_information, entropy, probes, probe_error)

    def relative_error(self, t: np.ndarray) -> np.ndarray:
        """The estimated relative error of I: what fewer nodes change, and the truncation of the table."""
        return np.interp(t, self.probes, self.probe_error) + self.log_information.error(t) + 1e-7


@dataclasses.dataclass(frozen=True)
class FixedPoints:
    """Solutions at an array of alpha: overlap, variance, conjugate, free entropy, status, and error estimate of q."""

    q: np.ndarray
    V: np.ndarray
    qhat: np.ndarray
    free_entropy: np.ndarray
    status: np.ndarray
    uncertainty: np.ndarray
    residual: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class ScalarStateEvolution:
    """Fixed points of one channel and one prior; `alpha_weak` is the exact limit of the curve at q -> 0.

    (0 when the first step already learns, infinite when no alpha makes q = 0 unstable).
    """

    table: InformationTable
    channel: OutputSide
    prior: SignalSide
    alpha_weak: float

    def alpha(self, qhat: np.ndarray) -> np.ndarray:
        """The curve of fixed points, alpha(qhat) = qhat / I."""
        return np.exp(self.log_alpha(np.log(qhat)))

    def log_alpha(self, log_qhat: np.ndarray) -> np.ndarray:
        """log alpha along the curve, as a function of log qhat."""
        return log_qhat - self.table.log_information(self._logit(np.exp(log_qhat)))

    @functools.cached_property
    def log_qhat(self) -> np.ndarray:
        """A grid on which the curve is monotone between neighbours: fine, and containing its extrema."""
        grid = _LOG_QHAT[self._mmse(np.exp(_LOG_QHAT)) > 1e-280]
        curve = self.log_alpha(grid)
        turns = 1 + np.nonzero((curve[1:-1] - curve[:-2]) * (curve[2:] - curve[1:-1]) < 0)[0]
        sign = np.sign(curve[turns] - curve[turns - 1])
        golden = (np.sqrt(5) - 1) / 2
        low, high = grid[turns - 1], grid[turns + 1]
        for _ in range(35):
            left, right = high - golden * (high - low), low + golden * (high - low)
            take_left = sign * self.log_alpha(left) > sign * self.log_alpha(right)
            low, high = np.where(take_left, low, left), np.where(take_left, right, high)
        return np.union1d(grid, (low + high) / 2)

    @functools.cached_property
    def log_curve(self) -> np.ndarray:
        """log alpha on the grid."""
        return self.log_alpha(self.log_qhat)

    @functools.cached_property
    def log_error(self) -> np.ndarray:
        """The estimated error of `log_curve`."""
        return self.table.relative_error(self._logit(np.exp(self.log_qhat)))

    @property
    def alpha_perfect(self) -> float:
        """The limit of the curve at q -> 1: perfect recovery is a stable fixed point above it.

        Without noise it is prior dimension / continuous mass (0 / 0 counts as 0: a discrete prior pinned by flats).
        """
        dimension, mass = self.prior.dimension, self.channel.continuous_mass
        if not self.channel.sharp or (mass == 0 and dimension > 0):
            return np.inf
        return dimension / mass if mass > 0 else 0.0

    def free_entropy(self, qhat: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Phi at qhat and its overlap, relative to the state that knows nothing (q = 0)."""
        signal = self.prior.potential(qhat) - self._overlap(qhat) * qhat / 2
        return signal + alpha * (self.table.entropy(self._logit(qhat)) - self._entropy_at_zero)

    def perfect_free_entropy(self, alpha: np.ndarray) -> np.ndarray:
        """Phi at q = 1, where perfect recovery is stable: infinite, or minus the entropies of a discrete problem.

        Labels that stay random where z is known (flipped ones) keep the entropy of that, E[log P(y|z)].
        """
        if self.channel.continuous_mass > 0:
            return np.full(np.shape(alpha), np.inf)
        return -self.prior.entropy + alpha * (self.channel.settled_entropy - self._entropy_at_zero)

    def uninformed(self, alpha: np.ndarray) -> FixedPoints:
        """Where the iteration started from nothing ends: the first rise of the curve through alpha."""
        alpha = np.asarray(alpha, float)
        with np.errstate(divide="ignore"):
            above = self.log_curve >= np.log(alpha)[:, None]
        qhat = np.where(alpha <= self.alpha_weak, 0.0, np.inf)
        climbs = above.any(1) & (alpha > self.alpha_weak)
        qhat[climbs] = self._crossing(np.argmax(above[climbs], 1), alpha[climbs])
        return self._points(qhat, alpha)

    def optimal(self, alpha: np.ndarray) -> FixedPoints:
        """The fixed point of largest free entropy: what no learner can beat."""
        alpha = np.asarray(alpha, float)
        row, qhat = self._stable(alpha)
        value = np.zeros(qhat.shape)
        inner, perfect = np.isfinite(qhat) & (qhat > 0), np.isinf(qhat)
        value[inner] = self.free_entropy(qhat[inner], alpha[row[inner]])
        value[perfect] = self.perfect_free_entropy(alpha[row[perfect]])
        order = np.lexsort((value, row))
        last = np.searchsorted(row[order], np.arange(len(alpha)), side="right") - 1
        best, runner_up = order[last], order[np.maximum(last - 1, 0)]
        with np.errstate(invalid="ignore"):
            close = (row[runner_up] == row[best]) & (last > 0) & (np.abs(value[best] - value[runner_up]) < 1e-8)
        points = self._points(qhat[best], alpha)
        return dataclasses.replace(points, status=np.where(close, Status.AMBIGUOUS_BRANCH, points.status))

    def trajectory(self, alpha: float, q: float, steps: int) -> np.ndarray:
        """The overlaps q_0, q_1, ... of the iteration q -> overlap(alpha I), step by step."""
        path = [q]
        for _ in range(steps):
            information = self.channel.scalar_information(np.array([max(1 - path[-1], 1e-300)]))[0][0]
            path.append(float(self._overlap(np.array(alpha * information))))
        return np.array(path)

    @functools.cached_property
    def _entropy_at_zero(self) -> float:
        return float(self.channel.scalar_information(np.array([1.0]))[1][0])

    def _logit(self, qhat: np.ndarray) -> np.ndarray:
        """t = log(q / V) at qhat, bounded where V underflows."""
        return np.log(np.maximum(self._overlap(qhat), 1e-300)) - np.log(np.maximum(self._mmse(qhat), 1e-300))

    # Taking a method off an equinox module costs more than the method itself: do it once.
    @functools.cached_property
    def _mmse(self) -> Callable[..., np.ndarray]:
        return self.prior.mmse

    @functools.cached_property
    def _overlap(self) -> Callable[..., np.ndarray]:
        return self.prior.overlap

    def _crossing(self, index: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """qhat where the curve crosses alpha in the grid cells that end at `index`."""
        level, grid = np.log(alpha), self.log_qhat
        # Below the grid the curve is alpha_weak (1 + O(q)) or a power of q; continue it there.
        low = np.where(index == 0, grid[0] - 60.0, grid[np.maximum(index - 1, 0)])
        high = grid[index]
        if not index.size:
            return high
        # Where the continuation does not cross, the fixed point lies below every q that matters.
        crosses = self.log_alpha(low) < level
        root = illinois(lambda x: self.log_alpha(x) - level, np.where(crosses, low, high - 1e-9), high)
        return np.exp(np.where(crosses, root, low))

    def _stable(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every stable fixed point as (row of alpha, qhat): 0, the rises of the curve, infinity for q = 1."""
        with np.errstate(divide="ignore"):
            above = self.log_curve >= np.log(alpha)[:, None]
        rises = above.copy()
        rises[:, 1:] &= ~above[:, :-1]
        rises[:, 0] &= alpha > self.alpha_weak
        row, index = np.nonzero(rises)
        nothing = np.nonzero(alpha <= self.alpha_weak)[0]
        # Where nothing else is stable the curve has run off the grid towards q = 1.
        lost = ~rises.any(1) & (alpha > self.alpha_weak)
        perfect = np.nonzero((alpha > self.alpha_perfect) | lost)[0]
        qhat = [np.zeros(len(nothing)), self._crossing(index, alpha[row]), np.full(len(perfect), np.inf)]
        return np.concatenate([nothing, row, perfect]), np.concatenate(qhat)

    def _points(self, qhat: np.ndarray, alpha: np.ndarray) -> FixedPoints:
        inner = (qhat > 0) & np.isfinite(qhat)
        safe = np.where(inner, qhat, 1.0)
        q = np.where(inner, self._overlap(safe), np.where(qhat > 0, 1.0, 0.0))
        V = np.where(inner, self._mmse(safe), 1 - q)
        perfect = self.perfect_free_entropy(alpha)
        free_entropy = np.where(inner, self.free_entropy(safe, alpha), np.where(qhat > 0, perfect, 0.0))
        with np.errstate(divide="ignore"):
            residual = np.where(inner & (q > 1e-6), np.abs(self.log_alpha(np.log(safe)) - np.log(alpha)), 0.0)
        status = np.where(residual < 1e-8, Status.CONVERGED, Status.MAX_STEPS)
        return FixedPoints(q, V, qhat, free_entropy, status, self._overlap_error(safe, inner), residual)

    def _overlap_error(self, qhat: np.ndarray, inner: np.ndarray) -> np.ndarray:
        """|dq| = |dq / d log alpha| |d log I| along the curve."""
        step = 1e-3
        x = np.log(qhat)
        dq = self._mmse(np.exp(x - step)) - self._mmse(np.exp(x + step))
        d_log_alpha = self.log_alpha(x + step) - self.log_alpha(x - step)
        slope = np.abs(dq / np.where(np.abs(d_log_alpha) > 1e-9, d_log_alpha, 1e-9))
        return np.where(inner, slope * self.table.relative_error(self._logit(qhat)), 0.0)
