r"""One overlap where the curve of fixed points is monotone: the fixed point is unique, and a bracket holds it.

With V = mmse(qhat) and I(V) the information of a label, the fixed points solve

    qhat = gain I(mmse(qhat)).

Where qhat / I(mmse(qhat)) grows with qhat there is one for every gain: no hard phase, and message passing is optimal.
This is so for every matrix seen through linear labels that we tried, where it reads D = (noise + mmse(D)) / gain for
the variance D = 1/qhat of the noise that is left on the unknown [maillard2024bayes].
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.core.status import Status
from solvable.engine.sides import BayesOutput, BayesSignal
from solvable.engine.solvers.base import FixedPoints, Solver, Thresholds
from solvable.numerics.roots import Root, regula_falsi

_LARGEST = 1e12
"""The qhat from which on mmse = dimension / qhat."""
_STRIDE = 2.5
"""How far log qhat goes up at a time in search of a bracket."""
_BELOW = 1e-9
"""How far below what V = 1 gives that search starts: where nothing is learned that is the solution."""
_ACCURACY = 1e-13
_ACCEPTED = 1e-10
_MANY, _POLISHED = 16, 1e-12
"""From how many points on a table of the signal is worth its making, and the residual up to which one step of Newton
from it will do."""
_STEPS = 90
_SHIFT, _FLATTEST = 1e-4, 1e-8
"""The change of log qhat by which slopes are taken, and the smallest of them."""
_SLOPE_ERROR = 1e-5
"""How far a slope of the quick error may be from that of the right one."""
_ROUNDING = 1e-14
_NOTHING = 1e-200
"""A V that stands for none."""


@dataclasses.dataclass(frozen=True)
class Bracket(Solver):
    """The fixed points of one output and one signal, by regula falsi in log qhat.

    The free entropy is not computed: with one fixed point there is nothing to compare.
    """

    output: BayesOutput
    signal: BayesSignal

    def uninformed(self, gain: np.ndarray) -> FixedPoints:
        """The only fixed point at each gain."""
        gain = np.ravel(np.asarray(gain, float))
        qhat = np.where(gain >= self._perfect_gain, np.inf, 0.0)
        V, error = self.signal.measured(qhat)
        residual, evaluations = np.zeros(len(gain)), np.zeros(len(gain), int)
        search = (gain > 0) & (gain < self._perfect_gain)
        if search.any():
            found = self._search(gain[search])
            qhat[search], V[search], error[search], residual[search], evaluations[search] = found
        return FixedPoints(
            overlap=_matrices(1 - V),
            variance=_matrices(V),
            field=_matrices(qhat),
            free_entropy=np.full(len(gain), np.nan),
            status=np.where(residual < _ACCEPTED, int(Status.CONVERGED), int(Status.MAX_STEPS)),
            uncertainty=error,
            residual=residual,
            iterations=evaluations,
        )

    def optimal(self, gain: np.ndarray) -> FixedPoints:
        """The same."""
        return self.uninformed(gain)

    def thresholds(self) -> Thresholds:
        """perfect_recovery: the gain from which on nothing is left unknown, infinite where noise forbids it."""
        return Thresholds(perfect_recovery=self._perfect_gain)

    @functools.cached_property
    def _perfect_gain(self) -> float:
        """dimension / lim V I(V): where qhat and gain I(V) grow alike as V falls to 0."""
        sharpness = float(self._information(np.array([_NOTHING]))[0] * _NOTHING)
        return self.signal.dimension / sharpness if sharpness > 0.5 else np.inf

    def _information(self, V: np.ndarray) -> np.ndarray:
        return self.output.information(_matrices(V))[:, 0, 0]

    def _search(self, gain: np.ndarray) -> tuple[np.ndarray, ...]:
        """qhat, V, its error, the residual and the evaluations at each gain.

        Many are found by the signal's quick error first, and made right by what is measured there and a step of Newton,
        along which V follows its slope; where that is not good enough, at a threshold, and for a few, all is had from
        what is measured.
        """
        if len(gain) < _MANY:
            return self._found(gain)
        log_qhat, slope, fall = self._quickly(gain)
        V, error = self.signal.measured(np.exp(log_qhat))
        excess = self._excess(log_qhat, gain, V)
        step = -excess / slope
        log_qhat, V = log_qhat + step, V - fall * step
        # What the step leaves: the error of the slope, a difference over a small shift, and the bend.
        residual = np.abs(step) * _SLOPE_ERROR + step**2
        found = [np.exp(log_qhat), V, self._error(V, error, residual, slope, fall), residual, np.ones(len(gain), int)]
        left = residual > _POLISHED
        if left.any():
            for whole, part in zip(found, self._found(gain[left]), strict=True):
                whole[left] = part
        return tuple(found)

    def _quickly(self, gain: np.ndarray) -> tuple[np.ndarray, ...]:
        """log qhat by the quick error of the signal, and the slopes there."""

        def excess(log_qhat: np.ndarray, active: np.ndarray) -> np.ndarray:
            return self._excess(log_qhat, gain[active], self.signal.mmse(np.exp(log_qhat)))

        log_qhat = self._root(excess, gain).x
        return log_qhat, *self._slopes(log_qhat, self.signal.mmse)

    def _found(self, gain: np.ndarray) -> tuple[np.ndarray, ...]:
        """The same as `_search`, from what is measured; what is finished is left alone."""
        found, evaluations = np.zeros((2, len(gain))), np.zeros(len(gain), int)

        def excess(log_qhat: np.ndarray, active: np.ndarray) -> np.ndarray:
            evaluations[active] += 1
            found[:, active] = V, _ = self.signal.measured(np.exp(log_qhat))
            return self._excess(log_qhat, gain[active], V)

        root = self._root(excess, gain)
        V, error = found
        residual = np.abs(root.value)
        slope, fall = self._slopes(root.x, lambda qhat: self.signal.measured(qhat)[0])
        return np.exp(root.x), V, self._error(V, error, residual, slope, fall), residual, evaluations

    def _excess(self, log_qhat: np.ndarray, gain: np.ndarray, V: np.ndarray) -> np.ndarray:
        """log of qhat / (gain I(V)), which rises with qhat."""
        return log_qhat - np.log(gain * self._information(np.maximum(V, _NOTHING)))

    def _root(self, excess: Callable[[np.ndarray, np.ndarray], np.ndarray], gain: np.ndarray) -> Root:
        low, high = self._bracket(gain, excess)
        # Where the excess is flat, at a threshold, regula falsi creeps from one side: every third step is a halving.
        return regula_falsi(
            excess,
            low,
            high,
            np.arange(len(gain)),
            tolerance=_ACCURACY,
            precision=1e-15,
            halve_every=3,
            max_steps=_STEPS,
        )

    def _error(self, V: np.ndarray, error: Any, residual: Any, slope: Any, fall: Any) -> np.ndarray:
        """Of V: an error of V moves the solution, and V with it, in all by the error over the slope of the excess; one
        of the information moves log qhat, and V along mmse."""
        return (error + (residual + _ROUNDING) * V + fall * self.output.information_error(V)) / slope

    def _slopes(self, log_qhat: np.ndarray, mmse: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The derivative of the excess in log qhat, between 0 at a threshold and 1, and that of -mmse."""
        up, down = (mmse(np.exp(log_qhat + shift)) for shift in (_SHIFT, -_SHIFT))
        change = [np.log(self._information(np.maximum(V, _NOTHING))) for V in (up, down)]
        slope = np.clip(1 - (change[0] - change[1]) / (2 * _SHIFT), _FLATTEST, 1.0)
        return slope, np.maximum(down - up, 0.0) / (2 * _SHIFT)

    def _bracket(
        self, gain: np.ndarray, excess: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """log qhat on both sides of the solution: from what V = 1 gives upwards until the sign changes.

        Where the solution lies beyond `_LARGEST`, it lies below what V = 0 gives.
        """
        information = self._information(np.array([1.0, self.signal.dimension / _LARGEST, _NOTHING]))
        first, most, last = np.log(gain) + np.log(information)[:, None]
        beyond = most > np.log(_LARGEST)
        most = np.minimum(most, np.log(_LARGEST))
        first -= _BELOW
        low, high = np.where(beyond, most, first), np.where(beyond, last, first)
        active = np.flatnonzero(~beyond)
        while active.size:
            low[active], high[active] = high[active], np.minimum(high[active] + _STRIDE, most[active])
            short = (excess(high[active], active) < 0) & (high[active] < most[active])
            active = active[short]
        return low, high


def _matrices(values: np.ndarray) -> np.ndarray:
    return values[:, None, None]
