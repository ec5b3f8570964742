"""The landscape of a one-projection target: its monotone branches, flats, critical values, and preimages.

Everything the exact channel needs of g(z) on the line: between two consecutive edges (kinks, jumps, poles, turning
points, ends of flats) g is either constant (an atom of the label law) or strictly monotone (one root for each label).
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from scipy.special import ndtr

from solvable.core.errors import TargetError
from solvable.core.programs import count_target
from solvable.numerics.gaussian import RADIUS, normal_density, panels
from solvable.numerics.roots import golden_section, halving
from solvable.targets.target import Target

_GRID = 6001
_MAX_PIECES = 512
_SLACK = 2e-12
_SIDE = 1e-13
"""One-sided values are taken this far (relative) beside an edge: g at a jump itself (sign(0) = 0) is spurious."""


@dataclasses.dataclass(frozen=True, eq=False)
class Landscape:
    """The pieces of g on [-RADIUS, RADIUS], from left to right.

    `lower`, `upper` are the ends of each piece, `value_lower`, `value_upper` the one-sided limits of g there, and
    `flat` marks constant pieces (their value is `value_lower`).
    """

    target: Target
    lower: np.ndarray
    upper: np.ndarray
    value_lower: np.ndarray
    value_upper: np.ndarray
    flat: np.ndarray

    @property
    def edges(self) -> np.ndarray:
        """The interior ends of the pieces."""
        return self.upper[:-1]

    @functools.cached_property
    def atoms(self) -> np.ndarray:
        """The distinct values of the flats, ascending."""
        return _distinct(self.value_lower[self.flat])

    @functools.cached_property
    def continuous_mass(self) -> float:
        """The probability that the label is not an atom."""
        mass = ndtr(self.upper) - ndtr(self.lower)
        return float(1 - mass[self.flat].sum()) if self.flat.any() else 1.0

    @functools.cached_property
    def critical_values(self) -> np.ndarray:
        """Labels where the number of preimages changes: one-sided values at the interior edges of the branches."""
        left = self.value_upper[:-1][~self.flat[:-1]]
        right = self.value_lower[1:][~self.flat[1:]]
        values = np.concatenate([left, right])
        return _distinct(values[np.abs(values) < 1e12])

    def atom_of(self, y: np.ndarray) -> np.ndarray:
        """The index of the atom that each label equals (to rounding), or -1."""
        if not self.atoms.size:
            return np.full(np.shape(y), -1)
        nearest = np.abs(np.asarray(y)[..., None] - self.atoms).argmin(-1)
        close = np.abs(y - self.atoms[nearest]) <= 1e-9 * (1 + np.abs(y))
        return np.where(close, nearest, -1)

    def preimages(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The root of g(z) = y on each branch, and whether there is one: both of shape (len(y), branches)."""
        y = np.asarray(y, float)
        low, high = self.lower[~self.flat], self.upper[~self.flat]
        g_low, g_high = self.value_lower[~self.flat], self.value_upper[~self.flat]
        below, above = np.minimum(g_low, g_high), np.maximum(g_low, g_high)
        # A label drawn at a turning point or a kink can round past the limit of the branch it came from.
        slack = _SLACK * (1 + np.abs(y[:, None]))
        has_root = (y[:, None] > below - slack) & (y[:, None] < above + slack)
        row, branch = np.nonzero(has_root)
        roots = np.zeros(has_root.shape)
        roots[row, branch] = self._solve(y[row], low[branch], high[branch], g_low[branch], g_high[branch])
        return roots, has_root

    def inverse(self, y: np.ndarray) -> np.ndarray:
        """The point of each branch where g is closest to y: the root, or the end that comes nearest."""
        roots, has_root = self.preimages(y)
        low, high = self.lower[~self.flat], self.upper[~self.flat]
        g_low, g_high = self.value_lower[~self.flat], self.value_upper[~self.flat]
        towards_low = np.abs(y[:, None] - g_low) < np.abs(y[:, None] - g_high)
        return np.where(has_root, roots, np.where(towards_low, low, high))

    def _solve(self, y, low, high, g_low, g_high) -> np.ndarray:
        """The roots of g(z) = y in brackets, at an end where y lies beyond its one-sided value."""
        if not y.size:
            return np.zeros(0)
        side = _SIDE * np.maximum(1.0, np.abs(low)), _SIDE * np.maximum(1.0, np.abs(high))
        low, high = low + side[0], high - side[1]
        rising = np.where(g_high > g_low, 1.0, -1.0)

        def excess(z, y, low, high, rising):
            # At the ends the sign is known from the one-sided limits; g itself may be spurious there.
            inside = rising * (self.target.numpy(z[..., None]) - y)
            return np.where(z <= low, -1.0, np.where(z >= high, 1.0, inside))

        from scipy.optimize import elementwise  # loaded when needed: it takes long to import

        result = elementwise.find_root(
            excess, (low, high), args=(y, low, high, rising), tolerances={"xatol": 1e-15, "xrtol": 1e-15}, maxiter=100
        )
        return result.x


@functools.lru_cache(maxsize=64)
def landscape(target: Target) -> Landscape:
    """The landscape of a one-projection target, or a `TargetError` that says why there is none."""
    count_target()
    breaks = target.breaks
    grid = _grid(breaks)
    values, slopes = target.value_and_slope(grid)
    _refuse_undefined(target, grid, values)
    refuse_infinite_variance(target, breaks)
    edges = _merge(breaks, np.concatenate([_turning_points(target, grid, slopes, breaks), _flat_ends(target, grid)]))
    if len(edges) >= _MAX_PIECES:
        raise TargetError(
            f"the target {target.name!r} has {len(edges) + 1} monotone pieces on [-{RADIUS:g}, {RADIUS:g}]; "
            f"at most {_MAX_PIECES} are handled: make it oscillate less"
        )
    ends = np.concatenate([[-RADIUS], edges, [RADIUS]])
    side = _SIDE * np.maximum(1.0, np.abs(ends))
    lower, upper = ends[:-1], ends[1:]
    value_lower, value_upper = target.numpy((lower + side[:-1])[:, None]), target.numpy((upper - side[1:])[:, None])
    inner = lower[:, None] + (upper - lower)[:, None] * np.linspace(0.01, 0.99, 9)
    sampled = target.numpy(inner.reshape(-1, 1)).reshape(inner.shape)
    spread = sampled.max(1) - sampled.min(1)
    flat = spread <= 1e-14 * (1 + np.abs(sampled).max(1))
    value_lower = np.where(flat, sampled[:, 4], value_lower)
    value_upper = np.where(flat, sampled[:, 4], value_upper)
    found = Landscape(target, lower, upper, value_lower, value_upper, flat)
    if flat.all() and len(found.atoms) == 1:
        raise TargetError(f"the target {target.name!r} is constant: there is nothing to learn")
    return found


def _grid(breaks: np.ndarray) -> np.ndarray:
    """A fine grid that avoids the breaks, with at least a few points between any two of them."""
    ends = np.concatenate([[-RADIUS], breaks, [RADIUS]])
    pieces = []
    for low, high in zip(ends[:-1], ends[1:], strict=True):
        count = max(16, int(_GRID * (high - low) / (2 * RADIUS)))
        pieces.append(low + (high - low) * (np.arange(count) + 0.5) / count)
    return np.concatenate(pieces)


def _refuse_undefined(target: Target, grid: np.ndarray, values: np.ndarray) -> None:
    for bad, what in ((np.isnan(values), "undefined (NaN)"), (np.isinf(values), "infinite")):
        run = bad[1:] & bad[:-1]
        if run.any():
            where = grid[1:][run][0]
            raise TargetError(
                f"the target {target.name!r} is {what} on a set of positive probability (near z = {where:.3g})"
            )


def refuse_infinite_variance(target: Target, breaks: np.ndarray) -> None:
    """Raise a `TargetError` if E[g^2] diverges, at a pole or in the tails."""
    distance = 2.0 ** -np.arange(20, 41, 5)
    for location in breaks:
        for side in (-1.0, 1.0):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                size = np.abs(target.numpy((location + side * distance)[:, None]))
                shells = size**2 * distance
            # Shells that halve in width must lose mass for the integral of g^2 to exist.
            if size[-1] > 1e3 and not shells[-1] < 0.75 * shells[0]:
                raise TargetError(
                    f"the target {target.name!r} has infinite variance: it diverges too fast at z = {location:.6g}"
                )
    z, weight = panels([-37.0, -24.0, -16.0, -12.0, -6.0, 0.0, 6.0, 12.0, 16.0, 24.0, 37.0], 32)
    with np.errstate(over="ignore", invalid="ignore"):
        mass = target.numpy(z[:, None]) ** 2 * weight * normal_density(z)
    mass = np.where(np.isnan(mass), np.inf, mass)
    if not mass[np.abs(z) > 12].sum() <= 1e-6 * mass[np.abs(z) <= 12].sum():
        raise TargetError(
            f"the target {target.name!r} grows too fast: its variance is infinite, or comes from |z| > 12, which no "
            "sample ever reaches"
        )


def _turning_points(target: Target, grid: np.ndarray, slopes: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """Zeros of g' between the breaks: sign changes, and inflections where g' touches zero."""
    left, right = grid[:-1], grid[1:]
    same_piece = np.searchsorted(breaks, left) == np.searchsorted(breaks, right)
    change = same_piece & (slopes[:-1] * slopes[1:] < 0)
    exact = grid[slopes == 0]
    sign = np.sign(slopes[:-1][change])
    turning = halving(lambda z: np.sign(target.value_and_slope(z)[1]) != sign, left[change], right[change]).middle
    return np.concatenate([turning, _touching(target, grid, slopes, same_piece), _isolated(exact, grid)])


def _touching(target: Target, grid: np.ndarray, slopes: np.ndarray, same_piece: np.ndarray) -> np.ndarray:
    """Points where |g'| has a minimum at zero without changing sign (z^3 at 0): its density is infinite there."""
    size = np.abs(slopes)
    scale = np.median(size) + 1e-300
    inner = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:]) & (size[1:-1] > 0) & same_piece[1:] & same_piece[:-1]
    index = 1 + np.nonzero(inner & (size[1:-1] < 1e-2 * scale) & (np.sign(slopes[:-2]) == np.sign(slopes[2:])))[0]
    points = golden_section(lambda z: np.abs(target.value_and_slope(z)[1]), grid[index - 1], grid[index + 1]).middle
    if not points.size:
        return points
    return points[np.abs(target.value_and_slope(points)[1]) < 1e-9 * scale]


def _isolated(exact: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Grid points where g' is exactly zero but which are not inside a flat (those come from `_flat_ends`)."""
    if not exact.size:
        return exact
    step = 2 * np.median(np.diff(grid))
    gaps = np.diff(np.concatenate([[-np.inf], exact, [np.inf]]))
    return exact[(gaps[:-1] > step) & (gaps[1:] > step)]


def _flat_ends(target: Target, grid: np.ndarray) -> np.ndarray:
    """Ends of runs on which g is constant to double precision without a break there (erf(20 z) saturates)."""
    values = target.numpy(grid[:, None])
    equal = values[1:] == values[:-1]
    long_run = equal.copy()
    long_run[1:-1] = equal[1:-1] & (equal[:-2] | equal[2:])
    starts = np.nonzero(long_run[1:] & ~long_run[:-1])[0] + 1
    stops = np.nonzero(~long_run[1:] & long_run[:-1])[0] + 1
    outside, within, level = [], [], []
    for index, inside in ((starts, 1), (stops, -1)):
        for i in index:
            if values[i - inside] != values[i]:
                outside.append(grid[i - inside])
                within.append(grid[i])
                level.append(values[i])
    return halving(lambda z: target.numpy(z[:, None]) == np.array(level), np.array(outside), np.array(within)).middle


def _merge(breaks: np.ndarray, others: np.ndarray) -> np.ndarray:
    """All edges, sorted; an edge found numerically beside a break gives way to the break."""
    edges = list(breaks)
    for point in np.sort(others):
        if -RADIUS < point < RADIUS and all(abs(point - e) > 1e-7 for e in edges):
            edges.append(float(point))
    return np.sort(np.array(edges, float))


def _distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values, ascending, merging those equal to rounding."""
    values = np.sort(values)
    if not values.size:
        return values
    return values[np.concatenate([[True], np.diff(values) > 1e-12 * (1 + np.abs(values[1:]))])]
