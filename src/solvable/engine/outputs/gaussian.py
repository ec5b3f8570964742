r"""Labels that are one projection plus Gaussian noise, $y = z + \sqrt\Delta\,\xi$."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from solvable.engine.sides import BayesOutput, OutputStep

_SMALLEST_V = 1e-16


@dataclasses.dataclass(frozen=True)
class GaussianOutput(BayesOutput):
    r"""Linear labels with noise of variance $\Delta$, for which $g = (y - \omega)/(\Delta + V)$ and

    E g^2 = 1 / (Delta + V).
    """

    noise: float = 0.0

    @property
    def projections(self) -> int:
        return 1

    def information(self, V: Any) -> Any:
        with np.errstate(divide="ignore"):
            return 1 / (self.noise + np.asarray(V, float))

    def denoiser(self, y: np.ndarray) -> GaussianLabels:
        return GaussianLabels(y[:, None], self.noise)


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianLabels:
    r"""The denoiser of labels `y` (n, 1) whose `noise`, one number or (n, 1), may differ between samples.

    With `scattered` it measures V by the scatter of the residuals beyond the noise,
    $V = \mathrm{mean}((y - \Omega)_\mu^2 - noise_\mu)$, instead of $1 - |\hat w|^2/N$. The norm of a finite teacher
    differs from that of its law, by a relative 1/d for matrices, which would hide perfect recovery. And when an
    estimate is too large the scatter says so, while the other V vanishes and locks the error in.
    """

    y: np.ndarray
    noise: float | np.ndarray
    scattered: bool = False

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        residual = self.y - Omega
        seen = max(float(np.mean(residual**2 - self.noise)), _SMALLEST_V) if self.scattered else float(V[0, 0])
        variance = self.noise + seen

        def log_Z() -> np.ndarray:
            return (-0.5 * (residual**2 / variance + np.log(2 * np.pi * variance)))[:, 0]

        minus_derivative = np.full((1, 1), np.mean(1 / variance))
        said = np.full((1, 1), seen) if self.scattered else None
        return OutputStep(residual / variance, minus_derivative, said, log_Z)
