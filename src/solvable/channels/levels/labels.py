"""A quadrature rule over labels: nodes in y, each with the points of its level set, and the flat values as atoms.

Once averaged over omega, everything is smooth in y except at critical values of g. So the nodes sit on panels between
critical values and quantiles of the label, graded towards the critical values, and serve every overlap matrix M.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from solvable.channels.levels.fibres import Fibres, fibres
from solvable.channels.levels.points import PointSets, best_flat_axis, flat_points, level_points
from solvable.channels.levels.surface import Surface
from solvable.numerics.gaussian import gauss_legendre, normal_density

_LEVELS = np.array([-5.6, -4.2, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.2, 5.6])


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
        place = np.where(kind < 0, s**4, np.where(kind > 0, 1 - (1 - s) ** 4, s))
        slope = np.where(kind < 0, 4 * s**3, np.where(kind > 0, 4 * (1 - s) ** 3, 1.0))
        return self.edges[:-1, None] + width * place, width * slope


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
    def mass(self) -> np.ndarray:
        """The weight of each point under N(0, I): its share in the law of (z, y)."""
        r = self.sets.z.shape[1]
        density = np.exp(-np.sum(self.sets.z**2, 1) / 2) / (2 * np.pi) ** (r / 2)
        return self.mu[self.sets.label] * self.sets.weight * density


def label_rule(surface: Surface, resolution: Resolution) -> LabelRule:
    """The rule over the labels of a surface."""
    grids = [fibres(surface, axis, resolution.step, resolution.radius) for axis in range(surface.projections)]
    atoms = surface.atoms
    flat = _flat_sets(surface, grids, resolution)
    if surface.discrete:
        return LabelRule(atoms, np.ones(len(atoms)), flat, Panels(np.zeros(0), np.zeros(0)), 0, atoms, resolution)
    panels = label_panels(surface, grids[0])
    x, w = gauss_legendre(resolution.nodes)
    y, slope = panels.at(x)
    y, mu = y.ravel(), (slope * w).ravel()
    sets = _joined(level_points(surface, grids, y, resolution.radius), flat)
    return LabelRule(
        np.concatenate([y, atoms]),
        np.concatenate([mu, np.ones(len(atoms))]),
        sets,
        panels,
        resolution.nodes,
        atoms,
        resolution,
    )


def _flat_sets(surface: Surface, grids: list[Fibres], resolution: Resolution) -> PointSets:
    best = best_flat_axis(grids) if len(surface.atoms) else 0
    return flat_points(surface, grids[best], surface.atoms, resolution.step, resolution.radius)


def _joined(first: PointSets, second: PointSets) -> PointSets:
    start = np.concatenate([first.start, first.start[-1] + second.start[1:]])
    z, weight, gradient = (
        np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("z", "weight", "gradient")
    )
    return PointSets(z, weight, gradient, start)


def label_panels(surface: Surface, grid: Fibres) -> Panels:
    """Panels between quantiles of the label at Gaussian levels and its critical values."""
    quantiles = _quantiles(surface, grid)
    low, high = quantiles[0], quantiles[-1]
    spread = np.diff(quantiles)
    # A critical value a little outside is the end of the range; one far out has no weight.
    critical = np.unique(np.concatenate([surface.critical_values, surface.atoms]))
    critical = critical[(critical > low - spread[:4].sum()) & (critical < high + spread[-4:].sum())]
    ends = [min([low, *critical]), max([high, *critical])]
    edges = _thinned(np.unique(np.concatenate([quantiles, critical, ends])), np.union1d(critical, ends))
    is_critical = np.isin(edges, critical)
    both = is_critical[1:] & is_critical[:-1]
    edges = np.sort(np.concatenate([edges, ((edges[1:] + edges[:-1]) / 2)[both]]))
    is_critical = np.isin(edges, critical)
    return Panels(edges, np.where(is_critical[:-1], -1, np.where(is_critical[1:], 1, 0)))


def _thinned(edges: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Without the edges so close to a fixed one that the next panel would feel its singularity."""
    keep = list(edges)
    for c in fixed:
        for side in (1, -1):
            beyond = sorted((e for e in keep if side * (e - c) > 0), key=lambda e: abs(e - c))
            for first, second in zip(beyond[:-1], beyond[1:], strict=True):
                if first in fixed or abs(first - c) > 0.3 * abs(second - c):
                    break
                keep.remove(first)
    return np.array(keep)


def _quantiles(surface: Surface, grid: Fibres) -> np.ndarray:
    """Quantiles of the continuous part of the label at Gaussian levels."""
    middle = (grid.t[:, 1:] + grid.t[:, :-1]) / 2
    value = (grid.g[:, 1:] + grid.g[:, :-1]) / 2
    foot = grid.weight * np.exp(-np.sum(grid.base**2, 1) / 2)
    mass = foot[:, None] * np.diff(grid.t, axis=1) * normal_density(middle)
    flat = np.min(np.abs(value[..., None] - surface.atoms), axis=-1, initial=np.inf) < 1e-9
    keep = grid.sound & ~flat & np.isfinite(value)
    order = np.argsort(value[keep])
    sorted_value, cumulative = value[keep][order], np.cumsum(mass[keep][order])
    return np.unique(np.interp(ndtr(_LEVELS), (cumulative - mass[keep][order] / 2) / cumulative[-1], sorted_value))


class Blur(NamedTuple):
    """Noisy labels `y` with weights `mu`, and the `matrix` W with Z_noisy(y) = sum_l W[y, l] Z_l."""

    y: np.ndarray
    mu: np.ndarray
    matrix: np.ndarray


def blur(rule: LabelRule, noise: float) -> Blur | None:
    """What labels y = g + sqrt(noise) xi make of a rule; None without noise.

    On a panel, Z times the grading's Jacobian is interpolated by a polynomial in the graded variable, and its
    convolution with the Gaussian is integrated finely: right for noise both wider and narrower than a panel.
    """
    if noise == 0:
        return None
    width = np.sqrt(noise)
    y, mu = noisy_nodes(rule, width)
    columns = [_density(y[:, None] - rule.atoms, noise)]
    if rule.nodes:
        s, _ = gauss_legendre(rule.nodes)
        _, slopes = rule.panels.at(s)
        fine, fine_weight = _fine_rule(np.diff(rule.panels.edges).max() / width)
        basis = _lagrange(s, fine) * fine_weight[:, None]
        at, _ = rule.panels.at(fine)
        blurred = [_density(y[:, None] - place, noise) @ basis * slope for place, slope in zip(at, slopes, strict=True)]
        columns.insert(0, np.concatenate(blurred, 1))
    return Blur(y, mu, np.concatenate(columns, 1))


def noisy_nodes(rule: LabelRule, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature nodes for labels blurred over `width`: panels of the clean label, refined around its singularities."""
    ends = np.concatenate([rule.panels.edges, rule.atoms])
    critical = rule.panels.edges[:-1][rule.panels.singular < 0], rule.panels.edges[1:][rule.panels.singular > 0]
    singular = np.concatenate([*critical, rule.atoms, [ends.min(), ends.max()]])
    around = (singular[:, None] + width * np.array([-6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0])).ravel()
    edges = np.unique(np.concatenate([[ends.min() - 6 * width, ends.max() + 6 * width], rule.panels.edges, around]))
    edges = edges[(edges >= ends.min() - 6 * width) & (edges <= ends.max() + 6 * width)]
    # Edges closer together than the blur resolve nothing more.
    kept = [edges[0]]
    for edge in edges[1:]:
        if edge - kept[-1] > 1.2 * width:
            kept.append(edge)
    if kept[-1] < edges[-1]:
        kept.append(edges[-1])
    kept = np.array(kept)
    x, w = gauss_legendre(6 if len(kept) > 40 else 8)
    gap = np.diff(kept)
    return (kept[:-1, None] + gap[:, None] * x).ravel(), (gap[:, None] * w).ravel()


def _density(x: np.ndarray, variance: float) -> np.ndarray:
    return np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def _fine_rule(ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """A composite rule on [0, 1] that resolves a Gaussian `ratio` times narrower than the panel."""
    count = int(np.clip(np.ceil(ratio), 2, 400))
    x, w = gauss_legendre(8)
    edges = np.linspace(0, 1, count + 1)
    return (edges[:-1, None] + x / count).ravel(), np.tile(w / count, count)


def _lagrange(nodes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The Lagrange basis of the nodes at x: (len(x), len(nodes)), in barycentric form."""
    scale = 4.0
    weights = 1 / np.prod(np.where(np.eye(len(nodes)) > 0, 1.0, scale * (nodes[:, None] - nodes)), 1)
    difference = x[:, None] - nodes
    hit = np.abs(difference) < 1e-14
    terms = weights / np.where(hit, 1.0, difference)
    basis = terms / terms.sum(1, keepdims=True)
    return np.where(hit.any(1, keepdims=True), hit.astype(float), basis)
