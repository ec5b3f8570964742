"""Lines parallel to one axis, cut into cells on which g is monotone: where level sets are looked for.

The other coordinates run over a tensor rule: the trapezoidal rule where g is smooth (exponentially accurate under a
Gaussian weight), Gauss-Legendre panels between break planes.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.channels.levels.surface import Function, Surface
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.roots import golden_section, halving

_BESIDE = 1e-9
_REACH = 7.0
_CELL = 0.25
_ROUNDING = 1e-9
_EXTRA = {1: 0.0, 2: 10.0, 3: 6.0, 4: 3.0}
"""How much finer lines lie near the centres than elsewhere, by the number of projections."""


@dataclasses.dataclass(frozen=True)
class Fibres:
    """K lines along `axis`: `base` (K, r) points with z_axis = 0, `weight` (K,) in the other coordinates, nodes `t`
    (K, n) in increasing order with values `g`; g is monotone and continuous between nodes where `sound` (K, n - 1)."""

    axis: int
    base: np.ndarray
    weight: np.ndarray
    t: np.ndarray
    g: np.ndarray
    sound: np.ndarray

    def points(self, line: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The points at position t on the given lines."""
        z = self.base[line]
        z[..., self.axis] = t
        return z

    def values(self, function: Function, t: np.ndarray) -> np.ndarray:
        """A function at the positions t (K, n) of every line."""
        z = np.repeat(self.base[:, None, :], t.shape[1], 1)
        z[..., self.axis] = t
        with np.errstate(all="ignore"):
            return function(z)


def coordinate_rule(
    planes: np.ndarray, centres: np.ndarray, extra: float, step: float, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and Lebesgue weights on [-radius, radius] for functions that break at `planes`, or bend near `centres`.

    Between planes, Gauss-Legendre. Without planes, the trapezoidal rule in the variable whose density is
    1 + extra sum_c 1 / (1 + ((x - c) / 0.25)^2): finer near the centres, and still exponentially accurate.
    """
    planes = planes[np.abs(planes) < radius]
    if not planes.size:
        return _mapped_trapezoid(centres, extra, step, radius)
    edges = np.unique(np.concatenate([[-radius], planes, [radius]]))
    nodes, weights = [], []
    for low, width in zip(edges[:-1], np.diff(edges), strict=True):
        # Gauss-Legendre nodes are sparser than uniform ones in the middle of their panel.
        x, w = gauss_legendre(max(4, int(np.ceil(1.3 * width / step))))
        nodes.append(low + width * x)
        weights.append(width * w)
    return np.concatenate(nodes), np.concatenate(weights)


def _mapped_trapezoid(centres: np.ndarray, extra: float, step: float, radius: float) -> tuple[np.ndarray, np.ndarray]:
    width = 0.25

    def cumulative(x: np.ndarray) -> np.ndarray:
        return x + extra * width * np.sum(np.arctan((x[:, None] - centres) / width), 1)

    fine = np.linspace(-radius - 1, radius + 1, 20001)
    table = cumulative(fine)
    half = int(np.ceil(table[-1] / step)) + 1
    s = step * (np.arange(-half, half) + 0.5)
    s = s[(s > table[0]) & (s < table[-1])]
    x = np.interp(s, table, fine)
    for _ in range(3):
        density = 1 + extra * np.sum(1 / (1 + ((x[:, None] - centres) / width) ** 2), 1)
        x = x - (cumulative(x) - s) / density
    density = 1 + extra * np.sum(1 / (1 + ((x[:, None] - centres) / width) ** 2), 1)
    inside = np.abs(x) <= radius
    return x[inside], step / density[inside]


def lines(surface: Surface, axis: int, step: float, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """The feet (K, r) and weights (K,) of the lines along `axis`, within a ball of the other coordinates."""
    others = [i for i in range(surface.projections) if i != axis]
    extra = _EXTRA[surface.projections]
    rules = [coordinate_rule(surface.planes[i], surface.centres[i], extra, step, radius) for i in others]
    nodes, weight = tensor_rule(rules, radius)
    base = np.zeros((len(nodes), surface.projections))
    base[:, others] = nodes
    return base, weight


def tensor_rule(rules: list[tuple[np.ndarray, np.ndarray]], radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (K, k) and weights (K,) of the product of k rules, each nodes and weights, within a ball."""
    if not rules:
        return np.zeros((1, 0)), np.ones(1)
    nodes, weights = (np.stack(np.meshgrid(*part, indexing="ij"), -1) for part in zip(*rules, strict=True))
    nodes, weight = nodes.reshape(-1, len(rules)), weights.prod(-1).ravel()
    inside = np.sum(nodes**2, 1) <= radius**2
    return nodes[inside], weight[inside]


def fibres(surface: Surface, axis: int, step: float, radius: float) -> Fibres:
    """The lines along `axis` with their monotone cells."""
    base, weight = lines(surface, axis, step, radius)
    planes = surface.planes[axis]
    uniform = np.arange(-_REACH, _REACH + _CELL / 2, _CELL) + 0.381966 * _CELL
    near = np.min(np.abs(uniform[:, None] - planes), axis=1, initial=np.inf) < 0.2 * _CELL
    t = np.sort(np.concatenate([uniform[~near], planes - _BESIDE, planes + _BESIDE]))
    return monotone(surface, axis, base, weight, np.broadcast_to(t, (len(base), len(t))))


def stretches(surface: Surface, axis: int, base: np.ndarray, weight: np.ndarray, low, high, cells: int) -> Fibres:
    """Lines from `low` to `high` (K,) along `axis`, each cut into as many `cells` of one length and at its breaks."""
    t = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, cells + 1)
    sides = np.concatenate([surface.planes[axis] - _BESIDE, surface.planes[axis] + _BESIDE])
    # What lies beyond the ends becomes repeated nodes, which are no cells.
    return monotone(surface, axis, base, weight, np.sort(np.concatenate([t, _clipped(sides, low, high)], 1), 1))


def _clipped(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.clip(np.broadcast_to(x, (len(low), len(x))), low[:, None], high[:, None])


def monotone(surface: Surface, axis: int, base: np.ndarray, weight: np.ndarray, t: np.ndarray) -> Fibres:
    """Lines with nodes `t` (K, n), both sides of the break planes among them, cut into cells on which g is monotone."""
    draft = Fibres(axis, base, weight, t, np.zeros(t.shape), np.zeros((len(t), t.shape[1] - 1), bool))
    t = _with_breaks(surface, draft)
    g = draft.values(surface.function, t)
    changed = _with_jumps(surface, draft, t, g) if surface.discrete and not surface.break_functions else t
    if changed is not t:
        t, g = changed, draft.values(surface.function, changed)
    # A node beside a break belongs to its own side: the gap across the break is no cell.
    sound = (np.diff(t, axis=1) > 10 * _BESIDE) & np.isfinite(g[:, 1:]) & np.isfinite(g[:, :-1])
    t, g = _at_extrema(surface, dataclasses.replace(draft, t=t, g=g, sound=sound))
    return dataclasses.replace(draft, t=t, g=g, sound=sound)


def _with_breaks(surface: Surface, grid: Fibres) -> np.ndarray:
    """The nodes with both sides of every zero of a break function added."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for function in surface.break_functions:
        sign = np.sign(grid.values(function, grid.t))
        wide = np.diff(grid.t, axis=1) > 10 * _BESIDE
        line, cell = np.nonzero((sign[:, 1:] * sign[:, :-1] < 0) & wide)
        if line.size:
            found.append((line, _change(lambda z, f=function: np.sign(f(z)), grid, line, cell)))
    return _inserted(grid, grid.t, found)


def _with_jumps(surface: Surface, grid: Fibres, t: np.ndarray, g: np.ndarray) -> np.ndarray:
    """For a piecewise constant callable: the nodes with both sides of every change of value added."""
    draft = dataclasses.replace(grid, t=t)
    wide = np.diff(t, axis=1) > 10 * _BESIDE
    line, cell = np.nonzero(~_same(g[:, 1:], g[:, :-1]) & wide)
    return _inserted(draft, t, [(line, _change(surface.function, draft, line, cell))]) if line.size else t


def _change(function: Function, grid: Fibres, line: np.ndarray, cell: np.ndarray) -> np.ndarray:
    """Where the value of a piecewise constant function changes within the given cells, by bisection."""
    low, high = grid.t[line, cell], grid.t[line, cell + 1]
    start = function(grid.points(line, low))
    return halving(lambda t: ~_same(function(grid.points(line, t)), start), low, high, 45).middle


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether values of a piecewise constant function are equal, up to the rounding of turned coordinates."""
    return np.abs(a - b) <= _ROUNDING * (1 + np.abs(b))


def _inserted(grid: Fibres, t: np.ndarray, found: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """`t` with both sides of each found place added to its line; lines with fewer places end in repeated nodes."""
    if not found:
        return np.array(t)
    line = np.concatenate([f[0] for f in found])
    place = np.concatenate([f[1] for f in found])
    order = np.lexsort((place, line))
    line, place = line[order], place[order]
    # Two break functions may vanish together: keep one.
    fresh = np.ones(len(line), bool)
    fresh[1:] = (np.diff(line) > 0) | (np.diff(place) > 4 * _BESIDE)
    line, place = line[fresh], place[fresh]
    count = np.bincount(line, minlength=len(t))
    slot = np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
    extra = np.repeat(t[:, -1:], 2 * count.max(), 1)
    extra[line, 2 * slot], extra[line, 2 * slot + 1] = place - _BESIDE, place + _BESIDE
    return np.sort(np.concatenate([t, extra], 1), 1)


def _at_extrema(surface: Surface, grid: Fibres) -> tuple[np.ndarray, np.ndarray]:
    """The nodes with every one that is a local extreme moved to the true extreme between its neighbours."""
    t, g = np.array(grid.t), np.array(grid.g)
    rise = np.diff(g, axis=1)
    turning = (rise[:, 1:] * rise[:, :-1] < 0) & grid.sound[:, 1:] & grid.sound[:, :-1]
    line, node = np.nonzero(turning)
    node = node + 1
    if not line.size:
        return t, g
    sign = np.sign(g[line, node] - g[line, node - 1])
    low, high = t[line, node - 1], t[line, node + 1]
    best = golden_section(lambda t: -sign * surface.function(grid.points(line, t)), low, high, 36).middle
    value = surface.function(grid.points(line, best))
    better = sign * value >= sign * g[line, node]
    t[line, node] = np.where(better, best, t[line, node])
    g[line, node] = np.where(better, value, g[line, node])
    return t, g
