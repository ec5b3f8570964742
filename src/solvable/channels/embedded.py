"""A target that depends on one direction only, b.z: the channel of one projection, seen from r projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels.base import Channel
from solvable.channels.multi import Linearisation, MatrixInformation, MultiChannel, MultiLabelLaw, MultiPosterior
from solvable.channels.prediction import classification_error, generalization_error
from solvable.numerics.subspaces import complement
from solvable.targets.target import Target

_COARSE = 0.7


class EmbeddedChannel(MultiChannel):
    """P(y | b.z) for a unit vector b: g_out = b g(y, b.omega, b^T V b), with g that of the scalar channel.

    A zero b is what remains once the direction is known: labels that say nothing about the other projections.
    """

    def __init__(self, target: Target, scalar: Channel, direction: np.ndarray):
        self.target, self.scalar, self.direction = target, scalar, direction
        self.noise = scalar.noise

    @property
    def projections(self) -> int:
        return len(self.direction)

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
        return 1e-9

    def information(self, M: np.ndarray) -> MatrixInformation:
        V = np.array([self._variance(np.eye(len(M)) - M)])
        fine, coarse = (self.scalar.information(V, fineness) for fineness in (1.0, _COARSE))
        outer = np.outer(self.direction, self.direction)
        error = abs(fine.information[0] - coarse.information[0]) * np.abs(outer).max()
        return MatrixInformation(
            fine.information[0] * outer,
            float(fine.entropy[0]),
            float(error),
            float(abs(fine.entropy[0] - coarse.entropy[0])),
        )

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """The label is informative about `basis` only if b has a part in it; then nothing is known of b.z."""
        law = self.scalar.label_law()
        share = basis.T @ self.direction
        outer = np.outer(share, share)
        trivial, easy = np.sum(law.weight * law.mean**2), np.sum(law.weight * law.G**2)
        return Linearisation(basis, trivial * outer, easy * np.kron(outer, outer), 1e-6)

    def label_law(self, fineness: float = 1.0) -> MultiLabelLaw:
        law = self.scalar.label_law(fineness)
        outer = np.outer(self.direction, self.direction)
        return MultiLabelLaw(law.weight, law.mean[:, None] * self.direction, law.G[:, None, None] * outer)

    def pinned_mass(self, directions: np.ndarray) -> float:
        inside = np.linalg.norm(directions.T @ self.direction)
        return self.scalar.continuous_mass if inside > 1 - 1e-9 else 0.0

    def frozen(self, directions: np.ndarray) -> MultiChannel:
        left = complement(directions).T @ self.direction
        size = np.linalg.norm(left)
        return EmbeddedChannel(self.target, self.scalar, left / size if size > 1e-6 else np.zeros_like(left))

    @property
    def row_resolution(self) -> float:
        """The smallest eigenvalue of V at which `posterior` is right."""
        return 1e-6

    def observe(self, y: np.ndarray) -> Any:
        return self.scalar.observe(np.asarray(y, float))

    def posterior(self, observation: Any, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> MultiPosterior:
        omega, variance = Omega @ self.direction, self._variance(V)
        found = self.scalar.posterior(observation, omega, variance, evidence)
        lift = V @ self.direction / variance
        covariance = V + (found.variance - variance)[:, None, None] * np.outer(lift, lift)
        return MultiPosterior(found.log_Z, Omega + (found.mean - omega)[:, None] * lift, covariance)

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.scalar.predict(Omega @ self.direction, self._variance(V))

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self.scalar.classify(Omega @ self.direction, self._variance(V))

    def prediction_errors(self, M: np.ndarray) -> dict[str, tuple[float, float]]:
        """The mean squared and classification errors of the Bayes predictor, each with an error estimate."""
        V = np.array([self._variance(np.eye(len(M)) - M)])
        shape = self.scalar.landscape
        errors = {"generalization_error": float(generalization_error(shape, V)[0])}
        if self.discrete:
            errors["classification_error"] = float(classification_error(shape, V)[0])
        return {name: (value, 1e-8) for name, value in errors.items()}

    def _variance(self, V: np.ndarray) -> float:
        if not self.direction.any():
            return 1.0
        return float(np.clip(self.direction @ V @ self.direction, 1e-12, 1.0))
