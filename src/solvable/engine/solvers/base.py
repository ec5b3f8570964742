"""What every solver of Bayes-optimal state evolution offers, and what it returns."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np

from solvable.engine.thresholds import Thresholds


@dataclasses.dataclass(frozen=True)
class FixedPoints:
    """Fixed points at an array of gains (samples for each unknown), r x r matrices with a leading axis over the gains.

    `overlap` is M = W*^T W_hat / d, and `variance` V = I - M with small values kept to relative precision; `field` is
    the precision M_hat that belongs to them. `uncertainty` estimates the numerical error of the entries of M,
    `residual` is how far the logarithm of the step's two sides differ, `iterations` counts evaluations of the output.
    """

    overlap: np.ndarray
    variance: np.ndarray
    field: np.ndarray
    free_entropy: np.ndarray
    status: np.ndarray
    uncertainty: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray

    @classmethod
    def nothing(cls, r: int) -> FixedPoints:
        """The point without samples, at which nothing is known of r directions."""
        zero, one = np.zeros((1, r, r)), np.eye(r)[None]
        return cls(zero, one, zero, np.zeros(1), np.zeros(1, int), np.zeros(1), np.zeros(1), np.zeros(1, int))


class Solver(abc.ABC):
    """The fixed points of one output and one signal, for Bayes-optimal learning and message passing."""

    @abc.abstractmethod
    def uninformed(self, gain: np.ndarray) -> FixedPoints:
        """The fixed points that message passing reaches from an uninformed start, at an array of gains."""

    @abc.abstractmethod
    def optimal(self, gain: np.ndarray) -> FixedPoints:
        """The fixed points of largest free entropy: what no learner can beat."""

    @abc.abstractmethod
    def thresholds(self) -> Thresholds:
        """The gains at which what can be learned changes, by name."""
