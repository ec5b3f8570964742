r"""Recovering a symmetric matrix A of known spectrum from $Y = A + \sqrt D Z$: keep eigenvectors, shrink eigenvalues.

The best rotation-invariant estimator maps an eigenvalue y of Y to $f(y) = y - 2 D h(y) = 2u - y$ (u Biane's parameter),
and its error per dimension, $\|\hat A - A\|_F^2/d$, is

    mmse(D) = D - (4 pi^2 / 3) D^2 int mu_Y^3 = E A^2 - E f(Y)^2.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from solvable.numerics.roots import halving
from solvable.spectra.convolution import NODES, FreeSum, bulk_intervals, free_sum, height
from solvable.spectra.law import Law, ratio

_NEWTON = 12
_HALVINGS = 54


@functools.partial(jax.jit, static_argnames="nodes")
def mmse(law: Law, D: Any, nodes: int = NODES) -> jax.Array:
    """The error of the optimal estimator; 0 at D = 0, the variance of the law as D grows."""
    noisy = jnp.asarray(D) > 0
    return jnp.where(noisy, mmse_of(law, free_sum(law, jnp.where(noisy, D, 1.0), nodes)), 0.0)


def mmse_of(law: Law, found: FreeSum) -> jax.Array:
    """The same where the law of Y is at hand; of the two formulas the one in which less cancels."""
    by_cube, by_square = mmse_forms(law, found)
    return jnp.where(law.variance > found.D, by_cube, by_square)


def mmse_forms(law: Law, found: FreeSum) -> tuple[jax.Array, jax.Array]:
    """The error by both formulas; their difference is the numerical error of the worse one."""
    D = found.D
    by_cube = D - 4 * jnp.pi**2 / 3 * D**2 * jnp.sum(found.weight * found.density**2)
    centred = 2 * found.u - found.x - law.mean
    return by_cube, law.variance - jnp.sum(found.weight * centred**2)


def optimal_eigenvalues(law: Law, D: Any, y: Any) -> jax.Array:
    """f(y) = 2 u(y) - y for eigenvalues y inside the bulk of Y or outside it, as finite matrices have them."""
    return 2 * place(law, D, y) - y


@functools.partial(jax.jit, static_argnames="nodes")
def place(law: Law, D: Any, y: Any, nodes: int = NODES) -> jax.Array:
    """Biane's u of an eigenvalue y: the real part of the root w of w + D g(w) = y.

    Inside the bulk w is complex and Newton's method starts from the nodes of the law of Y; outside it w is real,
    y increases with it, and the interval is halved.
    """
    y = jnp.asarray(y)
    intervals = bulk_intervals(law, D)
    left, right = intervals[:, 0], intervals[:, 1]
    first, last = (end + D * jnp.real(law.stieltjes(end + 0j)) for end in (left, right))
    # Where a gap is closed two intervals meet inside the bulk, off the real axis.
    cut, closed = right[:-1], right[:-1] >= left[1:]
    middle = cut + D * jnp.real(law.stieltjes(cut + 1j * height(law, D, cut)))
    first = first.at[1:].set(jnp.where(closed, middle, first[1:]))
    last = last.at[:-1].set(jnp.where(closed, middle, last[:-1]))
    number = jnp.sum(y[..., None] > last, -1)  # of the interval that holds y, or the next one
    count = len(left)
    inside = (number < count) & (y >= first[jnp.minimum(number, count - 1)])
    return jnp.where(inside, _in_the_bulk(law, D, y, nodes), _outside(law, D, y, left, right, number))


def _in_the_bulk(law: Law, D: Any, y: jax.Array, nodes: int) -> jax.Array:
    found = free_sum(law, D, nodes)
    start = jnp.interp(y, found.x, found.u) + 1j * jnp.interp(y, found.x, found.v)

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, change, steps = state
        return (steps < _NEWTON) & jnp.any(change > 1e-13 * (jnp.abs(y) + jnp.sqrt(D)))

    def step(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        w, _, steps = state
        change = ratio(w + D * law.stieltjes(w) - y, 1 + D * law.stieltjes_slope(w))
        new = jnp.real(w - change) + 1j * jnp.abs(jnp.imag(w - change))
        return new, jnp.abs(jnp.real(change)) + jnp.abs(jnp.imag(change)), steps + 1

    w, _, _ = jax.lax.while_loop(unfinished, step, (start, jnp.full(y.shape, jnp.inf), jnp.asarray(0)))
    return jnp.real(w)


def _outside(law: Law, D: Any, y: jax.Array, left: jax.Array, right: jax.Array, number: jax.Array) -> jax.Array:
    # |y - u| = D |g(u)| is at most sqrt(D), since the mean of 1 / (u - t)^2 is at most 1 / D.
    reach = jnp.sqrt(D) * (1 + 1e-9)
    low = jnp.where(number > 0, right[number - 1], y - reach)
    high = jnp.where(number < len(left), left[jnp.minimum(number, len(left) - 1)], y + reach)

    return halving(lambda u: u + D * jnp.real(law.stieltjes(u + 0j)) > y, low, high, _HALVINGS).middle


def divergence(found: FreeSum, f: jax.Array) -> jax.Array:
    r"""$\iint \frac{f(x) - f(y)}{x - y} \mu_Y \mu_Y = 2 \int f h \mu_Y$ for f at the nodes, also with jumps."""
    return 2 * jnp.sum(found.weight * f * found.hilbert)
