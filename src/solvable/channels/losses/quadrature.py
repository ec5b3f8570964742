r"""Gaussian averages of what a proximal operator returns, by quadrature over its result.

The field x ~ N(mean, scale^2) is turned by the proximal operator of a loss profile f into u with x = u + V f'(u). An
average over x is taken over u instead, with dx = (1 + V f''(u)) du, so that the operator is never inverted at the
nodes. The line is cut where f' or f'' jumps and at a few multiples of the scale. At a kink of f an interval of x has
one u; there the average is taken over x itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.losses.base import Loss
from solvable.numerics.gaussian import gauss_legendre

NODES, COARSE = 12, (11, 9)
"""Nodes of a panel, and those of the two rules that tell the error."""
_GRID = (-9.0, -5.0, -2.5, 0.0, 2.5, 5.0, 9.0)
_LEAST_STRETCH = 1e-9
_NEAR = 0.03
_SQRT_2PI = 2.5066282746310002


class Panel(NamedTuple):
    """Nodes and weights on [0, 1] that every panel carries; `full` is 0 for a coarse rule that tells the error."""

    t: Any
    w: Any
    full: Any = 1.0


def panel(nodes: int = NODES) -> Panel:
    """The Gauss-Legendre rule, filled up to `NODES` with nodes of no weight, so that rules share compiled code."""
    t, w = gauss_legendre(nodes)
    idle = NODES - nodes
    filled = np.concatenate([t, np.full(idle, 0.5)]), np.concatenate([w, np.zeros(idle)])
    return Panel(*filled, np.float64(nodes == NODES))


class FieldRule(NamedTuple):
    """Nodes for averages over the field: E F = sum of weight * F, with f, f' and h = f'' / (1 + V f'') at the nodes.

    `slope` is f'(u) = (x - u) / V also inside a kink, and `response` h is its derivative in x.
    """

    field: Any
    weight: Any
    value: Any
    slope: Any
    response: Any


def field_rule(loss: Loss, y: Any, V: Any, mean: Any, scale: Any, panel: Panel, cuts: Any = None) -> FieldRule:
    """The rule for one label y, V, mean and scale (numbers); `cuts` are more places of the field to split at."""
    x, u = _edges(loss, y, V, mean, scale, cuts)
    t, w, _ = panel
    dx, du = jnp.diff(x)[:, None], jnp.diff(u)[:, None]
    at_kink = du <= 0
    place = u[:-1, None] + du * t
    slope, curvature = loss.slope(place, y), loss.curvature(place, y)
    stretch = jnp.maximum(1 + V * curvature, _LEAST_STRETCH)
    field = jnp.where(at_kink, x[:-1, None] + dx * t, place + V * slope)
    density = jnp.exp(-(((field - mean) / scale) ** 2) / 2) / (_SQRT_2PI * scale)
    return FieldRule(
        field=field.ravel(),
        weight=(density * w * jnp.where(at_kink, dx, du * stretch)).ravel(),
        value=loss.profile(place, y).ravel(),
        slope=jnp.where(at_kink, (field - place) / V, slope).ravel(),
        response=jnp.where(at_kink, 1 / V, curvature / stretch).ravel(),
    )


def _edges(loss: Loss, y: Any, V: Any, mean: Any, scale: Any, cuts: Any) -> tuple[Any, Any]:
    """The ends of the panels, as fields x and as results u, in rising order.

    Only ends at which the integrand jumps must move with the parameters for derivatives to be right; the others, found
    by inverting the operator, stay where they are.
    """
    kinks, splits = loss.kinks(y), loss.splits(y)
    place = jnp.concatenate([kinks.place, kinks.place, splits])
    slope = jnp.concatenate([kinks.left, kinks.right, loss.slope(splits, y)])
    known = place + V * slope
    grid = mean + scale * jnp.array(_GRID)
    inside = (known > grid[0]) & (known < grid[-1])
    other = grid if cuts is None else jnp.concatenate([grid, jnp.clip(cuts, grid[0], grid[-1])])
    free = jnp.concatenate([jnp.clip(known, grid[0], grid[-1]), other])
    # Where the grid is cut is a matter of taste; `cuts` are where the integrand is steep.
    tolerance = _NEAR * scale if cuts is None else 0.0
    result, free = jax.lax.stop_gradient(loss.near_prox(free, V, y, tolerance))
    count = len(known)
    x = jnp.concatenate([jnp.where(inside, known, free[:count]), free[count:]])
    u = jnp.concatenate([jnp.where(inside, place, result[:count]), result[count:]])
    order = jnp.lexsort((x, u))
    return x[order], u[order]
