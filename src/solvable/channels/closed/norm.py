"""The squared norms z1^2 + z2^2 and z1^2 + z2^2 + z3^2, without noise.

The label fixes the radius rho = sqrt(y), and Z = (rho^(r-2) / 2) int N(rho n; omega, V) dn over the unit sphere. For
V = v I the direction n is von Mises-Fisher distributed around omega with concentration k = rho |omega| / v, and with A
the mean of its component along omega (A = I_1(k) / I_0(k) on the circle, coth k - 1/k on the sphere)

    E[z] = rho A omega / |omega|,   Var along omega = rho^2 (1 - (r-1) A / k - A^2),   Var across = rho^2 A / k.

For other V the circle is summed by its quarters between the axes of V. The sphere has three rules, by how the weight
exp(-(z - omega)^T A (z - omega) / 2), A = V^-1, is spread over z = rho n:

- around one point, where rho |A omega| outweighs the anisotropy rho^2 (A_max - A_min): a trapezoid in equal-area
  coordinates n = (1 - |t|^2 / 2) n_0 + sqrt(1 - |t|^2 / 4) (t_1 e_1 + t_2 e_2), in which the von Mises-Fisher law is
  exactly Gaussian, scaled by the Hessian at the mode n_0;
- over much of the sphere: Gauss-Legendre in height times a trapezoid in longitude;
- on narrow rings, for very unequal V: slices along the axis of V to which omega is most nearly perpendicular.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy.special import ive

from solvable.channels.base import Average, Posterior
from solvable.channels.closed.base import ContinuousChannel, mixture_moments, peaked_nodes, shares
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.gaussian_many import OmegaRule, radii

_LOG_2PI = float(np.log(2 * np.pi))
_QUARTERS = np.pi / 2 * np.arange(5)
_CONCENTRATED, _BROAD = 14.0, 80.0


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
            _circle_posterior(rho, turned, variance, nodes)
            if len(variance) == 2
            else _sphere_posterior(rho, turned, variance, nodes)
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


def _circle_posterior(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int) -> Posterior:
    """The posterior for z_1^2 + z_2^2 = rho^2."""
    points, log_angle = _circle_nodes(rho, omega, variance, nodes)
    offset = points - omega[:, None]
    log_Z, share = shares(log_angle - (offset**2 / (2 * variance)).sum(-1))
    log_Z = log_Z - np.log(2) - _LOG_2PI - np.log(variance).sum() / 2
    return Posterior(log_Z, *mixture_moments(share, points))


def _circle_nodes(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int):
    """Points (n, L, 2) of circles of radius rho where the weight is, and the logs of their angles."""
    columns = np.stack([rho, omega[:, 0], omega[:, 1]])

    def log_f(angle: np.ndarray, row: np.ndarray) -> np.ndarray:
        radius, first, second = columns[:, row, None]
        u, v = radius * np.cos(angle) - first, radius * np.sin(angle) - second
        return -(u**2) / (2 * variance[0]) - v**2 / (2 * variance[1])

    ends = np.broadcast_to(_QUARTERS, (len(rho), 5))
    angle, log_angle = peaked_nodes(log_f, ends[:, :-1], ends[:, 1:], nodes)
    return rho[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1), log_angle


def _sphere_posterior(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int) -> Posterior:
    """The posterior for z_1^2 + z_2^2 + z_3^2 = rho^2, by the rule that fits each row."""
    linear = rho * np.linalg.norm(omega / variance, axis=1)
    quadratic = rho**2 * (1 / variance.min() - 1 / variance.max())
    patch = linear > 2 * quadratic + _CONCENTRATED
    broad = ~patch & (linear + quadratic < _BROAD)
    result = Posterior(np.empty(len(rho)), np.empty((len(rho), 3)), np.empty((len(rho), 3, 3)))
    rules = ((patch, _patch_nodes), (broad, _broad_nodes), (~patch & ~broad, _slice_nodes))
    for here, rule in rules:
        if here.any():
            points, log_weight = rule(rho[here], omega[here], variance, nodes)
            offset = points - omega[here][:, None]
            log_Z, share = shares(log_weight - (offset**2 / (2 * variance)).sum(-1))
            result.log_Z[here] = log_Z + np.log(rho[here] / 2) - 1.5 * _LOG_2PI - np.log(variance).sum() / 2
            result.mean[here], result.covariance[here] = mixture_moments(share, points)
    return result


def _patch_nodes(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int):
    """Points (n, L, 3) around the mode, and the logs of their solid angles."""
    mode, multiplier = _mode(rho, omega, variance)
    # Two tangents: the coordinate axis furthest from the mode, made perpendicular to it, and their cross product.
    axis = np.eye(3)[np.abs(mode).argmin(1)]
    first = axis - np.sum(axis * mode, 1)[:, None] * mode
    first /= np.linalg.norm(first, axis=1)[:, None]
    tangents = np.stack([first, np.cross(mode, first)], 1)
    hessian = (rho**2)[:, None, None] * (tangents / variance) @ tangents.transpose(0, 2, 1)
    hessian += multiplier[:, None, None] * np.eye(2)
    values, vectors = np.linalg.eigh(hessian)
    x, step = _disc(round(nodes * 0.7))
    t = x / np.sqrt(values)[:, None, :] @ vectors.transpose(0, 2, 1)
    square = np.sum(t**2, -1)
    points = (1 - square / 2)[..., None] * mode[:, None] + np.sqrt(np.maximum(1 - square / 4, 0))[..., None] * (
        t @ tangents
    )
    log_area = 2 * np.log(step) - np.log(values).sum(1) / 2
    return rho[:, None, None] * points, np.where(square < 4, log_area[:, None], -np.inf)


def _mode(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most probable direction n = (rho^2 A + mu)^-1 rho A omega, |n| = 1, and its multiplier mu."""
    pull, stiffness = rho[:, None] * omega / variance, (rho**2)[:, None] / variance
    mu = np.linalg.norm(pull, axis=1) - stiffness.max(1)
    for _ in range(12):
        n = pull / (stiffness + mu[:, None])
        size = np.linalg.norm(n, axis=1)
        slope = np.sum(n**2 / (stiffness + mu[:, None]), 1)
        # 1/|n| is concave in mu: Newton steps from below never overshoot.
        mu = mu + (size - 1) * size**2 / slope
    n = pull / (stiffness + mu[:, None])
    return n / np.linalg.norm(n, axis=1)[:, None], mu


@functools.cache
def _disc(nodes: int) -> tuple[np.ndarray, float]:
    """A square grid of about `nodes` points across, cut to a disc of radius 7.5, and its step."""
    step = 15.0 / nodes
    line = step * (np.arange(nodes) - (nodes - 1) / 2)
    x = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    return x[np.hypot(*x.T) < 7.5], step


def _broad_nodes(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int):
    """Points (n, L, 3) all over the sphere, and the logs of their solid angles."""
    circles = round(nodes * 0.75)
    height, weight = gauss_legendre(circles)
    height = 2 * height - 1
    phi = np.pi * (np.arange(2 * circles) + 0.5) / circles
    across = np.sqrt(1 - height**2)[:, None]
    parts = [across * np.cos(phi), across * np.sin(phi), np.repeat(height[:, None], len(phi), 1)]
    points = np.stack(parts, -1).reshape(-1, 3)
    log_area = np.repeat(np.log(2 * weight * np.pi / circles), len(phi))
    return rho[:, None, None] * points, np.broadcast_to(log_area, (len(rho), len(points)))


def _slice_nodes(rho: np.ndarray, omega: np.ndarray, variance: np.ndarray, nodes: int):
    """Points (n, L, 3) on circles across the axis that omega is furthest from, and the logs of their solid angles."""
    spread = np.sqrt(variance.max() / variance.min())
    nodes = round(nodes * 0.75)
    t, w = gauss_legendre(int(min(nodes * max(1.0, spread / 1.5), 96)))
    nearest = np.abs(omega).argmin(1)
    points, log_area = np.empty((len(rho), len(t) * 4 * nodes, 3)), np.empty((len(rho), len(t) * 4 * nodes))
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
        flat = np.repeat(omega[here][:, others], len(t), 0)
        circle, log_angle = _circle_nodes((radius * np.cos(latitude)).ravel(), flat, variance[others], nodes)
        rows = len(radius)
        log_slice = np.log(w * (north - south)) + np.log(np.cos(latitude))
        log_area[here] = (log_slice[..., None] + log_angle.reshape(rows, len(t), -1)).reshape(rows, -1)
        block = np.empty((rows, points.shape[1], 3))
        block[..., others] = circle.reshape(rows, -1, 2)
        block[..., axis] = np.repeat(radius * np.sin(latitude), 4 * nodes, 1)
        points[here] = block
    return points, log_area
