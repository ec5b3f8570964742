r"""The law of $Y = A + \sqrt D Z$, Z a Gaussian symmetric matrix, for any law of A: Biane's parametrisation.

For each real u let $v(u) \ge 0$ solve $\int \mu_A(dt) / ((u - t)^2 + v^2) = 1/D$, with v = 0 where the integral is
smaller even at v = 0. With $w = u + iv$,

    x(u) = u + D Re g_A(w),    mu_Y(x) = v / (pi D),    h(x) = PV int mu_Y(dt) / (x - t) = (x - u) / D,

and x increases with u, at the rate $|c|^2 / \mathrm{Re}\, c$ with $c = 1 + D g_A'(w)$. There is no branch to choose and
nothing to iterate but one scalar root.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from solvable.numerics.gaussian import gauss_legendre
from solvable.spectra.law import Law

NODES = 100
"""Quadrature nodes on each interval of the bulk."""
_STEPS = 40
_HALVINGS = 70
_CLOSE = 1e-9


class FreeSum(NamedTuple):
    """The law of Y on quadrature nodes: E f(x) = sum of `weight` f, the weights holding the density.

    `u` and `v` are Biane's, `x` the eigenvalue, `density` and `hilbert` mu_Y and h there.
    """

    D: Any
    u: jax.Array
    v: jax.Array
    x: jax.Array
    density: jax.Array
    hilbert: jax.Array
    weight: jax.Array


@functools.partial(jax.jit, static_argnames="nodes")
def free_sum(law: Law, D: Any, nodes: int = NODES) -> FreeSum:
    """The law of Y at nodes that make integrals over it converge geometrically.

    On each interval of the bulk u = mid - half cos(phi) with Gauss-Legendre nodes in phi: v is analytic in phi up to
    the ends, where it vanishes like a square root in u.
    """
    intervals = jax.lax.stop_gradient(bulk_intervals(law, D))  # what is integrated vanishes at the ends
    angle, share = gauss_legendre(nodes)
    phi = jnp.pi * jnp.asarray(angle)
    middle, half = intervals.sum(1, keepdims=True) / 2, (intervals[:, 1:] - intervals[:, :1]) / 2
    u = (middle - half * jnp.cos(phi)).ravel()
    step = (half * jnp.sin(phi) * jnp.pi * jnp.asarray(share)).ravel()
    v = height(law, D, u)
    w = u + 1j * v
    shift = D * jnp.real(law.stieltjes(w))
    c = 1 + D * law.stieltjes_slope(w)
    rate = jnp.abs(c) ** 2 / jnp.real(c)
    density = v / (jnp.pi * D)
    weight = jnp.where(step > 0, step * rate * density, 0.0)
    return FreeSum(D, u, v, u + shift, density, shift / D, weight)


def height(law: Law, D: Any, u: jax.Array) -> jax.Array:
    r"""v(u): the root of $H(s) = 1 / \int \mu_A(dt)/((u-t)^2 + s) = D$ with $s = v^2$, and 0 where H(0) > D.

    H is concave and increasing, so that Newton's steps, once below the root, rise to it and never pass it.
    """
    lowest = 1e-40 * D

    def excess(law: Law, D: Any, s: jax.Array) -> tuple[jax.Array, jax.Array]:
        """H - D and dH/ds."""
        v = jnp.sqrt(s)
        w = u + 1j * v
        P = -jnp.imag(law.stieltjes(w))
        H = v / P
        return H - D, (1 + H * jnp.real(law.stieltjes_slope(w))) / (2 * P * v)

    def step(_: int, s: jax.Array) -> jax.Array:
        value, slope = excess(*jax.lax.stop_gradient((law, D)), s)
        return jnp.clip(s - value / slope, jnp.maximum(1e-3 * s, lowest), D)

    s = jax.lax.fori_loop(0, _STEPS, step, jnp.ones_like(u) * jax.lax.stop_gradient(D))
    s = jax.lax.stop_gradient(s)
    value, slope = excess(law, D, s)
    inside = s > 1e-25 * D
    # One more step, whose derivative is that of the root by the implicit function theorem.
    s = jnp.where(inside, s - value / jax.lax.stop_gradient(slope), 1.0)
    return jnp.where(inside, jnp.sqrt(jnp.where(inside, s, 1.0)), 0.0)


@jax.jit
def bulk_intervals(law: Law, D: Any) -> jax.Array:
    """The u at the ends of the intervals on which Y has a density, (gaps + 1) x 2.

    Off the support of A an end solves int mu_A(dt)/(u-t)^2 = 1/D. A gap in which the integral stays above 1/D is
    closed: the bulk is then cut in two where it is smallest, which is where the density of Y is.
    """
    low, high = law.ends
    left, right = law.gaps[:, 0], law.gaps[:, 1]
    lowest = _halve(lambda u: law.spread_slope(u) > 0, left, right)
    opened = (right - left > _CLOSE) & (law.spread(lowest) < 1 / D)
    lowest = jnp.where(right > left, lowest, left)
    reach = jnp.sqrt(D)

    def outside(u: jax.Array) -> jax.Array:
        """Whether u is beyond the end that is looked for; the first half of the ends have the bulk on their left."""
        return law.spread(u) < 1 / D

    # Every end lies between a point in the bulk or at the support, and one beyond it.
    inner = jnp.concatenate([jnp.stack([low, high]), left, right])
    outer = jnp.concatenate([jnp.stack([low - reach, high + reach]), lowest, lowest])
    ends = _halve(outside, inner, outer)
    count = len(left)
    first, last, rises, falls = ends[0], ends[1], ends[2 : 2 + count], ends[2 + count :]
    rises, falls = jnp.where(opened, rises, lowest), jnp.where(opened, falls, lowest)
    return jnp.stack([jnp.concatenate([first[None], falls]), jnp.concatenate([rises, last[None]])], -1)


def _halve(beyond: Any, inner: jax.Array, outer: jax.Array) -> jax.Array:
    """The point between `inner` and `outer` from which on `beyond` holds, elementwise, by bisection.

    The distance from `inner` is halved in its logarithm, since an end may lie very close to the support.
    """
    reach = outer - inner

    def step(_: int, bracket: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        near, far = bracket
        middle = jnp.where(near > 0.25 * far, (near + far) / 2, jnp.sqrt(jnp.maximum(near, 1e-18) * far))
        there = beyond(inner + middle * reach)
        return jnp.where(there, near, middle), jnp.where(there, middle, far)

    start = jnp.zeros_like(reach), jnp.ones_like(reach)
    near, far = jax.lax.fori_loop(0, _HALVINGS, step, start)
    return inner + (near + far) / 2 * reach
