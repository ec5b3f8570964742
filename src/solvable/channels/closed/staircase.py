"""The staircase z1^2 + sign(z1 z2 z3), without noise.

A label y leaves at most four candidates for z_1: c = +-sqrt(y + 1) with s = -1 and, for y > 1, c = +-sqrt(y - 1) with
s = +1. Given z_1 = c the pair (z_2, z_3) is Gaussian with the sign of its product known, s sign(c), and

    Z = sum_c N(c; omega_1, V_11) / (2 |c|) P(sign(z_2 z_3) = s sign(c) | z_1 = c).
"""

from __future__ import annotations

import numpy as np

from solvable.channels.base import COARSE, Average, Channel, LabelLaw, Linearisation, Posterior
from solvable.channels.closed.base import ClosedChannel, kronecker, weighted_square
from solvable.channels.closed.discrete import density
from solvable.channels.closed.parity import Parity
from solvable.channels.closed.staircase_average import (
    SIGNS,
    block_averages,
    candidates,
    label_rule,
    mean_square_sign,
)
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.orthants import mean_sign, same_sign, standardised

_PANELS = np.array([-8.5, -5.5, -3.5, -2.0, -0.8, 0.0, 0.8, 2.0, 3.5, 5.5, 8.5])


class KnownFirst(Parity):
    """The staircase once z_1 is known: the label (y, z_1) tells sign(z_2 z_3) = (y - z_1^2) sign(z_1)."""

    def observe(self, y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, float)
        return y if y.ndim == 1 else np.sign((y[:, 0] - y[:, 1] ** 2) * y[:, 1])


class Staircase(ClosedChannel):
    """y = z1^2 + sign(z1 z2 z3)."""

    formula = "z1**2 + sign(z1*z2*z3)"

    def __init__(self):
        super().__init__(0.0)

    def observe(self, y: np.ndarray) -> np.ndarray:
        """y + 1 and y - 1: what z_1^2 is for either sign."""
        return np.add.outer(np.asarray(y, float), [1.0, -1.0])

    def posterior(self, observation: np.ndarray, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        c, log_jacobian = candidates(observation)
        slope, rest = V[1:, 0] / V[0, 0], V[1:, 1:] - np.outer(V[1:, 0], V[0, 1:]) / V[0, 0]
        residual = c - Omega[:, :1]
        centre = Omega[:, None, 1:] + residual[..., None] * slope
        n = len(c)
        a, b, rho, tilt, scale = standardised(centre.reshape(-1, 2), rest)
        positive = np.tile(SIGNS > 0, n)
        log_P, pair_mean, pair_second = _known_sign(a, b, rho, tilt, scale, positive, rest)
        log_weight = log_jacobian - residual**2 / (2 * V[0, 0]) - np.log(2 * np.pi * V[0, 0]) / 2 + log_P.reshape(n, 4)
        top = log_weight.max(1, keepdims=True)
        share = np.exp(log_weight - top)
        total = share.sum(1, keepdims=True)
        share /= total
        points = np.concatenate([c[..., None], centre + pair_mean.reshape(n, 4, 2)], -1)
        mean = np.einsum("nc,nci->ni", share, points)
        offset = points - mean[:, None]
        covariance = np.einsum("nc,nci,ncj->nij", share, offset, offset)
        covariance[:, 1:, 1:] += np.einsum("nc,ncij->nij", share, pair_second.reshape(n, 4, 2, 2))
        return Posterior((top + np.log(total))[:, 0], mean, covariance)

    def average(self, V: np.ndarray, fineness: float) -> Average:
        if np.abs(V[0, 1:]).max() > 1e-9:
            return self.generic.average(V, fineness)
        found = block_averages(1 - float(V[0, 0]), np.eye(2) - V[1:, 1:], density(fineness))
        information = np.zeros((3, 3))
        information[0, 0], information[1:, 1:] = found.first, found.pair
        return Average(information, found.entropy)

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """At M = 0 in all directions, and around M = diag(q, 0, 0) in those of z_2, z_3: G = (2/pi) t sigma_x there."""
        k = basis.shape[1]
        if not np.any(M):
            easy = [self._easy(basis, density(f)) for f in (1.0, COARSE)]
        elif np.abs(M[1:]).max() < 1e-9 and np.abs(basis[0]).max() < 1e-9:
            G = 2 / np.pi * basis[1:].T @ np.array([[0.0, 1.0], [1.0, 0.0]]) @ basis[1:]
            q, none = float(M[0, 0]), np.zeros((2, 2))
            easy = [block_averages(q, none, density(f)).certainty * np.kron(G, G) for f in (1.0, COARSE)]
        else:
            return self.generic.linearisation(M, basis)
        nothing = np.zeros((k, k))
        return Linearisation(basis, nothing, easy[0], float(np.abs(easy[0] - easy[1]).max()), nothing)

    def _easy(self, basis: np.ndarray, fineness: float) -> np.ndarray:
        law = self.label_law(fineness)
        G = basis.T @ law.G @ basis
        k = basis.shape[1]
        return kronecker(weighted_square(law.weight, G.reshape(len(G), k * k)), k)

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        _, square, weight = label_rule(1.0, 2 * fineness)
        posterior = self.posterior(square, np.zeros((len(square), 3)), np.eye(3))
        second = posterior.covariance + posterior.mean[:, :, None] * posterior.mean[:, None, :]
        return LabelLaw(weight / weight.sum(), posterior.mean, second - np.eye(3))

    def pinned_mass(self, directions: np.ndarray) -> float:
        return float(directions.shape[1] == 1 and abs(directions[0, 0]) > 1 - 1e-9)

    def known(self, directions: np.ndarray) -> Channel:
        return KnownFirst() if self.pinned_mass(directions) else self.generic.known(directions)

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """omega_1^2 + V_11 + E[sign(z_1) m(z_1)], m the mean sign of z_2 z_3 given z_1, by quadrature over z_1."""
        slope, rest = V[1:, 0] / V[0, 0], V[1:, 1:] - np.outer(V[1:, 0], V[0, 1:]) / V[0, 0]
        t, w = gauss_legendre(8)
        s = np.sqrt(V[0, 0])
        centre = Omega[:, :1]
        edges = np.sort(np.concatenate([centre + s * _PANELS, np.clip(0 * centre, centre - 8 * s, centre + 8 * s)], 1))
        width = np.diff(edges, axis=1)[..., None]
        z = (edges[:, :-1, None] + width * t).reshape(len(Omega), -1)
        weight = (width * w).reshape(z.shape) * np.exp(-(((z - centre) / s) ** 2) / 2)
        weight /= weight.sum(1, keepdims=True)
        pair = Omega[:, None, 1:] + (z - centre)[..., None] * slope
        a, b, rho, tilt, _ = standardised(pair.reshape(-1, 2), rest)
        sign = mean_sign(a, b, rho, tilt).reshape(z.shape) * np.sign(z)
        return Omega[:, 0] ** 2 + V[0, 0] + np.sum(weight * sign, 1)

    def prediction_errors(self, V: np.ndarray) -> dict[str, tuple[float, float]]:
        """3 - 2 q^2 - E[erf^2] E[m^2] for M = q (+) M', erf the mean sign of z_1: E[erf^2] = (2/pi) arcsin(q)."""
        if np.abs(V[0, 1:]).max() > 1e-9:
            return {name: (float(a[0]), float(b[0])) for name, (a, b) in self.generic.predictor.errors(V[None]).items()}
        q = 1 - float(V[0, 0])
        rest = np.eye(2) - V[1:, 1:]
        fine, coarse = (mean_square_sign(rest, density(f)) * 2 / np.pi * np.arcsin(q) for f in (1.0, COARSE))
        return {"generalization_error": (3 - 2 * q**2 - fine, abs(fine - coarse))}


def _known_sign(a, b, rho, tilt, scale, positive, V) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log P, shift of the mean and covariance of pairs z ~ N(., V) given the sign of their product, row by row."""
    minus, plus = same_sign(a, b, rho, tilt)
    log_P = np.where(positive, plus.log_P, minus.log_P)
    slope = np.where(positive[:, None], plus.slope, minus.slope) / scale
    curvature = np.where(positive[:, None, None], plus.curvature, minus.curvature) / np.outer(scale, scale)
    covariance = V + V @ (curvature - slope[:, :, None] * slope[:, None, :]) @ V
    return log_P, slope @ V, covariance
