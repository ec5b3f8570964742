"""Searches in one variable: every root and every extremum of the house, one number or many at once.

| function | finds | works on |
|---|---|---|
| `regula_falsi`, `illinois` | a root of a function that is nearly linear in its bracket | NumPy arrays |
| `crossing` | a root of one rising function, or the end nearest to it | plain numbers |
| `every_root` | all roots of one function, close pairs too | NumPy arrays |
| `halving` | where a property begins to hold: no values needed | plain numbers, NumPy and JAX arrays |
| `golden_section` | a minimum | plain numbers and NumPy arrays |
| `first_beyond` | a bracket, by walking outwards | plain numbers |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Root(NamedTuple):
    """A root `x`, the `value` of the function there, and the bracket that is left."""

    x: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def illinois(function: Callable[..., np.ndarray], low: Any, high: Any, *args: np.ndarray) -> np.ndarray:
    """Roots of a NumPy function in brackets that are known to enclose one, to rounding: those of `regula_falsi`."""
    return regula_falsi(function, low, high, *args).x


def regula_falsi(
    function: Callable[..., Any],
    low: Any,
    high: Any,
    *args: np.ndarray,
    ends: tuple[Any, Any] | None = None,
    tolerance: Any = 1e-12,
    precision: float = 1e-13,
    halve_every: int = 0,
    max_steps: int = 100,
) -> Root:
    """Roots of function(x, *args) in brackets [low, high] that are known to enclose one, elementwise.

    Regula falsi in the Illinois form (the weight of an end kept twice is halved): a handful of calls for functions that
    are nearly linear on their bracket, for which a general solver's overhead would dominate. A root is done where
    |value| < `tolerance`, a number, an array like x, or a function of x, or where its bracket is shorter than
    `precision` (1 + |x|). `ends` are the values at low and high, if they are known. With `halve_every` = k every k-th
    step halves the bracket, for functions with folds or jumps at which regula falsi creeps.

    With `args`, arrays like x, the function is asked only for the entries that are not done.
    """
    low, high = (np.array(x, float) for x in np.broadcast_arrays(low, high))
    f_low, f_high = (np.array(f, float) for f in (ends or (function(low, *args), function(high, *args))))
    x, value = high.copy(), f_high.copy()
    last = np.zeros(x.shape, np.int8)
    active = np.ones(x.shape, bool)
    for step in range(1, max_steps + 1 if x.size else 1):
        part = active if args else ...
        a, b, fa, fb = low[part], high[part], f_low[part], f_high[part]
        with np.errstate(divide="ignore", invalid="ignore"):
            trial = (a * fb - b * fa) / (fb - fa)
        inside = (trial > a) & (trial < b) & (not halve_every or step % halve_every != 0)
        trial = np.where(inside, trial, (a + b) / 2)
        f = function(trial, *(arg[part] for arg in args))
        x[part], value[part] = trial, f
        enough = tolerance(trial) if callable(tolerance) else np.broadcast_to(tolerance, x.shape)[part]
        done = (np.abs(f) < enough) | (b - a < precision * (1 + np.abs(trial)))
        if np.all(done):
            break
        left = np.sign(f) == np.sign(fa)
        kept = np.where(left, 1, -1).astype(np.int8)
        weight = np.where(kept == last[part], 0.5, 1.0)
        low[part], high[part] = np.where(left, trial, a), np.where(left, b, trial)
        f_low[part], f_high[part] = np.where(left, f, weight * fa), np.where(left, weight * fb, f)
        last[part] = kept
        active[part] = ~done
    return Root(x, value, low, high)


def crossing(function: Callable[[float], float], low: float, high: float, tolerance: float = 1e-15) -> float:
    """The root of one rising function of a number; an end of the bracket where it has the same sign throughout.

    The method is Brent's; `tolerance` is absolute and relative.
    """
    from scipy.optimize import brentq  # loaded when needed: it takes long to import

    ends = {low: function(low), high: function(high)}
    if ends[low] >= 0:
        return low
    if ends[high] <= 0:
        return high

    def known(x: float) -> float:
        return ends[x] if x in ends else function(x)

    return float(brentq(known, low, high, xtol=tolerance, rtol=max(tolerance, 1e-15)))  # type: ignore[arg-type]


def every_root(function: Callable[[np.ndarray], np.ndarray], grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The roots of a NumPy function within a rising grid, in order, and whether it rises at each.

    Two roots between neighbours of the grid are found where the function turns back next to zero: closer to it than to
    its neighbours on the grid.
    """
    values = function(grid)
    here = np.abs(values[1:-1])
    left, right = (np.sign(values[1:-1]) * part - here for part in (values[:-2], values[2:]))
    back = 1 + np.nonzero((left >= 0) & (right > 0) & (here < np.maximum(left, right)))[0]
    if back.size:
        side = np.sign(values[back])
        turned = golden_section(lambda x: side * function(x), grid[back - 1], grid[back + 1], 30).middle
        grid = np.union1d(grid, turned)
        values = function(grid)
    above = values >= 0
    k = np.nonzero(above[1:] != above[:-1])[0]
    ends = values[k], values[k + 1]
    root = regula_falsi(function, grid[k], grid[k + 1], ends=ends, tolerance=4e-15, precision=1e-15, halve_every=4)
    return root.x, above[k + 1]


class Bracket(NamedTuple):
    """What a search has left: the two ends, and their `middle`."""

    low: Any
    high: Any

    @property
    def middle(self) -> Any:
        return (self.low + self.high) / 2


def arithmetic(low: Any, high: Any) -> Any:
    """The middle of a bracket."""
    return (low + high) / 2


def logarithmic(low: Any, high: Any) -> Any:
    """The geometric middle of positive ends far apart, for a place that may be close to zero; then the plain one."""
    xp: Any = jnp if isinstance(low, jax.Array) or isinstance(high, jax.Array) else np
    return xp.where(low > high / 4, (low + high) / 2, xp.sqrt(low * high))


def halving(
    beyond: Callable[[Any], Any],
    low: Any,
    high: Any,
    steps: int = 60,
    *,
    middle: Callable[[Any, Any], Any] = arithmetic,
    unroll: bool = False,
) -> Bracket:
    """Where, between `low` and `high`, `beyond` begins to hold: the bracket after a number of halvings, elementwise.

    `beyond` is false at `low` and true at `high`; only its truth is used, never a value. Plain numbers stay plain
    numbers; JAX arrays run in a compiled loop, or with `unroll` as one expression. `middle` may be `logarithmic`.
    """
    traced = isinstance(low, jax.Array) or isinstance(high, jax.Array)
    plain = not traced and np.ndim(low) == np.ndim(high) == 0
    where: Any = jnp.where if traced else (lambda there, a, b: a if there else b) if plain else np.where

    def step(_: int, bracket: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = bracket
        x = middle(low, high)
        there = beyond(x)
        return where(there, low, x), where(there, x, high)

    if traced:
        low, high = jnp.broadcast_arrays(low, high)
        return Bracket(*jax.lax.fori_loop(0, steps, step, (low, high), unroll=unroll))
    bracket = (low, high)
    for k in range(steps if np.size(low) else 0):
        bracket = step(k, bracket)
    return Bracket(*bracket)


_GOLDEN = (np.sqrt(5) - 1) / 2


def golden_section(function: Callable[[Any], Any], low: Any, high: Any, steps: int = 50) -> Bracket:
    """A minimum of a function between `low` and `high`, elementwise: the bracket after a number of golden sections.

    Values fix a minimum to half of their digits: some 40 steps are all that rounding allows. For a maximum give -f.
    """
    if not np.size(low):
        return Bracket(low, high)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        go_left = at_left <= at_right
        low, high = np.where(go_left, low, left), np.where(go_left, right, high)
        # One inner point is kept; the other is computed from the ends, so that rounding does not add up.
        fresh = np.where(go_left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        value = function(fresh)
        left, right = np.where(go_left, fresh, right), np.where(go_left, left, fresh)
        at_left, at_right = np.where(go_left, value, at_right), np.where(go_left, at_left, value)
    return Bracket(low, high)


def first_beyond(beyond: Callable[[float], Any], points: Iterable[float]) -> Bracket | None:
    """The first of some points at which `beyond` holds and the one before it (itself if there is none), or None."""
    before = None
    for point in points:
        if beyond(point):
            return Bracket(point if before is None else before, point)
        before = point
    return None
