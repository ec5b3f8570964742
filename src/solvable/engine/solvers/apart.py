r"""Several unknowns that meet in the labels alone: each has a law of its own, and what is known of them is diagonal.

With V = diag(V_1, .., V_r) and the information I(V) of a label the fixed points solve

    qhat_l = gain I_ll(V),    V_l = mmse(qhat_l),    l = 1, .., r .

Where I(V) is diagonal for diagonal V, that is all of state evolution; otherwise it leaves out that the noises of the
unknowns are correlated, an approximation (`exact`). It is solved in $x_l = \log\hat q_l$ by the secants of the last
steps, from V = 1 for what message passing reaches, and from V near 0 for what else there may be. Where exact knowledge
is stable and V has become small the iteration goes on to V = 0, like a power of a number below one, and is not followed
all the way. Of two ends the one of larger free entropy is optimal,
$\phi = \sum_l [potential_l - \hat q_l q_l/2] + gain (\Psi(V) - \Psi(1))$.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from solvable.channels.base import Average
from solvable.core.status import Status
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.sides import BayesSignal
from solvable.engine.solvers.base import FixedPoints, Solver, Thresholds

_TOLERANCE, _MOST_STEPS = 1e-8, 150
_ACCEPTED = 1e-6
_DEPTH = 3
"""How many earlier steps the secants use."""
_STRIDE = 1.5
"""How far x moves at a step."""
_SHIFT = 0.02
_LEAST_V = 1e-6
"""The V below which an unknown counts as known exactly."""
_NEARLY, _PINNED = 0.05, 1e-3
"""Where exact knowledge is stable: the V below which steps that all learn are lengthened, and that below which labels
are linear in what is left, so that the iteration can only go on to V = 0."""
_INFORMED = 12.0
"""The x of a start that knows nearly all."""
_SAME = 1e-3


class _End(NamedTuple):
    """x at the end of an iteration, V there, the largest of what was left to move, and the evaluations."""

    x: np.ndarray
    V: np.ndarray
    residual: float
    evaluations: int


@dataclasses.dataclass(frozen=True, eq=False)
class Apart(Solver):
    """Fixed points of an output of r projections and r unknowns of one law; `exact` says that I(V) is diagonal."""

    output: PosteriorOutput
    signal: BayesSignal
    exact: bool = True

    @property
    def gain_perfect(self) -> float:
        """From where on exact knowledge of all is stable: the unknowns over the numbers of a label."""
        r = self.output.projections
        mass = self.output.mass(np.eye(r))
        return r * self.signal.dimension / mass if mass > 0 else np.inf

    def uninformed(self, gain: np.ndarray) -> FixedPoints:
        """The fixed points that the iteration reaches from V = 1."""
        return self._collected([self._first(float(a)) for a in np.ravel(gain)], gain)

    def optimal(self, gain: np.ndarray) -> FixedPoints:
        """Those of largest free entropy, of the ends of both starts."""
        return self._collected([self._best(float(a)) for a in np.ravel(gain)], gain)

    def thresholds(self) -> Thresholds:
        """strong_recovery: where exact knowledge of all unknowns becomes stable."""
        return Thresholds(strong_recovery=self.gain_perfect)

    def _best(self, gain: float) -> _End:
        if gain > self.gain_perfect:
            return self._perfect(0)
        first = self._first(gain)
        if gain == 0 or self._lost(first):
            return first
        other = self._from(gain, np.full(self.output.projections, _INFORMED))
        if np.abs(np.log(other.V / first.V)).max() < _SAME or self._lost(other):
            return first
        better = self._free_entropy(gain, other) > self._free_entropy(gain, first)
        return other if better and other.residual < _ACCEPTED else first

    def _first(self, gain: float) -> _End:
        r = self.output.projections
        if gain == 0:
            return _End(np.full(r, -np.inf), np.ones(r), 0.0, 0)
        return self._from(gain, self._step(gain, np.ones(r)))

    def _perfect(self, evaluations: int) -> _End:
        r = self.output.projections
        return _End(np.full(r, np.inf), np.zeros(r), 0.0, evaluations)

    def _lost(self, end: _End) -> bool:
        """Whether the iteration ran off to V = 0."""
        return not end.V.all()

    def _step(self, gain: float, V: np.ndarray) -> np.ndarray:
        information = np.diag(self._labels(V).information)
        return np.log(np.maximum(gain * information, 1e-300))

    def labels(self, points: FixedPoints) -> Average:
        """What a label says at the first of some fixed points."""
        return self._labels(np.diag(points.variance[0]))

    def _labels(self, V: np.ndarray) -> Average:
        return self.output.labels(np.diag(1 - np.maximum(V, _LEAST_V)))

    def _from(self, gain: float, x: np.ndarray) -> _End:
        xs: list[np.ndarray] = []
        moves: list[np.ndarray] = []
        V = self.signal.mmse(np.exp(x))
        for number in range(1, _MOST_STEPS + 1):
            move = self._step(gain, V) - x
            if np.abs(move).max() < _TOLERANCE:
                return _End(x, V, float(np.abs(move).max()), number)
            xs, moves = [*xs[-_DEPTH:], x], [*moves[-_DEPTH:], move]
            following = move
            if len(xs) > 1:
                dx, df = (np.diff(np.array(part), axis=0).T for part in (xs, moves))
                following = move - (dx + df) @ np.linalg.lstsq(df, move, rcond=1e-8)[0]
                if np.abs(following).max() > _STRIDE:
                    # On the way to V = 0 all x grow alike at every step, by little next to the threshold.
                    onwards = gain > self.gain_perfect and V.max() < _NEARLY and move.min() > 0
                    following = move * (_STRIDE / move.max() if onwards else 1.0)
            x = x + np.clip(following, -_STRIDE, _STRIDE)
            V = self.signal.mmse(np.exp(x))
            if V.max() < (_PINNED if gain > self.gain_perfect else _LEAST_V):
                return self._perfect(number)
        return _End(x, V, float(np.abs(moves[-1]).max()), _MOST_STEPS)

    def _free_entropy(self, gain: float, end: _End) -> float:
        if not end.V.all():
            return np.inf
        if not np.isfinite(end.x).all():
            return 0.0
        qhat = np.exp(end.x)
        prior = np.sum(self.signal.potential(qhat) - qhat * (1 - end.V) / 2)
        return float(prior + gain * (self._labels(end.V).entropy - self._nothing))

    @functools.cached_property
    def _nothing(self) -> float:
        return self._labels(np.ones(self.output.projections)).entropy

    def _errors(self, gain: float, end: _End) -> np.ndarray:
        """Of each V: what the error of the information changes, to first order, and what was left to move."""
        if not np.isfinite(end.x).all():
            return np.zeros(len(end.x))
        r, found = len(end.x), self._labels(end.V)
        # The error belongs to the largest entry; others are smaller, by less than they are.
        information = np.maximum(np.diag(found.information), 1e-300)
        error = found.error / np.sqrt(information * information.max()) + end.residual
        up = self.signal.mmse(np.exp(end.x + _SHIFT))
        slope = np.empty((r, r))
        for k in range(r):
            moved = np.where(np.arange(r) == k, up, end.V)
            slope[:, k] = (self._step(gain, moved) - self._step(gain, end.V)) / _SHIFT
        change = np.abs(np.linalg.pinv(np.eye(r) - slope)) @ error
        return np.abs(end.V - up) / _SHIFT * change

    def _collected(self, ends: list[_End], gain: np.ndarray) -> FixedPoints:
        r, gains = self.output.projections, np.ravel(np.asarray(gain, float))
        V = np.array([end.V for end in ends])
        variance = V[:, :, None] * np.eye(r)
        errors = np.array([self._errors(a, end) for a, end in zip(gains, ends, strict=True)])
        residual = np.array([end.residual for end in ends])
        known = Status.CONVERGED if self.exact else Status.OUT_OF_DOMAIN
        return FixedPoints(
            overlap=np.eye(r) - variance,
            variance=variance,
            field=np.array([self._field(a, end) for a, end in zip(gains, ends, strict=True)]),
            free_entropy=np.array([self._free_entropy(a, end) for a, end in zip(gains, ends, strict=True)]),
            status=np.where(residual < _ACCEPTED, int(known), int(Status.MAX_STEPS)),
            uncertainty=errors.max(axis=1),
            residual=residual,
            iterations=np.array([end.evaluations for end in ends]),
            gain=gains,
            errors=errors[:, :, None] * np.eye(r),
        )

    def _field(self, gain: float, end: _End) -> np.ndarray:
        """gain I(V), with what is left out beside its diagonal."""
        if not end.V.all():
            return np.diag(end.x)
        return gain * self._labels(end.V).information
