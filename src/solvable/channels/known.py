"""A channel of which some projections are known exactly: its label is the pair of y and these projections."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from solvable.channels.base import Channel
from solvable.channels.generic import LevelSetAverages, Part
from solvable.channels.levels.fibres import coordinate_rule
from solvable.channels.levels.labels import LabelRule, Resolution, blur, label_rule
from solvable.channels.levels.narrow import Narrowness
from solvable.channels.levels.surface import Surface
from solvable.numerics.gaussian import normal_density
from solvable.numerics.subspaces import complement
from solvable.targets.adapted import adapted_basis
from solvable.targets.target import Target

_STEP = 0.5
_RADIUS = 5.0
_ALIGNED = 1e-6
_FINENESS = {1: 1.0, 2: 0.8, 3: 0.7}


class KnownChannel(LevelSetAverages):
    """P(y, z_U | z) for the projections z_U = directions^T z, in the coordinates of `complement(directions)`.

    Averages over (y, z_U) are means over nodes of z_U of the averages of g as a function of what is left. It describes
    what is left to learn in theory, and has no labels of its own.
    """

    def __init__(self, target: Target, noise: float, directions: np.ndarray):
        self.target, self.noise, self.directions = target, noise, directions
        self._left = complement(directions)
        # Averages run over coordinates in which the planes of breaks are axis planes, where there are such.
        adapted = adapted_basis(target)
        inside = adapted[:, np.linalg.norm(directions.T @ adapted, axis=0) < _ALIGNED]
        together = np.concatenate([directions, inside], 1)
        basis = np.concatenate([together, complement(together)], 1)
        self.basis = self._left.T @ basis[:, directions.shape[1] :]
        self._surface = Surface.of(target, basis)

    @property
    def projections(self) -> int:
        return self._left.shape[1]

    @property
    def definition(self) -> dict[str, Any]:
        return super().definition | {"directions": self.directions}

    @functools.lru_cache(maxsize=16)  # noqa: B019 - bounded: it keeps its channels
    def parts(self, fineness: float) -> list[Part]:
        """The labels at nodes of z_U; nodes with the same level sets are joined."""
        k = self.directions.shape[1]
        known = self._surface.planes[:k]
        rules = [coordinate_rule(planes, np.zeros(0), 0.0, _STEP / fineness, _RADIUS) for planes in known]
        nodes = np.stack(np.meshgrid(*[x for x, _ in rules], indexing="ij"), -1).reshape(-1, k)
        weight = np.stack(np.meshgrid(*[w * normal_density(x) for x, w in rules], indexing="ij"), -1).prod(-1).ravel()
        chosen = np.sum(nodes**2, 1) < _RADIUS**2
        nodes, weight = nodes[chosen], weight[chosen] / weight[chosen].sum()
        resolution = Resolution.of(self.projections, fineness * _FINENESS[self.projections])
        found: dict[Any, list[Any]] = {}
        for node, chance in zip(nodes, weight, strict=True):
            part = self._surface.fixed(node)
            if _constant(part):
                continue
            rule = label_rule(part, resolution)
            entry = found.setdefault(_fingerprint(rule, self.noise), [0.0, rule, part.discrete])
            entry[0] += chance
        return [
            Part(chance, rule, blur(rule, self.noise), Narrowness(self.resolution, 2 * self.resolution, flat, True))
            for chance, rule, flat in found.values()
        ]

    @property
    def discrete(self) -> bool:
        return all(part.limits.discrete for part in self.parts(1.0))

    @property
    def resolution(self) -> float:
        return {1: 1e-3, 2: 0.01, 3: 0.08}[self.projections]

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._no_data()

    def known(self, directions: np.ndarray) -> Channel:
        together = np.concatenate([self.directions, self._left @ directions], 1)
        return KnownChannel(self.target, self.noise, together)

    def __repr__(self) -> str:
        return f"KnownChannel({self.target.name!r}, noise={self.noise:g}, directions={self.directions.tolist()})"


def _constant(surface: Surface) -> bool:
    """Whether nothing is left to learn from the label at this node."""
    return surface.discrete and len(surface.atoms) == 1


def _fingerprint(rule: LabelRule, noise: float) -> Any:
    """Equal for rules whose labels have the same level sets; with noise the labels themselves count too."""
    pieces = [
        (rule.sets.z[a:b].round(9).tobytes(), rule.sets.weight[a:b].round(9).tobytes(), round(float(mu), 12))
        for a, b, mu in zip(rule.sets.start[:-1], rule.sets.start[1:], rule.mu, strict=True)
    ]
    if noise == 0:
        return frozenset(pieces)
    # Only differences between labels matter.
    return tuple(pieces), (rule.y - rule.y[0]).round(9).tobytes()
