"""Where a target of one projection has a kink, a jump, a pole or a domain edge.

Piecewise quadrature is exact only if it knows these points. For a formula they are zeros of sub-expressions
(`expression.break_expressions`), found to machine precision. For a callable they are found from values alone: near
a break the fourth difference of g over points a distance h apart shrinks like h^p with p < 3 (jump 0, kink 1, jump
of the second derivative 2), elsewhere like h^4.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable

import numpy as np

from solvable.core.errors import TargetError, bad_parameter
from solvable.numerics.roots import golden_section, halving
from solvable.targets.expression import Expression, break_expressions, evaluate
from solvable.targets.target import Target

Function = Callable[[np.ndarray], np.ndarray]

GRID_POINTS = 8001
MAX_BREAKS = 10_000
MERGE = 1e-12
_EPS = float(np.finfo(float).eps)


def find_breaks(target: Target, radius: float = 9.0) -> np.ndarray:
    """Sorted points of (-radius, radius) where g may have a kink, a jump, a pole or a domain edge.

    A formula with more than `MAX_BREAKS` of them, such as `sign(sin(1/z))`, raises `TargetError`.
    A point where g turns out smooth (0 for `abs(z**2)`) may be listed for a formula. Breaks of a callable that lie
    closer together than about radius/1000, or are weaker than about 1e-7 of its slope, may be missed.
    """
    if target.projections != 1:
        raise ValueError(f"breaks are defined for one projection, and {target.name} has {target.projections}.")
    if not (np.isfinite(radius) and radius > 0):
        raise bad_parameter("radius", radius, "finite and positive")
    known = np.zeros(0)
    if target.expression is not None:
        for u, _ in break_expressions(target.expression):
            known = _merge(known, _zeros(u, known, radius))
    else:
        known = numeric_breaks(lambda z: target.numpy(z[:, None]), radius)
    return known[np.abs(known) < radius - MERGE]


def _grid(radius: float) -> np.ndarray:
    """Equally spaced points over [-radius, radius], shifted so that none falls on a round number."""
    inner = (np.arange(GRID_POINTS - 2) + 0.6180339887498949) / (GRID_POINTS - 2)
    return np.concatenate([[-radius], radius * (2 * inner - 1), [radius]])


def _merge(known: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Both sets sorted, with one member (the one with the shortest decimal form) of each group of near-equals."""
    points = np.sort(np.concatenate([known, new])) + 0.0
    if not points.size:
        return points
    groups = np.split(points, np.flatnonzero(np.diff(points) > MERGE) + 1)
    return np.array([min(group, key=lambda x: len(repr(float(x)))) for group in groups])


# Zeros of an expression


def _zeros(expression: Expression, known: np.ndarray, radius: float) -> np.ndarray:
    """Zeros of u on (-radius, radius), u being smooth between the points `known`; ends of intervals where u = 0."""

    def u(z: np.ndarray) -> np.ndarray:
        return evaluate(expression, [z], np)

    x, values = _resolve(u, known, radius)
    piece = np.searchsorted(known, x)
    usable = (piece[1:] == piece[:-1]) & ~np.isnan(values[1:]) & ~np.isnan(values[:-1])
    zero = values == 0
    crossing = np.flatnonzero(usable & (np.sign(values[1:]) * np.sign(values[:-1]) < 0))
    flat_end = np.flatnonzero(usable & (zero[1:] != zero[:-1]))
    _check_count(expression, len(crossing) + len(flat_end))
    side = np.sign(values[crossing])
    found = [
        _change(lambda z: np.sign(u(z)) != side, x[crossing], x[crossing + 1]),
        _change(lambda z: (u(z) == 0) != zero[flat_end], x[flat_end], x[flat_end + 1]),
        _touching(expression, u, x, values, usable),
    ]
    roots = np.concatenate(found)
    return np.where(np.abs(roots) < 1e-15, 0.0, roots)


def _check_count(expression: Expression, zeros: int) -> None:
    if zeros > MAX_BREAKS:
        raise TargetError(f"{expression} may have more than {MAX_BREAKS} zeros, each a possible break: too many")


def _resolve(u: Function, known: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """A grid fine enough to separate the zeros of u, and the values there.

    It is dense near the points `known`, where zeros of roots and logarithms crowd, and it is halved where the
    curvature inside a cell could hide a zero.
    """
    x = _grid(radius)
    distances = (x[2] - x[1]) * 0.5 ** np.arange(32)
    x = np.unique(np.concatenate([x, *(known[:, None] + side * distances for side in (-1, 1))], axis=None))
    x = x[(np.abs(x) <= radius) & ~np.isin(x, known)]
    values = u(x)
    fresh = np.ones(len(x) - 1, bool)
    for _ in range(12):
        middle = (x[1:] + x[:-1])[fresh] / 2
        at_middle, left, right = u(middle), values[:-1][fresh], values[1:][fresh]
        with np.errstate(invalid="ignore", over="ignore"):
            bend = np.abs(at_middle - (left + right) / 2)
            lowest = np.minimum(np.minimum(np.abs(left), np.abs(right)), np.abs(at_middle))
            crossing = left * right < 0
            split = np.where(crossing, bend > 0.25 * np.abs(right - left), (lowest < 4 * bend) & (lowest > 0))
        split &= ~((left == 0) | (right == 0)) & np.isfinite(bend)
        cells = np.flatnonzero(fresh)[split]
        if not cells.size or len(x) > 400_000:
            break
        x = np.insert(x, cells + 1, middle[split])
        values = np.insert(values, cells + 1, at_middle[split])
        fresh = np.zeros(len(x) - 1, bool)
        first = cells + np.arange(len(cells))
        fresh[first] = fresh[first + 1] = True
    return x, values


def _change(beyond: Callable[[np.ndarray], np.ndarray], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The points where a property that holds at `right` and not at `left` begins, to the last bit."""
    return halving(beyond, left, right, 100).high


def _touching(expression: Expression, u: Function, x: np.ndarray, values: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Zeros where u keeps its sign: local minima of |u| that reach zero within rounding."""
    size, sign = np.abs(values), np.sign(values)
    same = usable[1:] & usable[:-1] & (sign[:-2] * sign[1:-1] > 0) & (sign[2:] * sign[1:-1] > 0)
    low = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:]) & ((size[1:-1] < size[:-2]) | (size[1:-1] < size[2:]))
    i = 1 + np.flatnonzero(same & low)
    _check_count(expression, len(i))
    lowest = golden_section(lambda z: np.abs(u(z)), x[i - 1], x[i + 1], 110).middle
    scale = np.maximum(np.abs(u(lowest - 0.01)), np.abs(u(lowest + 0.01)))
    reached = (np.abs(u(lowest)) <= 1e-9 * scale) & np.isfinite(u(lowest))
    i, lowest = i[reached], lowest[reached]
    if not i.size:
        return lowest
    # Values fix a minimum to half the digits only; a sign change of the slope fixes it to all of them.
    slope = _slope(expression)
    falling = np.sign(slope(x[i - 1]))
    better = (falling * np.sign(slope(x[i + 1])) < 0) & (np.abs(values[i]) > 0)
    exact = _change(lambda z: np.sign(slope(z)) != falling, x[i - 1], x[i + 1])
    return np.where(better, exact, lowest)


def _slope(expression: Expression) -> Function:
    import jax
    import jax.numpy as jnp

    from solvable.core.precision import float64

    def value(z):
        return evaluate(expression, [z], jnp)

    compiled = float64(jax.jit(lambda z: jax.jvp(value, (z,), (jnp.ones_like(z),))[1]))
    return lambda z: np.asarray(compiled(z))


# Breaks of a function known by its values


POINTS = 33
CLOSEST = 1e-7
"""Breaks of a callable that are closer than this count as one."""


def numeric_breaks(g: Function, radius: float) -> np.ndarray:
    """Sorted points of [-radius, radius] where a function of one variable breaks, from its values alone."""
    x = _grid(radius)
    values = g(x)
    finite = np.isfinite(values)
    ends = np.flatnonzero(finite[1:] != finite[:-1])
    edges = _change(lambda z: np.isfinite(g(z)) != finite[ends], x[ends], x[ends + 1])
    typical = np.abs(values[finite & (np.abs(x) < 3)])
    floor = 16 * _EPS * float(np.median(typical)) if typical.size else 0.0
    strength, noise = _fourth_difference(values[None], floor)
    peak = np.pad(strength[0], 2)
    highest = np.max([peak[k : k + strength.size] for k in range(5)], axis=0)
    i = 2 + np.flatnonzero((strength[0] >= highest) & (strength[0] > noise[0]))
    step = x[2] - x[1]
    left, right = np.maximum(x[i] - 3 * step, -radius), np.minimum(x[i] + 3 * step, radius)
    breaks = np.zeros((0, 2))
    for _ in range(5):
        together = _distinct(breaks, _zoom(g, left, right, floor))
        new = together[~np.isin(together[:, 0], breaks[:, 0])]
        if not len(new):
            break
        breaks = together
        # A stronger neighbour hides a break from the first search: look again on both sides of each one found.
        left = np.concatenate([new[:, 1] + CLOSEST / 2, new[:, 0] - 6 * step])
        right = np.concatenate([new[:, 1] + 6 * step, new[:, 0] - CLOSEST / 2])
        room = (left > -radius) & (right < radius)
        left, right = left[room], right[room]
    return _merge(edges, _locate(g, breaks))


def _fourth_difference(values: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """|fourth difference| at the inner points of each row (0 where not finite), and the level that is only rounding.

    Rounding is relative to the values nearby, and at least `floor`: a small value may be a difference of larger ones.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(np.diff(values, 4, axis=-1))
        size = np.where(np.isfinite(values), np.abs(values), 0.0)
    level = np.max([size[:, k : k + difference.shape[1]] for k in range(5)], axis=0)
    return np.where(np.isfinite(difference), difference, 0.0), np.maximum(128 * _EPS * level, floor)


def _zoom(g: Function, left: np.ndarray, right: np.ndarray, floor: float) -> np.ndarray:
    """Narrow each bracket around its largest fourth difference; the final brackets of those that hold a break."""
    strengths = np.full((40, len(left)), np.nan)
    widths = np.full((40, len(left)), np.nan)
    active = np.arange(len(left))
    left, right = left.copy(), right.copy()
    for level in range(40):
        if not active.size:
            break
        a, b = left[active, None], right[active, None]
        x = a + (b - a) * np.linspace(0, 1, POINTS)
        strength, noise = _fourth_difference(g(x.ravel()).reshape(x.shape), floor)
        best = np.argmax(strength, axis=1)
        rows = np.arange(len(active))
        top = strength[rows, best]
        # A break stands out from its surroundings at every scale; curvature and rounding fill the whole bracket.
        audible = top > np.maximum(noise[rows, best], 30 * np.quantile(strength, 0.3, axis=1))
        active, rows, best = active[audible], rows[audible], best[audible]
        strengths[level, active], widths[level, active] = top[audible], (right - left)[active]
        left[active], right[active] = x[rows, np.maximum(best - 1, 0)], x[rows, np.minimum(best + 5, POINTS - 1)]
        wide = (right - left)[active] > 200 * _EPS * (1 + np.abs(left[active]))
        active = active[wide]
    count = np.sum(~np.isnan(strengths), axis=0)
    last, first, column = np.maximum(count - 1, 0), np.maximum(count - 4, 0), np.arange(len(left))
    with np.errstate(invalid="ignore", divide="ignore"):
        power = np.log(strengths[last, column] / strengths[first, column])
        power /= np.log(widths[last, column] / widths[first, column])
    broken = (count >= 4) & (power < 2.6)
    return np.stack([left[broken], right[broken]], axis=1)


def _distinct(found: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Those already found, and of the new brackets the narrowest of each group that is closer than `CLOSEST`."""
    new = new[np.argsort(new[:, 1] - new[:, 0], kind="stable")]
    middles = list(np.sort(found.mean(axis=1)))
    kept = [*found]
    for a, b in new:
        middle, reach = (a + b) / 2, max(CLOSEST, 4 * (b - a))
        place = bisect.bisect(middles, middle)
        if all(abs(middle - other) > reach for other in middles[max(place - 1, 0) : place + 1]):
            middles.insert(place, middle)
            kept.append(np.array([a, b]))
    return np.array(kept).reshape(-1, 2)


def _locate(g: Function, brackets: np.ndarray) -> np.ndarray:
    """A point in each bracket: where parabolas fitted to g on the two sides cross at an angle, else a round number.

    Differences lose a kink in the rounding of g at about 1e-12 |g|/(jump of slope); the fit does better than that.
    """
    a, b = brackets.T
    middle, reach = (a + b) / 2, 1e-4
    t = reach * np.linspace(0.2, 1, 9)
    fit = np.linalg.pinv(np.vander(t, 3, increasing=True))
    right = fit @ g((b + t[:, None]).ravel()).reshape(t.size, -1)
    left = fit @ g((a - t[:, None]).ravel()).reshape(t.size, -1) * np.array([[1], [-1], [1]])
    with np.errstate(all="ignore"):
        # Both parabolas, moved to the middle: c0 + c1 x + c2 x^2 with x the distance from it.
        shift = (b - a) / 2
        right = np.array([right[0] - right[1] * shift + right[2] * shift**2, right[1] - 2 * right[2] * shift, right[2]])
        left = np.array([left[0] + left[1] * shift + left[2] * shift**2, left[1] + 2 * left[2] * shift, left[2]])
        c = right - left
        crossing = middle - c[0] / c[1]
        angled = (np.abs(c[1]) > 10 * np.abs(c[2]) * reach) & (crossing >= a) & (crossing <= b)
    low = np.where(angled, np.maximum(a, crossing - 1e-11), a)
    high = np.where(angled, np.minimum(b, crossing + 1e-11), b)
    middle = np.where(angled, crossing, middle)
    return np.array([_roundest(*row) for row in zip(low, middle, high, strict=True)])


def _roundest(low: float, middle: float, high: float) -> float:
    """A number of at most ten decimals between low and high, since breaks are often typed by hand; or the middle."""
    return next((rounded for k in range(11) if low <= (rounded := round(middle, k)) <= high), middle)
