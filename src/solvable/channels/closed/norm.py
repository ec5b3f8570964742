"""The squared norms z1^2 + z2^2 and z1^2 + z2^2 + z3^2, without noise.

The label fixes the radius rho = sqrt(y), and Z = (rho^(r-2) / 2) int N(rho n; omega, V) dn over the unit sphere. For
V = v I the direction n is von Mises-Fisher distributed around omega with concentration k = rho |omega| / v, and with A
the mean of its component along omega (A = I_1(k) / I_0(k) on the circle, coth k - 1/k on the sphere)

    E[z] = rho A omega / |omega|,   Var along omega = rho^2 (1 - (r-1) A / k - A^2),   Var across = rho^2 A / k.

For other V the circle is summed by its quarters between the axes of V, and the sphere as `sphere` says.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ive

from solvable.channels.base import Average, Posterior
from solvable.channels.closed.continuous import ContinuousChannel
from solvable.channels.closed.sphere import circle_posterior, sphere_posterior
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.gaussian_many import OmegaRule, radii

_LOG_2PI = float(np.log(2 * np.pi))


class Norm(ContinuousChannel):
    """y = |z|^2 of two or three projections."""

    def __init__(self):
        super().__init__(0.0)

    def posterior_rows(self, y: np.ndarray, Omega: np.ndarray, V: np.ndarray, nodes: int) -> Posterior:
        rho = np.sqrt(np.maximum(y, 1e-300))
        variance, axes = np.linalg.eigh(V)
        if _isotropic_matrix(V):
            return _isotropic(rho, Omega, float(variance.mean()))
        turned = Omega @ axes
        log_Z, mean, covariance = (
            circle_posterior(rho, turned, variance, nodes)
            if len(variance) == 2
            else sphere_posterior(rho, turned, variance, nodes)
        )
        return Posterior(log_Z, mean @ axes.T, axes @ covariance @ axes.T)

    def omega_nodes(self, M: np.ndarray, fineness: float) -> OmegaRule:
        """At M = q I every direction of omega is alike: one suffices."""
        q = float(np.trace(M)) / len(M)
        if q < 1e-12 or not _isotropic_matrix(M):
            return super().omega_nodes(M, fineness)
        size, weight = radii(len(M), np.sqrt(1 - q), 1.6 * fineness)
        omega = np.outer(np.concatenate([[0.0], np.sqrt(q) * size]), np.eye(len(M))[0])
        return OmegaRule(omega, np.concatenate([[1 - weight.sum()], weight]))

    def average(self, V: np.ndarray, fineness: float) -> Average:
        found = super().average(V, fineness)
        if not _isotropic_matrix(V):
            return found
        return found._replace(information=np.trace(found.information) / len(V) * np.eye(len(V)))

    def prefers_level_sets(self, V: np.ndarray) -> bool:
        return not _isotropic_matrix(V) and super().prefers_level_sets(V)

    def label_nodes(self, Omega: np.ndarray, V: np.ndarray, fineness: float) -> tuple[np.ndarray, np.ndarray]:
        """Panels of the radius, which is nearly Gaussian around |omega|."""
        size = np.linalg.norm(Omega, axis=1)[:, None]
        edges = np.maximum(size + np.sqrt(np.linalg.eigvalsh(V)[-1]) * np.array([-8.0, -4.0, -1.0, 1.5, 4.5, 9.0]), 0.0)
        t, w = gauss_legendre(round(8 * fineness))
        width = np.diff(edges, axis=1)[..., None]
        rho = (edges[:, :-1, None] + width * t).reshape(len(size), -1)
        return rho**2, 2 * rho * (width * w).reshape(len(size), -1)

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return np.sum(Omega**2, 1) + np.trace(V)

    def squared_error(self, M: np.ndarray) -> float:
        return float(2 * np.sum(np.eye(len(M)) - M * M))


class Norm2(Norm):
    """y = z1^2 + z2^2."""

    formula = "z1**2 + z2**2"


class Norm3(Norm):
    """y = z1^2 + z2^2 + z3^2."""

    formula = "z1**2 + z2**2 + z3**2"


def _isotropic_matrix(matrix: np.ndarray) -> bool:
    scale = np.trace(matrix) / len(matrix)
    return bool(np.abs(matrix - scale * np.eye(len(matrix))).max() < 1e-10 * scale)


def _isotropic(rho: np.ndarray, Omega: np.ndarray, v: float) -> Posterior:
    r = Omega.shape[1]
    size = np.maximum(np.linalg.norm(Omega, axis=1), 1e-150)
    k = rho * size / v
    small = k < 1e-3
    safe = np.where(small, 1.0, k)
    if r == 2:
        A = np.where(small, k / 2, ive(1, safe) / ive(0, safe))
        log_sum = np.log(2 * np.pi * ive(0, k))
    else:
        A = np.where(small, k / 3, 1 / np.tanh(safe) - 1 / safe)
        log_sum = np.where(small, np.log(4 * np.pi) - k, np.log(-2 * np.pi * np.expm1(-2 * safe) / safe))
    log_Z = (r - 2) * np.log(rho) - np.log(2) + log_sum - (rho - size) ** 2 / (2 * v) - r / 2 * (_LOG_2PI + np.log(v))
    across = rho**2 * np.where(small, 1.0 / r, A / safe)
    along = np.maximum(rho**2 * (1 - A**2) - (r - 1) * across, 0.0)
    n = Omega / size[:, None]
    covariance = across[:, None, None] * np.eye(r) + (along - across)[:, None, None] * n[:, :, None] * n[:, None, :]
    return Posterior(log_Z, (rho * A)[:, None] * n, covariance)
