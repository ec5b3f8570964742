"""What closed forms of continuous labels share: averages by quadrature over omega and, given omega, over the label."""

from __future__ import annotations

import abc

import numpy as np

from solvable.channels.base import Average, LabelLaw, Posterior
from solvable.channels.closed.base import AveragedChannel, Moments, kronecker, weighted_square
from solvable.numerics.gaussian_many import OmegaRule, smooth_omega_rule

_BLOCK = 256


class ContinuousChannel(AveragedChannel):
    """A target without atoms, even or odd, whose label depends on all projections almost everywhere."""

    @abc.abstractmethod
    def label_nodes(self, Omega: np.ndarray, V: np.ndarray, fineness: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes y (n, L) and Lebesgue weights for integrals over the label, where it may fall given each omega."""

    @abc.abstractmethod
    def posterior_rows(self, y: np.ndarray, Omega: np.ndarray, V: np.ndarray, nodes: int) -> Posterior:
        """The posterior of a few rows, by quadrature along the level set with `nodes` nodes a segment."""

    def posterior(
        self, observation: np.ndarray, Omega: np.ndarray, V: np.ndarray, evidence: bool = True, nodes: int = 32
    ) -> Posterior:
        # Blocks of rows whose nodes fit the cache.
        cuts = range(_BLOCK, len(observation), _BLOCK)
        blocks = zip(np.split(observation, cuts), np.split(Omega, cuts), strict=True)
        parts = [self.posterior_rows(y, omega, V, nodes) for y, omega in blocks]
        return Posterior(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def omega_nodes(self, M: np.ndarray, fineness: float) -> OmegaRule:
        """A rule over omega ~ N(0, M) for even functions."""
        return smooth_omega_rule(M, fineness)

    def average(self, V: np.ndarray, fineness: float) -> Average:
        # Level sets are several times cheaper, and as accurate, until the posterior is narrower than they resolve.
        return self.generic.average(V, fineness) if self.prefers_level_sets(V) else super().average(V, fineness)

    def prefers_level_sets(self, V: np.ndarray) -> bool:
        """Whether the generic channel averages better at V."""
        return np.linalg.eigvalsh(V)[0] >= 3 * self.generic.resolution

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        r = self.projections
        weight, _, posterior = self._joint(OmegaRule(np.zeros((1, r)), np.ones(1)), np.eye(r), 3 * fineness)
        second = posterior.covariance + posterior.mean[:, :, None] * posterior.mean[:, None, :]
        return LabelLaw(weight / weight.sum(), posterior.mean, second - np.eye(r))

    def _joint(self, rule: OmegaRule, V: np.ndarray, fineness: float) -> tuple[np.ndarray, np.ndarray, Posterior]:
        """Weights, omegas and posteriors of the joint rule over omega and y, one row a pair."""
        y, y_weight = self.label_nodes(rule.omega, V, fineness)
        Omega = np.repeat(rule.omega, y.shape[1], 0)
        posterior = self.posterior(self.observe(y.ravel()), Omega, V, nodes=round(18 * fineness))
        weight = (rule.weight[:, None] * y_weight).ravel() * np.exp(posterior.log_Z)
        return weight, Omega, posterior

    def moments(self, V: np.ndarray, basis: np.ndarray, fineness: float) -> Moments:
        k = basis.shape[1]
        # 0.9 of the full density is enough, and 0.7 coarse enough to tell.
        fineness = 0.9 - 2 * (1 - fineness) / 3
        rule = self.omega_nodes(np.eye(len(V)) - V, fineness)
        # With one omega there is no reason to save on labels.
        weight, Omega, posterior = self._joint(rule, V, fineness if len(rule.weight) > 1 else 3 * fineness)
        by_omega = weight.reshape(len(rule.weight), -1)
        share = by_omega.sum(1) / rule.weight
        defect = float(np.sum(rule.weight * np.abs(share - 1)))
        weight = (by_omega / share[:, None]).ravel()
        g = (posterior.mean - Omega) @ np.linalg.inv(V)
        m = posterior.mean @ basis
        G = basis.T @ posterior.covariance @ basis + m[:, :, None] * m[:, None, :] - np.eye(k)
        return Moments(
            weighted_square(weight, g),
            float(np.sum(weight * posterior.log_Z)),
            weighted_square(weight, m),
            kronecker(weighted_square(weight, G.reshape(len(G), k * k)), k),
            defect,
        )

    @abc.abstractmethod
    def squared_error(self, M: np.ndarray) -> float:
        """E[(g(z) - E[g(z) | omega])^2] for omega ~ N(0, M)."""

    def prediction_errors(self, V: np.ndarray) -> dict[str, tuple[float, float]]:
        value = self.squared_error(np.eye(len(V)) - V)
        return {"generalization_error": (value, 1e-12 * (1 + abs(value)))}

    def pinned_mass(self, directions: np.ndarray) -> float:
        return float(self.noise == 0 and directions.shape[1] == self.projections)
