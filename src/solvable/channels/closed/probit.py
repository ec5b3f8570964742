"""Binary labels with noise before the sign: y = sign(z + sqrt(noise) xi)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import scipy.special

from solvable.channels.closed.scalar import ClosedScalar
from solvable.channels.contamination import Component
from solvable.channels.scalar import PosteriorKernel, Rows, ScalarPosterior
from solvable.core.errors import checked_variance


class ProbitPosterior(PosteriorKernel):
    """y = sign(z + sqrt(D) xi): Z = Phi(a), g = y phi(a) / (Phi(a) sqrt(U)), U = V + D, a = y omega / sqrt(U)."""

    noise: Any

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        log_ndtr = scipy.special.log_ndtr if xp is np else jax.scipy.special.log_ndtr
        total = V + self.noise
        a = observation * omega / xp.sqrt(total)
        log_Z = log_ndtr(a)
        # phi / Phi = -a + tail, with the tail by its series where the two would cancel.
        far = xp.minimum(a, -50.0)
        ratio = xp.exp(-(a**2) / 2 - log_Z) / xp.sqrt(2 * xp.pi)
        tail = xp.where(a < -50.0, -1 / far + 2 / far**3, a + ratio)
        ratio = xp.where(a < -50.0, tail - a, ratio)
        g = observation * ratio / xp.sqrt(total)
        return ScalarPosterior(log_Z, omega + V * g, V * xp.maximum(1 - V / total * ratio * tail, 0.0))


class Probit(ClosedScalar):
    """y = sign(z + sqrt(noise) xi): the noise comes before the sign, and labels stay binary.

    Predictions are scored against the clean label sign(z). Use it as a model's target:
    `MultiIndex(sv.channels.Probit(noise=0.5))`.
    """

    formula = "sign(z)"
    exponent = 1.0
    label_noise: float

    def __init__(self, noise: float = 0.0):
        super().__init__()
        self.label_noise = checked_variance(noise)
        self.kernel = ProbitPosterior(np.float64(self.label_noise))

    @property
    def definition(self) -> dict[str, Any]:
        return super().definition | {"label_noise": self.label_noise}

    @property
    def deterministic(self) -> bool:
        return self.label_noise == 0

    @property
    def components(self) -> tuple[Component, ...] | None:
        return super().components if self.deterministic else None

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        z = np.asarray(z, float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return scipy.special.ndtr(np.where(z == 0, 0.0, z / np.sqrt(self.label_noise))[..., None] * self.atoms)

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        z = np.asarray(z, float)[..., 0]
        noisy = z + np.sqrt(self.label_noise) * rng.standard_normal(np.shape(z)) if self.label_noise else z
        return np.where(noisy >= 0, 1.0, -1.0)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        rows = super().make_rows(fineness, narrow)
        if self.label_noise == 0:
            return rows
        agree = scipy.special.ndtr(np.abs(rows.z) / np.sqrt(self.label_noise))
        return Rows(
            np.concatenate([rows.z, rows.z]),
            np.concatenate([rows.weight * agree, rows.weight * (1 - agree)]),
            np.concatenate([rows.observation, -rows.observation]),
        )

    def __repr__(self) -> str:
        return f"Probit(noise={self.label_noise:g})"


class Sign(Probit):
    """y = sign(z), without noise."""

    def __init__(self):
        super().__init__(0.0)
