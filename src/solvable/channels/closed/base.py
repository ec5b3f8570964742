"""What the closed forms of several projections share: formulas of their own, and averages by quadrature over omega."""

from __future__ import annotations

import abc
import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from solvable.channels.base import Average, Channel, Linearisation, TargetChannel
from solvable.channels.predictor import Errors, Predictor, batched
from solvable.core.errors import checked_variance
from solvable.numerics.errors import COARSER
from solvable.targets.target import Target

if TYPE_CHECKING:
    from solvable.channels.generic import GenericChannel


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
        from solvable.channels.generic import GenericChannel

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
