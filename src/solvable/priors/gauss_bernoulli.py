"""The sparse prior: weights that are zero, or Gaussian."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from scipy.special import expit

from solvable.core.checks import real_number
from solvable.numerics.gaussian import gauss_legendre
from solvable.priors.base import Prior, normalised


def _checked_rho(rho: Any) -> Any:
    return real_number("rho", rho, "in (0, 1]", lambda x: 0 < x <= 1)


class GaussBernoulli(Prior):
    """w = 0 with probability 1 - rho, otherwise w ~ N(0, 1/rho).

    With slab variance tau = 1/rho the slab's posterior has variance v = tau / (1 + A tau), mean v B, and log odds
    log(rho / (1 - rho)) - log(1 + A tau) / 2 + v B^2 / 2 against the spike.
    """

    rho: float = eqx.field(converter=_checked_rho)

    @property
    def dimension(self) -> float:
        return self.rho

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        present = rng.random(size) < self.rho
        # A small system can draw no weight at all; it gets one, since a teacher of norm zero has nothing to teach.
        present[rng.integers(size)] |= not present.any()
        return normalised(rng.standard_normal(size) * present)

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        return ((1 - self.rho, 0.0, 0.0), (self.rho, 0.0, 1 / self.rho))

    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slab, v, _ = self._slab(B, A)
        mean = slab * v * B
        return mean, slab * v + slab * (1 - slab) * (v * B) ** 2

    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        _, _, log_odds = self._slab(B, A)
        with np.errstate(divide="ignore"):
            return np.where(self.rho < 1, np.logaddexp(0.0, log_odds) + np.log1p(-min(self.rho, 1 - 1e-16)), log_odds)

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        B, weight, A = self._fields(np.asarray(qhat, float))
        return np.sum(weight * self.denoise(B, A)[1], -1)

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        B, weight, A = self._fields(np.asarray(qhat, float))
        return np.sum(weight * self.denoise(B, A)[0] ** 2, -1)

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        B, weight, A = self._fields(np.asarray(qhat, float))
        return np.sum(weight * self.log_partition(B, A), -1)

    def _slab(self, B: np.ndarray, A) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Posterior probability of the slab, its variance, and its log odds (log partition if rho = 1)."""
        tau = 1 / self.rho
        v = tau / (1 + A * tau)
        log_odds = v * B**2 / 2 - np.log1p(A * tau) / 2
        if self.rho == 1:
            return np.ones_like(B), v, log_odds
        log_odds = log_odds + np.log(self.rho / (1 - self.rho))
        return expit(log_odds), v, log_odds

    def _fields(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Nodes and weights over the law of B = qhat w + sqrt(qhat) x, a mixture of two centred Gaussians.

        The law is even; panels at the scale of the spike resolve the switch between spike and slab, which is narrow
        compared to the slab when qhat is large.
        """
        spike = np.sqrt(qhat)[..., None]
        slab = np.sqrt(qhat**2 / self.rho + qhat)[..., None]
        t, w = gauss_legendre(64)
        ends = [0 * spike, 3 * spike, 9 * spike, np.maximum(9 * spike, 3 * slab), np.maximum(9 * spike, 9 * slab)]
        B = np.concatenate([a + (b - a) * t for a, b in zip(ends[:-1], ends[1:], strict=True)], -1)
        width = np.concatenate([(b - a) * w for a, b in zip(ends[:-1], ends[1:], strict=True)], -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = (1 - self.rho) * _normal(B, spike) + self.rho * _normal(B, slab)
        return (
            B,
            2 * width * np.where(spike > 0, density, 0.0) + np.where(spike > 0, 0.0, 1 / B.shape[-1]),
            qhat[..., None],
        )


def _normal(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.exp(-((x / scale) ** 2) / 2) / (scale * np.sqrt(2 * np.pi))
