"""A target that depends on one direction only, b.z: the channel of one projection, seen from r projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels.base import Channel, Information, LabelLaw, Linearisation, Posterior, TargetChannel
from solvable.channels.predictor import Errors, Predictor
from solvable.channels.scalar import ScalarChannel
from solvable.numerics.subspaces import complement
from solvable.targets.target import Target

_ERROR = 1e-8
"""What predictions of one projection are trusted to."""


class SingleDirection(TargetChannel, Predictor):
    """P(y | b.z) for a unit vector b: g_out = b g(y, b.omega, b^T V b), with g that of the scalar channel.

    A zero b is what remains once the direction is known: labels that say nothing about the other projections.
    """

    def __init__(self, target: Target, scalar: ScalarChannel, direction: np.ndarray):
        self.target, self.scalar, self.direction = target, scalar, direction
        self.noise = scalar.noise

    @property
    def projections(self) -> int:
        return len(self.direction)

    @property
    def definition(self) -> dict[str, Any]:
        return {"target": self.target, "scalar": self.scalar, "direction": self.direction}

    @property
    def deterministic(self) -> bool:
        return self.scalar.deterministic

    @property
    def discrete(self) -> bool:
        return self.scalar.discrete

    @property
    def atoms(self) -> np.ndarray:
        return self.scalar.atoms

    @property
    def resolution(self) -> float:
        return self.scalar.resolution

    @property
    def row_resolution(self) -> float:
        return self.scalar.row_resolution

    def information(self, V: np.ndarray, fineness: float = 1.0) -> Information:
        found = self.scalar.information(self._variances(V), fineness)
        outer = np.outer(self.direction, self.direction)
        return Information.estimated(
            found.information * outer,
            found.entropy,
            lambda: (found.error * np.abs(outer).max(), found.entropy_error),
        )

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """The label is informative about `basis` only if b has a part in it; then nothing is known of b.z."""
        found = self.scalar.linearisation(np.zeros((1, 1)), np.eye(1))
        share = basis.T @ self.direction
        outer = np.outer(share, share)
        return Linearisation(basis, found.trivial * outer, found.easy * np.kron(outer, outer), found.error)

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        law = self.scalar.label_law(fineness)
        return LabelLaw(law.weight, law.mean * self.direction, law.G * np.outer(self.direction, self.direction))

    def pinned_mass(self, directions: np.ndarray) -> float:
        inside = np.linalg.norm(directions.T @ self.direction)
        return self.scalar.continuous_mass if inside > 1 - 1e-9 else 0.0

    def known(self, directions: np.ndarray) -> Channel:
        left = complement(directions).T @ self.direction
        size = np.linalg.norm(left)
        return SingleDirection(self.target, self.scalar, left / size if size > 1e-6 else np.zeros_like(left))

    def observe(self, y: np.ndarray) -> Any:
        return self.scalar.observe(np.asarray(y, float))

    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        omega, variance = Omega @ self.direction, float(self._variances(V[None])[0, 0, 0])
        found = self.scalar.scalar_posterior(observation, omega, variance, evidence)
        lift = V @ self.direction / variance
        covariance = V + (found.variance - variance)[:, None, None] * np.outer(lift, lift)
        return Posterior(found.log_Z, Omega + (found.mean - omega)[:, None] * lift, covariance)

    @property
    def predictor(self) -> Predictor:
        return self

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.scalar.predictor.predict((Omega @ self.direction)[:, None], self._variances(V[None])[0])

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.scalar.predictor.classify((Omega @ self.direction)[:, None], self._variances(V[None])[0])

    def errors(self, V: np.ndarray) -> Errors:
        found = self.scalar.predictor.errors(self._variances(V))
        return {name: (value, np.maximum(error, _ERROR)) for name, (value, error) in found.items()}

    def _variances(self, V: np.ndarray) -> np.ndarray:
        """b^T V b of each V (k, r, r), as (k, 1, 1)."""
        if not self.direction.any():
            return np.ones((len(V), 1, 1))
        return np.clip(np.einsum("i,kij,j->k", self.direction, V, self.direction), 1e-12, 1.0)[:, None, None]

    def __repr__(self) -> str:
        return f"SingleDirection({self.scalar!r}, direction={self.direction.tolist()})"
