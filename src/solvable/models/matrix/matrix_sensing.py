"""Matrix sensing: a symmetric matrix of given eigenvalues, seen through linear measurements."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import numpy as np

from solvable.core.errors import checked_variance
from solvable.models.matrix.model import MatrixModel, checked_features
from solvable.spectra import Law
from solvable.spectra.named import as_law


class MatrixSensing(MatrixModel):
    """y = Tr[G A*] + sqrt(noise) xi for a symmetric A* of known eigenvalues and unknown eigenvectors, n = alpha d^2.

    - `spectrum`: the law of the eigenvalues: `sv.spectra.MarchenkoPastur(rho)`, `Semicircle(scale)`,
      `Discrete(values, weights)`, `PowerLaw(gamma)`, `Density(function, low, high)`; a list of eigenvalues; or a text
      such as `"power-law:1.25"`.
    - `noise`: variance of the Gaussian noise added to the label.
    - `features`: `"quadratic"` for G = (x x^T - I)/sqrt(d), or `"gaussian"` for symmetric Gaussian matrices.

    Simulated teachers have eigenvalues at the quantiles of the law and uniformly random eigenvectors.
    """

    spectrum: Law
    noise: float
    features: str = eqx.field(static=True)

    def __init__(self, spectrum: Law | str | Sequence[float], noise: float = 0.0, features: str = "quadratic"):
        self.spectrum = as_law(spectrum)
        self.noise = checked_variance(noise)
        self.features = checked_features(features)

    @property
    def law(self) -> Law:
        return self.spectrum

    def teacher(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, int]:
        values = np.asarray(self.spectrum.eigenvalues(d))
        basis, triangle = np.linalg.qr(rng.standard_normal((d, d)))
        basis *= np.sign(np.diag(triangle))  # without the signs the basis would not be uniform
        width = int(np.sum(np.abs(values) > 1e-12 * np.max(np.abs(values))))
        return (basis * values) @ basis.T, max(width, 1)
