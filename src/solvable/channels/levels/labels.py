"""A quadrature rule over labels: nodes in y, each with the points of its level set, and the flat values as atoms.

Once averaged over omega, everything is smooth in y except at critical values of g. So the nodes sit on panels between
critical values and quantiles of the label, graded towards the critical values, and serve every overlap matrix M.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from solvable.channels.levels.fibres import Fibres, fibres
from solvable.channels.levels.points import PointSets, best_flat_axis, flat_points, joined, level_points
from solvable.channels.levels.surface import Surface
from solvable.numerics.gaussian import gauss_legendre, normal_density

_LEVELS = np.array([-5.6, -4.2, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.2, 5.6])
_FAIR = 1e-3
_GROWTH = 2.5
_PILED = 1e-3
_POWER = 4
_FOLDED = 0.05
"""The variance of the number of walls on a line above which walls fold, as seen from that axis."""


@dataclasses.dataclass(frozen=True)
class Resolution:
    """How fine a rule is: `step` between lines, `nodes` in y a panel, `radius` of the ball that is covered."""

    step: float
    nodes: int
    radius: float

    @classmethod
    def of(cls, projections: int, fineness: float) -> Resolution:
        """The resolution that reaches about 1e-4 (r = 2), 1e-3 (r = 3) and 5e-3 (r = 4) at fineness 1."""
        step, nodes, radius = {
            1: (1.0, 24, 7.0),
            2: (0.12, 12, 6.2),
            3: (0.4, 8, 5.6),
            4: (0.75, 6, 5.2),
        }[projections]
        return cls(step / fineness, max(4, round(nodes * fineness)), radius)


@dataclasses.dataclass(frozen=True)
class Panels:
    """Consecutive panels between `edges`; `singular` (one a panel) is -1 or 1 if its lower or upper end is critical.

    A graded panel is y = low + width s^4 from its critical end, which turns inverse square roots and logarithms there
    into smooth functions of s.
    """

    edges: np.ndarray
    singular: np.ndarray

    def at(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y (panels, len(s)) and dy/ds at the positions s in [0, 1] of every panel."""
        kind, width = self.singular[:, None], np.diff(self.edges)[:, None]
        place = np.where(kind < 0, s**_POWER, np.where(kind > 0, 1 - (1 - s) ** _POWER, s))
        graded = _POWER * np.where(kind < 0, s, 1 - s) ** (_POWER - 1)
        return self.edges[:-1, None] + width * place, width * np.where(kind == 0, 1.0, graded)

    def position(self, y: np.ndarray) -> np.ndarray:
        """s (panels, len(y)) in [0, 1] at which each panel reaches y, or the end of the panel nearest to it."""
        kind, root = self.singular[:, None], 1 / _POWER
        x = np.clip((y - self.edges[:-1, None]) / np.diff(self.edges)[:, None], 0.0, 1.0)
        return np.where(kind < 0, x**root, np.where(kind > 0, 1 - (1 - x) ** root, x))

    def only(self, k: int) -> Panels:
        """The k-th panel alone."""
        return Panels(self.edges[k : k + 2], self.singular[k : k + 1])


class Share(NamedTuple):
    """Labels `y` that are seen, with weights `mu`, made of labels of a block: Z_seen = `matrix` Z[`labels`]."""

    y: np.ndarray
    mu: np.ndarray
    labels: slice
    matrix: np.ndarray


class Block(NamedTuple):
    """Consecutive labels of a rule, and the labels that are seen of them."""

    labels: slice
    shares: tuple[Share, ...]


@dataclasses.dataclass(frozen=True)
class LabelRule:
    """Labels `y` (L,) with weights `mu` (dy for a density, 1 for the last ones, which are atoms) and point sets.

    `panels` are those of the continuous labels, with `nodes` labels each.
    """

    y: np.ndarray
    mu: np.ndarray
    sets: PointSets
    panels: Panels
    nodes: int
    atoms: np.ndarray
    resolution: Resolution

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Without noise every label is seen as it is."""
        alone, same = slice(0, 1), np.ones((1, 1))
        each = (slice(k, k + 1) for k in range(len(self.y)))
        return tuple(Block(k, (Share(self.y[k], self.mu[k], alone, same),)) for k in each)

    @property
    def mass(self) -> np.ndarray:
        """The weight of each point under N(0, I): its share in the law of (z, y)."""
        r = self.sets.z.shape[1]
        density = np.exp(-np.sum(self.sets.z**2, 1) / 2) / (2 * np.pi) ** (r / 2)
        return self.mu[self.sets.label] * self.sets.weight * density


def label_rule(surface: Surface, resolution: Resolution, cuts: tuple[float, ...] = ()) -> LabelRule:
    """The rule over the labels of a surface; no panel crosses the values `cuts`."""
    grids = [fibres(surface, axis, resolution.step, resolution.radius) for axis in range(surface.projections)]
    atoms = surface.atoms
    flat = flat_sets(surface, grids, resolution)
    if surface.discrete:
        return LabelRule(atoms, np.ones(len(atoms)), flat, Panels(np.zeros(0), np.zeros(0)), 0, atoms, resolution)
    panels = label_panels(surface, grids[0], cuts)
    x, w = gauss_legendre(resolution.nodes)
    y, slope = panels.at(x)
    y, mu = y.ravel(), (slope * w).ravel()
    sets = joined(level_points(surface, grids, y, resolution.radius), flat)
    return LabelRule(
        np.concatenate([y, atoms]),
        np.concatenate([mu, np.ones(len(atoms))]),
        sets,
        panels,
        resolution.nodes,
        atoms,
        resolution,
    )


def flat_sets(surface: Surface, grids: list[Fibres], resolution: Resolution) -> PointSets:
    """The sets on which g takes its flat values, filled with points.

    Stretches of lines fill a set well if lines along some axis all cross as many of its walls. A set whose wall is one
    closed or folded surface u = 0 is filled by the level sets of u instead.
    """
    if not len(surface.atoms):
        return flat_points(surface, grids[0], surface.atoms, resolution.step, resolution.radius)
    best, variation = best_flat_axis(grids)
    walls = surface.curved_breaks
    if variation < _FOLDED or len(walls) != 1:
        return flat_points(surface, grids[best], surface.atoms, resolution.step, resolution.radius)
    layers = label_rule(Surface(walls[0], surface.projections, surface.planes), resolution, cuts=(0.0,))
    distance = np.abs(surface.function(layers.sets.z)[:, None] - surface.atoms)
    label = np.argmin(distance, 1)
    kept = distance.min(1) <= 1e-9 * (1 + np.abs(surface.atoms[label]))
    z, weight = layers.sets.z[kept], (layers.mu[layers.sets.label] * layers.sets.weight)[kept]
    return PointSets.gathered(z, weight, np.zeros_like(z), label[kept], len(surface.atoms))


def label_panels(surface: Surface, grid: Fibres, cuts: tuple[float, ...] = ()) -> Panels:
    """Panels between quantiles of the label at Gaussian levels, its critical values and the `cuts` among them."""
    value, chance = _law(surface, grid)
    quantiles = np.unique(np.interp(ndtr(_LEVELS), chance, value))
    low, high = quantiles[0], quantiles[-1]
    spread = np.diff(quantiles)
    # A critical value a little outside is the end of the range; one far out has no weight.
    critical = np.unique(np.concatenate([surface.critical_values, surface.atoms]))
    critical = critical[(critical > low - spread[:4].sum()) & (critical < high + spread[-4:].sum())]
    # Labels that pile up towards an end of the range, like exp(-z1**2) towards 0, are as singular there.
    beyond = [np.any(critical <= low), np.any(critical >= high)]
    piled = [spread[0] < _PILED * spread[:3].sum(), spread[-1] < _PILED * spread[-3:].sum()]
    extremes = [end for end, has, pile in zip((low, high), beyond, piled, strict=True) if pile and not has]
    critical = np.union1d(critical, extremes)
    ends = [min([low, *critical]), max([high, *critical])]
    fixed = np.union1d(ends, [c for c in cuts if ends[0] < c < ends[1]])
    edges = _spaced(np.unique(np.concatenate([quantiles, critical, fixed])), critical, fixed, value, chance)
    is_critical = np.isin(edges, critical)
    both = is_critical[1:] & is_critical[:-1]
    edges = np.sort(np.concatenate([edges, ((edges[1:] + edges[:-1]) / 2)[both]]))
    is_critical = np.isin(edges, critical)
    singular = np.where(is_critical[:-1], -1, np.where(is_critical[1:], 1, 0))
    return Panels(edges, singular)


def _spaced(
    edges: np.ndarray, critical: np.ndarray, fixed: np.ndarray, value: np.ndarray, chance: np.ndarray
) -> np.ndarray:
    """The edges such that no panel but the graded one, which holds a fair share of labels, feels a critical value."""
    share = np.interp(edges, value, chance)
    spread = float(np.diff(np.interp(ndtr([-1.0, 1.0]), chance, value))[0])
    keep, extra = np.ones(len(edges), bool), [np.zeros(0)]
    for c in critical:
        start = int(np.searchsorted(edges, c))
        for run in (range(start + 1, len(edges)), range(start - 1, -1, -1)):
            run = [*itertools.takewhile(lambda k: edges[k] not in critical, run)]
            around = [
                k
                for k in run
                if (abs(share[k] - share[start]) >= _FAIR and abs(edges[k] - c) >= _FAIR * spread) or edges[k] in fixed
            ]
            outer = [k for k in run if around and abs(edges[k] - c) >= abs(edges[around[0]] - c)]
            keep[[k for k in run if k not in outer]] = False
            # Where labels spread over many scales, panels grow in proportion to their distance.
            for near, far in itertools.pairwise(abs(edges[k] - c) for k in outer):
                count = int(np.log(far / near) / _GROWTH)
                extra.append(c + np.sign(edges[outer[0]] - c) * np.geomspace(near, far, count + 2)[1:-1])
    return np.unique(np.concatenate([edges[keep], *extra]))


def _law(surface: Surface, grid: Fibres) -> tuple[np.ndarray, np.ndarray]:
    """The continuous part of the label: sorted values and their cumulative probability."""
    middle = (grid.t[:, 1:] + grid.t[:, :-1]) / 2
    value = (grid.g[:, 1:] + grid.g[:, :-1]) / 2
    foot = grid.weight * np.exp(-np.sum(grid.base**2, 1) / 2)
    mass = foot[:, None] * np.diff(grid.t, axis=1) * normal_density(middle)
    flat = np.min(np.abs(value[..., None] - surface.atoms), axis=-1, initial=np.inf) < 1e-9
    keep = grid.sound & ~flat & np.isfinite(value)
    order = np.argsort(value[keep])
    sorted_mass = mass[keep][order]
    cumulative = np.cumsum(sorted_mass)
    return value[keep][order], (cumulative - sorted_mass / 2) / cumulative[-1]
