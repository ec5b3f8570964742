"""The solver for one overlap: the curve of fixed points is explicit, and nothing is iterated.

With `gain` samples for each unknown, state evolution q -> overlap(gain I(1 - q)) has its fixed points on the curve

    gain(qhat) = qhat / I(V),        V = mmse(qhat) = 1 - q,

so that neither fixed points nor thresholds are ever iterated for, however slow the iteration is near criticality.
A fixed point is stable where the curve rises. The free entropy whose stationary points they are is

    Phi(q, qhat) = potential(qhat) - q qhat / 2 + gain (Psi(V) - Psi(1)).

As the gain grows, the iteration from nothing climbs the curve and jumps wherever the curve falls below an earlier
maximum (a spinodal). Between the gain where the free entropy already prefers the far side and that spinodal, learning
is possible but the iteration does not find it: a hard phase. [barbier2019optimal]
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from solvable.channels import Channel
from solvable.channels.exponents import weak_recovery
from solvable.core.status import Status
from solvable.engine.outputs.explicit import ExplicitOutput, Information
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.sides import BayesSignal
from solvable.engine.solvers.base import FixedPoints, Solver, Thresholds
from solvable.numerics import interpolation
from solvable.numerics.errors import COARSER
from solvable.numerics.roots import golden_section, halving, illinois

_DROP = 1e-6
"""The curve must fall by this much (in log gain), and by well more than its error, for a jump to count."""
_EDGES = np.array([-12.0, -7.0, -4.0, -2.0, -0.5, 1.0, 2.5, 4.0, 6.0, 9.0, 13.0, 18.0, 24.0, 31.0, 40.0])
_DEGREE = 10
_PROBES = [0, 3, 7, 10]
"""The nodes of each panel at which the error is estimated. It changes by orders of magnitude within a unit of t, where
one rule takes over from another, and crosses zero: probes are dense, and of the four around t the largest counts."""
_LOG_QHAT = np.linspace(-12.0, 60.0, 3601)


class InformationTable(Information):
    """I and Psi of a channel over t = log(q / V), tabulated once, and an estimate of the relative error of I.

    The rule with fewer nodes at a few probes tells the error. Past the ends of the table log I and Psi continue
    linearly in t, their exact behaviour for V -> 0 and q -> 0.
    """

    def __init__(self, channel: Channel):
        self.channel = channel
        edges = _EDGES[channel.deepest >= _EDGES]
        nodes = interpolation.chebyshev_nodes(edges, _DEGREE)
        information, entropy = _information(channel, 1 / (1 + np.exp(nodes.ravel())))
        floor = np.maximum(information, 1e-30).reshape(nodes.shape)
        self._log_information = interpolation.fit(edges, _DEGREE, np.log(floor))
        # Nodes run downwards in each panel.
        self._probes, fine = nodes[:, _PROBES[::-1]].ravel(), floor[:, _PROBES[::-1]].ravel()
        coarse = _information(channel, 1 / (1 + np.exp(self._probes)), fineness=COARSER)[0]
        self._probe_error = np.abs(coarse / fine - 1)
        self._entropy = interpolation.fit(edges, _DEGREE, entropy.reshape(nodes.shape))

    @functools.cached_property
    def gain_weak(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return weak_recovery(self.channel)

    @property
    def sharp(self) -> bool:
        return self.channel.sharp

    @functools.cached_property
    def pinned_mass(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.channel.pinned_mass(np.eye(1))

    @functools.cached_property
    def entropy_at_zero(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return float(_information(self.channel, np.array([1.0]))[1][0])

    @property
    def settled_entropy(self) -> float:
        return self.channel.settled_entropy

    def log_information(self, t: np.ndarray) -> np.ndarray:
        return self._log_information(t)

    def entropy(self, t: np.ndarray) -> np.ndarray:
        return self._entropy(t)

    def relative_error(self, t: np.ndarray) -> np.ndarray:
        """What fewer nodes change, and the truncation of the table."""
        around = np.searchsorted(self._probes, t)[..., None] + np.arange(-2, 2)
        quadrature = self._probe_error[np.clip(around, 0, len(self._probes) - 1)].max(-1)
        return quadrature + self._log_information.error(t) + 1e-7


class Curve(Solver):
    """Fixed points of an output of one projection and weights of one direction."""

    def __init__(self, output: PosteriorOutput | ExplicitOutput, signal: BayesSignal):
        self.signal = signal
        self.table = output if isinstance(output, ExplicitOutput) else _table(output.channel)
        self.gain_weak = self.table.gain_weak

    def log_gain(self, log_qhat: np.ndarray) -> np.ndarray:
        """log gain along the curve, as a function of log qhat."""
        return log_qhat - self.table.log_information(self._logit(np.exp(log_qhat)))

    @functools.cached_property
    def log_qhat(self) -> np.ndarray:
        """A grid on which the curve is monotone between neighbours: fine, and containing its extrema."""
        grid = _LOG_QHAT[self.signal.mmse(np.exp(_LOG_QHAT)) > 1e-280]
        curve = self.log_gain(grid)
        turns = 1 + np.nonzero((curve[1:-1] - curve[:-2]) * (curve[2:] - curve[1:-1]) < 0)[0]
        sign = np.sign(curve[turns] - curve[turns - 1])
        found = golden_section(lambda x: -sign * self.log_gain(x), grid[turns - 1], grid[turns + 1], 35)
        return np.union1d(grid, found.middle)

    @functools.cached_property
    def log_curve(self) -> np.ndarray:
        """log gain on the grid."""
        return self.log_gain(self.log_qhat)

    @functools.cached_property
    def log_error(self) -> np.ndarray:
        """The estimated error of `log_curve`."""
        return self.table.relative_error(self._logit(np.exp(self.log_qhat)))

    @property
    def gain_perfect(self) -> float:
        """The limit of the curve at q -> 1: perfect recovery is a stable fixed point above it.

        Without noise it is the dimension of a weight over the mass of labels that pin z down (0 / 0 counts as 0:
        discrete weights pinned by flats).
        """
        if not self.table.sharp:
            return np.inf
        dimension, mass = self.signal.dimension, self.table.pinned_mass
        if mass == 0 and dimension > 0:
            return np.inf
        return dimension / mass if mass > 0 else 0.0

    def free_entropy(self, qhat: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """Phi at qhat and its overlap, relative to the state that knows nothing (q = 0)."""
        signal = self.signal.potential(qhat) - self.signal.overlap(qhat) * qhat / 2
        return signal + gain * (self.table.entropy(self._logit(qhat)) - self.table.entropy_at_zero)

    def perfect_free_entropy(self, gain: np.ndarray) -> np.ndarray:
        """Phi at q = 1, where perfect recovery is stable: infinite, or minus the entropies of a discrete problem.

        Labels that stay random where z is known (flipped ones) keep the entropy of that, E[log P(y|z)].
        """
        if self.table.pinned_mass > 0:
            return np.full(np.shape(gain), np.inf)
        return -self.signal.entropy + gain * (self.table.settled_entropy - self.table.entropy_at_zero)

    def uninformed(self, gain: np.ndarray) -> FixedPoints:
        """Where the iteration started from nothing ends: the first rise of the curve through gain."""
        gain = np.asarray(gain, float)
        with np.errstate(divide="ignore"):
            above = self.log_curve >= np.log(gain)[:, None]
        qhat = np.where(gain <= self.gain_weak, 0.0, np.inf)
        climbs = above.any(1) & (gain > self.gain_weak)
        qhat[climbs] = self._crossing(np.argmax(above[climbs], 1), gain[climbs])
        return self._points(qhat, gain)

    def optimal(self, gain: np.ndarray) -> FixedPoints:
        """The fixed point of largest free entropy: what no learner can beat."""
        gain = np.asarray(gain, float)
        row, qhat = self._stable(gain)
        value = np.zeros(qhat.shape)
        inner, perfect = np.isfinite(qhat) & (qhat > 0), np.isinf(qhat)
        value[inner] = self.free_entropy(qhat[inner], gain[row[inner]])
        value[perfect] = self.perfect_free_entropy(gain[row[perfect]])
        order = np.lexsort((value, row))
        last = np.searchsorted(row[order], np.arange(len(gain)), side="right") - 1
        best, runner_up = order[last], order[np.maximum(last - 1, 0)]
        with np.errstate(invalid="ignore"):
            close = (row[runner_up] == row[best]) & (last > 0) & (np.abs(value[best] - value[runner_up]) < 1e-8)
        points = self._points(qhat[best], gain)
        return dataclasses.replace(points, status=np.where(close, Status.AMBIGUOUS_BRANCH, points.status))

    @functools.cached_property
    def _thresholds(self) -> Thresholds:
        weak = self.gain_weak
        algorithmic = _last_jump(self)
        if algorithmic is None:
            return Thresholds(weak_recovery=weak, algorithmic=weak, information_theoretic=weak)
        start = _hard_phase_start(self, algorithmic)
        return Thresholds(weak_recovery=weak, algorithmic=algorithmic, information_theoretic=start)

    def thresholds(self) -> Thresholds:
        """weak_recovery, algorithmic and information_theoretic, each a gain (0: any, infinite: none)."""
        return Thresholds(self._thresholds)

    def _logit(self, qhat: np.ndarray) -> np.ndarray:
        """t = log(q / V) at qhat, bounded where V underflows."""
        return np.log(np.maximum(self.signal.overlap(qhat), 1e-300)) - np.log(
            np.maximum(self.signal.mmse(qhat), 1e-300)
        )

    def _crossing(self, index: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """qhat where the curve crosses gain in the grid cells that end at `index`."""
        level, grid = np.log(gain), self.log_qhat
        # Below the grid the curve is gain_weak (1 + O(q)) or a power of q; continue it there.
        low = np.where(index == 0, grid[0] - 60.0, grid[np.maximum(index - 1, 0)])
        high = grid[index]
        if not index.size:
            return high
        # Where the continuation does not cross, the fixed point lies below every q that matters.
        crosses = self.log_gain(low) < level
        root = illinois(lambda x: self.log_gain(x) - level, np.where(crosses, low, high - 1e-9), high)
        return np.exp(np.where(crosses, root, low))

    def _stable(self, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every stable fixed point as (row of gain, qhat): 0, the rises of the curve, infinity for q = 1."""
        with np.errstate(divide="ignore"):
            above = self.log_curve >= np.log(gain)[:, None]
        rises = above.copy()
        rises[:, 1:] &= ~above[:, :-1]
        rises[:, 0] &= gain > self.gain_weak
        row, index = np.nonzero(rises)
        nothing = np.nonzero(gain <= self.gain_weak)[0]
        # Where nothing else is stable the curve has run off the grid towards q = 1.
        lost = ~rises.any(1) & (gain > self.gain_weak)
        perfect = np.nonzero((gain > self.gain_perfect) | lost)[0]
        qhat = [np.zeros(len(nothing)), self._crossing(index, gain[row]), np.full(len(perfect), np.inf)]
        return np.concatenate([nothing, row, perfect]), np.concatenate(qhat)

    def _points(self, qhat: np.ndarray, gain: np.ndarray) -> FixedPoints:
        inner = (qhat > 0) & np.isfinite(qhat)
        safe = np.where(inner, qhat, 1.0)
        q = np.where(inner, self.signal.overlap(safe), np.where(qhat > 0, 1.0, 0.0))
        V = np.where(inner, self.signal.mmse(safe), 1 - q)
        perfect = self.perfect_free_entropy(gain)
        free_entropy = np.where(inner, self.free_entropy(safe, gain), np.where(qhat > 0, perfect, 0.0))
        with np.errstate(divide="ignore"):
            residual = np.where(inner & (q > 1e-6), np.abs(self.log_gain(np.log(safe)) - np.log(gain)), 0.0)
        status = np.where(residual < 1e-8, Status.CONVERGED, Status.MAX_STEPS)
        error = self._overlap_error(safe, inner)
        M, variance, field = (part[:, None, None] for part in (q, V, qhat))
        return FixedPoints(M, variance, field, free_entropy, status, error, residual, np.zeros(len(q), int))

    def _overlap_error(self, qhat: np.ndarray, inner: np.ndarray) -> np.ndarray:
        """|dq| = |dq / d log gain| |d log I| along the curve."""
        step = 1e-3
        x = np.log(qhat)
        dq = self.signal.mmse(np.exp(x - step)) - self.signal.mmse(np.exp(x + step))
        d_log_gain = self.log_gain(x + step) - self.log_gain(x - step)
        slope = np.abs(dq / np.where(np.abs(d_log_gain) > 1e-9, d_log_gain, 1e-9))
        return np.where(inner, slope * self.table.relative_error(self._logit(qhat)), 0.0)


@functools.lru_cache(maxsize=64)
def _table(channel: Channel) -> InformationTable:
    return InformationTable(channel)


def _information(channel: Channel, V: np.ndarray, fineness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """I and Psi at an array of variances of one direction."""
    found = channel.information(V[:, None, None], fineness)
    return found.information[:, 0, 0], found.entropy


def _last_jump(curve: Curve) -> float | None:
    """The largest gain at which the uninformed fixed point jumps, infinite if it never leaves q = 0."""
    if np.isinf(curve.gain_weak):
        return np.inf
    log_gain = curve.log_curve
    start = np.log(curve.gain_weak) if curve.gain_weak > 0 else -np.inf
    highest = np.maximum.accumulate(np.maximum(log_gain, start))
    fallen = np.nonzero(highest - log_gain > _DROP + 10 * curve.log_error)[0]
    return float(np.exp(highest[fallen[-1]])) if fallen.size else None


def _hard_phase_start(curve: Curve, algorithmic: float) -> float:
    """The smallest gain from which on, up to the algorithmic threshold, Bayes-optimal learning beats AMP."""

    def better(gain: np.ndarray) -> np.ndarray:
        return curve.optimal(gain).overlap[:, 0, 0] > curve.uninformed(gain).overlap[:, 0, 0] + 1e-6

    top = 1e4 if np.isinf(algorithmic) else algorithmic * (1 - 1e-7)
    grid = np.geomspace(1e-4, 1.0, 400) * top
    hard = better(grid)
    if not hard[-1]:
        return algorithmic
    start = int(np.nonzero(~hard)[0].max(initial=-1)) + 1
    if start == 0:
        return 0.0
    return float(halving(lambda gain: better(np.array([gain]))[0], grid[start - 1], grid[start], 50).middle)
