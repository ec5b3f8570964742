"""The parity sign(z1 z2), with any covariance and with label noise.

With a = omega_1 / sqrt(V_11), b = omega_2 / sqrt(V_22), rho = V_12 / sqrt(V_11 V_22), s = sqrt(1 - rho^2):

    dP(+)/domega_1 = phi(a) / sqrt(V_11) [2 Phi((b - rho a) / s) - 1],    d^2 P(+)/domega_1 domega_2 = 2 N(omega; 0, V),

and P(+) = P(z_1 z_2 > 0) by Owen's function. For diagonal V: P(+) = [1 + erf(a/sqrt 2) erf(b/sqrt 2)] / 2.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.closed.discrete import DiscreteChannel, Regions
from solvable.numerics.orthants import same_sign, standardised


class Parity(DiscreteChannel):
    """y = sign(z1 z2) + sqrt(noise) xi."""

    formula = "sign(z1*z2)"
    values = (-1.0, 1.0)
    walls = np.eye(2)

    def regions(self, Omega: np.ndarray, V: np.ndarray) -> Regions:
        a, b, rho, s, scale = standardised(Omega, V)
        minus, plus = same_sign(a, b, rho, s)
        return Regions(
            np.stack([minus.log_P, plus.log_P], 1),
            np.stack([minus.slope, plus.slope], 1) / scale,
            np.stack([minus.curvature, plus.curvature], 1) / np.outer(scale, scale),
        )
