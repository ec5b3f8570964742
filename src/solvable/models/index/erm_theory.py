r"""Exact asymptotics of empirical risk minimisation with one projection.

The fixed point is that of `engine.proximal_evolution`; the square loss with a ridge has a closed form. With $S = V\hat
V$ in (0, 1) for a positive strength, $\lambda = (\alpha - S)(1 - S)/S$, and with $\gamma = E[zy]$, $\Delta = E[y^2] -
\gamma^2$,

    m = gamma S,   q = [S^2 gamma^2 + (S^2/alpha)(Delta + gamma^2 (1 - 2 S))] / (1 - S^2/alpha),   R = S^2/alpha,

for any law of labels. A strength of zero is the limit of a vanishing one: S = min(1, alpha), and below alpha = 1 every
convex loss of the residual has the same limit, the interpolating solution of least norm.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.label_models import LabelModel
from solvable.channels.losses import Loss, Square
from solvable.channels.proximal import panel
from solvable.core.checks import is_traced
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.erm import ERM
from solvable.engine.proximal_evolution import Problem, ProximalPoint, moved, solve, step
from solvable.models.index.erm_labels import Facts, facts, label_model
from solvable.models.index.erm_metrics import METRICS, estimate_metrics
from solvable.models.index.multi_index import MultiIndex
from solvable.models.index.separability import separability
from solvable.priors.penalties import Lasso, Ridge

_ROUNDING = 1e-12
_MORE_STARTS = ((0.3, 0.0, 1.0), (0.5, 2.0, 2.0), (0.9, 5.0, 5.0))
_UNSOLVED = (int(Status.MAX_STEPS), int(Status.NONFINITE))
_solve, _step, _moved = eqx.filter_jit(solve), eqx.filter_jit(step), eqx.filter_jit(moved)
_ORDER = ("q", "V", "m_hat", "q_hat", "V_hat", "energy")
NAMES = (*METRICS, "training_loss", "replicon", "active_fraction", "m", *_ORDER)
"""The order in which metrics and order parameters are given."""


@theory(MultiIndex, ERM)
def empirical_risk(model: MultiIndex, learner: ERM, alpha: np.ndarray) -> Prediction:
    """The minimiser of the risk, valid where `replicon` is below 1; differentiable in the learner's numbers."""
    known, alpha = facts(model), np.ravel(alpha)
    labels = label_model(model, learner.loss, known)
    if isinstance(learner.loss, Square) and isinstance(learner.penalty, Ridge):
        points = _least_squares((known.label_slope, known.label_power), learner.penalty.strength, alpha)
    else:
        points = _solved(model, learner, known, labels, alpha)
    found = _report(points, known, learner.loss.margin, isinstance(learner.penalty, Lasso))
    metrics, order, uncertainty = ({name: part[name] for name in NAMES if name in part} for part in found)
    return Prediction(metrics, order, points.status, points.residual, points.iterations, uncertainty)


def _solved(model: MultiIndex, learner: ERM, known: Facts, labels: LabelModel, alpha: np.ndarray) -> ProximalPoint:
    """The fixed points at every alpha > 0, and what is known without solving elsewhere."""
    # A ridge sees only the variance of the weights, which is one for every prior.
    law = model.prior.mixture() if isinstance(learner.penalty, Lasso) else ((1.0, 0.0, 1.0),)
    mixture = tuple(np.array(column, float) for column in zip(*law, strict=True))
    problem = Problem(learner.loss, labels, learner.penalty, mixture)
    fixed = jax.tree.map(_as_array, problem)
    starts = _starts(learner, known)
    # One alpha at a time: a common loop would run every point for as long as the slowest one takes.
    rows = [_best(fixed, value, starts) for value in np.where(alpha > 0, alpha, 1.0)]
    if is_traced(problem):
        rows = [_moved(row, problem, value) for row, value in zip(rows, alpha, strict=True)]
        return jax.tree.map(lambda *column: jnp.stack(column), *rows)
    points = jax.tree.map(lambda *column: np.array(column), *rows)
    return _limits(model, learner, known, labels, points, alpha)


def _best(problem: Problem, alpha: float, starts: np.ndarray) -> ProximalPoint:
    """The best of the fixed points reached from the starts: valid before invalid, then of least energy."""
    found = jax.device_get([_solve(problem, alpha, start) for start in starts])
    if len(starts) == 1:
        return _again(problem, alpha, starts[0], found[0]) if found[0].status in _UNSOLVED else found[0]
    order = (int(Status.CONVERGED), int(Status.UNSTABLE))
    ranks = [order.index(point.status) if point.status in order else 2 for point in found]
    energies = [point.energy if np.isfinite(point.energy) else np.inf for point in found]
    return found[min(range(len(found)), key=lambda k: (ranks[k], energies[k]))]


def _again(problem: Problem, alpha: float, start: np.ndarray, found: ProximalPoint) -> ProximalPoint:
    """A point that the iteration did not solve, by a damped iteration and then by Powell's method."""
    damped = jax.device_get(_solve(problem, alpha, start, damping=0.5))
    if damped.status not in _UNSOLVED:
        return damped
    from scipy.optimize import root

    def excess(x: np.ndarray) -> np.ndarray:
        return np.asarray(_step(x, problem, alpha)) - x

    for begin in (start, *_MORE_STARTS):
        solution = root(excess, begin, method="hybr", tol=1e-11)
        if solution.success:
            again = jax.device_get(_solve(problem, alpha, solution.x))
            if again.status == int(Status.CONVERGED):
                return again
    return found


def _starts(learner: ERM, known: Facts) -> Any:
    """(c, log q, log V): one start where the minimum is unique; else an informed and an uninformed one."""
    size = np.log(max(known.label_power, 1e-12))
    informed = [0.8 * np.sign(known.label_slope), size - 0.1, np.log(0.3)]
    uninformed = [1e-3, size, 0.0]
    strength = float(jax.lax.stop_gradient(learner.penalty.strength))
    unique = learner.loss.lowest_curvature >= 0 and strength >= 0
    return np.array([informed] if unique else [informed, uninformed])


def _limits(
    model: MultiIndex, learner: ERM, known: Facts, labels: LabelModel, points: ProximalPoint, alpha: np.ndarray
) -> ProximalPoint:
    """What a vanishing alpha or a strength of zero leave, in place of fixed points that do not exist there."""
    strength = float(learner.penalty.strength)
    if strength == 0 and learner.loss.residual:
        fitted = jax.device_get(_least_squares((known.label_slope, known.label_power), 0.0, alpha))
        if isinstance(learner.penalty, Lasso):
            fitted = _constant(points, Status.OUT_OF_DOMAIN)
        elif learner.loss.lowest_curvature < 0:
            fitted = fitted._replace(status=np.full(alpha.shape, int(Status.UNSTABLE)))
        points = _replaced(points, (alpha > 0) & (alpha <= 1), fitted)
    if strength == 0 and learner.loss.margin:
        points = _replaced(points, (alpha > 0) & (alpha <= separability(model)), _constant(points, Status.DIVERGED))
    if (alpha == 0).any():
        points = _replaced(points, alpha == 0, _untrained(learner, labels, points))
    return points


def _untrained(learner: ERM, labels: LabelModel, points: ProximalPoint) -> ProximalPoint:
    """w = 0, the limit of a vanishing number of samples, each of which is still fitted as the penalty allows."""
    strength = float(learner.penalty.strength)
    if strength < 0:
        return _constant(points, Status.OUT_OF_DOMAIN)
    V = 1e-12 if isinstance(learner.penalty, Lasso) else 1 / max(strength, 1e-12)
    loss = float(_loss_at_zero(learner.loss, labels, V)) if strength > 0 else 0.0
    blank = jax.tree.map(lambda part: np.zeros(np.shape(part)), points)
    coarse = tuple(
        np.full(np.shape(part), value) for part, value in zip(points.coarse, (0, 0, V, 0, loss, 0), strict=True)
    )
    return blank._replace(V=V, loss=loss, coarse=coarse)


@eqx.filter_jit
def _loss_at_zero(loss: Loss, labels: LabelModel, V: Any) -> Any:
    return labels.averages(loss, 0.0, 1e-12, V, panel()).loss


def _constant(points: ProximalPoint, status: Status) -> ProximalPoint:
    """Points without values."""
    blank = jax.tree.map(lambda part: np.full(np.shape(part), np.nan), points)
    return blank._replace(status=int(status), iterations=0)


def _replaced(points: ProximalPoint, where: np.ndarray, other: ProximalPoint) -> ProximalPoint:
    def choose(mine: Any, theirs: Any) -> np.ndarray:
        return np.where(where.reshape(where.shape + (1,) * (np.ndim(mine) - 1)), theirs, mine)

    return jax.tree.map(choose, points, other)


@jax.jit
def _least_squares(moments: tuple[Any, Any], strength: Any, alpha: Any) -> ProximalPoint:
    """The square loss with a ridge, in closed form (see the module), from E[z y] and E[y^2]."""
    gamma, power = moments
    Delta = jnp.maximum(power - gamma**2, 0.0)
    total = 1 + alpha + strength
    room = total**2 - 4 * alpha
    S = 2 * alpha / (total + jnp.sqrt(jnp.maximum(room, 0.0)))
    left = alpha - S
    rest = 1 - S * (S / jnp.where(alpha > 0, alpha, 1.0))
    q = (S**2 * gamma**2 + (1 - rest) * (Delta + gamma**2 * (1 - 2 * S))) / jnp.where(rest > 0, rest, jnp.nan)
    q = jnp.where(alpha > 0, q, 0.0)
    shrink = jnp.where(alpha > 0, left / jnp.where(alpha > 0, alpha, 1.0), strength / (1 + strength))
    loss = (power - 2 * gamma * (gamma * S) + q) * shrink**2 / 2
    c = gamma * S / jnp.sqrt(jnp.where(q > 0, q, 1.0))
    stable = (room >= 0) & (total > 0) & ((left > 0) | (strength == 0) | (alpha == 0)) & ((strength >= 0) | (alpha > 1))
    status = jnp.where(stable, int(Status.CONVERGED), int(Status.OUT_OF_DOMAIN))
    status = jnp.where(stable & (rest <= 0), int(Status.DIVERGED), status)
    V = jnp.where(left > 0, S / jnp.where(left > 0, left, 1.0), jnp.inf)
    V = jnp.where((alpha == 0) & (strength != 0), 1 / jnp.where(strength == 0, 1.0, strength), V)
    replicon = 1 - rest
    active = jnp.ones_like(q)
    return ProximalPoint(
        c=c,
        q=q,
        V=V,
        m_hat=gamma * left,
        q_hat=2 * alpha * loss,
        V_hat=left,
        replicon=replicon,
        loss=loss,
        energy=alpha * loss + strength * q / 2,
        active=active,
        status=jax.lax.stop_gradient(status),
        residual=jnp.zeros_like(q),
        iterations=jnp.zeros(q.shape, int),
        coarse=(c, q, V, replicon, loss, active),
        slope=jnp.full((*q.shape, 3, 3), jnp.nan),
    )


@eqx.filter_jit
def _report(points: ProximalPoint, known: Facts, margin: bool, sparse: bool) -> tuple[dict, dict, dict]:
    """Metrics, order parameters, and the error of each metric: what coarser quadrature changes."""
    metrics = _metrics(known, margin, sparse, points.c, points.q, points.replicon, points.loss, points.active)
    c, q, _, *others = points.coarse
    coarse = _metrics(known, margin, sparse, c, q, *others)
    uncertainty = {
        name: jax.lax.stop_gradient(jnp.abs(value - coarse[name]) + _ROUNDING * (1 + jnp.abs(value)))
        for name, value in metrics.items()
    }
    return metrics, {"m": points.m} | {name: getattr(points, name) for name in _ORDER}, uncertainty


def _metrics(known: Facts, margin: bool, sparse: bool, c: Any, q: Any, replicon: Any, loss: Any, active: Any) -> dict:
    metrics = estimate_metrics(known, margin, c, q) | {"training_loss": loss, "replicon": replicon}
    return metrics | ({"active_fraction": active} if sparse else {})


def _as_array(leaf: Any) -> np.ndarray:
    """A number as an array, without its derivative where it has one."""
    return np.asarray(jax.lax.stop_gradient(leaf), dtype=float)
