"""What the closed forms of several projections share: formulas of their own, averages by quadrature over omega and,
given omega, over the label, and quadrature of positive functions that may be narrow."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.channels.base import Average, Channel, LabelLaw, Linearisation, Posterior, TargetChannel
from solvable.channels.generic import GenericChannel
from solvable.channels.predictor import Errors, Predictor, batched
from solvable.core.errors import checked_variance
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.gaussian_many import OmegaRule, smooth_omega_rule
from solvable.targets.target import Target

_BLOCK = 256
_DROP = 34.0
"""The logarithm of the function is followed down to this much below its peak."""
_GRID, _ROUNDS = 14, 9


class ClosedChannel(TargetChannel, Predictor):
    """A channel with formulas of its own; what it has no formula for, the generic channel of its target does."""

    formula: str

    def __init__(self, noise: float = 0.0):
        self.target = Target(self.formula)
        self.noise = checked_variance(noise)

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    @functools.cached_property
    def generic(self) -> GenericChannel:
        """The generic channel of the same target and noise."""
        return GenericChannel(self.target, self.noise)

    def known(self, directions: np.ndarray) -> Channel:
        return self.generic.known(directions)

    @property
    def predictor(self) -> Predictor:
        return self

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        raise ValueError(f"classify is defined for targets of finitely many values, and {self.target} has others.")

    def errors(self, V: np.ndarray) -> Errors:
        return batched([self.prediction_errors(v) for v in np.asarray(V, float)])

    @abc.abstractmethod
    def prediction_errors(self, V: np.ndarray) -> dict[str, tuple[float, float]]:
        """The mean squared error of the posterior mean of the noiseless label at one V and, for discrete targets, the
        probability that the most probable label is wrong, each with an error estimate."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(noise={self.noise:g})" if self.noise else f"{type(self).__name__}()"


class Moments(NamedTuple):
    """Averages over (omega, y): E[g g^T], E[log Z], E[m m^T] and E[G (x) G] in the directions of a basis.

    `defect` is by how much the total probability is missed, relatively.
    """

    information: np.ndarray
    entropy: float
    trivial: np.ndarray
    easy: np.ndarray
    defect: float


class AveragedChannel(ClosedChannel):
    """A closed form whose averages are sums over nodes of omega and, given omega, over the label."""

    @abc.abstractmethod
    def moments(self, V: np.ndarray, basis: np.ndarray, fineness: float) -> Moments:
        """The averages over omega ~ N(0, I - V) and y given omega, by the rule of one fineness."""

    def average(self, V: np.ndarray, fineness: float) -> Average:
        found = self.moments(V, np.zeros((len(V), 0)), fineness)
        size = float(np.abs(found.information).max())
        return Average(found.information, found.entropy, found.defect * size, found.defect * abs(found.entropy))

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        V = np.eye(len(M)) - M
        fine, coarse = self.moments(V, basis, 1.0), self.moments(V, basis, COARSER)
        error = max(np.abs(fine.trivial - coarse.trivial).max(), np.abs(fine.easy - coarse.easy).max())
        error = float(error + fine.defect * np.abs(fine.easy).max())
        return Linearisation(basis, fine.trivial, fine.easy, error, fine.trivial - coarse.trivial)


def weighted_square(weight: np.ndarray, values: np.ndarray) -> np.ndarray:
    """sum of weight * values values^T, over all rows and labels."""
    flat = values.reshape(weight.size, values.shape[-1])
    return flat.T @ (weight.reshape(-1, 1) * flat)


def kronecker(square: np.ndarray, k: int) -> np.ndarray:
    """E[G (x) G] from E[vec G vec G^T]: entry (ac, bd) of the first is entry (ab, cd) of the second."""
    return square.reshape(k, k, k, k).transpose(0, 2, 1, 3).reshape(k * k, k * k)


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


def peaked_nodes(
    log_f: Callable[[np.ndarray, np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes t (n, S * nodes) and log weights for the integral of f over S segments [low, high] (n, S) a row.

    `log_f(t, row)` takes t (k, G) and the rows (k,) that they belong to. Each round samples the segments on a grid and
    keeps what lies within `_DROP` of the largest value, until that is most of the segment.
    """
    n, segments = low.shape
    low, high = low.ravel().copy(), high.ravel().copy()
    row = np.repeat(np.arange(n), segments)
    steps = np.linspace(0.0, 1.0, _GRID)
    wide = np.arange(len(low))
    for _ in range(_ROUNDS):
        start, width = low[wide], high[wide] - low[wide]
        values = log_f(start[:, None] + width[:, None] * steps, row[wide])
        seen = values >= values.max(1, keepdims=True) - _DROP
        first = np.maximum(seen.argmax(1) - 1, 0)
        last = np.minimum(_GRID - seen[:, ::-1].argmax(1), _GRID - 1)
        low[wide], high[wide] = start + width * steps[first], start + width * steps[last]
        wide = wide[last - first < 0.6 * _GRID]
        if not wide.size:
            break
    t, w = gauss_legendre(nodes)
    width = (high - low)[:, None]
    at = low[:, None] + width * t
    with np.errstate(divide="ignore"):
        log_weight = np.log(width * w)
    return at.reshape(n, -1), log_weight.reshape(n, -1)


def shares(log_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log of the summed weights of each row, and every node's share in it."""
    top = log_weight.max(1, keepdims=True)
    share = np.exp(log_weight - top)
    total = share.sum(1, keepdims=True)
    return (top + np.log(total))[:, 0], share / total


def mixture_moments(share: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, r) and covariance (n, r, r) of points (n, L, r) with shares (n, L)."""
    mean = (share[:, None, :] @ points)[:, 0]
    offset = points - mean[:, None]
    return mean, offset.transpose(0, 2, 1) @ (share[..., None] * offset)
