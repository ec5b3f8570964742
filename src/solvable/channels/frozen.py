"""A channel of which some projections are known exactly: its label is the pair of y and these projections."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, NoReturn

import numpy as np

from solvable.channels.generic import COARSE, law_of
from solvable.channels.levels.averages import information, second_moments
from solvable.channels.levels.fibres import coordinate_rule
from solvable.channels.levels.labels import Blur, LabelRule, Resolution, blur, label_rule
from solvable.channels.levels.narrow import Narrow, Narrowness, narrow_information
from solvable.channels.levels.prediction import prediction_errors
from solvable.channels.levels.surface import Surface
from solvable.channels.multi import Linearisation, MatrixInformation, MultiChannel, MultiLabelLaw
from solvable.core.errors import NotSimulable
from solvable.numerics.gaussian import normal_density
from solvable.numerics.subspaces import complement
from solvable.targets.adapted import adapted_basis
from solvable.targets.target import Target

_STEP = 0.5
_RADIUS = 5.0
_ALIGNED = 1e-6
_FINENESS = {1: 1.0, 2: 0.8, 3: 0.7}


class Part(NamedTuple):
    """The labels at some values of the known projections, which have the probability `chance`."""

    chance: float
    rule: LabelRule
    discrete: bool
    noise: Blur | None


class FrozenChannel(MultiChannel):
    """P(y, z_U | z) for the projections z_U = directions^T z, in the coordinates of `complement(directions)`.

    Averages over (y, z_U) are means over nodes of z_U of the averages of g as a function of what is left.
    """

    def __init__(self, target: Target, noise: float, directions: np.ndarray):
        self.target, self.noise, self.directions = target, noise, directions
        self._left = complement(directions)
        # Averages run over coordinates in which the planes of breaks are axis planes, where there are such.
        adapted = adapted_basis(target)
        inside = adapted[:, np.linalg.norm(directions.T @ adapted, axis=0) < _ALIGNED]
        together = np.concatenate([directions, inside], 1)
        basis = np.concatenate([together, complement(together)], 1)
        self._turn = self._left.T @ basis[:, directions.shape[1] :]
        self._surface = Surface.of(target, basis)

    @property
    def projections(self) -> int:
        return self._left.shape[1]

    @functools.cache  # noqa: B019 - a channel lives as long as its rules
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
        return [Part(chance, rule, flat, blur(rule, self.noise)) for chance, rule, flat in found.values()]

    @property
    def discrete(self) -> bool:
        return all(part.discrete for part in self.parts(1.0))

    @property
    def atoms(self) -> np.ndarray:
        return np.zeros(0)

    @property
    def resolution(self) -> float:
        return {1: 1e-3, 2: 0.01, 3: 0.08}[self.projections]

    def information(self, M: np.ndarray) -> MatrixInformation:
        (fine, psi, extra), (coarse, coarse_psi, _) = (self._information(M, f) for f in (1.0, COARSE))
        return MatrixInformation(fine, psi, float(np.abs(fine - coarse).max()) + extra, abs(psi - coarse_psi))

    def _information(self, M: np.ndarray, fineness: float) -> Narrow:
        M = self._turn.T @ M @ self._turn
        m, u = np.linalg.eigh(M)
        v = np.maximum(1 - m, 1e-300)
        matrix, psi, extra = np.zeros(M.shape), 0.0, 0.0
        for chance, rule, flat, noise in self.parts(fineness):
            limits = Narrowness(self.resolution, 2 * self.resolution, flat, True)
            if not limits.concerns(v):
                found = Narrow(*information(rule, M, noise, fineness), 0.0)
            else:
                found = narrow_information(rule, u, v, self.noise, noise, fineness, limits)
            matrix += chance * found.information
            psi += chance * found.entropy
            extra += chance * found.error
        return Narrow(self._turn @ matrix @ self._turn.T, psi, extra)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        found = []
        k = basis.shape[1]
        inner, directions = self._turn.T @ M @ self._turn, self._turn.T @ basis
        for fineness in (1.0, COARSE):
            trivial, easy = np.zeros((k, k)), np.zeros((k * k, k * k))
            for chance, rule, _, noise in self.parts(fineness):
                first, second = second_moments(rule, inner, directions, noise, fineness)
                trivial += chance * first
                easy += chance * second
            found.append((trivial, easy))
        (trivial, easy), (coarse, coarse_easy) = found
        error = max(float(np.abs(x).max(initial=0.0)) for x in (trivial - coarse, easy - coarse_easy))
        return Linearisation(basis, trivial, easy, error, trivial - coarse)

    def label_law(self, fineness: float = 1.0) -> MultiLabelLaw:
        laws = [(part.chance, law_of(part.rule, part.noise)) for part in self.parts(fineness)]
        return MultiLabelLaw(
            np.concatenate([chance * law.weight for chance, law in laws]),
            np.concatenate([law.mean for _, law in laws]) @ self._turn.T,
            self._turn @ np.concatenate([law.G for _, law in laws]) @ self._turn.T,
        )

    def pinned_mass(self, directions: np.ndarray) -> float:
        if self.noise > 0:
            return 0.0
        total = 0.0
        for chance, rule, _, _ in self.parts(1.0):
            gradient = rule.sets.gradient @ self._turn.T
            along = np.linalg.norm(gradient, axis=1)
            across = np.linalg.norm(gradient - gradient @ directions @ directions.T, axis=1)
            total += chance * np.sum(rule.mass[(along > 0) & (across <= _ALIGNED * along)]) / rule.mass.sum()
        return float(total)

    def frozen(self, directions: np.ndarray) -> MultiChannel:
        together = np.concatenate([self.directions, self._left @ directions], 1)
        return FrozenChannel(self.target, self.noise, together)

    def prediction_errors(self, M: np.ndarray) -> dict[str, tuple[float, float]]:
        from solvable.channels.prediction_errors import prediction_errors

        return prediction_errors(self, self.directions @ self.directions.T + self._left @ M @ self._left.T)

    def errors_of_predictions(self, M: np.ndarray) -> dict[str, tuple[float, float]]:
        """As `GenericChannel.errors_of_predictions`, given the known projections."""
        inner = self._turn.T @ M @ self._turn
        found = []
        for fineness in (1.0, COARSE):
            total: dict[str, float] = {}
            for chance, rule, _, _ in self.parts(fineness):
                for name, value in prediction_errors(rule, inner, fineness).items():
                    total[name] = total.get(name, 0.0) + chance * value
            found.append(total)
        fine, coarse = found
        return {name: (fine[name], abs(fine[name] - coarse.get(name, 0.0))) for name in fine}

    def observe(self, y: np.ndarray) -> NoReturn:
        raise NotSimulable("a frozen channel describes what is left to learn in theory; it has no labels of its own.")

    def posterior(self, observation, Omega, V, evidence=True) -> NoReturn:
        self.observe(Omega)

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> NoReturn:
        self.observe(Omega)

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> NoReturn:
        self.observe(Omega)


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
