"""Exact asymptotics of empirical risk minimisation with one projection.

The fixed point is that of `solvers.anderson`; closed forms are in `closed`. Where it does not exist, for want of
samples or of a penalty, there are limits. A strength of zero is the limit of a vanishing one, the minimiser of least
norm. Where the labels can be fitted without a loss, V is infinite in that limit. For a loss with its only minimum at
residual zero the estimate is then the interpolating one of least norm (`closed`). For any other loss, such as the hinge
loss on separable classes (whose limit is the largest margin) or one that ignores small residuals, two small strengths
are solved: if their estimates agree, the limit is found; if they do not, the minimum lies at infinity, as for the
logistic loss on separable classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.losses import Loss, Square, has_single_minimum
from solvable.channels.losses.quadrature import panel
from solvable.core.checks import is_traced
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.erm import ERM
from solvable.engine.erm.closed import least_l1_norm, least_squares
from solvable.engine.erm.metrics import METRICS, Facts, estimate_metrics, facts
from solvable.engine.erm.thresholds import separability
from solvable.engine.outputs.likelihood import Likelihood
from solvable.engine.outputs.proximal import Averages
from solvable.engine.sides import Evolution
from solvable.engine.solvers.anderson import BLANK, ProximalEvolution, ProximalPoint, moved, solve, step
from solvable.engine.two_sided import TwoSided
from solvable.priors.penalties import Lasso, Ridge

_SMALL = (1e-7, 1e-8)
_AGREE = 1e-5
LARGEST_V = 1e5
"""V at a small strength is either of the order of its inverse, and infinite in the limit, or far below this."""
_ROUNDING = 1e-12
_MORE_STARTS = ((0.3, 0.0, 1.0), (0.5, 2.0, 2.0), (0.9, 5.0, 5.0))
_FACTORS = (1e4, 1e3, 1e2, 10.0, 1.0)
_VANISHING = 1e-60
"""The square of an estimate that is zero but for rounding: of a lasso far above what the fields reach."""
_UNSOLVED = (int(Status.MAX_STEPS), int(Status.NONFINITE))
_solve, _step, _moved = eqx.filter_jit(solve), eqx.filter_jit(step), eqx.filter_jit(moved)
_ORDER = ("q", "V", "m_hat", "q_hat", "V_hat", "energy")
NAMES = (*METRICS, "training_loss", "replicon", "active_fraction", "m", *_ORDER)
"""The order in which metrics and order parameters are given."""


@theory(TwoSided, ERM, references=("thrampoulidis2018precise", "loureiro2021learning", "vilucchio2023asymptotic"))
def empirical_risk(model: TwoSided, learner: ERM, **axes: np.ndarray) -> Prediction:
    """The minimiser of the risk, valid where `replicon` is below 1; differentiable in the learner's numbers."""
    labels, alpha = model.likelihood(), model.gain(**axes)
    labels.check(learner.loss)
    learner.check_start()
    known = facts(labels)
    if isinstance(learner.loss, Square) and isinstance(learner.penalty, Ridge):
        points = least_squares((known.label_slope, known.label_scatter), learner.penalty.strength, alpha)
    else:
        risk = Evolution(labels.with_loss(learner.loss), model.signal_side().with_penalty(learner.penalty))
        points = _solved(risk, labels, known, alpha)
    found = _report(points, known, learner.loss.margin, isinstance(learner.penalty, Lasso))
    metrics, order, uncertainty = ({name: part[name] for name in NAMES if name in part} for part in found)
    return Prediction(metrics, order, points.status, points.residual, points.iterations, uncertainty)


def _solved(risk: ProximalEvolution, labels: Likelihood, known: Facts, alpha: np.ndarray) -> ProximalPoint:
    """The fixed points at every alpha > 0, and what is known without solving elsewhere."""
    traced = is_traced(risk)
    # Without derivatives, where there are any.
    fixed = jax.tree.map(lambda leaf: np.asarray(leaf, float), jax.lax.stop_gradient(risk) if traced else risk)
    starts = _starts(fixed, known)
    without = float(fixed.signal.penalty.strength) == 0
    separable = separability(labels) if without and fixed.output.loss.margin else 0.0
    fitted = interpolates(fixed.output.loss, alpha) if without else np.zeros(alpha.shape, bool)

    def row(alpha: float, known: bool) -> ProximalPoint:
        if known:
            return BLANK
        return _without_penalty(fixed, alpha, starts, alpha <= separable) if without else _best(fixed, alpha, starts)

    # One alpha at a time: a common loop would run every point for as long as the slowest one takes.
    rows = [row(*each) for each in zip(alpha, fitted | (alpha == 0), strict=True)]
    if traced:
        # An estimate of zero stays where it is.
        rows = [row if row.q == 0 else _moved(row, risk, value) for row, value in zip(rows, alpha, strict=True)]
        return jax.tree.map(lambda *column: jnp.stack(column), *rows)
    points = jax.tree.map(lambda *column: np.array(column), *rows)
    lost = int(Status.OUT_OF_DOMAIN)
    points = replaced(points, points.status == lost, BLANK._replace(status=np.int64(lost)))  # without a minimum
    if fitted.any():
        points = replaced(points, fitted, interpolating(risk, known, np.where(fitted, alpha, 0.5)))
    if (alpha == 0).any():
        points = replaced(points, alpha == 0, untrained(risk))
    return points


def _without_penalty(risk: ProximalEvolution, alpha: float, starts: np.ndarray, separable: bool) -> ProximalPoint:
    """The fixed point at a strength of zero if there is one with a finite V, or else the limit of a vanishing one."""
    if not separable:
        found = _best(risk, alpha, starts, patient=False)
        if found.status == int(Status.CONVERGED) and found.V < LARGEST_V:
            return found
    return no_penalty(lambda strength: _best(with_strength(risk, strength), alpha, starts))


def _best(risk: ProximalEvolution, alpha: float, starts: np.ndarray, patient: bool = True) -> ProximalPoint:
    """The best of the fixed points reached from the starts: valid before invalid, then of least energy."""
    found = jax.device_get([_solve(risk, alpha, start) for start in starts])
    if isinstance(risk.signal.penalty, Lasso):  # of an estimate that is zero there is no logarithm
        zero = _vanished(risk, alpha) if any(point.status == int(Status.NONFINITE) for point in found) else None
        found = [zero if zero and point.status == int(Status.NONFINITE) else point for point in found]
    if len(starts) == 1:
        unsolved = patient and found[0].status in _UNSOLVED
        return _again(risk, alpha, starts[0], found[0]) if unsolved else found[0]
    order = (int(Status.CONVERGED), int(Status.UNSTABLE))
    ranks = [order.index(point.status) if point.status in order else 2 for point in found]
    energies = [point.energy if np.isfinite(point.energy) else np.inf for point in found]
    return found[min(range(len(found)), key=lambda k: (ranks[k], energies[k]))]


def _vanished(risk: ProximalEvolution, alpha: float) -> ProximalPoint | None:
    """w = 0, if that is a fixed point but for rounding."""
    blank = untrained(risk)
    out = _averages_at_zero(risk, blank.V)
    push, power, response = (alpha * float(part) for part in (out.push, out.power, out.response))
    back = risk.signal.shrinkage(push, power, response)
    if not abs(float(back.q)) < _VANISHING:
        return None
    return blank._replace(V=0.0, m_hat=push, q_hat=power, V_hat=response, energy=alpha * blank.loss)


def _again(risk: ProximalEvolution, alpha: float, start: np.ndarray, found: ProximalPoint) -> ProximalPoint:
    """A point that was not solved: by damped steps, then followed from larger strengths, then by Powell's method."""
    damped = jax.device_get(_solve(risk, alpha, start, damping=0.5))
    if damped.status not in _UNSOLVED:
        return damped
    followed, begin = damped, start
    for factor in _FACTORS:
        stronger = with_strength(risk, factor * float(risk.signal.penalty.strength))
        followed = jax.device_get(_solve(stronger, alpha, begin))
        if followed.status in _UNSOLVED:
            break
        begin = np.array([followed.c, np.log(followed.q), np.log(followed.V)])
    if followed.status not in _UNSOLVED:
        return followed
    from scipy.optimize import root

    def excess(x: np.ndarray) -> np.ndarray:
        return np.asarray(_step(x, risk, alpha)) - x

    for begin in (start, *_MORE_STARTS):
        solution = root(excess, begin, method="hybr", tol=1e-11)
        if solution.success:
            again = jax.device_get(_solve(risk, alpha, solution.x))
            if again.status == int(Status.CONVERGED):
                return again
    return found


def _starts(risk: ProximalEvolution, known: Facts) -> np.ndarray:
    """(c, log q, log V): one start where the minimum is unique; else an informed and an uninformed one."""
    size = np.log(max(known.label_power, 1e-12))
    informed = [0.8 * np.sign(known.label_slope), size - 0.1, np.log(0.3)]
    uninformed = [1e-3, size, 0.0]
    unique = risk.output.loss.lowest_curvature >= 0 and risk.signal.penalty.strength >= 0
    return np.array([informed] if unique else [informed, uninformed])


@eqx.filter_jit
def _report(points: ProximalPoint, known: Facts, margin: bool, sparse: bool) -> tuple[dict, dict, dict]:
    """Metrics, order parameters, and the error of each metric: twice what coarser quadrature changes."""
    points = points._replace(c=jnp.clip(points.c, -1.0, 1.0))  # rounding may put it outside
    metrics = _metrics(known, margin, sparse, points.c, points.q, points.replicon, points.loss, points.active)
    c, q, _, *others = points.coarse
    coarse = _metrics(known, margin, sparse, jnp.clip(c, -1.0, 1.0), q, *others)
    uncertainty = {
        name: jax.lax.stop_gradient(2 * jnp.abs(value - coarse[name]) + _ROUNDING * (1 + jnp.abs(value)))
        for name, value in metrics.items()
    }
    return metrics, {"m": points.m} | {name: getattr(points, name) for name in _ORDER}, uncertainty


def _metrics(known: Facts, margin: bool, sparse: bool, c: Any, q: Any, replicon: Any, loss: Any, active: Any) -> dict:
    metrics = estimate_metrics(known, margin, c, q) | {"training_loss": loss, "replicon": replicon}
    return metrics | ({"active_fraction": active} if sparse else {})


def no_penalty(solved: Callable[[float], ProximalPoint]) -> ProximalPoint:
    """The limit of a vanishing strength, from the points that `solved` finds at two small ones."""
    first, point = (solved(strength) for strength in _SMALL)
    ends = {int(first.status), int(point.status)}
    if ends != {int(Status.CONVERGED)}:
        return BLANK._replace(status=np.int64(max(ends)))
    if abs(point.c - first.c) > _AGREE or abs(np.log(point.q / first.q)) > _AGREE:
        return BLANK._replace(status=np.int64(Status.DIVERGED))
    coarse = (first.c, first.q, first.V, first.replicon, first.loss, first.active)
    if point.V < LARGEST_V:
        return point._replace(coarse=coarse)
    nothing = np.zeros_like(point.q)
    return point._replace(V=nothing + np.inf, m_hat=nothing, q_hat=nothing, V_hat=nothing, coarse=coarse)


def with_strength(risk: ProximalEvolution, strength: float) -> ProximalEvolution:
    """The risk with another strength of its penalty."""
    return eqx.tree_at(lambda risk: risk.signal.penalty.strength, risk, np.asarray(strength, float))


def interpolates(loss: Loss, alpha: np.ndarray) -> np.ndarray:
    """At which alpha the estimate without penalty is the interpolating one of least norm."""
    few = (alpha > 0) & (alpha <= 1)
    return few & has_single_minimum(loss) if loss.residual else np.zeros(alpha.shape, bool)


def interpolating(risk: ProximalEvolution, known: Facts, alpha: np.ndarray) -> ProximalPoint:
    """The estimate of least norm, or of least l1 norm, that fits all labels, at every alpha up to 1."""
    moments = known.label_slope, known.label_scatter
    if isinstance(risk.signal.penalty, Lasso):
        points = jax.device_get(least_l1_norm(moments, risk.signal.mixture, alpha))
    else:
        points = jax.device_get(least_squares(moments, 0.0, alpha))
    loss = np.where(np.isfinite(points.q), float(risk.output.loss.profile(np.zeros(1), 0.0)[0]), np.nan)
    points = points._replace(loss=loss, energy=alpha * loss, coarse=(*points.coarse[:4], loss, points.active))
    several = float(risk.output.loss.lowest_curvature) < 0
    return points._replace(status=np.full(alpha.shape, int(Status.UNSTABLE))) if several else points


def untrained(risk: ProximalEvolution) -> ProximalPoint:
    """w = 0, the limit of a vanishing number of samples, each of which is still fitted as the penalty allows."""
    strength = float(risk.signal.penalty.strength)
    if strength < 0:
        return BLANK._replace(status=np.int64(Status.OUT_OF_DOMAIN))
    # A lasso of any strength leaves every weight at zero, and V too; without a penalty each sample is fitted alone.
    sparse = isinstance(risk.signal.penalty, Lasso) and strength > 0
    V = 1e-12 if sparse else 1 / max(strength, 1e-12)
    loss = float(_averages_at_zero(risk, V).loss)
    blank = jax.tree.map(np.zeros_like, BLANK)
    several = 1 + V * float(risk.output.loss.lowest_curvature) <= 0
    status = np.int64(Status.UNSTABLE if several else Status.CONVERGED)
    return blank._replace(V=V, loss=loss, coarse=(0.0, 0.0, V, 0.0, loss, 0.0), status=status)


def replaced(points: ProximalPoint, where: np.ndarray, other: ProximalPoint) -> ProximalPoint:
    """`points` with those of `other`, or with that single one, at the places `where`."""

    def choose(mine: Any, theirs: Any) -> np.ndarray:
        return np.where(where.reshape(where.shape + (1,) * (np.ndim(mine) - 1)), theirs, mine)

    return jax.tree.map(choose, points, other)


@eqx.filter_jit
def _averages_at_zero(risk: ProximalEvolution, V: Any) -> Averages:
    return risk.output.averages(0.0, 1e-12, V, panel())
