"""The squared norms z1^2 + z2^2 and z1^2 + z2^2 + z3^2, without noise.

The label fixes the radius rho = sqrt(y), and Z = (rho^(r-2) / 2) int N(rho n; omega, V) dn over the unit sphere. For
V = v I the direction n is von Mises-Fisher distributed around omega with concentration k = rho |omega| / v, and with A
the mean of its component along omega (A = I_1(k) / I_0(k) on the circle, coth k - 1/k on the sphere)

    E[z] = rho A omega / |omega|,   Var along omega = rho^2 (1 - (r-1) A / k - A^2),   Var across = rho^2 A / k.

For other V the circle is summed by its quarters between the axes of V. The sphere is sliced into circles along the axis
of V to which omega is most nearly perpendicular, so that no slice that matters is small.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ive

from solvable.channels.multi import MultiPosterior
from solvable.channels.multi_closed.continuous import ContinuousChannel
from solvable.channels.multi_closed.peaked import mixture_moments, peaked_nodes, shares
from solvable.numerics.gaussian import gauss_legendre

_LOG_2PI = float(np.log(2 * np.pi))
_QUARTERS = np.pi / 2 * np.arange(5)


class Norm(ContinuousChannel):
    """y = |z|^2 of two or three projections."""

    def __init__(self, projections: int = 2):
        self.formula = " + ".join(f"z{i}**2" for i in range(1, projections + 1))
        super().__init__(0.0)

    def posterior_rows(self, y: np.ndarray, Omega: np.ndarray, V: np.ndarray, nodes: int) -> MultiPosterior:
        rho = np.sqrt(np.maximum(y, 1e-300))
        variance, axes = np.linalg.eigh(V)
        if variance[-1] - variance[0] < 1e-10 * variance[-1]:
            return _isotropic(rho, Omega, float(variance.mean()))
        turned = Omega @ axes
        log_Z, mean, covariance = (
            _circle(rho, turned, variance, nodes) if len(variance) == 2 else _sphere(rho, turned, variance, nodes)
        )
        return MultiPosterior(log_Z, mean @ axes.T, axes @ covariance @ axes.T)

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

    def __repr__(self) -> str:
        return f"Norm({self.projections})"


def _isotropic(rho: np.ndarray, Omega: np.ndarray, v: float) -> MultiPosterior:
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
    return MultiPosterior(log_Z, (rho * A)[:, None] * n, covariance)


def _circle_nodes(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int):
    """Points (n, L, 2) of circles of radius rho, and the logs of their weights in int N(rho n; omega, V) dn."""
    columns = np.stack([rho, omega[:, 0], omega[:, 1]])

    def log_f(angle: np.ndarray, row: np.ndarray) -> np.ndarray:
        radius, first, second = columns[:, row, None]
        u, v = radius * np.cos(angle) - first, radius * np.sin(angle) - second
        return -(u**2) / (2 * variance[0]) - v**2 / (2 * variance[1])

    ends = np.broadcast_to(_QUARTERS, (len(rho), 5))
    angle, log_weight = peaked_nodes(log_f, ends[:, :-1], ends[:, 1:], nodes)
    points = rho[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    return points, log_weight - _LOG_2PI - np.log(variance).sum() / 2


def _circle(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int) -> MultiPosterior:
    points, log_weight = _circle_nodes(rho, omega, variance, nodes)
    log_Z, share = shares(log_weight)
    return MultiPosterior(log_Z - np.log(2), *mixture_moments(share, points))


def _sphere(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int) -> MultiPosterior:
    """Slices at height h along one axis: Z = int dh N(h; omega_axis, V_axis) / 2 times the integral over the circle."""
    n = len(rho)
    log_Z, mean, covariance = np.empty(n), np.empty((n, 3)), np.empty((n, 3, 3))
    nearest = np.abs(omega).argmin(1)
    spread = np.sqrt(variance[-1] / variance[0])
    t, w = gauss_legendre(int(min(nodes * max(1.0, spread / 1.5), 128)))
    for axis in range(3):
        here = nearest == axis
        if not here.any():
            continue
        others = np.delete(np.arange(3), axis)
        radius, centre, s = rho[here, None], omega[here, axis][:, None], np.sqrt(variance[axis])
        low = np.clip(centre - 8.5 * s, -radius, 0.8 * radius)
        high = np.clip(centre + 8.5 * s, -0.8 * radius, radius)
        # Equal steps of latitude, so that the slices shrink smoothly towards the poles.
        south, north = np.arcsin(low / radius), np.arcsin(high / radius)
        latitude = south + (north - south) * t
        h, slice_radius = radius * np.sin(latitude), radius * np.cos(latitude)
        log_slice = np.log(w * (north - south)) + np.log(slice_radius / 2)
        log_slice = log_slice - (h - centre) ** 2 / (2 * s**2) - _LOG_2PI / 2 - np.log(s)
        flat = np.repeat(omega[here][:, others], len(t), 0)
        points, log_weight = _circle_nodes(slice_radius.ravel(), flat, variance[others], nodes // 2)
        rows = len(h)
        joint = (log_slice[..., None] + log_weight.reshape(rows, len(t), -1)).reshape(rows, -1)
        log_Z[here], share = shares(joint)
        full = np.empty((rows, share.shape[1], 3))
        full[..., others] = points.reshape(rows, -1, 2)
        full[..., axis] = np.repeat(h, share.shape[1] // len(t), 1)
        mean[here], covariance[here] = mixture_moments(share, full)
    return MultiPosterior(log_Z, mean, covariance)
