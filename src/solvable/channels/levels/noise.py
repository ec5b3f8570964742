r"""Labels with Gaussian noise, y = g(z) + sqrt(noise) xi, from the level sets of g.

The evidence of a noisy label is that of the clean ones around it,

    Z_noisy(y) = \int dy' N(y - y'; noise) Z(y'),

summed over level sets with positive weights: interpolating Z between labels would overshoot where it is small, and
small evidences weigh most in E[g g^T]. Two rules share the work, and both get better as the noise goes to zero:

- Where the noise is narrow compared with all that Z does, between the critical values of g, each noisy label has the
  level sets of a few labels of its own, a Gauss-Hermite rule.
- Around critical values and flat values, and where the noise is as wide as a posterior, noisy labels share clean ones
  that lie closer together than the noise is wide, in panels that end at the critical values.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.channels.levels.fibres import fibres
from solvable.channels.levels.labels import Block, LabelRule, Panels, Share
from solvable.channels.levels.points import PointSets, joined, level_points
from solvable.channels.levels.surface import Surface
from solvable.numerics.gaussian import gauss_legendre

_REACH = 7.0
_WINDOW = np.array([0.0, 2.0, 4.0, 6.0, 12.0])
"""Panels of noisy labels around a critical value end at these distances, in units of sqrt(noise)."""
_NEAR = 9.0
"""Closer than this to a critical value, in the same units, a Gauss-Hermite rule might feel it."""
_CLOSEST = 1.2
_SPACING = 4.0
_CRITICAL_SPACING = 3.0
_FEW, _MORE = 5.0, 2.0
"""How many times the narrowest posterior is wider than the noise where 3, and where 5 Gauss-Hermite nodes suffice."""
_POWER = 4
_LEAST_NODES = 6


@dataclasses.dataclass(frozen=True)
class NoisyRule:
    """Noisy labels, made of the clean ones whose points are `sets`."""

    blocks: tuple[Block, ...]
    sets: PointSets


def noisy_rule(surface: Surface, rule: LabelRule, noise: float, narrowest: float) -> NoisyRule:
    """What noise makes of a rule, right for variances of z down to `narrowest`."""
    return _Builder(surface, rule, float(np.sqrt(noise)), float(np.sqrt(narrowest))).build()


class _Builder:
    """Noisy panels from left to right; `clean` collects the labels whose level sets they need."""

    def __init__(self, surface: Surface, rule: LabelRule, width: float, posterior: float):
        self.surface, self.rule, self.width, self.posterior = surface, rule, width, posterior
        ends = np.concatenate([rule.panels.edges, rule.atoms])
        self.low, self.high = float(ends.min()), float(ends.max())
        panels = rule.panels
        self.critical = np.unique([*panels.edges[:-1][panels.singular < 0], *panels.edges[1:][panels.singular > 0]])
        self.singular = np.unique([*self.critical, *rule.atoms, self.low, self.high])
        self.nodes = max(rule.resolution.nodes, _LEAST_NODES)
        slopes = np.linalg.norm(rule.sets.gradient, axis=1)
        slope = float(np.median(slopes[slopes > 0])) if slopes.any() else np.inf
        # Wide noise sums the evidences of clean labels, which vary within the width of the narrowest posterior.
        self.longest = min(_SPACING * width, self.nodes * slope * posterior)
        self.clean: list[np.ndarray] = []
        self.count = 0

    def build(self) -> NoisyRule:
        edges = self._edges()
        order = [self._hermite_order(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
        blocks, k = [], 0
        while k < len(order):
            if order[k]:
                blocks += self._own(edges[k], edges[k + 1], order[k])
                k += 1
                continue
            end = k
            while end < len(order) and not order[end]:
                end += 1
            blocks.append(self._shared(edges[k : end + 1]))
            k = end
        return NoisyRule(tuple(blocks), self._points())

    def _edges(self) -> np.ndarray:
        """The ends of the panels of noisy labels: those of clean ones, and more around all that is singular."""
        low, high = self.low - 6 * self.width, self.high + 6 * self.width
        around = (self.singular[:, None] + self.width * np.concatenate([-_WINDOW, _WINDOW])).ravel()
        edges = np.unique(np.concatenate([[low, high], self.rule.panels.edges, around]))
        edges = edges[(edges >= low) & (edges <= high)]
        # Edges closer together than the noise resolve nothing more.
        kept = [edges[0]]
        for edge in edges[1:]:
            if edge - kept[-1] > _CLOSEST * self.width:
                kept.append(edge)
        return np.array(kept)

    def _hermite_order(self, a: float, b: float) -> int:
        """The number of Gauss-Hermite nodes for the noisy labels between a and b; 0 where they share clean ones."""
        if not len(self.rule.panels.singular):
            return 0
        room = _NEAR * self.width
        wide = (b - a) * self.posterior / self.width
        if wide < _MORE or np.any((self.singular > a - room) & (self.singular < b + room)):
            return 0
        return 3 if wide >= _FEW else 5

    def _own(self, a: float, b: float, order: int) -> list[Block]:
        x, w = gauss_legendre(self.nodes)
        y, mu = self._graded(a, b, x, w)
        shift, weight = np.polynomial.hermite_e.hermegauss(order)
        start = self._add((y[:, None] + self.width * shift).ravel())
        matrix = (weight / weight.sum())[None]
        every = slice(0, order)
        return [
            Block(slice(first, first + order), (Share(y[k : k + 1], mu[k : k + 1], every, matrix),))
            for k, first in enumerate(range(start, start + order * len(y), order))
        ]

    def _graded(self, a: float, b: float, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels between a and b with weights, graded as those of the clean panel around them are."""
        panels = self.rule.panels
        k = int(np.clip(np.searchsorted(panels.edges, (a + b) / 2) - 1, 0, len(panels.singular) - 1))
        side = -panels.singular[k]
        if not side:
            return a + (b - a) * x, (b - a) * w
        centre = panels.edges[k] if side > 0 else panels.edges[k + 1]
        s_a, s_b = (np.abs(end - centre) ** (1 / _POWER) for end in (a, b))
        s = s_a + (s_b - s_a) * x
        return centre + side * s**_POWER, np.abs(s_b - s_a) * w * _POWER * s ** (_POWER - 1)

    def _shared(self, edges: np.ndarray) -> Block:
        """The noisy labels of consecutive panels, and the clean ones within their reach."""
        reach = _REACH * self.width
        clean, weight = self._close(max(self.low, edges[0] - reach), min(self.high, edges[-1] + reach))
        atoms = self.rule.atoms
        here = np.flatnonzero((atoms > edges[0] - reach) & (atoms < edges[-1] + reach))
        clean, weight = np.append(clean, atoms[here]), np.append(weight, np.ones(len(here)))
        order = np.argsort(clean, kind="stable")
        clean, weight = clean[order], weight[order]
        shares = []
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            few = b - a < _CRITICAL_SPACING * self.width
            x, w = gauss_legendre(max(_LEAST_NODES, -(-2 * self.nodes // 3)) if few else self.nodes)
            y = a + (b - a) * x
            first, last = np.searchsorted(clean, [a - reach, b + reach])
            if first == last:
                continue
            near = slice(int(first), int(last))
            kernel = np.exp(-(((y[:, None] - clean[near]) / self.width) ** 2) / 2) / (np.sqrt(2 * np.pi) * self.width)
            shares.append(Share(y, (b - a) * w, near, kernel * weight[near]))
        start = self._add(clean)
        return Block(slice(start, start + len(clean)), tuple(shares))

    def _close(self, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """Clean labels closer together than the noise is wide, in panels that no edge of the clean rule divides."""
        panels = self.rule.panels
        if low >= high or not len(panels.singular):
            return np.zeros(0), np.zeros(0)
        cuts = np.unique([low, *panels.edges[(panels.edges > low) & (panels.edges < high)], high])
        x, w = gauss_legendre(self.nodes)
        labels, weights = [], []
        for p, q in zip(cuts[:-1], cuts[1:], strict=True):
            ends, singular = self._pieces(p, q)
            y, slope = Panels(ends, singular).at(x)
            labels.append(y.ravel())
            weights.append((slope * w).ravel())
        return np.concatenate(labels), np.concatenate(weights)

    def _pieces(self, p: float, q: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of panels between p and q, and which of them are critical."""
        first = min(q - p, _CRITICAL_SPACING * self.width, self.longest)
        if p in self.critical:
            rest = self._even(p + first, q)
            return np.concatenate([[p], rest]), np.array([-1] + [0] * (len(rest) - 1))
        if q in self.critical:
            rest = self._even(p, q - first)
            return np.concatenate([rest, [q]]), np.array([0] * (len(rest) - 1) + [1])
        rest = self._even(p, q)
        return rest, np.zeros(len(rest) - 1)

    def _even(self, p: float, q: float) -> np.ndarray:
        if q - p <= 1e-9 * self.width:
            return np.array([p])
        return np.linspace(p, q, 1 + int(np.ceil((q - p) / self.longest)))

    def _add(self, labels: np.ndarray) -> int:
        """The place of these labels among all clean ones."""
        start = self.count
        self.clean.append(labels)
        self.count += len(labels)
        return start

    def _points(self) -> PointSets:
        """The level sets of the clean labels; a flat value stands for its flat set."""
        y = np.concatenate(self.clean)
        flat = np.isin(y, self.rule.atoms)
        resolution = self.rule.resolution
        grids = [
            fibres(self.surface, axis, resolution.step, resolution.radius) for axis in range(self.surface.projections)
        ]
        curved = level_points(self.surface, grids, y[~flat], resolution.radius)
        if not flat.any():
            return curved
        # Flat values are the last labels of the rule.
        atom = len(self.rule.y) - len(self.rule.atoms) + np.searchsorted(self.rule.atoms, y[flat])
        sets = joined(curved, self.rule.sets.chosen(atom))
        return sets.chosen(np.argsort(np.concatenate([np.flatnonzero(~flat), np.flatnonzero(flat)])))
