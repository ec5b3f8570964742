r"""The level sets of g as weighted points: the coarea formula on lines along every axis, with a partition of unity.

For any test function f, any y, and with t the coordinate along axis j,

    \int f(z) \delta(y - g(z)) dz = \sum_j \int dz_{-j} \sum_{t: g = y} f p_j / |\partial_j g|,    \sum_j p_j = 1.

With p_j growing like a high power of the j-th component of the normal, the weight vanishes smoothly where a line is
tangent to the level set, so that the trapezoidal rule over lines keeps its accuracy, and no choice of axis is needed.
Near a break plane z_j = c the lines along j, on which the level set may end, hand over to the others.

A flat value of g is a set of positive volume: its points fill the stretches of lines along one axis.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.channels.levels.fibres import Fibres
from solvable.channels.levels.surface import Surface
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.roots import regula_falsi
from solvable.numerics.threads import each

_POWER = 3
_HANDOVER = 0.35
_STEPS = 60
_NEAR_ACCURACY, _NEAR_SHARE = 1e-10, 3e-4
_SAME = 1e-9
_MOST_CROSSINGS = 400_000


@dataclasses.dataclass(frozen=True)
class PointSets:
    """Weighted points of several labels: points `start[l]` to `start[l + 1]` belong to label l.

    The integral of f over the set of label l is the sum of `weight` f(`z`) over its points; `gradient` is that of g.
    """

    z: np.ndarray
    weight: np.ndarray
    gradient: np.ndarray
    start: np.ndarray

    @property
    def label(self) -> np.ndarray:
        """The label of each point."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @classmethod
    def gathered(cls, z: np.ndarray, weight: np.ndarray, gradient: np.ndarray, label: np.ndarray, count: int):
        """Points in any order, sorted by label."""
        order = np.argsort(label, kind="stable")
        start = np.searchsorted(label[order], np.arange(count + 1))
        return cls(z[order], weight[order], gradient[order], start)

    def chosen(self, labels: np.ndarray) -> PointSets:
        """The points of the given labels, in their order."""
        count = np.diff(self.start)[labels]
        start = np.concatenate([[0], np.cumsum(count)])
        place = np.arange(start[-1]) + np.repeat(self.start[labels] - start[:-1], count)
        return PointSets(self.z[place], self.weight[place], self.gradient[place], start)


def joined(*parts: PointSets) -> PointSets:
    """The labels of all parts, one part behind the other."""
    count = np.concatenate([np.diff(part.start) for part in parts])
    z, weight, gradient = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("z", "weight", "gradient")
    )
    return PointSets(z, weight, gradient, np.concatenate([[0], np.cumsum(count)]))


def level_points(
    surface: Surface, grids: list[Fibres], y: np.ndarray, radius: float, accuracy: float = 4e-14, least: float = 1e-9
) -> PointSets:
    """The level sets {g = y} of an array of labels within a ball of the given radius; g = y to `accuracy` (1 + |y|).

    Points with a share p_j below `least` are left to the lines along the other axes.
    """
    # Few labels at a time where lines are many: the search for roots takes several times the memory of its result.
    count = -(-len(y) * max(len(grid.base) for grid in grids) // _MOST_CROSSINGS)
    if count > 1:
        some = np.array_split(y, min(count, len(y)))
        return joined(*(level_points(surface, grids, labels, radius, accuracy, least) for labels in some))
    r = surface.projections

    def on_axis(grid: Fibres) -> tuple[np.ndarray, ...]:
        return _on_axis(surface, grid, _crossings(grid, y), y, accuracy, least, radius)

    parts = each(on_axis, grids)
    z, gradient, weight, label = (np.concatenate([part[k] for part in parts]) for k in range(4))
    return PointSets.gathered(z.reshape(-1, r), weight, gradient.reshape(-1, r), label, len(y))


def level_points_of_rows(
    surface: Surface, grids: list[Fibres], rows: list[np.ndarray], y: np.ndarray, scale: np.ndarray, noise: float
) -> PointSets:
    """The level sets {g = y} of labels with lines of their own: `rows` tells for each grid whose lines they are.

    The partition of unity is that of coordinates in units of `scale` (r,), and of the noise of the label: it has lines
    along itself, whose share is `share_of_noise`.
    """

    def on_axis(grid: Fibres, row: np.ndarray) -> tuple[np.ndarray, ...]:
        line, cell = np.nonzero(grid.sound & _between(grid, y[row][:, None]))
        return _on_axis(
            surface, grid, (line, cell, row[line]), y, _NEAR_ACCURACY, _NEAR_SHARE, scale=scale, noise=noise
        )

    parts = [on_axis(grid, row) for grid, row in zip(grids, rows, strict=True)]
    z, gradient, weight, label = (np.concatenate([part[k] for part in parts]) for k in range(4))
    return PointSets.gathered(z, weight, gradient, label, len(y))


def _between(grid: Fibres, y: np.ndarray) -> np.ndarray:
    """Whether y is between the values at the ends of a cell; half-open, so that a node is counted once."""
    a, b = grid.g[:, :-1], grid.g[:, 1:]
    return (np.minimum(a, b) <= y) & (y < np.maximum(a, b))


def _on_axis(
    surface: Surface,
    grid: Fibres,
    crossings: tuple[np.ndarray, ...],
    y: np.ndarray,
    accuracy: float,
    least: float,
    radius: float = np.inf,
    scale: np.ndarray | None = None,
    noise: float = 0.0,
) -> tuple[np.ndarray, ...]:
    line, cell, label = crossings
    t, value = _roots(surface, grid, line, cell, y[label], accuracy)
    z = grid.points(line, t)
    found = (np.abs(value - y[label]) < 1e-5 * (1 + np.abs(y[label]))) & (np.sum(z**2, 1) <= radius**2)
    z, line, label = z[found], line[found], label[found]
    gradient = surface.gradient(z)
    share, total, squared = _shares(surface, z, gradient, scale, noise)
    steepness = np.abs(gradient[:, grid.axis])
    weight = grid.weight[line] * share[:, grid.axis] / np.maximum(total * steepness, 1e-300)
    # On a break plane every share may vanish: the line that found the point keeps it.
    alone = total <= 1e-12
    plain = grid.weight[line] * squared[:, grid.axis] / np.maximum(squared.sum(1) * steepness, 1e-300)
    weight = np.where(alone, plain, weight)
    good = np.isfinite(weight) & (weight > 0) & (alone | (share[:, grid.axis] >= least * total))
    return z[good], gradient[good], weight[good], label[good]


def _shares(
    surface: Surface, z: np.ndarray, gradient: np.ndarray, scale: np.ndarray | None, noise: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p_j of each axis, up to their total, which is given with that of the noise, and the squared slopes."""
    r = surface.projections
    widths = np.full(r, _HANDOVER) if scale is None else np.minimum(scale, _HANDOVER)
    squared = gradient**2 if scale is None else (gradient * scale) ** 2
    normal = squared / np.maximum(squared.sum(1, keepdims=True) + noise, 1e-300)
    away = [_away(z[:, i], planes, width) for i, (planes, width) in enumerate(zip(surface.planes, widths, strict=True))]
    share = normal**_POWER * np.stack(away, 1)
    along_noise = (noise / np.maximum(squared.sum(1) + noise, 1e-300)) ** _POWER
    return share, share.sum(1) + along_noise, squared


def share_of_noise(surface: Surface, z: np.ndarray, scale: np.ndarray, noise: float) -> np.ndarray:
    """The share of lines along the noise of the label at points z, which meet y = g(z) + noise once each."""
    share, total, _ = _shares(surface, z, surface.gradient(z), scale, noise)
    return np.where(total > 0, (total - share.sum(1)) / np.maximum(total, 1e-300), 1.0)


def _crossings(grid: Fibres, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(line, cell, label) of every sound cell whose values enclose a label."""
    line, cell = np.nonzero(grid.sound & (grid.g[:, 1:] != grid.g[:, :-1]))
    a, b = grid.g[line, cell], grid.g[line, cell + 1]
    low, high = np.minimum(a, b), np.maximum(a, b)
    order = np.argsort(y, kind="stable")
    # The labels inside a cell are consecutive once sorted; half-open, so that a node is counted once.
    first, last = np.searchsorted(y[order], low, side="left"), np.searchsorted(y[order], high, side="left")
    count = last - first
    which = np.repeat(np.arange(len(line)), count)
    offset = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return line[which], cell[which], order[first[which] + offset]


def _roots(surface: Surface, grid: Fibres, line, cell, y, accuracy) -> tuple[np.ndarray, np.ndarray]:
    """The root of g = y in each cell and the value there; near a fold regula falsi creeps, and halvings help."""

    def excess(t: np.ndarray, line: np.ndarray, y: np.ndarray) -> np.ndarray:
        return surface.function(grid.points(line, t)) - y

    found = regula_falsi(
        excess,
        grid.t[line, cell],
        grid.t[line, cell + 1],
        line,
        y,
        ends=(grid.g[line, cell] - y, grid.g[line, cell + 1] - y),
        tolerance=accuracy * (1 + np.abs(y)),
        precision=0.0,
        halve_every=3,
        max_steps=_STEPS,
    )
    return found.x, found.value + y


def _away(coordinate: np.ndarray, planes: np.ndarray, width: float) -> np.ndarray:
    """A smooth factor that vanishes on the break planes and is 1 further than `width` away from them."""
    factor = np.ones(len(coordinate))
    for c in planes:
        factor *= -(np.expm1(-(((coordinate - c) / width) ** 2)) ** 3)
    return factor


def flat_points(surface: Surface, grid: Fibres, atoms: np.ndarray, step: float, radius: float) -> PointSets:
    """The sets {g = atom}: stretches of lines, filled with Gauss-Legendre nodes no coarser than `step`."""
    middle = (grid.t[:, 1:] + grid.t[:, :-1]) / 2
    tolerance = _SAME * (1 + np.abs(atoms))
    z, weight, label = [np.zeros((0, surface.projections))], [np.zeros(0)], [np.zeros(0, int)]
    with np.errstate(invalid="ignore"):
        same = [np.abs(grid.g - a) <= e for a, e in zip(atoms, tolerance, strict=True)]
        value = grid.values(surface.function, middle) if len(atoms) else middle
        at_middle = [np.abs(value - a) <= e for a, e in zip(atoms, tolerance, strict=True)]
    for k in range(len(atoms)):
        cells = grid.sound & same[k][:, 1:] & same[k][:, :-1] & at_middle[k]
        line, low, high = _stretches(cells, grid.t, np.full(len(grid.base), radius) - 0.0)
        for count, chosen in _by_count(high - low, step):
            x, w = gauss_legendre(count)
            t = low[chosen, None] + (high - low)[chosen, None] * x
            points = grid.points(np.repeat(line[chosen], count), t.ravel())
            mass = (grid.weight[line[chosen], None] * (high - low)[chosen, None] * w).ravel()
            inside = np.sum(points**2, 1) <= radius**2
            z.append(points[inside])
            weight.append(mass[inside])
            label.append(np.full(int(inside.sum()), k))
    z = np.concatenate(z)
    return PointSets.gathered(z, np.concatenate(weight), np.zeros_like(z), np.concatenate(label), len(atoms))


def _stretches(cells: np.ndarray, t: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(line, low, high) of the runs of consecutive marked cells, cut at the reach of the rule."""
    padded = np.pad(cells, ((0, 0), (1, 1)))
    change = np.diff(padded.astype(np.int8), axis=1)
    line, first = np.nonzero(change == 1)
    _, last = np.nonzero(change == -1)
    low, high = t[line, first], t[line, last]
    low, high = np.clip(low, -reach[line], reach[line]), np.clip(high, -reach[line], reach[line])
    keep = high - low > 1e-12
    return line[keep], low[keep], high[keep]


def _by_count(length: np.ndarray, step: float):
    """Groups of stretches that take the same number of nodes."""
    count = np.maximum(4, np.ceil(1.3 * length / step)).astype(int)
    # Few distinct counts keep the number of groups small.
    count = np.where(count > 12, 4 * -(-count // 4), count)
    for n in np.unique(count):
        yield int(n), np.nonzero(count == n)[0]


def best_flat_axis(grids: list[Fibres]) -> tuple[int, float]:
    """The axis on whose lines the number of jumps varies least, and its variance there.

    Where it does not vary, the stretches move smoothly from line to line.
    """

    def variation(grid: Fibres) -> float:
        jumps = np.sum(np.abs(np.diff(grid.g, axis=1)) > 1e-9, axis=1)
        mass = grid.weight * np.exp(-np.sum(grid.base**2, 1) / 2)
        mean = np.sum(mass * jumps) / np.sum(mass)
        return float(np.sum(mass * (jumps - mean) ** 2) / np.sum(mass))

    variations = [variation(grid) for grid in grids]
    best = int(np.argmin(variations))
    return best, variations[best]
