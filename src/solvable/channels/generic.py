"""The channel of any target of several projections, with or without noise, from the level sets of the target."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from solvable.channels.levels.averages import frame, information, second_moments
from solvable.channels.levels.labels import Blur, LabelRule, Resolution, blur, label_rule
from solvable.channels.levels.narrow import Narrow, Narrowness, narrow_information
from solvable.channels.levels.prediction import PredictionTable
from solvable.channels.levels.rows import RowPosterior
from solvable.channels.levels.surface import Surface
from solvable.channels.multi import (
    Linearisation,
    MatrixInformation,
    MultiChannel,
    MultiLabelLaw,
    MultiPosterior,
)
from solvable.core.errors import checked_variance
from solvable.targets.adapted import adapted_basis
from solvable.targets.target import Target

COARSE = 0.7
"""The fineness of the second, coarser evaluation whose difference from the first estimates the error."""

_RESOLUTION = {1: 1e-5, 2: 0.006, 3: 0.05, 4: 0.2}
_WIDE = {1: 1e-4, 2: 0.02, 3: 0.06, 4: 0.25}
_ALIGNED = 1e-6


class GenericChannel(MultiChannel):
    """y = g(z) + sqrt(noise) xi for any g, in the coordinates of the target.

    Internally z = basis u + (what g does not depend on): all averages run over u, the relevant projections.
    """

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

    @functools.cache  # noqa: B019 - a channel lives as long as its rules
    def rule(self, fineness: float = 1.0) -> LabelRule:
        """The labels with their level sets, made once."""
        return label_rule(self.surface, Resolution.of(self.relevant, fineness))

    @functools.cache  # noqa: B019 - as above
    def blur(self, fineness: float = 1.0) -> Blur | None:
        """What the noise makes of the labels of a rule."""
        return blur(self.rule(fineness), self.noise)

    def information(self, M: np.ndarray) -> MatrixInformation:
        inner = self.basis.T @ M @ self.basis
        values = [self._information(inner, fineness) for fineness in (1.0, COARSE)]
        (fine, psi, extra), (coarse, coarse_psi, _) = values
        return MatrixInformation(
            self.basis @ fine @ self.basis.T,
            psi,
            float(np.abs(fine - coarse).max()) + extra,
            abs(psi - coarse_psi),
        )

    def _information(self, M: np.ndarray, fineness: float) -> Narrow:
        m, u = np.linalg.eigh(M)
        v = np.maximum(1 - m, 1e-300)
        rule, noise = self.rule(fineness), self.blur(fineness)
        limits = narrowness(self.relevant, self.surface)
        if not limits.concerns(v):
            return Narrow(*information(rule, M, noise, fineness), 0.0)
        return narrow_information(rule, u, v, self.noise, noise, fineness, limits)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        inside = self.basis.T @ basis
        u, size, vt = np.linalg.svd(inside, full_matrices=False)
        kept = size > _ALIGNED
        directions, mixing = u[:, kept], size[kept, None] * vt[kept]
        inner = self._clipped(self.basis.T @ M @ self.basis)
        double = np.kron(mixing, mixing)
        found = []
        for fineness in (1.0, COARSE):
            trivial, easy = second_moments(self.rule(fineness), inner, directions, self.blur(fineness), fineness)
            found.append((mixing.T @ trivial @ mixing, double.T @ easy @ double))
        (trivial, easy), (coarse, coarse_easy) = found
        error = max(float(np.abs(x).max(initial=0.0)) for x in (trivial - coarse, easy - coarse_easy))
        return Linearisation(basis, trivial, easy, error, trivial - coarse)

    def _clipped(self, M: np.ndarray) -> np.ndarray:
        """M with its eigenvalues kept where the rule resolves the posterior."""
        m, u = np.linalg.eigh(M)
        return (u * np.minimum(m, 1 - self.resolution)) @ u.T if m[-1] > 1 - self.resolution else M

    def label_law(self, fineness: float = 1.0) -> MultiLabelLaw:
        law = law_of(self.rule(fineness), self.blur(fineness))
        mean = law.mean @ self.basis.T
        return MultiLabelLaw(law.weight, mean, self.basis @ law.G @ self.basis.T)

    def pinned_mass(self, directions: np.ndarray) -> float:
        if self.noise > 0:
            return 0.0
        rule = self.rule()
        gradient = rule.sets.gradient @ self.basis.T
        across = np.linalg.norm(gradient - gradient @ directions @ directions.T, axis=1)
        along = np.linalg.norm(gradient, axis=1)
        mass = rule.mass
        return float(np.sum(mass[(along > 0) & (across <= _ALIGNED * along)]) / np.sum(mass))

    def frozen(self, directions: np.ndarray) -> MultiChannel:
        from solvable.channels.frozen import FrozenChannel

        return FrozenChannel(self.target, self.noise, directions)

    @functools.cached_property
    def _rows(self) -> RowPosterior:
        return RowPosterior(self.surface, self.noise)

    @property
    def row_resolution(self) -> float:
        """The smallest eigenvalue of V at which `posterior` is right: tiny where labels are locally smooth in z."""
        return self._rows.resolution if self.discrete else 1e-6

    def observe(self, y: np.ndarray) -> Any:
        return self._rows.observe(np.asarray(y, float))

    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> MultiPosterior:
        omega, inner = Omega @ self.basis, self.basis.T @ V @ self.basis
        log_Z, mean, covariance = self._rows.posterior(observation, omega, inner)
        inverse = np.linalg.inv(inner)
        lift = V @ self.basis @ inverse
        outer = V - lift @ self.basis.T @ V
        return MultiPosterior(
            log_Z,
            Omega + (mean - omega) @ lift.T,
            outer + np.einsum("ia,nab,jb->nij", lift, covariance, lift, optimize=True),
        )

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self._table(V).mean(Omega @ self.basis)

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self._table(V).most_probable(Omega @ self.basis)

    def _table(self, V: np.ndarray) -> PredictionTable:
        return PredictionTable(self.rule(), self.surface, self.basis.T @ V @ self.basis)

    def errors_of_predictions(self, M: np.ndarray) -> dict[str, tuple[float, float]]:
        """The errors of `prediction_errors`, where the rule resolves the posterior."""
        from solvable.channels.levels.prediction import prediction_errors

        inner = self.basis.T @ M @ self.basis
        fine, coarse = (prediction_errors(self.rule(f), inner, f) for f in (1.0, COARSE))
        return {name: (fine[name], abs(fine[name] - coarse[name])) for name in fine}


def narrowness(projections: int, surface: Surface) -> Narrowness:
    """The variances that the rule of a surface resolves."""
    kinked = bool(surface.break_functions) or any(len(planes) for planes in surface.planes)
    return Narrowness(_RESOLUTION[projections], _WIDE[projections], surface.discrete, kinked)


def law_of(rule: LabelRule, noise: Blur | None) -> MultiLabelLaw:
    """The law of the labels of a rule, with the conditional moments of u ~ N(0, I)."""
    from solvable.channels.levels.averages import sums

    r = rule.sets.z.shape[1]
    grid = frame(np.zeros((r, r)))
    units = np.eye(r, dtype=int)
    pairs = [(i, j) for i in range(r) for j in range(i, r)]
    exponents = [(0,) * r, *map(tuple, units), *(tuple(units[i] + units[j]) for i, j in pairs)]
    mu, moments = sums(rule, grid, exponents, noise)
    Z = np.maximum(moments[:, 0, 0], 1e-300)
    G = np.zeros((len(mu), r, r))
    for k, (i, j) in enumerate(pairs):
        G[:, i, j] = G[:, j, i] = moments[:, 1 + r + k, 0] / Z - (i == j)
    weight = mu * moments[:, 0, 0]
    kept = weight > 0
    return MultiLabelLaw(weight[kept] / weight.sum(), (moments[:, 1 : 1 + r, 0] / Z[:, None])[kept], G[kept])
