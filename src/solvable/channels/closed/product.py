"""The product z1 z2, with or without noise.

With D the noise, S = V_22 - V_12^2 / V_11 and mu(c) = omega_2 + V_12 (c - omega_1) / V_11 the law of z_2 given z_1 = c,

    Z = int dc N(c; omega_1, V_11) N(y; c mu(c), c^2 S + D),

and given (c, y) z_2 is Gaussian. For D = 0 the integrand has the hyperbola's Jacobian 1/|c|. The variable is
c = epsilon sinh(v), logarithmic in c down to the scale epsilon below which the label cuts it off, on four segments: two
arms for each sign, parted at the vertex c^2 = |y| sqrt(A_22 / A_11), A = V^-1, of the hyperbola in the metric of V.
With noise the likelihood may peak elsewhere, where c mu(c) = y, and there are segment ends there too.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.base import Posterior
from solvable.channels.closed.base import ContinuousChannel, mixture_moments, peaked_nodes, shares
from solvable.numerics.gaussian import gauss_legendre, graded_legendre

_REACH = ((0.5, 0.3), (2.0, 2.0), (4.0, 8.0), (6.5, 24.0))


class Product(ContinuousChannel):
    """y = z1 z2 + sqrt(noise) xi."""

    formula = "z1*z2"

    def posterior_rows(self, y: np.ndarray, Omega: np.ndarray, V: np.ndarray, nodes: int) -> Posterior:
        D = self.noise
        y = np.where(np.abs(y) < 1e-100, 1e-100, y)
        size = np.abs(y)
        slope = V[0, 1] / V[0, 0]
        S = V[1, 1] - slope * V[0, 1]
        epsilon = (size + np.sqrt(D)) / (np.abs(Omega[:, 1]) + 3 * np.sqrt(V[1, 1]))
        vertex = np.arcsinh(np.sqrt(size) * (V[0, 0] / V[1, 1]) ** 0.25 / epsilon)
        far = np.maximum(np.arcsinh((np.abs(Omega[:, 0]) + 9 * np.sqrt(V[0, 0])) / epsilon), vertex + 0.5)
        ends = np.stack([-far, -vertex, np.zeros_like(far), vertex, far], 1)
        if D > 0:
            roots = np.arcsinh(_roots(slope, Omega[:, 1] - slope * Omega[:, 0], y) / epsilon)
            ends = np.sort(np.concatenate([ends, np.clip(roots, -far, far).T], 1), 1)
        columns = np.stack([y, Omega[:, 0], Omega[:, 1], epsilon / 2])

        def log_f(v: np.ndarray, row: np.ndarray) -> np.ndarray:
            label, centre, offset, scale = columns[:, row, None]
            up = np.exp(v)
            c = scale * (up - 1 / up)
            u = c - centre
            variance = S * c**2 + (D + 1e-290)
            residual = label - c * (offset + slope * u)
            return np.log((up + 1 / up) / np.sqrt(variance)) - u**2 / (2 * V[0, 0]) - residual**2 / (2 * variance)

        v, log_weight = peaked_nodes(log_f, ends[:, :-1], ends[:, 1:], nodes)
        log_Z, share = shares(log_weight + log_f(v, np.arange(len(y))))
        log_Z += np.log(epsilon / 2) - np.log(2 * np.pi) - np.log(V[0, 0]) / 2
        c = epsilon[:, None] * np.sinh(v)
        prior = Omega[:, 1:] + slope * (c - Omega[:, :1])
        variance = S * c**2 + (D + 1e-290)
        second = prior + S * c * (y[:, None] - c * prior) / variance
        mean, covariance = mixture_moments(share, np.stack([c, second], -1))
        covariance[:, 1, 1] += np.sum(share * (S * D / variance), 1)
        return Posterior(log_Z, mean, covariance)

    def label_nodes(self, Omega: np.ndarray, V: np.ndarray, fineness: float) -> tuple[np.ndarray, np.ndarray]:
        """Panels around the mean label, at its Gaussian and its exponential scale, and cut at y = 0."""
        centre = self.predict(Omega, V)
        heavy = np.sqrt(V[0, 0] * V[1, 1])
        gradient = Omega[:, ::-1]
        gaussian = np.sqrt(np.sum(gradient * (gradient @ V), 1) + self.noise)
        steps = [sign * (k * gaussian + j * heavy) for sign in (-1, 1) for k, j in _REACH]
        edges = np.sort(np.stack([0 * centre, *(centre + step for step in steps)], 1), 1)
        # The density of a noiseless label has a logarithm at zero, which much noise smooths out.
        smooth = self.noise > 0.03
        t, w = gauss_legendre(round(7 * fineness)) if smooth else graded_legendre(round(8 * fineness))
        width = np.diff(edges, axis=1)[..., None]
        n = len(Omega)
        return (edges[:, :-1, None] + width * t).reshape(n, -1), (width * w).reshape(n, -1)

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return Omega[:, 0] * Omega[:, 1] + V[0, 1]

    def squared_error(self, M: np.ndarray) -> float:
        return float(1 - M[0, 0] * M[1, 1] - M[0, 1] ** 2)


def _roots(a: float, b: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The roots (2, n) of a c^2 + b c = y, and where there is none the extremum; infinite where a vanishes."""
    half = -(b + np.copysign(np.sqrt(np.maximum(b**2 + 4 * a * y, 0.0)), b)) / 2
    half = np.where(half == 0, 1e-300, half)
    first = half / a if a else np.full_like(b, np.inf)
    return np.stack([first, np.where(b**2 + 4 * a * y < 0, first, -y / half)])
