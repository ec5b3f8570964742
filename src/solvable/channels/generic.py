"""The channel of any target of several projections, with or without noise, from the level sets of the target.

Also where some projections are known exactly: the label is then the pair of y and these projections.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from solvable.channels.base import Average, Channel, LabelLaw, Linearisation, Posterior, TargetChannel
from solvable.channels.levels.averages import Narrowness, Rule, information, narrow_information, second_moments, sums
from solvable.channels.levels.fibres import coordinate_rule, tensor_rule
from solvable.channels.levels.labels import LabelRule, Resolution, label_rule
from solvable.channels.levels.noise import noisy_rule
from solvable.channels.levels.predictor import LevelSetPredictor
from solvable.channels.levels.rows import RowPosterior
from solvable.channels.levels.surface import Surface
from solvable.channels.predictor import Predictor
from solvable.core.errors import checked_variance
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian import normal_density
from solvable.numerics.gaussian_many import frame
from solvable.numerics.subspaces import complement
from solvable.targets.adapted import adapted_basis
from solvable.targets.target import Target

_RESOLUTION = {1: 1e-5, 2: 0.006, 3: 0.05, 4: 0.2}
_WIDE = {1: 1e-4, 2: 0.02, 3: 0.06, 4: 0.25}
_ALIGNED = 1e-6
_STEP = 0.5
_RADIUS = 5.0
_FINENESS = {1: 1.0, 2: 0.8, 3: 0.7}
_MOST_COARSE = 3
"""The projections up to which one rule serves everything; with more, lines lie closer where nothing is known."""
_FINER_AT_REST, _FINER_WITH_NOISE, _RADIUS_AT_REST = 2.0, 1.6, 6.0


class Part(NamedTuple):
    """A share `chance` of the labels: their rule, what is `seen` of it with noise, and which variances it resolves."""

    chance: float
    rule: LabelRule
    seen: Rule
    limits: Narrowness

    @classmethod
    def of(cls, chance: float, surface: Surface, rule: LabelRule, noise: float, limits: Narrowness) -> Part:
        """The part with labels of the given noise."""
        seen = noisy_rule(surface, rule, noise, limits.resolution) if noise > 0 else rule
        return cls(chance, rule, seen, limits)


class LevelSetAverages(TargetChannel):
    """Averages over the labels of one or more parts, each with level sets of its own.

    `basis` (r x k, orthonormal columns) are the coordinates u of the level sets, z = basis u + (what no label depends
    on): all averages run over u.
    """

    basis: np.ndarray

    @abc.abstractmethod
    def parts(self, fineness: float) -> list[Part]:
        """The parts, made once for each fineness; labels that say nothing are left out."""

    def parts_at_rest(self, fineness: float) -> list[Part]:
        """The parts for averages where nothing is known: with one omega only, they may be finer."""
        return self.parts(fineness)

    def average(self, V: np.ndarray, fineness: float) -> Average:
        inner = self.basis.T @ V @ self.basis
        v, u = np.linalg.eigh(inner)
        v = np.maximum(v, 1e-300)
        matrix, psi, extra = np.zeros(inner.shape), 0.0, 0.0
        for part in self.parts(fineness):
            if not part.limits.concerns(v):
                found = Average(*information(part.seen, np.eye(len(v)) - inner, fineness))
            else:
                found = narrow_information(part.rule, u, v, self.noise, part.seen, fineness, part.limits)
            matrix += part.chance * found.information
            psi += part.chance * found.entropy
            extra += part.chance * found.error
        return Average(self.basis @ matrix @ self.basis.T, psi, extra)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        u, size, vt = np.linalg.svd(self.basis.T @ basis, full_matrices=False)
        kept = size > _ALIGNED
        directions, mixing = u[:, kept], size[kept, None] * vt[kept]
        inner = self._clipped(self.basis.T @ M @ self.basis)
        double = np.kron(mixing, mixing)
        k = basis.shape[1]
        found = []
        for fineness in (1.0, COARSER):
            trivial, easy = np.zeros((k, k)), np.zeros((k * k, k * k))
            for part in self.parts(fineness) if inner.any() else self.parts_at_rest(fineness):
                first, second = second_moments(part.seen, inner, directions, fineness)
                trivial += part.chance * mixing.T @ first @ mixing
                easy += part.chance * double.T @ second @ double
            found.append((trivial, easy))
        (trivial, easy), (coarse, coarse_easy) = found
        error = max(float(np.abs(x).max(initial=0.0)) for x in (trivial - coarse, easy - coarse_easy))
        return Linearisation(basis, trivial, easy, error, trivial - coarse)

    def _clipped(self, M: np.ndarray) -> np.ndarray:
        """M with its eigenvalues kept where the rules resolve the posterior."""
        m, u = np.linalg.eigh(M)
        return (u * np.minimum(m, 1 - self.resolution)) @ u.T if m[-1] > 1 - self.resolution else M

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        laws = [(part.chance, law_of(part.seen)) for part in self.parts(fineness)]
        return LabelLaw(
            np.concatenate([chance * law.weight for chance, law in laws]),
            np.concatenate([law.mean for _, law in laws]) @ self.basis.T,
            self.basis @ np.concatenate([law.G for _, law in laws]) @ self.basis.T,
        )

    def pinned_mass(self, directions: np.ndarray) -> float:
        if self.noise > 0:
            return 0.0
        total = 0.0
        for part in self.parts(1.0):
            gradient = part.rule.sets.gradient @ self.basis.T
            along = np.linalg.norm(gradient, axis=1)
            across = np.linalg.norm(gradient - gradient @ directions @ directions.T, axis=1)
            mass = part.rule.mass
            total += part.chance * np.sum(mass[(along > 0) & (across <= _ALIGNED * along)]) / mass.sum()
        return float(total)


class GenericChannel(LevelSetAverages):
    """y = g(z) + sqrt(noise) xi for any g of several projections, in the coordinates of the target."""

    def __init__(self, target: Target, noise: float = 0.0):
        self.target = target
        self.noise = checked_variance(noise)
        self.basis = adapted_basis(target)
        self.surface = Surface.of(target, self.basis)

    @property
    def relevant(self) -> int:
        """The number of projections that g depends on."""
        return self.basis.shape[1]

    @property
    def discrete(self) -> bool:
        return self.surface.discrete

    @property
    def atoms(self) -> np.ndarray:
        return self.surface.atoms

    @property
    def resolution(self) -> float:
        return _RESOLUTION[self.relevant]

    @functools.lru_cache(maxsize=16)  # noqa: B019 - bounded: it keeps its channels
    def rule(self, fineness: float = 1.0) -> LabelRule:
        """The labels with their level sets, made once."""
        return label_rule(self.surface, Resolution.of(self.relevant, fineness))

    @functools.lru_cache(maxsize=16)  # noqa: B019 - bounded: it keeps its channels
    def parts(self, fineness: float) -> list[Part]:
        return self._parts(self.rule(fineness))

    def parts_at_rest(self, fineness: float) -> list[Part]:
        if self.relevant <= _MOST_COARSE:
            return self.parts(fineness)
        # Too many points to keep. The second moments of far z weigh more than their probability.
        coarse = Resolution.of(self.relevant, fineness)
        finer = _FINER_AT_REST if self.noise == 0 else _FINER_WITH_NOISE
        lines = dataclasses.replace(coarse, step=coarse.step / finer, radius=_RADIUS_AT_REST)
        return self._parts(label_rule(self.surface, lines))

    def _parts(self, rule: LabelRule) -> list[Part]:
        kinked = bool(self.surface.break_functions) or any(len(planes) for planes in self.surface.planes)
        limits = Narrowness(self.resolution, _WIDE[self.relevant], self.discrete, kinked)
        return [Part.of(1.0, self.surface, rule, self.noise, limits)]

    def known(self, directions: np.ndarray) -> Channel:
        return KnownChannel(self.target, self.noise, directions)

    @functools.cached_property
    def _rows(self) -> RowPosterior:
        return RowPosterior(self.surface, self.noise)

    @property
    def row_resolution(self) -> float:
        """The smallest eigenvalue of V at which `posterior` is right."""
        return 1e-6

    def observe(self, y: np.ndarray) -> Any:
        return self._rows.observe(np.asarray(y, float))

    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        omega, inner = Omega @ self.basis, self.basis.T @ V @ self.basis
        log_Z, mean, covariance = self._rows.posterior(observation, omega, inner)
        inverse = np.linalg.inv(inner)
        lift = V @ self.basis @ inverse
        outer = V - lift @ self.basis.T @ V
        return Posterior(
            log_Z,
            Omega + (mean - omega) @ lift.T,
            outer + np.einsum("ia,nab,jb->nij", lift, covariance, lift, optimize=True),
        )

    @functools.cached_property
    def predictor(self) -> Predictor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return LevelSetPredictor(self if self.noise == 0 else GenericChannel(self.target))

    def __repr__(self) -> str:
        return f"GenericChannel({self.target.name!r}, noise={self.noise:g})"


def law_of(rule: Rule) -> LabelLaw:
    """The law of the labels that are seen, with the conditional moments of u ~ N(0, I)."""
    r = rule.sets.z.shape[1]
    grid = frame(np.zeros((r, r)))
    units = np.eye(r, dtype=int)
    pairs = [(i, j) for i in range(r) for j in range(i, r)]
    exponents = [(0,) * r, *map(tuple, units), *(tuple(units[i] + units[j]) for i, j in pairs)]
    mu, moments = sums(rule, grid, exponents)
    Z = np.maximum(moments[:, 0, 0], 1e-300)
    G = np.zeros((len(mu), r, r))
    for k, (i, j) in enumerate(pairs):
        G[:, i, j] = G[:, j, i] = moments[:, 1 + r + k, 0] / Z - (i == j)
    weight = mu * moments[:, 0, 0]
    kept = weight > 0
    return LabelLaw(weight[kept] / weight.sum(), (moments[:, 1 : 1 + r, 0] / Z[:, None])[kept], G[kept])


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
        nodes, weight = tensor_rule([(x, w * normal_density(x)) for x, w in rules], _RADIUS)
        weight = weight / weight.sum()
        resolution = Resolution.of(self.projections, fineness * _FINENESS[self.projections])
        found: dict[Any, list[Any]] = {}
        for node, chance in zip(nodes, weight, strict=True):
            part = self._surface.fixed(node)
            if _constant(part):
                continue
            rule = label_rule(part, resolution)
            entry = found.setdefault(_fingerprint(rule, self.noise), [0.0, part, rule])
            entry[0] += chance
        least = self.resolution
        return [
            Part.of(chance, surface, rule, self.noise, Narrowness(least, 2 * least, surface.discrete, True))
            for chance, surface, rule in found.values()
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
