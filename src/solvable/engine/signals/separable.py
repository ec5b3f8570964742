r"""Weights that are independent draws of a prior, found by their posterior mean.

A row of r weights is seen through a field of precision A, $B = w^* A + x A^{1/2}$ with x ~ N(0, I_r), and becomes
$E[w|B]$. With one direction the prior is any of zero mean and unit variance; with several it is N(0, I_r), for which
$E[w|B] = (I + A)^{-1} B$ and V = (I + A)^{-1}.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.engine.sides import BayesSignal, Field, Overlap, SignalDenoiser, SignalStep
from solvable.engine.signals.penalised import PenalisedSignal
from solvable.numerics.symmetric import compose, eigh
from solvable.priors import Gaussian, Prior
from solvable.priors.penalties import Penalty


class SeparableSignal(BayesSignal):
    """The posterior mean under a separable prior, in `directions` directions; equal for equal priors."""

    def __init__(self, prior: Prior, directions: int = 1):
        self.prior, self.directions = prior, directions
        self.entropy = prior.entropy

    @functools.cached_property
    def _functions(self) -> tuple[Callable[..., np.ndarray], ...]:
        # Taking a method off an equinox module costs more than a small method itself: do it once.
        return self.prior.mmse, self.prior.overlap, self.prior.potential

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeparableSignal) and (self.prior, self.directions) == (other.prior, other.directions)

    def __hash__(self) -> int:
        return hash((SeparableSignal, self.prior, self.directions))

    def __repr__(self) -> str:
        return f"SeparableSignal({self.prior})"

    @property
    def gaussian(self) -> bool:
        """Whether rows of weights are N(0, I), the law that is solved in several directions."""
        return isinstance(self.prior, Gaussian)

    @property
    def dimension(self) -> float:
        return self.prior.dimension

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        return self._functions[0](qhat)

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        return self._functions[1](qhat)

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        return self._functions[2](qhat)

    def with_penalty(self, penalty: Penalty) -> PenalisedSignal:
        return PenalisedSignal.of(penalty, self.prior)

    def average(self, field: Field) -> Overlap:
        precision = np.asarray(field.V_hat, float)
        if precision.shape[-1] == 1:
            return super().average(field)
        return Overlap.bayes(np.linalg.inv(np.eye(precision.shape[-1]) + precision))

    def denoiser(self, operator: Any) -> SignalDenoiser:
        return gaussian_denoiser if self.directions > 1 else PriorDenoiser(self.prior)


class PriorDenoiser:
    r"""The signal denoiser of a separable prior of zero mean and unit variance, in one direction.

    The precision solves $A^2 + A = |B|^2/d$, because $B = A w^* + \sqrt A x$ has that norm for every such prior.
    """

    def __init__(self, prior: Prior):
        self._denoise, self._log_partition = prior.denoise, prior.log_partition

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        A = precision_from_norm(B)[0]
        mean, variance = self._denoise(B, A[0])
        response = np.full((1, 1), np.add.reduce(variance, axis=None) / variance.size)

        def log_partition() -> float:
            return float(np.sum(self._log_partition(B, A[0])))

        return SignalStep(mean, response, A[:, None], log_partition=log_partition)


def precision_from_norm(B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The precision A of $B = W^* A + G A^{1/2}$ for a prior of zero mean and unit covariance: $A^2 + A = B^T B / d$.

    Given by its eigenvalues and eigenvectors.
    """
    if B.shape[1] == 1:
        return np.array([0.5 * (math.sqrt(1 + 4 * float(np.vdot(B, B)) / len(B)) - 1)]), np.ones((1, 1))
    s, u = eigh(B.T @ B / B.shape[0])
    return 0.5 * (np.sqrt(1 + 4 * np.maximum(s, 0)) - 1), u


def gaussian_denoiser(B: np.ndarray, precision: np.ndarray) -> SignalStep:
    """The signal denoiser of the prior N(0, I_p): $f(B) = B (I + A)^{-1}$, so that Q = I - (I + A)^{-1} by itself."""
    a, u = precision_from_norm(B)
    R = compose(1 / (1 + a), u)
    estimate = B @ R

    def log_partition() -> float:
        return float(0.5 * np.vdot(B, estimate) - 0.5 * B.shape[0] * np.log1p(a).sum())

    return SignalStep(estimate, R, compose(a, u), log_partition=log_partition)
