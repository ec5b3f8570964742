"""Linear labels: y = z + sqrt(noise) xi."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.channels.closed.scalar import ClosedScalar
from solvable.channels.scalar import PosteriorKernel, Rows, ScalarInformation, ScalarPosterior
from solvable.core.errors import checked_variance


class GaussianPosterior(PosteriorKernel):
    """y = z + sqrt(D) xi: mean omega + V (y - omega) / (V + D), variance V D / (V + D)."""

    noise: Any

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        total = V + self.noise
        residual = observation - omega
        log_Z = -(residual**2) / (2 * total) - xp.log(2 * xp.pi * total) / 2
        return ScalarPosterior(
            log_Z, omega + (V / total) * residual, xp.broadcast_to(V * self.noise / total, omega.shape)
        )


class Linear(ClosedScalar):
    """y = z + sqrt(noise) xi, for which I = 1 / (V + noise)."""

    formula = "z"
    exponent = 1.0

    def __init__(self, noise: float = 0.0):
        super().__init__()
        self.noise = checked_variance(noise)
        self.kernel = GaussianPosterior(np.float64(self.noise))

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        rows = super().make_rows(fineness, narrow)
        if self.noise == 0:
            return rows
        # The law of the label is needed only at omega = 0, where y ~ N(0, 1 + noise) stands for (z, y).
        return rows._replace(observation=rows.observation * np.sqrt(1 + self.noise))

    @property
    def deepest(self) -> float:
        return 40.0

    def scalar_information(self, V: np.ndarray, fineness: float = 1.0) -> ScalarInformation:
        total = np.asarray(V, float) + self.noise
        return ScalarInformation(1 / total, -(1 + np.log(2 * np.pi * total)) / 2)
