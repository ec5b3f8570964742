"""What every solver of Bayes-optimal state evolution offers and returns: fixed points, and thresholds by name."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from solvable.core.digits import rounded
from solvable.core.results import Prediction


class Thresholds(dict[str, float]):
    """Thresholds by name, and in words which of them coincide.

    Of index models: weak_recovery, where the AMP overlap becomes positive; information_theoretic and algorithmic, the
    ends of the (last) hard phase, where Bayes-optimal learning is better than AMP; without a hard phase both equal
    weak_recovery.
    """

    errors: dict[str, float]
    """The numerical errors of those that are known to have one."""

    def __init__(self, *values: Any, errors: Mapping[str, float] | None = None, **named: float):
        super().__init__(*values, **named)
        self.errors = dict(errors or {})

    def mapped(self, function: Callable[[float], float]) -> Thresholds:
        """The same thresholds as values of something else, a monotone function of these."""
        found = {name: function(value) for name, value in self.items()}
        errors = {name: abs(function(self[name] + error) - found[name]) for name, error in self.errors.items()}
        return Thresholds(found, errors=errors)

    def divided(self, unit: float) -> Thresholds:
        """The same thresholds in another unit."""
        return self.mapped(lambda value: value / unit)

    def text(self, name: str) -> str:
        """A threshold to the digits that its error leaves."""
        return rounded(self[name], self.errors.get(name, 0.0))

    @property
    def coincide(self) -> list[tuple[str, ...]]:
        """Groups of names that share a finite value: two things that never happen do not coincide."""
        groups: dict[float, list[str]] = {}
        for name, value in self.items():
            if np.isfinite(value):
                groups.setdefault(value, []).append(name)
        return [tuple(names) for names in groups.values() if len(names) > 1]

    def __str__(self) -> str:
        lines = [f"{name:24s}{self.text(name)}" for name in self]
        lines += [f"({' = '.join(names)})" for names in self.coincide]
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class FixedPoints:
    """Fixed points at an array of gains (samples for each unknown), r x r matrices with a leading axis over the gains.

    `overlap` is M = W*^T W_hat / d, and `variance` V = I - M with small values kept to relative precision; `field` is
    the precision M_hat that belongs to them. `uncertainty` estimates the numerical error of the entries of M,
    `residual` is how far the logarithm of the step's two sides differ, `iterations` counts evaluations of the output.
    `gain` is where they were asked for, and `errors` the numerical error of each entry of M, if the solver says it.
    """

    overlap: np.ndarray
    variance: np.ndarray
    field: np.ndarray
    free_entropy: np.ndarray
    status: np.ndarray
    uncertainty: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray
    gain: np.ndarray | None = None
    errors: np.ndarray | None = None

    @classmethod
    def nothing(cls, r: int) -> FixedPoints:
        """The point without samples, at which nothing is known of r directions."""
        zero, one = np.zeros((1, r, r)), np.eye(r)[None]
        return cls(zero, one, zero, np.zeros(1), np.zeros(1, int), np.zeros(1), np.zeros(1), np.zeros(1, int))

    def prediction(self, metrics: dict[str, Any], uncertainty: dict[str, Any]) -> Prediction:
        """The points with what a model makes of them: q and qhat of one direction, M and Mhat of several."""
        letters = ("q", "qhat") if self.overlap.shape[-1] == 1 else ("M", "Mhat")
        order = dict(zip(letters, map(plain, (self.overlap, self.field)), strict=True))
        return Prediction(
            metrics=metrics,
            order_parameters=order | {"free_entropy": self.free_entropy},
            status=self.status,
            residual=self.residual,
            iterations=self.iterations,
            uncertainty=uncertainty,
        )


def plain(matrices: np.ndarray) -> np.ndarray:
    """Matrices (k, r, r) as they are, or as numbers (k,) where r = 1."""
    return matrices[:, 0, 0] if matrices.shape[-1] == 1 else matrices


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
