r"""Specialisation in networks of extensive width: an ansatz for the solution in which neurons are learned one by one.

With q_w the overlap of a neuron, m the overlap of S seen with precision s, m' its slope, and $N = \Delta + \epsilon$,

    eps = c_2^2 (1 - q_2) + g(1) - g(q_w),      r_2 = 2 alpha c_2^2 / N,       q_w^2 = m(s),      q_2 = m(s + r_2),
    rho q_w / (1 - q_w) = alpha g'(q_w) / N + (q_2 - q_w^2) q_w / m'(s),

stationary points of $-\alpha\log N - \rho h(q_w) + \Psi(s + r_2) - \Psi(s) - q_2 r_2/2$, $\Psi' = m/2$, of which the
largest is Bayes-optimal [barbier2025optimal]. q_w = 0 is always one: the universal solution. For given q_w the last
equation has one root r_2, since its right side grows with it, and alpha follows: the curve is explicit in q_w.

**Where it fails.** The ansatz counts the weights as independent, where S knows them up to a rotation only. Close to
q_w = 0 the potential is $(q_2 - \rho) q_w^2/2$: the universal solution would be unstable from q_2 = rho on, also for a
purely quadratic activation, for which no rotation can be told from another and q_w = 0 is exact. So all that it says
of specialised weights is reported as outside of the range of the theory, and so is the universal solution from q_2 =
rho on. Without noise, and with more samples than there are weights, the potential grows without bound as all errors
vanish: the weights are known, which is reported in the same way.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from solvable.core.learners import BayesOptimal
from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.signals.eigenvalues import EigenvalueSignal
from solvable.models.lowrank.wide_teacher.feature import cost
from solvable.models.lowrank.wide_teacher.kernel import Kernel, kernels_of
from solvable.models.lowrank.wide_teacher.network import WideNetwork
from solvable.numerics.roots import golden_section, halving, illinois, regula_falsi

_LOGITS = np.linspace(-8.0, 24.0, 641)
_RANGE = 60.0
"""How far the logarithms of s and r_2 are searched."""
_TABLE_ERROR = 1e-8
_EQUAL = 1e-9
_QUADRATIC = 1e-12
"""A share of degrees three and more below which an activation is purely quadratic."""
_KEY = ("barbier2025optimal",)


class State(NamedTuple):
    """Stationary points at t = log(q_w/(1-q_w)): log alpha, the overlap of S, 1 - q_2, eps, s and r_2."""

    log_alpha: np.ndarray
    q_2: np.ndarray
    V: np.ndarray
    error: np.ndarray
    s: np.ndarray
    r_2: np.ndarray


class Specialised:
    """The curve of stationary points with q_w > 0."""

    def __init__(self, kernel: Kernel, signal: EigenvalueSignal, rho: float, noise: float):
        self.kernel, self.signal, self.rho, self.noise = kernel, signal, rho, noise

    def state(self, t: np.ndarray) -> State:
        """The stationary point with each q_w."""
        kernel, signal, q, delta = self.kernel, self.signal, expit(t), expit(-t)
        s = self._precision(np.log(q**2) - np.log(delta * (1 + q)))
        own, shared = kernel.slope(delta) / (2 * kernel.quadratic), q / signal.slope(s)

        def balance(log_r: np.ndarray, own: np.ndarray, shared: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
            r = np.exp(log_r)
            gained = np.maximum(signal.overlap(s + r) - signal.overlap(s), 0.0)
            return np.log(own * r + shared * gained) - np.log(self.rho) - t

        log_r = illinois(balance, np.full(t.shape, -_RANGE), np.full(t.shape, _RANGE), own, shared, s, t)
        r_2 = np.exp(log_r)
        V = signal.mmse(s + r_2)
        error = kernel.quadratic * V + kernel.deficit(delta)
        log_alpha = log_r + np.log((self.noise + error) / (2 * kernel.quadratic))
        return State(log_alpha, signal.overlap(s + r_2), V, error, s, r_2)

    def _precision(self, logit: np.ndarray) -> np.ndarray:
        """s with m(s) of the given log(m/(1-m)), which is close to log s from end to end."""

        def excess(x: np.ndarray, level: np.ndarray) -> np.ndarray:
            s = np.exp(x)
            return np.log(self.signal.overlap(s)) - np.log(self.signal.mmse(s)) - level

        return np.exp(illinois(excess, np.full(logit.shape, -_RANGE), np.full(logit.shape, _RANGE), logit))

    @functools.cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """t and log alpha, monotone between neighbours."""
        t, curve = _LOGITS, self.state(_LOGITS).log_alpha
        turns = 1 + np.nonzero((curve[1:-1] - curve[:-2]) * (curve[2:] - curve[1:-1]) < 0)[0]
        sign = np.sign(curve[turns] - curve[turns - 1])
        found = golden_section(lambda t: -sign * self.state(t).log_alpha, t[turns - 1], t[turns + 1], 30).middle
        t, order = np.unique(np.concatenate([t, found]), return_index=True)
        return t, np.concatenate([curve, self.state(found).log_alpha])[order]

    def best(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """t of the stable point of largest potential at each alpha, minus infinity if there is none; the potential."""
        t, curve = self._grid
        with np.errstate(divide="ignore"):
            level = np.log(alpha)
        above = curve >= level[:, None]
        row, cell = np.nonzero(above[:, 1:] & ~above[:, :-1])
        root = regula_falsi(lambda t, level: self.state(t).log_alpha - level, t[cell], t[cell + 1], level[row]).x
        value = self.potential(alpha[row], root, self.state(root)) if len(row) else np.zeros(0)
        place, height = np.full(len(alpha), -np.inf), np.full(len(alpha), -np.inf)
        for i in np.argsort(value):
            place[row[i]], height[row[i]] = root[i], value[i]
        return place, height

    def potential(self, alpha: np.ndarray, t: np.ndarray, at: State) -> np.ndarray:
        """Twice the free entropy over d^2, up to a constant."""
        gained = self.signal.potential(at.s + at.r_2) - self.signal.potential(at.s)
        return -alpha * np.log(self.noise + at.error) - self.rho * cost(t) + gained - at.q_2 * at.r_2 / 2

    def universal_potential(self, alpha: np.ndarray) -> np.ndarray:
        """That of the solution with q_w = 0: alpha = r_2 N / (2 c_2^2) with N = noise + g(1) + c_2^2 mmse(r_2)."""
        c = self.kernel.quadratic

        def left(log_r: np.ndarray) -> np.ndarray:
            return self.noise + self.kernel.total + c * self.signal.mmse(np.exp(log_r))

        def excess(log_r: np.ndarray, level: np.ndarray) -> np.ndarray:
            return log_r + np.log(left(log_r)) - level

        with np.errstate(divide="ignore"):
            level = np.maximum(np.log(2 * c * alpha), 1 - _RANGE)
        # N lies between its values for q_2 = 1 and 0, and r_2 accordingly.
        low, high = (level - np.log(self.noise + self.kernel.total + part) for part in (c, 0.0))
        log_r = illinois(excess, low - 1e-9, high + 1e-9, level)
        r_2 = np.exp(log_r)
        return -alpha * np.log(left(log_r)) + self.signal.potential(r_2) - self.signal.overlap(r_2) * r_2 / 2

    @property
    def recovery(self) -> float:
        """The alpha above which all weights are known exactly without noise: their number, twice it at a jump."""
        return self.kernel.dimension * self.rho if self.noise == 0 else np.inf

    def recovers(self, alpha: np.ndarray) -> np.ndarray:
        """Whether the potential grows without bound as all errors vanish."""
        return np.asarray(alpha) > self.recovery

    @functools.cached_property
    def onset(self) -> float:
        """The least alpha of a stable point with a larger potential than that of the universal solution."""
        t, curve = self._grid
        rising = np.concatenate([[False], np.diff(curve) > 0])
        ahead = rising & (self._lead(t) > 0)
        if not ahead.any() or curve[ahead].min() > np.log(self.recovery):
            return self.recovery
        first = int(np.nonzero(ahead)[0][np.argmin(curve[ahead])])
        if not rising[first - 1]:  # a branch that leads from its first point on
            return float(np.exp(curve[first - 1]))
        place = halving(lambda t: self._lead(np.array([t]))[0] > 0, float(t[first - 1]), float(t[first]), 50).high
        return float(np.exp(self.state(np.array([place])).log_alpha[0]))

    def _lead(self, t: np.ndarray) -> np.ndarray:
        """By how much the potential of points of the curve exceeds the universal one."""
        at = self.state(t)
        alpha = np.exp(at.log_alpha)
        return self.potential(alpha, t, at) - self.universal_potential(alpha)


@functools.lru_cache(maxsize=64)
def _specialised(model: WideNetwork, coarse: bool) -> Specialised:
    kernels = kernels_of(model.activation)
    return Specialised(kernels[int(coarse)], model.signal_side(), float(model.rho), float(model.noise))


@theory(WideNetwork, BayesOptimal, references=_KEY)
def bayes_optimal(model: WideNetwork, learner: BayesOptimal, alpha: np.ndarray) -> Prediction:
    """The universal solution, or the specialised one where the ansatz prefers it."""
    alpha = np.asarray(alpha, float)
    points = model.solver().optimal(model.gain(alpha=alpha))
    universal = model.prediction(points)
    kernel = model.kernel
    if kernel.total <= _QUADRATIC * kernel.quadratic:
        return universal
    ansatz = _specialised(model, False)
    t, height = ansatz.best(alpha)
    lead = height - ansatz.universal_potential(alpha)
    known, unstable = ansatz.recovers(alpha), points.overlap[:, 0, 0] > float(model.rho)
    beyond = (lead > 0) | known | unstable
    if not beyond.any():
        return universal
    chosen = known | (beyond & np.isfinite(t))
    found = _at(model, ansatz, alpha, np.where(np.isfinite(t), t, 0.0), known)
    status = np.where((np.abs(lead) < _EQUAL) & ~known, Status.AMBIGUOUS_BRANCH, Status.OUT_OF_DOMAIN)
    return _merged(found, universal, chosen, np.where(beyond, status, universal.status))


def _at(model: WideNetwork, ansatz: Specialised, alpha: np.ndarray, t: np.ndarray, known: np.ndarray) -> Prediction:
    """The prediction at points of the curve, and how far the coarser kernel and the table may have moved them.

    Where all weights are `known` nothing is left.
    """
    at, other = ansatz.state(t), _specialised(model, True).state(t)
    shift = 1e-4
    rise = (ansatz.state(t + shift).log_alpha - ansatz.state(t - shift).log_alpha) / (2 * shift)
    off = (2 * np.abs(other.log_alpha - at.log_alpha) + _TABLE_ERROR) / np.maximum(np.abs(rise), 1e-6)  # of t
    moved = ansatz.state(t + np.minimum(off, 1.0))
    overlaps = np.maximum(np.abs(moved.q_2 - at.q_2), off * expit(t) * expit(-t)) + _TABLE_ERROR
    errors = np.abs(moved.error - at.error) + 2 * np.abs(other.error - at.error) + _TABLE_ERROR * at.error
    residual = np.abs(np.expm1(at.log_alpha - np.log(np.where(alpha > 0, alpha, 1.0))))
    left = np.where(known, 0.0, 1.0)
    off = (left * overlaps, left * errors)
    q_2, q_w = (np.where(known, 1.0, q) for q in (at.q_2, expit(t)))
    return model.metrics(q_2, q_w, left * at.error, left * at.V, off, residual=left * residual)


def _merged(one: Prediction, other: Prediction, where: np.ndarray, status: np.ndarray) -> Prediction:
    """The one prediction where told, the other elsewhere, with this status."""

    def pick(group: str) -> dict[str, np.ndarray]:
        theirs = getattr(other, group)
        return {name: np.where(where, value, theirs[name]) for name, value in getattr(one, group).items()}

    return Prediction(
        pick("metrics"),
        pick("order_parameters"),
        status,
        np.where(where, one.residual, other.residual),
        other.iterations,
        pick("uncertainty"),
    )


@thresholds_of(WideNetwork, references=_KEY)
def specialization(model: WideNetwork) -> dict[str, float]:
    """`specialization`, the alpha up to which the universal solution is Bayes-optimal for all that the ansatz says."""
    purely_quadratic = model.kernel.total <= _QUADRATIC * model.kernel.quadratic
    return {"specialization": np.inf if purely_quadratic else _specialised(model, False).onset}
