"""Probabilities of orthants of two or three correlated Gaussians, with slopes.

**Two**, accurate far into the tails. With z_1 = a + x_1, z_2 = b + x_2, x standard normal of correlation rho and
s = sqrt(1 - rho^2), Owen's function T(h, k) = (1/2 pi) int_0^k exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx gives
[owen1956tables]

    P(z_1 > 0, z_2 > 0) = [Phi(a) + Phi(b) - 1{ab < 0}] / 2 - T_1 - T_2,    T_1 = T(a, (b - rho a) / (s a))
    P(z_1 z_2 < 0)      = 2 (T_1 + T_2) + 1{ab < 0},                        T_2 = T(b, (a - rho b) / (s b)).

Where rounding would spoil the difference, or the exponentials underflow, the quadrant is integrated along one
coordinate in logarithms: P(z_1 > 0, z_2 > 0) = int_0^inf phi(t - a) Phi((b + rho (t - a)) / s) dt, log-concave in t.

**Three**, by how many are positive. With z_i = a_i + x_i, N = the number of positive z_i and P_j = P(N = j):

    dP_j/da_i         = phi(a_i) [P(N' = j - 1 | z_i = 0) - P(N' = j | z_i = 0)],
    d^2P_j/da_i da_m = phi_2(a_i, a_m; rho_im) [R_{j-2} - 2 R_{j-1} + R_j],    R_n = P(N'' = n | z_i = z_m = 0),

where N' counts the other two and N'' the last one. By Plackett's identity [plackett1954reduction],
dP/drho_im = d^2P/da_i da_m, P_j itself is that of independent coordinates plus an integral of second derivatives along
the correlations t rho, 0 < t < 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import erf, log_ndtr, ndtr, owens_t

from solvable.numerics.gaussian import gauss_legendre, graded_legendre

_LOG_2PI = float(np.log(2 * np.pi))
_SMALL = 1e-6
_TINY = 1e-280


# Two: quadrants


class Slopes(NamedTuple):
    """log P, and the first (..., 2) and second (..., 2, 2) derivatives of P in (a, b), divided by P."""

    log_P: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


def standardised(Omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float, np.ndarray]:
    """(a, b), rho, s and the standard deviations (2,) of pairs z ~ N(omega, V), for the rows of Omega (n, 2)."""
    scale = np.sqrt(np.diag(V))
    rho = float(V[0, 1] / (scale[0] * scale[1]))
    s = float(np.sqrt(max(V[0, 0] * V[1, 1] - V[0, 1] ** 2, 1e-300)) / (scale[0] * scale[1]))
    return Omega[:, 0] / scale[0], Omega[:, 1] / scale[1], rho, s, scale


def log_quadrant(a: np.ndarray, b: np.ndarray, rho: float, s: float) -> np.ndarray:
    """log P(z_1 > 0, z_2 > 0), elementwise over arrays a and b of one shape."""
    first, second = _owen_pair(a, b, rho, s)
    P = (ndtr(a) + ndtr(b) - _opposite(a, b)) / 2 - first - second
    small = P < _SMALL
    log_P = np.log(np.where(small, 1.0, P))
    if small.any():
        log_P[small] = _log_quadrant_tail(a[small], b[small], rho, s)
    return log_P


def quadrant(a: np.ndarray, b: np.ndarray, rho: float, s: float) -> Slopes:
    """P(z_1 > 0, z_2 > 0) with its derivatives, elementwise over arrays a and b of one shape."""
    log_P = log_quadrant(a, b, rho, s)
    log_1 = -(a**2 + _LOG_2PI) / 2 + log_ndtr((b - rho * a) / s) - log_P
    log_2 = -(b**2 + _LOG_2PI) / 2 + log_ndtr((a - rho * b) / s) - log_P
    joint = np.exp(_log_density(a, b, rho, s) - log_P)
    return _assemble(log_P, a, b, np.exp(log_1), np.exp(log_2), joint, rho)


def same_sign(a: np.ndarray, b: np.ndarray, rho: float, s: float) -> tuple[Slopes, Slopes]:
    """P(z_1 z_2 < 0) and P(z_1 z_2 > 0) with their derivatives, elementwise over arrays a and b of one shape."""
    first, second = _owen_pair(a, b, rho, s)
    # The pair of quadrants that the mean (a, b) is not in: no cancellation, whatever the label.
    other = 2 * np.abs(first + second)
    lost = other < np.maximum(1e-9 * (np.abs(first) + np.abs(second)), _TINY)
    log_other = np.log(np.where(lost, 1.0, other))
    if lost.any():
        u, v = np.abs(a[lost]), np.where(a[lost] < 0, -b[lost], b[lost])
        flip = np.where(v < 0, -1.0, 1.0)
        log_other[lost] = _log_other_quadrants(u, v * flip, flip * rho, s)
    log_same = np.log1p(-np.minimum(other, 1 - 1e-16))
    agree = a * b >= 0
    log_minus, log_plus = np.where(agree, log_other, log_same), np.where(agree, log_same, log_other)
    log_1 = -(a**2 + _LOG_2PI) / 2
    log_2 = -(b**2 + _LOG_2PI) / 2
    tilt_1, tilt_2 = erf((b - rho * a) / (np.sqrt(2) * s)), erf((a - rho * b) / (np.sqrt(2) * s))
    log_joint = _log_density(a, b, rho, s)
    pair = []
    for sign, log_P in ((-1.0, log_minus), (1.0, log_plus)):
        slopes = sign * tilt_1 * np.exp(log_1 - log_P), sign * tilt_2 * np.exp(log_2 - log_P)
        pair.append(_assemble(log_P, a, b, *slopes, 2 * sign * np.exp(log_joint - log_P), rho))
    return pair[0], pair[1]


def quadrant_probabilities(a: np.ndarray, b: np.ndarray, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """P(z_1 > 0, z_2 > 0) and P(z_1 < 0, z_2 < 0), to rounding of one, elementwise over arrays a and b of one shape."""
    first, second = _owen_pair(a, b, rho, float(np.sqrt(max((1 - rho) * (1 + rho), 1e-300))))
    common = first + second + _opposite(a, b) / 2
    both = (ndtr(a) + ndtr(b)) / 2 - common
    return np.clip(both, 0.0, 1.0), np.clip((ndtr(-a) + ndtr(-b)) / 2 - common, 0.0, 1.0)


def mean_sign(a: np.ndarray, b: np.ndarray, rho: float, s: float) -> np.ndarray:
    """E[sign(z_1 z_2)], elementwise over arrays a and b of one shape."""
    first, second = _owen_pair(a, b, rho, s)
    return np.where(_opposite(a, b), -1.0, 1.0) - 4 * (first + second)


def _assemble(log_P, a, b, first, second, joint, rho: float) -> Slopes:
    """Derivatives from `first` = d_a P / P, `second` = d_b P / P and `joint` = d_a d_b P / P."""
    slope = np.stack([first, second], -1)
    curvature = np.empty((*slope.shape, 2))
    curvature[..., 0, 0] = -a * first - rho * joint
    curvature[..., 1, 1] = -b * second - rho * joint
    curvature[..., 0, 1] = curvature[..., 1, 0] = joint
    return Slopes(log_P, slope, curvature)


def _opposite(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether a and b have opposite signs, zero counting as positive: their product may underflow."""
    return (a < 0) != (b < 0)


def _owen_pair(a: np.ndarray, b: np.ndarray, rho: float, s: float) -> tuple[np.ndarray, np.ndarray]:
    """T_1 and T_2 of the module docstring."""
    a, b = np.where(a == 0, 1e-300, a), np.where(b == 0, 1e-300, b)
    with np.errstate(over="ignore"):
        return owens_t(a, (b - rho * a) / (s * a)), owens_t(b, (a - rho * b) / (s * b))


def _log_density(a: np.ndarray, b: np.ndarray, rho: float, s: float) -> np.ndarray:
    """The logarithm of the density of (z_1, z_2) at zero; the larger of a, b first, so that nothing cancels."""
    high, low = np.where(np.abs(a) > np.abs(b), a, b), np.where(np.abs(a) > np.abs(b), b, a)
    return -(high**2 + ((low - rho * high) / s) ** 2) / 2 - _LOG_2PI - np.log(s)


def _log_other_quadrants(a: np.ndarray, b: np.ndarray, rho: np.ndarray, s: float) -> np.ndarray:
    """log P(z_1 z_2 < 0) for a, b >= 0, each row with its own sign of the correlation."""
    return np.logaddexp(_log_quadrant_tail(-a, b, -rho, s), _log_quadrant_tail(a, -b, -rho, s))


def _log_quadrant_tail(a: np.ndarray, b: np.ndarray, rho: float | np.ndarray, s: float) -> np.ndarray:
    """log P(z_1 > 0, z_2 > 0) of quadrants far from the mean, by quadrature along the coordinate that is cut."""
    rho = np.broadcast_to(rho, a.shape)
    # Integrate along the coordinate whose boundary holds the point of the quadrant nearest to the mean.
    swap = (b < 0) & (rho * b < a)
    h, k = -np.where(swap, b, a), -np.where(swap, a, b)

    def log_f(t: np.ndarray) -> np.ndarray:
        x = h[:, None] + t
        return -(x**2) / 2 + log_ndtr((rho[:, None] * x - k[:, None]) / s)

    scales = 2.0 ** np.arange(-24, 7)
    ladder = log_f(scales)
    best = ladder.argmax(1)
    done = (ladder < ladder.max(1, keepdims=True) - 38) & (np.arange(len(scales)) > best[:, None])
    reach = scales[np.where(done.any(1), done.argmax(1), len(scales) - 1)]
    # Phi turns over, within a width s / |rho|, where its argument changes sign.
    slant = np.maximum(np.abs(rho), 1e-9)
    corner = (k - rho * h) / np.where(rho < 0, -slant, slant)
    ends = [np.zeros_like(h), reach / 8, reach / 3, reach]
    ends += [np.clip(corner + c * s / slant, 0.0, reach) for c in (-7.0, 0.0, 7.0)]
    ends = np.sort(np.stack(ends, 1), 1)
    t, w = gauss_legendre(16)
    width = np.diff(ends, axis=1)
    nodes = (ends[:, :-1, None] + width[:, :, None] * t).reshape(len(h), -1)
    weight = (width[:, :, None] * w).reshape(len(h), -1)
    values = log_f(nodes)
    top = values.max(1)
    return np.log(np.sum(weight * np.exp(values - top[:, None]), 1)) + top - _LOG_2PI / 2


# Three: how many are positive

_PAIRS = ((0, 1, 2), (0, 2, 1), (1, 2, 0))


class Counts(NamedTuple):
    """P_j (n, 4) for j = 0..3, its gradient (n, 4, 3) and its Hessian (n, 4, 3, 3)."""

    P: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray


def positive_counts(a: np.ndarray, rho: np.ndarray, nodes: int = 24) -> Counts:
    """The law of the number of positive coordinates for rows a (n, 3) and correlations rho (3 x 3)."""
    n = len(a)
    hessian = np.zeros((n, 4, 3, 3))
    for i, m, k in _PAIRS:
        density, share = _pair(a, rho, np.ones(1), i, m, k)
        hessian[:, :, i, m] = hessian[:, :, m, i] = _second_difference(density[:, 0], share[:, 0])
    gradient = np.zeros((n, 4, 3))
    for i in range(3):
        others = [j for j in range(3) if j != i]
        s = np.sqrt(1 - rho[others, i] ** 2)
        partial = (rho[others[0], others[1]] - rho[others[0], i] * rho[others[1], i]) / (s[0] * s[1])
        conditional = (a[:, others] - a[:, [i]] * rho[others, i]) / s
        both, none = quadrant_probabilities(conditional[:, 0], conditional[:, 1], float(partial))
        count = np.stack([0 * both, none, 1 - both - none, both, 0 * both], 1)
        gradient[:, :, i] = (np.exp(-(a[:, i] ** 2) / 2) / np.sqrt(2 * np.pi))[:, None] * (count[:, :4] - count[:, 1:])
    for i in range(3):
        others = [j for j in range(3) if j != i]
        hessian[:, :, i, i] = -a[:, [i]] * gradient[:, :, i] - hessian[:, :, i, others] @ rho[others, i]
    return Counts(_probabilities(a, rho, nodes), gradient, hessian)


def _probabilities(a: np.ndarray, rho: np.ndarray, nodes: int) -> np.ndarray:
    """P_j by Plackett's identity."""
    up, down = ndtr(a), ndtr(-a)
    P = np.stack(
        [
            down.prod(1),
            up[:, 0] * down[:, 1] * down[:, 2]
            + down[:, 0] * up[:, 1] * down[:, 2]
            + down[:, 0] * down[:, 1] * up[:, 2],
            up[:, 0] * up[:, 1] * down[:, 2] + up[:, 0] * down[:, 1] * up[:, 2] + down[:, 0] * up[:, 1] * up[:, 2],
            up.prod(1),
        ],
        1,
    )
    t, weight = graded_legendre(nodes)
    for i, m, k in _PAIRS:
        if rho[i, m] != 0:
            density, share = _pair(a, rho, t, i, m, k)
            density = density * (weight * rho[i, m])
            total, split = density.sum(1), np.sum(density * share, 1)
            P += _second_difference(total, np.divide(split, total, out=np.zeros_like(total), where=total != 0))
    return P


def _pair(a: np.ndarray, rho: np.ndarray, t: np.ndarray, i: int, m: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """phi_2(a_i, a_m; t rho_im) and P(z_k > 0 | z_i = z_m = 0) at correlations t rho, both (n, T)."""
    r_im, r_ki, r_km = t * rho[i, m], t * rho[k, i], t * rho[k, m]
    det = 1 - r_im**2
    x, y = a[:, [i]], a[:, [m]]
    density = np.exp(-(x**2 - 2 * r_im * x * y + y**2) / (2 * det)) / (2 * np.pi * np.sqrt(det))
    mean = a[:, [k]] - ((r_ki - r_km * r_im) * x + (r_km - r_ki * r_im) * y) / det
    variance = 1 - (r_ki**2 + r_km**2 - 2 * r_ki * r_km * r_im) / det
    return density, ndtr(mean / np.sqrt(np.maximum(variance, 1e-300)))


def _second_difference(density: np.ndarray, share: np.ndarray) -> np.ndarray:
    """density * [R_{j-2} - 2 R_{j-1} + R_j] for j = 0..3, with R_1 = share and R_0 = 1 - share."""
    one, zero = density * share, density * (1 - share)
    return np.stack([zero, one - 2 * zero, zero - 2 * one, one], 1)
