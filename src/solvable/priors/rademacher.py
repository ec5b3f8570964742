"""The prior of binary weights."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from solvable.priors.base import Prior


class Rademacher(Prior):
    """w = +-1 with equal probability: posterior mean tanh B.

    With a = sqrt(qhat), mmse = exp(-qhat/2) E[1 / cosh(a t)], t ~ N(0, 1): exact, and free of cancellation.
    """

    entropy: ClassVar[float] = float(np.log(2))

    @property
    def dimension(self) -> float:
        return 0.0

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return rng.choice(np.array([-1.0, 1.0]), size)

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        return ((0.5, 1.0, 0.0), (0.5, -1.0, 0.0))

    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.tanh(B)
        return mean, 1 - mean**2

    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        return _log_cosh(B) - A / 2

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        qhat = np.asarray(qhat, float)
        t, weight, a = _scaled_nodes(qhat)
        with np.errstate(over="ignore"):
            return np.exp(-qhat / 2) * np.sum(weight / np.cosh(a * t), -1)

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        # E tanh(qhat + sqrt(qhat) x), written so that small qhat keeps its relative precision.
        qhat = np.asarray(qhat, float)
        x = np.linspace(-8.0, 8.0, 321)
        weight = np.exp(-(x**2) / 2)
        small = np.sum(weight / weight.sum() * np.tanh(qhat[..., None] + np.sqrt(qhat)[..., None] * x) ** 2, -1)
        return np.where(qhat < 0.1, small, 1 - self.mmse(qhat))

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        # E log cosh(qhat + a x) = qhat + E log((1 + exp(-2 (qhat + a x))) / 2): x shifted to where the last term lives.
        qhat = np.asarray(qhat, float)
        t, weight, a = _scaled_nodes(qhat)
        with np.errstate(over="ignore"):
            tail = np.exp(a * t - qhat[..., None] / 2) * np.logaddexp(0.0, -2 * a * t)
        tail = np.where(np.isfinite(tail), tail, 0.0)
        return qhat / 2 - np.log(2) + np.sum(weight * tail, -1)


def _log_cosh(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, -x) - np.log(2)


def _scaled_nodes(qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes t and weights for E f(t), t ~ N(0, 1), resolving functions of a t, a = sqrt(qhat), with width 1/a."""
    a = np.sqrt(qhat)[..., None]
    scale = np.maximum(1.0, a)
    step = 0.1
    tau = step * np.arange(-390, 391)
    t = tau / scale
    return t, step / scale * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi), a
