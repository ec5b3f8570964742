"""The standard normal prior."""

from __future__ import annotations

import numpy as np

from solvable.priors.base import Prior, normalised


class Gaussian(Prior):
    """w ~ N(0, 1): posterior mean B / (1 + A), overlap qhat / (1 + qhat)."""

    @property
    def dimension(self) -> float:
        return 1.0

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return normalised(rng.standard_normal(size))

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        return ((1.0, 0.0, 1.0),)

    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return B / (1 + A), np.full_like(B, 1 / (1 + A))

    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        return B**2 / (2 * (1 + A)) - np.log1p(A) / 2

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.asarray(qhat, float))

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        return qhat / (1 + np.asarray(qhat, float))

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        return (qhat - np.log1p(qhat)) / 2
