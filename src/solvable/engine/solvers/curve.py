"""The solver for one overlap: the curve of fixed points is explicit, and nothing is iterated.

With `gain` samples for each unknown, state evolution q -> overlap(gain I(1 - q)) has its fixed points on the curve

    gain(qhat) = qhat / I(V),        V = mmse(qhat) = 1 - q,

so that neither fixed points nor thresholds are ever iterated for, however slow the iteration is near criticality.
A fixed point is stable where the curve rises. The free entropy whose stationary points they are is

    Phi(q, qhat) = potential(qhat) - q qhat / 2 + gain (Psi(V) - Psi(1)).

As the gain grows, the iteration from nothing climbs the curve and jumps wherever the curve falls below an earlier
maximum. The far side of the jump exists from the minimum after that maximum on, its `spinodal`. Between the gain where
the free entropy already prefers the far side and the jump, learning is possible but the iteration does not find it: a
hard phase. [barbier2019optimal]
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
from solvable.numerics.roots import golden_section, halving, regula_falsi

_DROP = 1e-6
"""The curve must fall by this much (in log gain), and by well more than its error, for a jump to count."""
_EDGES = np.array([-12.0, -7.0, -4.0, -2.0, -0.5, 1.0, 2.5, 4.0, 6.0, 9.0, 13.0, 18.0, 24.0, 31.0, 40.0])
_DEGREE = 10
_PROBES = [0, 3, 7, 10]
"""The nodes of each panel at which the error is estimated. It changes by orders of magnitude within a unit of t, where
one rule takes over from another, and crosses zero: probes are dense, and of the four around t the largest counts."""
_LEAST, _MOST, _STEP = -12.0, 60.0, 0.02
"""The grid of log qhat. Sparse weights of dimension rho switch at qhat of order rho log(1/rho): below, if they must."""
_GAINS = 100
"""At how many gains a hard phase is looked for before its start is closed in on."""
_ENDLESS = 1e4
"""How far above the spinodal it is looked for where the iteration never leaves q = 0."""
_TIE = 1e-8
"""Free entropies that are closer than this do not tell which of two fixed points is preferred."""
_NEARBY = 1e-3
"""The step in log qhat by which slopes along the curve are taken."""
_ROUNDING = 1e-15
_KNOWN = 1e-12
"""Less than this left to be known is nothing: labels far out, which are not resolved, decide what is left."""


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
    def _grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A grid of log qhat on which the curve is monotone between neighbours: fine, and containing its extrema.

        With t and log gain on it.
        """
        grid, t = _signal_grid(self.signal)
        curve = grid - self.table.log_information(t)
        with np.errstate(invalid="ignore"):  # the curve of labels that tell nothing is infinite everywhere
            turns = 1 + np.nonzero((curve[1:-1] - curve[:-2]) * (curve[2:] - curve[1:-1]) < 0)[0]
        if not turns.size:
            return grid, t, curve
        sign = np.sign(curve[turns] - curve[turns - 1])
        found = golden_section(lambda x: -sign * self.log_gain(x), grid[turns - 1], grid[turns + 1], 35).middle
        at_found = self._logit(np.exp(found))
        grid, first = np.unique(np.concatenate([grid, found]), return_index=True)
        curve = np.concatenate([curve, found - self.table.log_information(at_found)])
        return grid, np.concatenate([t, at_found])[first], curve[first]

    @property
    def log_qhat(self) -> np.ndarray:
        """The grid on which the curve is known."""
        return self._grid[0]

    @property
    def log_curve(self) -> np.ndarray:
        """log gain on the grid."""
        return self._grid[2]

    @functools.cached_property
    def log_error(self) -> np.ndarray:
        """The estimated error of `log_curve`."""
        return self.table.relative_error(self._grid[1])

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
        return self._free_entropy(qhat, *self.signal.moments(qhat), gain)

    def _free_entropy(self, qhat: np.ndarray, q: np.ndarray, V: np.ndarray, gain: np.ndarray) -> np.ndarray:
        labels = self.table.entropy(_logit(q, V)) - self.table.entropy_at_zero
        # potential - q qhat / 2, whose terms cancel where almost all is known, as these do where almost nothing is.
        known = V * qhat / 2 - self.signal.information(qhat)
        return np.where(qhat < 1, self.signal.potential(qhat) - q * qhat / 2, known) + gain * labels

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
        qhat = np.where(gain <= self.gain_weak, 0.0, self._beyond(gain))
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
        tie = _TIE * np.minimum(1.0, np.maximum(qhat[best], qhat[runner_up]))  # the terms of Phi are of that order
        V = np.where(np.isfinite(qhat), self.signal.moments(np.where(np.isfinite(qhat), qhat, 1.0))[1], 0.0)
        differ = np.maximum(V[best], V[runner_up]) > _KNOWN  # what is known up to rounding on both is no choice
        with np.errstate(invalid="ignore"):
            close = (row[runner_up] == row[best]) & (last > 0) & (np.abs(value[best] - value[runner_up]) < tie)
        close &= differ
        points = self._points(qhat[best], gain)
        return dataclasses.replace(points, status=np.where(close, Status.AMBIGUOUS_BRANCH, points.status))

    @functools.cached_property
    def _thresholds(self) -> Thresholds:
        weak, fallen = self.gain_weak, self._fallen
        if not fallen.size:
            return Thresholds(weak_recovery=weak, algorithmic=weak, information_theoretic=weak)
        algorithmic = max(weak, float(np.exp(np.max(self.log_curve[: fallen[-1] + 1])))) if np.isfinite(weak) else weak
        start = _hard_phase_start(self, algorithmic, self.spinodal)
        return Thresholds(weak_recovery=weak, algorithmic=algorithmic, information_theoretic=start)

    @functools.cached_property
    def spinodal(self) -> float:
        """The gain from which on there is more to be known than the iteration finds, even if it is not preferred yet.

        It is that of the last hard phase, and `gain_weak` where there is none.
        """
        fallen = self._fallen
        if not fallen.size:
            return self.gain_weak
        peak = 0 if np.isinf(self.gain_weak) else int(np.argmax(self.log_curve[: fallen[-1] + 1]))
        return min(float(np.exp(np.min(self.log_curve[peak:]))), self.gain_perfect)

    @functools.cached_property
    def _fallen(self) -> np.ndarray:
        """Where the curve is below an earlier maximum, as numbers of its grid."""
        with np.errstate(divide="ignore"):
            start = np.log(self.gain_weak)
        highest = np.maximum.accumulate(np.maximum(self.log_curve, start))
        with np.errstate(invalid="ignore"):
            return np.nonzero(highest - self.log_curve > _DROP + 10 * self.log_error)[0]

    def thresholds(self) -> Thresholds:
        """weak_recovery, algorithmic and information_theoretic, each a gain (0: any, infinite: none)."""
        return Thresholds(self._thresholds)

    def _beyond(self, gain: np.ndarray) -> np.ndarray:
        """qhat past the end of the grid: infinite where recovery is perfect to rounding, gain I(V = 0) elsewhere."""
        if self.table.sharp or self.signal.dimension == 0:
            return np.full(gain.shape, np.inf)
        last = self._logit(np.exp(self.log_qhat[-1:]))
        return gain * np.exp(self.table.log_information(last))

    def _logit(self, qhat: np.ndarray) -> np.ndarray:
        """t = log(q / V) at qhat."""
        return _logit(*self.signal.moments(qhat))

    def _crossing(self, index: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """qhat where the curve crosses gain in the grid cells that end at `index`."""
        level, grid = np.log(gain), self.log_qhat
        first, before = index == 0, np.maximum(index - 1, 0)
        # Below the grid the curve is gain_weak (1 + O(q)) or a power of q; continue it there.
        low, high = np.where(first, grid[0] - 60.0, grid[before]), grid[index]
        if not index.size:
            return high
        at_low, at_high = self.log_curve[before], self.log_curve[index]
        if first.any():
            at_low = np.where(first, self.log_gain(low), at_low)
        # Where the continuation does not cross, the fixed point lies below every q that matters.
        crosses = at_low < level
        at_low = np.where(crosses, at_low - level, -1.0)
        root = regula_falsi(lambda x: self.log_gain(x) - level, low, high, ends=(at_low, at_high - level)).x
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
        # Where the gain is above the whole grid the curve has run off it towards q = 1. Without noise it has a limit
        # there, which it may seem to pass by rounding: it counts if nothing else is stable.
        off = ~rises.any(1) & (gain > self.gain_weak) if self.table.sharp else ~above[:, -1]
        perfect, lost = np.nonzero((gain > self.gain_perfect) & ~off)[0], np.nonzero(off)[0]
        qhat = [np.zeros(len(nothing)), self._crossing(index, gain[row]), np.full(len(perfect), np.inf)]
        return np.concatenate([nothing, row, perfect, lost]), np.concatenate([*qhat, self._beyond(gain[lost])])

    def _points(self, qhat: np.ndarray, gain: np.ndarray) -> FixedPoints:
        inner = (qhat > 0) & np.isfinite(qhat)
        safe = np.where(inner, qhat, 1.0)
        x = np.log(safe) + np.array([[-_NEARBY], [0.0], [_NEARBY]])
        near_q, near_V = (part.reshape(x.shape) for part in self.signal.moments(np.exp(x).ravel()))
        t = _logit(near_q, near_V)
        log_gain = x - self.table.log_information(t.ravel()).reshape(x.shape)
        known = np.where(qhat > 0, 1.0, 0.0)
        q, V = np.where(inner, near_q[1], known), np.where(inner, near_V[1], 1 - known)
        at_ends = np.where(qhat > 0, self.perfect_free_entropy(gain), 0.0)
        free_entropy = np.where(inner, self._free_entropy(safe, near_q[1], near_V[1], gain), at_ends)
        with np.errstate(divide="ignore", invalid="ignore"):
            residual = np.where(inner & (q > 1e-6) & (V > _KNOWN), np.abs(log_gain[1] - np.log(gain)), 0.0)
            d_log_gain = log_gain[2] - log_gain[0]
        status = np.where(residual < 1e-8, Status.CONVERGED, Status.MAX_STEPS)
        # |dq| = |dq / d log gain| |d log I| along the curve; what q and V lack of one is the error of the signal.
        slope = np.abs((near_V[0] - near_V[2]) / np.where(np.abs(d_log_gain) > 1e-9, d_log_gain, 1e-9))
        lacking = np.maximum(np.abs(near_q[1] + near_V[1] - 1) - _ROUNDING, 0.0) / np.maximum(near_q[1], _ROUNDING)
        error = np.where(inner, slope * (self.table.relative_error(t[1]) + lacking), 0.0)
        M, variance, field = (part[:, None, None] for part in (q, V, qhat))
        return FixedPoints(M, variance, field, free_entropy, status, error, residual, np.zeros(len(q), int), gain)


@functools.lru_cache(maxsize=64)
def _signal_grid(signal: BayesSignal) -> tuple[np.ndarray, np.ndarray]:
    """A fine grid of log qhat, as far as anything is left to be known, and t on it: the same for every output."""
    dimension = signal.dimension
    least = min(_LEAST, np.floor(np.log(dimension)) - 4) if dimension > 0 else _LEAST
    grid = np.linspace(least, _MOST, round((_MOST - least) / _STEP) + 1)
    q, V = signal.moments(np.exp(grid))
    return grid[V > 1e-280], _logit(q, V)[V > 1e-280]


@functools.lru_cache(maxsize=64)
def _table(channel: Channel) -> InformationTable:
    return InformationTable(channel)


def _information(channel: Channel, V: np.ndarray, fineness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """I and Psi at an array of variances of one direction."""
    found = channel.information(V[:, None, None], fineness)
    return found.information[:, 0, 0], found.entropy


def _logit(q: np.ndarray, V: np.ndarray) -> np.ndarray:
    """log(q / V), bounded where V underflows."""
    return np.log(np.maximum(q, 1e-300)) - np.log(np.maximum(V, 1e-300))


def _hard_phase_start(curve: Curve, algorithmic: float, spinodal: float) -> float:
    """The smallest gain from which on, up to the algorithmic threshold, Bayes-optimal learning beats AMP.

    There is nothing better below the spinodal.
    """

    def better(gain: np.ndarray) -> np.ndarray:
        return curve.optimal(gain).overlap[:, 0, 0] > curve.uninformed(gain).overlap[:, 0, 0] + 1e-6

    top = algorithmic * (1 - 1e-7) if np.isfinite(algorithmic) else _ENDLESS * (spinodal or 1.0)
    grid = np.geomspace(max(spinodal, top / _ENDLESS), top, _GAINS)
    hard = better(grid)
    if not hard[-1]:
        return algorithmic
    start = int(np.nonzero(~hard)[0].max(initial=-1)) + 1
    if start == 0:
        return spinodal
    return float(halving(lambda gain: better(np.array([gain]))[0], grid[start - 1], grid[start], 50).middle)
