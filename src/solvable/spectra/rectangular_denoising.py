r"""Recovering a d x L matrix S of known singular values from $Y = S + \sqrt\kappa Z$: keep vectors, shrink values.

With singular values in units of $\sqrt L$ and c = d/L the best estimator invariant under rotations maps x to
$f(x) = x - \kappa a(x)$, $a(x) = (1 - c)/x + 2 c\, x\, \mathrm{Re}\, g_Y(x^2)$, and its mean square error per entry is
[troiani2022optimal]

    mmse(kappa) = kappa - kappa^2 E a(x)^2 = E t - E f(x)^2.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from solvable.numerics.roots import halving
from solvable.spectra.law import Law, ratio
from solvable.spectra.rectangular import NODES, RectangularSum, rectangular_sum, score

_NEWTON = 15
_HALVINGS = 60
_CLOSED = 1e-9


@functools.partial(jax.jit, static_argnames="nodes")
def rectangular_mmse(law: Law, beta: Any, kappa: Any, nodes: int = NODES) -> jax.Array:
    """The error of the optimal estimator; 0 at kappa = 0, the mean of the law as kappa grows."""
    return rectangular_mmse_of(law, rectangular_sum(law, beta, kappa, nodes))


def rectangular_mmse_of(law: Law, found: RectangularSum) -> jax.Array:
    """The same where the law of Y is at hand; of the two formulas the one in which less cancels."""
    by_score, by_square = rectangular_mmse_forms(law.mean, found)
    return jnp.where(law.mean > found.kappa, by_score, by_square)


def rectangular_mmse_forms(mean: Any, found: RectangularSum) -> tuple[Any, Any]:
    """The error by both formulas, `mean` that of the law; their difference is the numerical error of the worse one.

    For one law of Y or for several along a leading axis, on JAX or numpy arrays.
    """
    kappa = found.kappa
    shrunk = found.x - kappa[..., None] * found.score
    by_score = kappa - kappa**2 * (found.weight * found.score**2).sum(-1)
    return by_score, mean - (found.weight * shrunk**2).sum(-1)


@jax.jit
def optimal_singular_values_of(law: Law, beta: Any, found: RectangularSum, x: Any) -> jax.Array:
    """f(x) for singular values inside the bulk of Y or outside it, as finite matrices have them.

    The root omega of z(omega) = x^2 is complex inside the bulk, where Newton's method starts from the nodes of the law
    of Y. Outside omega is real, z increases with it, and an interval is halved.
    """
    x = jnp.asarray(x)
    c, kappa = 1 / beta, found.kappa
    low, high = _real_bracket(found, x, beta)
    inside = high < low

    def beyond(omega: jax.Array) -> jax.Array:
        return jnp.real(_square(law, c, kappa, omega + 0j)[0]) > x**2

    def newton(_: int, omega: jax.Array) -> jax.Array:
        z, rate = _square(law, c, kappa, omega)[:2]
        omega = omega - (z - x**2) / rate
        return jnp.real(omega) + 1j * jnp.abs(jnp.imag(omega))

    start = (jnp.interp(x, found.x, found.p) + 1j * jnp.interp(x, found.x, found.q)) ** 2
    in_bulk = jax.lax.fori_loop(0, _NEWTON, newton, start)
    safe = jnp.where(inside, found.p[-1] ** 2, low), jnp.where(inside, found.p[-1] ** 2, high)
    omega = jnp.where(inside, in_bulk, halving(beyond, *safe, _HALVINGS).middle)
    return x - kappa * score(beta, x, _square(law, c, kappa, omega)[2])


def _square(law: Law, c: Any, kappa: Any, omega: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """z(omega), its derivative, and g_Y(z)."""
    g = law.stieltjes(omega)
    h, slope = 1 + kappa * c * g, kappa * c * law.stieltjes_slope(omega)
    shift = kappa * (1 - c)
    return h * (omega * h + shift), h * h + (2 * omega * h + shift) * slope, ratio(g, h)


def _real_bracket(found: RectangularSum, x: jax.Array, beta: Any) -> tuple[jax.Array, jax.Array]:
    """The real omega between which that of x lies if x is outside the bulk; else a pair in falling order."""
    ends = found.intervals
    count = len(ends)
    first, last = found.x.reshape(count, -1)[:, 0], found.x.reshape(count, -1)[:, -1]
    left, right = ends[:, 0], ends[:, 1]
    # Where the bulk starts at p = 0 its curve leaves the real axis at a negative omega.
    start = jnp.where(left[0] > 0, left[0] ** 2, found.p[0] ** 2 - found.q[0] ** 2)
    low, high = jnp.ones_like(x), jnp.zeros_like(x)
    # z < 0 at omega = -2 kappa, and z > omega on the right of the bulk. A square matrix has no gap at x = 0.
    below = (x < first[0]) & (beta > 1)
    low, high = (jnp.where(below, new, old) for new, old in ((-2 * found.kappa, low), (start, high)))
    low, high = (jnp.where(x > last[-1], new, old) for new, old in ((right[-1] ** 2, low), (x**2, high)))
    opened = left[1:] - right[:-1] > _CLOSED * right[-1]
    between = opened & (x[..., None] > last[:-1]) & (x[..., None] < first[1:])
    in_gap, gap = jnp.any(between, -1), jnp.argmax(between, -1) if count > 1 else jnp.zeros(x.shape, int)
    low = jnp.where(in_gap, right[gap] ** 2, low)
    return low, jnp.where(in_gap, left[jnp.minimum(gap + 1, count - 1)] ** 2, high)
