"""Two-layer networks with quadratic activations, as wide as a share of the dimension."""

from __future__ import annotations

import equinox as eqx
import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.models.matrix.model import MatrixModel, checked_features
from solvable.spectra import Law, MarchenkoPastur


class QuadraticNetwork(MatrixModel):
    r"""The labels of a network of p = rho d units with quadratic activation, from n = alpha d^2 samples.

    $y = \frac{1}{\sqrt p} \sum_{i=1}^p \frac{(w_i\cdot x)^2 - |w_i|^2}{d} + \sqrt{noise}\,\xi
    = \mathrm{Tr}[G A^*] + \sqrt{noise}\,\xi$ with $A^* = W^T W/\sqrt{pd}$ and $G = (x x^T - I)/\sqrt d$; weights and
    inputs have independent N(0, 1) entries. The variance of the noiseless label is 2 (1 + rho).

    - `rho`: width of the network over the dimension.
    - `noise`: variance of the Gaussian noise added to the label.
    - `features`: `"quadratic"`, or `"gaussian"` for symmetric Gaussian matrices in place of G.
    """

    rho: float
    noise: float
    features: str = eqx.field(static=True)

    def __init__(self, rho: float, noise: float = 0.0, features: str = "quadratic"):
        self.rho = _checked_rho(rho)
        self.noise = checked_variance(noise)
        self.features = checked_features(features)

    @property
    def law(self) -> Law:
        return MarchenkoPastur(self.rho)

    def teacher(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, int]:
        p = round(float(self.rho) * d)
        if p < 1:
            raise bad_parameter("d", d, f"at least 1/rho = {1 / float(self.rho):g}, so that the network has a unit")
        W = rng.standard_normal((p, d))
        return W.T @ W / np.sqrt(p * d), p


def _checked_rho(rho: object) -> float:
    return real_number("rho", rho, "a positive number, the width over the dimension", lambda x: x > 0)
