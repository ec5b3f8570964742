r"""The singular values of $Y = S + \sqrt\kappa Z$, S and Z of d x L entries, $\beta = L/d \ge 1$, Z Gaussian.

Singular values are in units of $\sqrt L$, S has independent uniformly random singular vectors, and `law` is that of the
eigenvalues t of $S S^T/L$, with transform g. With $c = 1/\beta$ and $h(\omega) = 1 + \kappa c\, g(\omega)$ the law of Y
is given by $x^2 = z(\omega) = \omega h^2 + \kappa (1 - c) h$, $g_Y(x^2) = g(\omega)/h(\omega)$ [dozier2007empirical],
on the curve in the upper half-plane of $\omega$ where z is real. That curve needs no choice of a branch, as
Biane's does not for symmetric matrices. With $A_1 = \int \frac{\mu(dt)}{|\omega - t|^2}$ and
$A_2 = \int \frac{t\,\mu(dt)}{|\omega - t|^2}$, Im z = 0 off the real axis means

    F = c A_2 + sqrt(c A_1 (c A_1 |omega|^2 + 1 - c)) = 1 / kappa,

and F falls as q grows at given p, where $p + iq = \sqrt\omega$. (In F the terms $c A_1$, $c A_2$ and
$c A_2 + c A_1 |\omega| = \frac c2 \sum_\pm \int \mu/|p + iq \pm \sqrt t|^2$ all fall with q. If $c A_1 |\omega|$ falls
too so does F; if it rises, the derivative of the root is less than its own.) So each p > 0 has one q(p), or q = 0 where
F < 1 / kappa even there, and x increases with p.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.roots import halving, logarithmic
from solvable.spectra.law import Law, ratio

NODES = 100
"""Quadrature nodes on each interval of the bulk."""
_STEPS = 60
_HALVINGS = 50
_NEAREST = 1e-18


class RectangularSum(NamedTuple):
    """The law of Y on quadrature nodes: E f(x) = sum of `weight` f.

    `p` and `q` are the parameters above, `x` the singular value, `density` that of the singular values, and `score` the
    a(x) of the optimal estimator x - kappa a(x). `intervals` are the p at the ends of the intervals of the bulk.
    """

    kappa: Any
    intervals: Any
    p: Any
    q: Any
    x: Any
    density: Any
    score: Any
    weight: Any


@functools.partial(jax.jit, static_argnames="nodes")
def rectangular_sum(law: Law, beta: Any, kappa: Any, nodes: int = NODES) -> RectangularSum:
    """The law of Y at nodes that make integrals over it converge geometrically.

    On each interval of the bulk p = mid - half cos(phi) with Gauss-Legendre nodes in phi: q vanishes like a square root
    at the ends, and is even in p where the bulk reaches down to p = 0.
    """
    kappa = jnp.asarray(kappa)
    intervals = bulk_intervals(law, beta, kappa)  # no derivative: what is integrated vanishes at the ends
    angle, share = gauss_legendre(nodes)
    phi = jnp.pi * jnp.asarray(angle)
    middle, half = intervals.sum(1, keepdims=True) / 2, (intervals[:, 1:] - intervals[:, :1]) / 2
    p = middle - half * jnp.cos(phi)
    step = (half * jnp.sin(phi) * jnp.pi * jnp.asarray(share)).ravel()
    # The first guess is a semicircle on each interval, and on its mirror image if it reaches p = 0.
    left, right = intervals[:, :1], intervals[:, 1:]
    guess = jnp.where(left > 0, (p - left) * (right - p), right**2 - p**2).ravel()
    # An interval of no width holds nothing: its nodes are put at the next one's first.
    p = jax.lax.cummin(jnp.where(step > 0, p.ravel(), jnp.inf), reverse=True)
    q = height(law, beta, kappa, p, guess)
    W = p + 1j * q
    x, rate, g_Y = image(law, beta, kappa, W)
    density = -2 * x * jnp.imag(g_Y) / jnp.pi
    weight = jnp.where((step > 0) & (q > 0), step * rate * density, 0.0)
    return RectangularSum(kappa, intervals, p, q, x, density, score(beta, x, g_Y), weight)


@functools.partial(jax.jit, static_argnames="nodes")
def rectangular_sums(law: Law, beta: Any, kappa: jax.Array, nodes: int = NODES) -> RectangularSum:
    """The laws of Y for an array of kappa, along a leading axis."""
    return jax.vmap(lambda noise: rectangular_sum(law, beta, noise, nodes))(kappa)


def image(law: Law, beta: Any, kappa: Any, W: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """On the curve, W = p + iq: the singular value x, dx/dp, and g_Y(x^2)."""
    c = 1 / beta
    omega = W**2
    g = law.stieltjes(omega)
    h, slope = 1 + kappa * c * g, kappa * c * law.stieltjes_slope(omega)
    x = jnp.sqrt(jnp.real(h * (omega * h + kappa * (1 - c))))
    # Along the curve dz = C (1 + i q') dp is real.
    C = 2 * W * (h**2 + (2 * omega * h + kappa * (1 - c)) * slope)
    return x, jnp.abs(C) ** 2 / jnp.real(C) / (2 * x), ratio(g, h)


def score(beta: Any, x: jax.Array, g_Y: jax.Array) -> jax.Array:
    r"""$a(x) = (1 - c)/x + 2 c\, x\, \mathrm{Re}\, g_Y(x^2)$."""
    return (1 - 1 / beta) / x + 2 / beta * x * jnp.real(g_Y)


def _repulsion(law: Law, c: Any, p: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array]:
    """F and dF/ds at p and s = q^2."""
    u, v = p**2 - s, 2 * p * jnp.sqrt(s)
    omega = u + 1j * v
    g, slope = law.stieltjes(omega), law.stieltjes_slope(omega)
    A1 = -jnp.imag(g) / v
    A2 = u * A1 - jnp.real(g)
    # dA1/du = -Im g' / v,  dA1/dv^2 = -(A1 + Re g') / (2 v^2),  and u falls by ds while v^2 grows by 4 p^2 ds.
    A1_s = jnp.imag(slope) / v - (A1 + jnp.real(slope)) / (2 * s)
    A2_s = u * A1_s - A1 + jnp.real(slope) + jnp.imag(slope) * v / (2 * s)
    both = c * A1 * (p**2 + s)
    both_s = c * A1_s * (p**2 + s) + c * A1
    root = jnp.sqrt(both**2 + c * (1 - c) * A1)
    return c * A2 + root, c * A2_s + (2 * both * both_s + c * (1 - c) * A1_s) / (2 * root)


def height(law: Law, beta: Any, kappa: Any, p: jax.Array, guess: jax.Array) -> jax.Array:
    """q(p): the root of 1/F = kappa, and 0 where 1/F > kappa at q = 0. `guess` is of q^2."""
    s = _height_squared(law, 1 / jnp.asarray(beta), jnp.asarray(kappa), p, guess)
    return jnp.where(s > 0, jnp.sqrt(jnp.where(s > 0, s, 1.0)), 0.0)


def _excess(law: Law, c: Any, kappa: Any, p: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array]:
    """1/F - kappa and its derivative in s."""
    F, slope = _repulsion(law, c, p, s)
    return 1 / F - kappa, -slope / F**2


@jax.custom_jvp
def _height_squared(law: Law, c: jax.Array, kappa: jax.Array, p: jax.Array, guess: jax.Array) -> jax.Array:
    """Newton's method within a bracket, which is halved in its logarithm where a step would leave it."""
    most = kappa * (c + jnp.sqrt(c * (1 - c)))  # F < (c + sqrt(c (1 - c))) / q^2

    def unfinished(state: tuple[jax.Array, ...]) -> jax.Array:
        s, change, _, _, steps = state
        return (steps < _STEPS) & jnp.any(jnp.abs(change) > 1e-7 * s + 1e-24 * most)

    def step(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        s, _, low, high, steps = state
        value, slope = _excess(law, c, kappa, p, s)
        low, high = jnp.where(value < 0, s, low), jnp.where(value < 0, high, s)
        new = s - value / slope
        new = jnp.where((new >= low) & (new <= high), new, jnp.sqrt(jnp.maximum(low, 1e-4 * s) * high))
        return new, new - s, low, high, steps + 1

    s = jnp.clip(guess, 1e-8 * most, most)
    start = (
        s,
        s,
        jnp.broadcast_to(1e-40 * most, s.shape),
        jnp.broadcast_to(most * (1 + 1e-9), s.shape),
        jnp.zeros((), int),
    )
    s = jax.lax.while_loop(unfinished, step, start)[0]
    return jnp.where(s > 1e-30 * most, s, 0.0)


@_height_squared.defjvp
def _height_squared_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
    """The derivative of the root, by the implicit function theorem."""
    s = _height_squared(*primals)
    safe = jnp.where(s > 0, s, primals[2])
    (_, slope), (change, _) = jax.jvp(lambda *known: _excess(*known, s=safe), primals[:4], tangents[:4])
    return s, jnp.where(s > 0, -change / slope, 0.0)


@jax.jit
def bulk_intervals(law: Law, beta: Any, kappa: Any) -> jax.Array:
    """The p at the ends of the intervals on which Y has a density, (gaps + 1) x 2.

    Off the support of S an end solves F = 1/kappa at q = 0. A gap in which F stays above is closed: the bulk is then
    cut in two where F is smallest. Below the smallest singular value of S the end may be at p = 0.
    """
    law, beta, kappa = jax.lax.stop_gradient((law, beta, kappa))
    c = 1 / beta
    low, high = (jnp.sqrt(end) for end in law.ends)
    left, right = jnp.sqrt(law.gaps[:, 0]), jnp.sqrt(law.gaps[:, 1])
    count = len(left)
    start = jnp.concatenate([jnp.stack([low, high]), left, right])
    reach = jnp.sqrt(kappa * (c + jnp.sqrt(c * (1 - c))))
    outermost = jnp.stack([-low, reach])

    def phase(share: jax.Array, first: jax.Array) -> tuple[jax.Array, None]:
        """First where F, which falls from infinity and rises again in a gap, is smallest; then the ends, from there."""
        extent = jnp.concatenate([outermost, right - left, left - right])
        extent = jnp.where(first, extent, extent * jnp.concatenate([jnp.ones(2), share[2:]]))

        def beyond(part: jax.Array) -> jax.Array:
            F, slope = _on_the_axis(law, c, start + part * extent)
            return jnp.where(first, jnp.sign(extent) * slope > 0, kappa * F < 1)

        # An end may be very close to the support: the logarithm of its distance is halved.
        found = halving(
            beyond, jnp.full_like(share, _NEAREST), jnp.ones_like(share), _HALVINGS, middle=logarithmic
        ).middle
        return jnp.where(first, found, found * jnp.concatenate([jnp.ones(2), share[2:]])), None

    share = jax.lax.scan(phase, jnp.ones_like(start), jnp.array([True, False]))[0]
    ends = start + share * jnp.concatenate([outermost, right - left, left - right])
    # Where nothing is outside the bulk the search ended at the far side.
    first = jnp.where(share[0] > 1 - 1e-12, 0.0, ends[0])
    rises, falls = ends[2 : 2 + count], ends[2 + count :]
    return jnp.stack([jnp.concatenate([first[None], falls]), jnp.concatenate([rises, ends[1:2]])], -1)


def _on_the_axis(law: Law, c: Any, p: jax.Array) -> tuple[jax.Array, jax.Array]:
    """F at q = 0 off the support, and its derivative in omega = p^2."""
    omega = p**2
    A1, A1_slope = law.spread(omega), law.spread_slope(omega)
    A2 = omega * A1 - jnp.real(law.stieltjes(omega + 0j))
    A2_slope = 2 * A1 + omega * A1_slope
    both, both_slope = c * A1 * omega, c * (A1_slope * omega + A1)
    root = jnp.sqrt(both**2 + c * (1 - c) * A1)
    return c * A2 + root, c * A2_slope + (2 * both * both_slope + c * (1 - c) * A1_slope) / (2 * root)
