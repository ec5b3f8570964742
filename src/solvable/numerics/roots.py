"""Roots in one variable, many at once: a bracketing method that works elementwise under `jit`, `vmap` and `grad`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class _Bracket(NamedTuple):
    """The root lies between `a` (the newest point) and `b`; `c` is the point before; `width` that of two steps ago."""

    a: jax.Array
    fa: jax.Array
    b: jax.Array
    fb: jax.Array
    c: jax.Array
    fc: jax.Array
    width: jax.Array
    last_width: jax.Array
    step: jax.Array


def bracketed_root(
    function: Callable[[jax.Array, Any], jax.Array], low: Any, high: Any, args: Any = None, *, max_steps: int = 200
) -> jax.Array:
    """Solve function(x, args) = 0 with low <= x <= high, elementwise on arrays that broadcast together.

    The method is Chandrupatla's (inverse quadratic interpolation where it is safe, bisection elsewhere) with a
    bisection whenever two steps have not halved the bracket; each root is found to a few units of rounding. The answer
    is NaN where the function does not change sign between `low` and `high` or is NaN at one of them, never a guess.
    The function is called on whole arrays and must act elementwise. Derivatives with respect to `args` come from the
    implicit function theorem. Call it inside `jit`: on its own it compiles the function at every call.

    T. R. Chandrupatla, Advances in Engineering Software 28, 145 (1997).
    """
    values = jax.eval_shape(lambda x: function(x, args), jnp.asarray(low) + jnp.asarray(high) + 0.0)
    low, high = (jnp.broadcast_to(jnp.asarray(x, values.dtype), values.shape) for x in (low, high))
    low, high = jax.lax.stop_gradient((low, high))

    def solve(f, start):
        del start
        return _chandrupatla(f, low, high, max_steps)

    def tangent_solve(linear, y):
        return y / linear(jnp.ones_like(y))

    return jax.lax.custom_root(lambda x: function(x, args), low, solve, tangent_solve)


def _chandrupatla(f: Callable[[jax.Array], jax.Array], low: jax.Array, high: jax.Array, max_steps: int) -> jax.Array:
    rounding = 2 * jnp.finfo(low.dtype).eps

    def tolerance(s: _Bracket) -> jax.Array:
        return rounding * jnp.minimum(jnp.abs(s.a), jnp.abs(s.b)) + jnp.finfo(low.dtype).tiny

    def active(s: _Bracket) -> jax.Array:
        return (jnp.abs(s.b - s.a) > tolerance(s)) & _opposite(s)

    def body(s: _Bracket) -> _Bracket:
        t = jnp.where(jnp.abs(s.b - s.a) > 0.5 * s.width, 0.5, _interpolate(s))
        # Never closer to an end than the tolerance, so that the bracket closes from both sides.
        least = jnp.clip(tolerance(s) / jnp.abs(s.b - s.a), 0.0, 0.5)
        x = s.a + jnp.clip(t, least, 1 - least) * (s.b - s.a)
        fx = f(x)
        same = jnp.sign(fx) == jnp.sign(s.fa)
        new = _Bracket(
            a=x,
            fa=fx,
            b=jnp.where(same, s.b, s.a),
            fb=jnp.where(same, s.fb, s.fa),
            c=jnp.where(same, s.a, s.b),
            fc=jnp.where(same, s.fa, s.fb),
            width=s.last_width,
            last_width=jnp.abs(s.b - s.a),
            step=s.step + 1,
        )
        keep = active(s)
        return jax.tree.map(lambda after, before: jnp.where(keep, after, before), new, s)._replace(step=new.step)

    infinite = jnp.full_like(low, jnp.inf)
    f_low, f_high = f(low), f(high)
    start = _Bracket(high, f_high, low, f_low, low, f_low, infinite, infinite, jnp.asarray(0))
    s = jax.lax.while_loop(lambda s: jnp.any(active(s)) & (s.step < max_steps), body, start)
    best = jnp.where(jnp.abs(s.fa) <= jnp.abs(s.fb), s.a, s.b)
    found = _opposite(s) | ((s.fa == 0) & ~jnp.isnan(s.fb)) | ((s.fb == 0) & ~jnp.isnan(s.fa))
    return jnp.where(found, best, jnp.nan)


def _opposite(s: _Bracket) -> jax.Array:
    return jnp.sign(s.fa) * jnp.sign(s.fb) < 0


def _interpolate(s: _Bracket) -> jax.Array:
    """The fraction of the way from a to b where inverse quadratic interpolation puts the root, or 1/2 if unsafe."""
    xi = (s.a - s.b) / (s.c - s.b)
    phi = (s.fa - s.fb) / (s.fc - s.fb)
    t = s.fa / (s.fb - s.fa) * s.fc / (s.fb - s.fc)
    t = t + (s.c - s.a) / (s.b - s.a) * s.fa / (s.fc - s.fa) * s.fb / (s.fc - s.fb)
    safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi) & jnp.isfinite(t)
    return jnp.where(safe, t, 0.5)


def illinois(function: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Roots of a NumPy function in brackets [low, high] that are known to enclose one, elementwise.

    Regula falsi in the Illinois form (the weight of an end kept twice is halved), to rounding: a handful of calls for
    functions that are nearly linear on their bracket, for which a general solver's overhead would dominate.
    """
    f_low, f_high = function(low), function(high)
    root, before = high, np.zeros(np.shape(high))
    for _ in range(100):
        with np.errstate(divide="ignore", invalid="ignore"):
            trial = (low * f_high - high * f_low) / (f_high - f_low)
        root = np.where((trial > low) & (trial < high), trial, (low + high) / 2)
        value = function(root)
        if np.all((np.abs(value) < 1e-12) | (high - low < 1e-13 * (1 + np.abs(root)))):
            break
        left = np.sign(value) == np.sign(f_low)
        kept = np.where(left, 1, -1)
        weight = np.where(kept == before, 0.5, 1.0)
        low, high = np.where(left, root, low), np.where(left, high, root)
        f_low, f_high = np.where(left, value, weight * f_low), np.where(left, weight * f_high, value)
        before = kept
    return root
