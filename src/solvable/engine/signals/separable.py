r"""Weights that are independent draws of a prior, found by their posterior mean or sought with a separable penalty.

A row of r weights is seen through a field of precision A, $B = w^* A + x A^{1/2}$ with x ~ N(0, I_r), and becomes
$E[w|B]$. With one direction the prior is any of zero mean and unit variance; with several it is N(0, I_r), for which
$E[w|B] = (I + A)^{-1} B$ and V = (I + A)^{-1}.

A learner with a penalty shrinks the field instead. Its response is the V that the next step uses, and the precision of
its field is the one that the labels' derivatives show. [thrampoulidis2018precise]
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from solvable.engine.sides import BayesSignal, Field, Overlap, Signal, SignalDenoiser, SignalStep
from solvable.numerics.symmetric import compose, eigh
from solvable.priors import Gaussian, Prior
from solvable.priors.penalties import Lasso, Penalty, Shrinkage

_LEAST_V = 1e-12


class PenalisedSignal(eqx.Module, Signal):
    """A penalty on weights whose true law is a mixture of Gaussians: arrays of (weight, mean, variance)."""

    penalty: Penalty
    mixture: Any

    @classmethod
    def of(cls, penalty: Penalty, prior: Prior) -> PenalisedSignal:
        """The signal of a penalty for weights of a prior."""
        # A ridge sees only the variance of the weights, which is one for every prior.
        parts = prior.mixture() if isinstance(penalty, Lasso) else ((1.0, 0.0, 1.0),)
        return cls(penalty, tuple(np.array(column, float) for column in zip(*parts, strict=True)))

    def shrinkage(self, m_hat: Any, q_hat: Any, V_hat: Any) -> Shrinkage:
        """The averages of the shrunk weights at a field of one direction (numbers)."""
        return self.penalty.average(m_hat, q_hat, V_hat, self.mixture)

    def average(self, field: Field) -> Overlap:
        found = _average(self, *(np.asarray(part, float).reshape(-1) for part in field))
        shape = np.shape(field.V_hat)
        return Overlap(*(np.asarray(part).reshape(shape) for part in (found.m, found.q, found.V)))

    def denoiser(self, operator: Any = None) -> PenalisedDenoiser:
        return PenalisedDenoiser(self.penalty)


@eqx.filter_jit
def _average(signal: PenalisedSignal, m_hat: Any, q_hat: Any, V_hat: Any) -> Shrinkage:
    return jax.vmap(signal.shrinkage)(m_hat, q_hat, V_hat)


class PenalisedDenoiser:
    """The shrinkage of a penalty, the same for signals of any operator; V is its response."""

    def __init__(self, penalty: Penalty):
        self._penalty = penalty

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        estimate, response = self._penalty.denoise(B, float(precision[0, 0]))
        variance = np.full((1, 1), max(response, _LEAST_V))
        return SignalStep(estimate, np.full((1, 1), response), precision, variance)


@dataclasses.dataclass(frozen=True, repr=False)
class SeparableSignal(BayesSignal):
    """The posterior mean under a separable prior, in `directions` directions; equal for equal priors."""

    prior: Prior
    directions: int = 1

    @property
    def entropy(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.prior.entropy

    @functools.cached_property
    def _functions(self) -> tuple[Callable[..., Any], ...]:
        # Taking a method off an equinox module costs more than a small method itself: do it once.
        return self.prior.mmse, self.prior.overlap, self.prior.potential, self.prior.moments

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

    def information(self, qhat: np.ndarray) -> np.ndarray:
        return self.prior.information(qhat)

    def moments(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._functions[3](qhat)

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
