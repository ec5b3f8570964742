r"""The law of $Y = A + \sqrt D Z$, Z a Gaussian symmetric matrix, for any law of A: Biane's parametrisation.

It is that of [biane1997free]. For each real u let $v(u) \ge 0$ solve $\int \mu_A(dt) / ((u - t)^2 + v^2) = 1/D$, with
v = 0 where the integral is smaller even at v = 0. With $w = u + iv$,

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
from solvable.numerics.roots import halving
from solvable.spectra.law import Law

NODES = 100
"""Quadrature nodes on each interval of the bulk; where there are many intervals each has fewer."""
_FEW = 8
_STEPS = 60
_HALVINGS = 26
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
def free_sum(law: Law, D: Any, nodes: int = NODES, above: Any = None, rule: Any = None) -> FreeSum:
    """The law of Y at nodes that make integrals over it converge geometrically.

    On each interval of the bulk u = mid - half cos(phi) with Gauss-Legendre nodes in phi: v is analytic in phi up to
    the ends, where it vanishes like a square root in u. With `above` only the part of the law with u > `above` is
    kept, cut there exactly: integrals of (x - theta)_+ with theta = x(`above`) converge as fast. A `rule` holds the
    nodes on [0, 1] and weights for each interval, in place of those of `nodes`.
    """
    intervals = bulk_intervals(law, D)  # no derivative: what is integrated vanishes at the ends
    first, last = _merged(intervals)
    if above is not None:
        intervals = jnp.maximum(intervals, above)
    angle, share = gauss_legendre(nodes_each(nodes, len(intervals))) if rule is None else rule
    phi = jnp.pi * jnp.asarray(angle)
    middle, half = intervals.sum(1, keepdims=True) / 2, (intervals[:, 1:] - intervals[:, :1]) / 2
    u = middle - half * jnp.cos(phi)
    start = (u - first) * (last - u)  # v^2 of one semicircle on the whole interval
    step = (half * jnp.sin(phi) * jnp.pi * jnp.asarray(share)).ravel()
    u = u.ravel()
    v = height(law, D, u, start.ravel())
    inside = v > 0
    w = u + 1j * jnp.where(inside, v, 1e-20 * jnp.sqrt(D))  # on an end of the support itself the slope is infinite
    shift = D * jnp.real(law.stieltjes(w))
    c = 1 + D * law.stieltjes_slope(w)
    rate = jnp.real(c) + jnp.imag(c) ** 2 / jnp.real(c)
    density = v / (jnp.pi * D)
    weight = jnp.where(inside & (step > 0), step * rate * density, 0.0)
    return FreeSum(D, u, v, u + shift, density, shift / D, weight)


def nodes_each(nodes: int, intervals: int) -> int:
    """Nodes on each of many intervals: one of them holds little mass, and its neighbours share the work."""
    return max(nodes // 8, -(-nodes * _FEW // max(intervals, _FEW)))


def _merged(intervals: jax.Array) -> tuple[jax.Array, jax.Array]:
    """For each interval the ends of the union of those it touches, as columns."""
    left, right = intervals[:, 0], intervals[:, 1]
    apart = left[1:] > right[:-1]
    first = jax.lax.cummax(left.at[1:].set(jnp.where(apart, left[1:], -jnp.inf)))
    last = jax.lax.cummin(right.at[:-1].set(jnp.where(apart, right[:-1], jnp.inf)), reverse=True)
    return first[:, None], last[:, None]


def height(law: Law, D: Any, u: jax.Array, start: jax.Array | None = None) -> jax.Array:
    r"""v(u): the root of $H(s) = 1 / \int \mu_A(dt)/((u-t)^2 + s) = D$ with $s = v^2$, and 0 where H(0) > D.

    H is concave and increasing, so that Newton's steps, once below the root, rise to it and never pass it. `start` is a
    guess of s.
    """

    def excess(law: Law, D: Any, s: jax.Array) -> tuple[jax.Array, jax.Array]:
        """H - D and dH/ds."""
        P, Q = law.smoothed(u, s)
        return 1 / P - D, Q / P**2

    known, noise = jax.lax.stop_gradient((law, D))
    lowest = 1e-40 * noise

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        s, change, steps = state
        return (steps < _STEPS) & jnp.any(jnp.abs(change) > 1e-7 * s + 1e-14 * noise)

    def step(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        s, _, steps = state
        value, slope = excess(known, noise, s)
        aim = jnp.where(slope > 0, s - value / slope, s - value)  # rounding may spoil a slope next to the support
        new = jnp.clip(aim, jnp.maximum(1e-3 * s, lowest), noise)
        return new, new - s, steps + 1

    s = jnp.broadcast_to(noise, u.shape) if start is None else jnp.clip(start, 1e-10 * noise, noise)
    s = jax.lax.while_loop(unfinished, step, jax.lax.stop_gradient((s + 0.0, s + 0.0, jnp.asarray(0))))[0]
    value, slope = excess(law, D, s)
    # One more step, whose derivative is that of the root by the implicit function theorem.
    change = jnp.where(slope > 0, value / jax.lax.stop_gradient(jnp.where(slope > 0, slope, 1.0)), 0.0)
    inside = (s > 1e-25 * D) & (change < s)
    return jnp.where(inside, jnp.sqrt(jnp.where(inside, s - change, 1.0)), 0.0)


@jax.jit
def bulk_intervals(law: Law, D: Any) -> jax.Array:
    r"""The u at the ends of the intervals on which Y has a density, (gaps + 1) x 2.

    Off the support of A an end solves $S(u) = (\int \mu_A(dt)/(u-t)^2)^{-1/2} = \sqrt D$. A gap in which S stays below
    is closed: the bulk is then cut in two where S is largest, which is where the density of Y is smallest.
    """
    law, D = jax.lax.stop_gradient((law, D))
    low, high = law.ends
    left, right = law.gaps[:, 0], law.gaps[:, 1]
    reach = jnp.sqrt(D)
    thinnest = jnp.where(right > left, halving(lambda u: law.spread_slope(u) > 0, left, right, _HALVINGS).middle, left)
    opened = (right - left > _CLOSE) & (law.spread(thinnest) < 1 / D)
    inner = jnp.concatenate([jnp.stack([low, high]), left, right])
    outer = jnp.concatenate([jnp.stack([low - reach, high + reach]), thinnest, thinnest])
    ends = _climb(law, reach, inner, outer)
    count = len(left)
    rises, falls = (jnp.where(opened, end, thinnest) for end in (ends[2 : 2 + count], ends[2 + count :]))
    return jnp.stack([jnp.concatenate([ends[:1], falls]), jnp.concatenate([rises, ends[1:2]])], -1)


def _climb(law: Law, reach: jax.Array, inner: jax.Array, outer: jax.Array) -> jax.Array:
    """Where S(u) = `reach` between `inner`, an end of the support, and `outer`, by Newton's method from `inner`.

    S is concave in every gap (a power mean of the distances to the support): the steps rise to the root and never pass
    it. Where there is no root they end at `outer`.
    """
    span = jnp.abs(outer - inner)
    side = jnp.sign(outer - inner)
    nearest = jnp.minimum(1e-15 * jnp.maximum(jnp.abs(inner), span), span)

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        distance, change, steps = state
        return (steps < _STEPS) & jnp.any(jnp.abs(change) > 1e-13 * distance + nearest)

    def step(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        distance, _, steps = state
        u = inner + side * distance
        S = law.spread(u) ** -0.5
        rise = -side * S**3 * law.spread_slope(u) / 2
        new = jnp.where(rise > 0, distance + (reach - S) / rise, span)
        new = jnp.where(S > 0, new, 4 * distance)  # rounding has put u on the support
        new = jnp.clip(new, nearest, span)
        return new, new - distance, steps + 1

    distance = jax.lax.while_loop(unfinished, step, (2 * nearest, span + 1.0, jnp.asarray(0)))[0]
    return inner + side * distance
