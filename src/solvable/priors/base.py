"""Separable priors of the teacher's weights: zero mean, unit variance, and the denoisers they give."""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import numpy as np

from solvable.core.errors import NotSolvable


class Prior(eqx.Module):
    """The law P of one weight w, E w = 0 and E w^2 = 1, and its scalar denoising problem.

    The posterior of w given the field B at precision A has density proportional to P(w) exp(B w - A w^2 / 2). In the
    state evolution B = qhat w + sqrt(qhat) x with x ~ N(0, 1) and A = qhat; then

        overlap(qhat) = E[E[w|B]^2] = 1 - mmse(qhat),      potential(qhat) = E log Z(B, qhat),
        d potential / d qhat = overlap / 2.

    `dimension` is the information dimension of P: mmse ~ dimension / qhat as qhat grows.
    """

    entropy: ClassVar[float] = float("nan")
    """The Shannon entropy of a discrete prior: potential - qhat * overlap / 2 tends to minus this."""

    @property
    @abc.abstractmethod
    def dimension(self) -> float:
        """The information dimension of P."""

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw weights, normalised so that their squares sum to `size` exactly."""

    @abc.abstractmethod
    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of w, elementwise."""

    @abc.abstractmethod
    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        """log of the integral of P(w) exp(B w - A w^2 / 2), elementwise."""

    @abc.abstractmethod
    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        """The minimal mean squared error of the scalar problem, with small values kept to relative precision."""

    @abc.abstractmethod
    def potential(self, qhat: np.ndarray) -> np.ndarray:
        """E log Z of the scalar problem."""

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        """P as a mixture of Gaussians, (weight, mean, variance) each, for penalties that do not know P."""
        raise NotSolvable(f"the prior {self} is not known as a mixture of Gaussians: define `mixture` on it.")

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        """E[E[w|B]^2] = 1 - mmse."""
        return 1 - self.mmse(qhat)


def normalised(weights: np.ndarray) -> np.ndarray:
    """Rescale so that the squares sum to the number of weights: finite-size scatter of the norm is not the model's."""
    norm = np.sqrt(np.mean(weights**2))
    return weights / norm if norm > 0 else weights
