r"""Points of each label near its own omega, for posteriors that are narrower than whole level sets resolve.

Lines on the scale of N(omega, V), about a standard deviation apart and cut at break planes, reach 4.5 of its standard
deviations around omega. They carry the level set of the label {g = y} (`level_points_of_rows`); where g is
flat, or labels have noise that the lines resolve, they are filled with nodes that carry the evidence of the label. The
points depend on omega and V through where they are looked for only: they serve until omega has moved by half a standard
deviation, or V has become wider than they reach or narrower than they resolve.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.channels.levels.fibres import Fibres, stretches
from solvable.channels.levels.points import PointSets, joined, level_points_of_rows, share_of_noise
from solvable.channels.levels.surface import Function, Surface
from solvable.numerics.gaussian import gauss_legendre

_REACH = 4.5
_STEP = {1: 0.5, 2: 0.5, 3: 1.0, 4: 1.0}
_CELLS, _FILLED, _NODES = 8, 5, 3
_LEAST = 1e-10
_WIDER, _NARROWER, _WASTED = 1.15, 1.5, 3.0
"""How much wider, and narrower, V may become while points serve, and how much wider lines may be apart."""
_FEWEST = 3
_MOVED = 0.5
_ROWS = 128
_OBLIQUE = 2.5
_SLOPE_STEP = 1e-6
_FAR, _STRAIGHT = 2.0, 0.01
_MUCH_STEEPER = 4.0
_HERMITE = np.polynomial.hermite_e.hermegauss(7)


class Box(NamedTuple):
    """Around `centre` (n, r) for each row, to a distance `reach` (r,) along each axis, with lines `step` (r,) apart."""

    centre: np.ndarray
    reach: np.ndarray
    step: np.ndarray

    def of(self, rows: slice | np.ndarray) -> Box:
        """The boxes of some rows."""
        return self._replace(centre=self.centre[rows])


Search = Callable[[np.ndarray, Box], PointSets]
"""The points of some rows, given by their numbers, in the boxes of these rows."""


class NearPoints:
    """The points that a search found for each of `count` rows, looked for again only where they no longer serve."""

    def __init__(self, search: Search, count: int, projections: int):
        self._search, self._count = search, count
        self._centre = np.full((count, projections), np.nan)
        self._sigma = self._across = np.zeros(projections)
        self._sets = PointSets(np.zeros((0, projections)), np.zeros(0), np.zeros((0, projections)), np.zeros(1, int))
        self._place = np.full(count, -1)

    def points(self, rows: np.ndarray, omega: np.ndarray, V: np.ndarray) -> PointSets:
        """The points of the given rows for N(omega, V), omega (rows, r)."""
        sigma, across = np.sqrt(np.diag(V)), 1 / np.sqrt(np.diag(np.linalg.inv(V)))
        served = np.all(sigma < _WIDER * self._sigma) and np.all(self._across < _NARROWER * across)
        if not served or np.any(across > _WASTED * self._across):
            self._sigma, self._across = sigma, across
            self._centre[:], self._place[:] = np.nan, -1
        moved = np.abs(omega - self._centre[rows]) > _MOVED * self._sigma
        stale = rows[np.any(moved, 1) | (self._place[rows] < 0)]
        if len(stale):
            self._renew(stale, omega[np.searchsorted(rows, stale)])
        return self._sets.chosen(self._place[rows])

    def _renew(self, rows: np.ndarray, omega: np.ndarray) -> None:
        """Look for the points of these rows; those of the others stay."""
        self._place[rows] = -1
        others = np.nonzero(self._place >= 0)[0]
        kept = self._sets.chosen(self._place[others])
        box = Box(omega, _REACH * _WIDER * self._sigma, _STEP[omega.shape[1]] * self._across)
        chunks = [slice(k, k + _ROWS) for k in range(0, len(rows), _ROWS)]
        self._sets = joined(kept, *(self._search(rows[chunk], box.of(chunk)) for chunk in chunks))
        self._centre[rows] = omega
        self._place[others], self._place[rows] = np.arange(len(others)), len(others) + np.arange(len(rows))


def resolvable(V: np.ndarray) -> np.ndarray:
    """V, its narrow directions widened as far as lines along the axes need to resolve it."""
    v, u = np.linalg.eigh(V)
    while True:
        wide = (u * v) @ u.T
        if np.max(np.diag(wide) * np.diag(np.linalg.inv(wide))) <= _OBLIQUE**2:
            return wide
        v = np.maximum(v, 1.5 * v[0])


def bent(surface: Surface, omega: np.ndarray, V: np.ndarray, noise: float) -> np.ndarray:
    """Whether the gradient of g, on the scale of what a label tells, changes over N(omega, V), for each row."""
    steps = _FAR * np.diag(np.sqrt(np.diag(V)))
    here = surface.gradient(omega)
    told = np.einsum("ni,ij,nj->n", here, V, here) + noise
    crooked = np.zeros(len(omega), bool)
    for step in (*steps, *-steps):
        change = surface.gradient(omega + step) - here
        crooked |= ~(np.einsum("ni,ij,nj->n", change, V, change) <= _STRAIGHT**2 * told)
    return crooked


def breaks_in_reach(surface: Surface, omega: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Whether a kink or a jump of g is within the reach of N(omega, V), for each row."""
    sigma = np.sqrt(np.diag(V))
    near = np.zeros(len(omega), bool)
    for i, planes in enumerate(surface.planes):
        near |= np.any(np.abs(omega[:, i, None] - planes) < _REACH * sigma[i], axis=1)
    for function in surface.break_functions:
        value, slope = function(omega), _slope(function, omega)
        near |= ~(np.abs(value) > _REACH * np.sqrt(np.einsum("ni,ij,nj->n", slope, V, slope)))
    return near


def _slope(function: Function, z: np.ndarray) -> np.ndarray:
    steps = _SLOPE_STEP * np.eye(z.shape[1])
    with np.errstate(all="ignore"):
        return (function(z[:, None] + steps) - function(z[:, None] - steps)) / (2 * _SLOPE_STEP)


def near_level_sets(surface: Surface, y: np.ndarray, box: Box) -> PointSets:
    """The points of {g = y} of each row, y (n,)."""
    fibres, rows = _all_lines(surface, box)
    return level_points_of_rows(surface, fibres, rows, y, box.reach / _REACH, 0.0)


def near_flat_sets(surface: Surface, y: np.ndarray, box: Box) -> PointSets:
    """Nodes in {g = y} of each row, y (n,), where that has a volume."""
    z, weight, row = _nodes(surface, box)
    here = np.abs(surface.function(z) - y[row]) <= 1e-9 * (1 + np.abs(y[row]))
    return PointSets.gathered(z[here], weight[here], np.zeros_like(z[here]), row[here], len(y))


def near_noisy_sets(surface: Surface, y: np.ndarray, noise: float, box: Box) -> PointSets:
    """Points of each row weighted by the evidence N(y; g, noise) of its label y (n,).

    Where g changes by less than the noise these are nodes in z; where it changes by more, level sets of the labels at
    the nodes of a Gauss-Hermite rule in the noise. In between they share, as lines along the axes do.
    """
    scale = box.reach / _REACH
    steep = _steepness(surface, box.centre, scale) / np.sqrt(noise)
    parts = [PointSets(np.zeros((0, len(scale))), np.zeros(0), np.zeros((0, len(scale))), np.zeros(len(y) + 1, int))]
    wide = np.nonzero(steep.min(1) < _MUCH_STEEPER)[0]
    if len(wide):
        parts.append(_spread(_noisy_nodes(surface, y[wide], noise, box.of(wide)), wide, len(y)))
    narrow = np.nonzero(steep.max(1) > 1 / _MUCH_STEEPER)[0]
    if len(narrow):
        fibres, rows = _all_lines(surface, box.of(narrow))
        for xi, weight in zip(*_HERMITE, strict=True):
            labels = y[narrow] + np.sqrt(noise) * xi
            found = level_points_of_rows(surface, fibres, rows, labels, scale, noise)
            parts.append(
                _spread(dataclasses.replace(found, weight=weight / np.sqrt(2 * np.pi) * found.weight), narrow, len(y))
            )
    z, weight, gradient, row = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("z", "weight", "gradient", "label")
    )
    return PointSets.gathered(z, weight, gradient, row, len(y))


def _spread(sets: PointSets, rows: np.ndarray, count: int) -> PointSets:
    """The point sets of some rows as those of `count` rows, the others without any."""
    sizes = np.zeros(count, int)
    sizes[rows] = np.diff(sets.start)
    return dataclasses.replace(sets, start=np.concatenate([[0], np.cumsum(sizes)]))


def _steepness(surface: Surface, omega: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """How much g changes over one `scale` (r,) at omega (n, r) and two scales from it along each axis."""
    steps = _FAR * np.diag(scale)
    places = [omega, *(omega + step for step in (*steps, *-steps))]
    return np.stack([np.linalg.norm(np.nan_to_num(surface.gradient(z)) * scale, axis=1) for z in places], 1)


def _noisy_nodes(surface: Surface, y: np.ndarray, noise: float, box: Box) -> PointSets:
    z, weight, row = _nodes(surface, box)
    weight = weight * np.exp(-((surface.function(z) - y[row]) ** 2) / (2 * noise)) / np.sqrt(2 * np.pi * noise)
    # What weighs nothing beside the others of its row need not be kept.
    most = np.zeros(len(y))
    np.maximum.at(most, row, weight)
    kept = weight > _LEAST * most[row]
    z, weight, row = z[kept], weight[kept], row[kept]
    if not surface.discrete:
        weight = weight * share_of_noise(surface, z, box.reach / _REACH, noise)
    return PointSets.gathered(z, weight, np.zeros_like(z), row, len(y))


def _nodes(surface: Surface, box: Box) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(z, weight, row) of nodes that fill an ellipsoid around each row; none of their cells is cut by a break."""
    axes = _axis_through(surface, box)
    parts = []
    for axis in np.unique(axes):
        mine = np.nonzero(axes == axis)[0]
        z, weight, row = _nodes_along(surface, int(axis), box.of(mine))
        parts.append((z, weight, mine[row]))
    z, weight, row = (np.concatenate(part) for part in zip(*parts, strict=True))
    return z, weight, row


def _nodes_along(surface: Surface, axis: int, box: Box) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    fibres, row = _near_lines(surface, axis, box, _FILLED)
    x, w = gauss_legendre(_NODES)
    line, cell = np.nonzero(fibres.sound)
    low = fibres.t[line, cell]
    width = fibres.t[line, cell + 1] - low
    weight = ((fibres.weight[line] * width)[:, None] * w).ravel()
    line = np.repeat(line, _NODES)
    z, row = fibres.points(line, (low[:, None] + width[:, None] * x).ravel()), row[line]
    inside = np.sum(((z - box.centre[row]) / box.reach) ** 2, 1) <= 1
    return z[inside], weight[inside], row[inside]


def _axis_through(surface: Surface, box: Box) -> np.ndarray:
    """For each row the axis, in units of its box, that crosses the nearest wall that is no plane most steeply."""
    nearest, axes = np.full(len(box.centre), np.inf), np.zeros(len(box.centre), int)
    for function in surface.curved_breaks:
        slope = np.abs(np.nan_to_num(_slope(function, box.centre))) * box.reach
        distance = np.abs(function(box.centre)) / np.maximum(slope.sum(1), 1e-300)
        closer = distance < nearest
        nearest[closer], axes[closer] = distance[closer], np.argmax(slope[closer], 1)
    return axes


def _all_lines(surface: Surface, box: Box) -> tuple[list[Fibres], list[np.ndarray]]:
    """The lines along every axis that meets level sets, and their rows."""
    fibres, rows = zip(*(_near_lines(surface, axis, box, _CELLS) for axis in surface.climbed), strict=True)
    return list(fibres), list(rows)


def _near_lines(surface: Surface, axis: int, box: Box, cells: int) -> tuple[Fibres, np.ndarray]:
    """The lines along `axis` of all rows, within an ellipsoid, and the row of each."""
    n, r = box.centre.shape
    others = [i for i in range(r) if i != axis]
    rules = [_near_rule(surface.planes[i], box.centre[:, i], box.step[i], box.reach[i]) for i in others]
    sizes = [len(x[0]) for x, _ in rules]
    base = np.zeros((n, *sizes, r))
    weight, distance = np.ones((n, *sizes)), np.zeros((n, *sizes))
    for place, (i, (x, w)) in enumerate(zip(others, rules, strict=True)):
        shape = [n, *(size if k == place else 1 for k, size in enumerate(sizes))]
        base[..., i] = x.reshape(shape)
        weight = weight * w.reshape(shape)
        distance = distance + (((x - box.centre[:, i, None]) / box.reach[i]) ** 2).reshape(shape)
    kept = (weight > 0) & (distance <= 1)
    row = np.nonzero(kept)[0]
    low, high = (box.centre[row, axis] + sign * box.reach[axis] for sign in (-1.0, 1.0))
    return stretches(surface, axis, base[kept], weight[kept], low, high, cells), row


def _near_rule(planes: np.ndarray, centre: np.ndarray, step: float, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (n, m) of a coordinate of each row; the trapezoidal rule, or Gauss-Legendre between planes.

    Rows with fewer nodes end in some of weight zero.
    """
    low, high = centre[:, None] - reach, centre[:, None] + reach
    edges = np.concatenate([low, np.clip(planes, low, high), high], 1)
    width = np.diff(edges, axis=1)
    counts = np.where(width > 0, np.maximum(_FEWEST, np.ceil(1.2 * width / step)), 0).astype(int)
    counts[np.all(width[:, :-1] * width[:, 1:] == 0, 1)] = 0
    kinds, which = np.unique(counts, axis=0, return_inverse=True)
    parts = [(which == k, *_panels(edges[which == k], kind, step)) for k, kind in enumerate(kinds)]
    most = max(x.shape[1] for _, x, _ in parts)
    nodes, weights = np.repeat(centre[:, None], most, 1), np.zeros((len(centre), most))
    for rows, x, w in parts:
        nodes[rows, : x.shape[1]], weights[rows, : x.shape[1]] = x, w
    return nodes, weights


def _panels(edges: np.ndarray, counts: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights in the panels between the edges (n, k + 1), as many in each as `counts` says.

    Without any, those of the trapezoidal rule between the first and the last edge.
    """
    if not counts.any():
        half = int(np.ceil((edges[0, -1] - edges[0, 0]) / (2 * step)))
        x = (edges[:, :1] + edges[:, -1:]) / 2 + step * np.arange(-half, half + 1)
        return x, np.full(x.shape, step)
    nodes, weights = [], []
    for k, count in enumerate(counts):
        if count:
            x, w = gauss_legendre(int(count))
            width = np.diff(edges[:, k : k + 2], axis=1)
            nodes.append(edges[:, k, None] + width * x)
            weights.append(width * w)
    return np.concatenate(nodes, 1), np.concatenate(weights, 1)
