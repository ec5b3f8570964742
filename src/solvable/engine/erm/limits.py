"""What empirical risk minimisation tends to where its fixed point does not exist: no samples, or no penalty.

A strength of zero is the limit of a vanishing one, the minimiser of least norm. Where the labels can be fitted without
a loss, V is infinite in that limit. For a loss with its only minimum at residual zero the estimate is then the
interpolating one of least norm (`closed`). For any other loss, such as the hinge loss on separable classes (whose
limit is the largest margin) or one that ignores small residuals, two small strengths are solved: if their estimates
agree, the limit is found; if they do not, the minimum lies at infinity, as for the logistic loss on separable classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from solvable.channels.losses import Loss, has_single_minimum
from solvable.channels.losses.quadrature import panel
from solvable.core.status import Status
from solvable.engine.erm.closed import least_l1_norm, least_squares
from solvable.engine.erm.metrics import Facts
from solvable.engine.solvers.anderson import BLANK, ProximalEvolution, ProximalPoint
from solvable.priors.penalties import Lasso

_SMALL = (1e-7, 1e-8)
_AGREE = 1e-5
LARGEST_V = 1e5
"""V at a small strength is either of the order of its inverse, and infinite in the limit, or far below this."""


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
    loss = float(_loss_at_zero(risk, V))
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
def _loss_at_zero(risk: ProximalEvolution, V: Any) -> Any:
    return risk.output.averages(0.0, 1e-12, V, panel()).loss
