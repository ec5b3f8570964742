"""How many of three correlated Gaussians are positive: probabilities with first and second derivatives.

With z_i = a_i + x_i, x standard normal of correlations rho, N = the number of positive z_i and P_j = P(N = j):

    dP_j/da_i         = phi(a_i) [P(N' = j - 1 | z_i = 0) - P(N' = j | z_i = 0)],
    d^2P_j/da_i da_m = phi_2(a_i, a_m; rho_im) [R_{j-2} - 2 R_{j-1} + R_j],    R_n = P(N'' = n | z_i = z_m = 0),

where N' counts the other two and N'' the last one. By Plackett's identity, dP/drho_im = d^2P/da_i da_m, P_j itself is
that of independent coordinates plus an integral of second derivatives along the correlations t rho, 0 < t < 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from solvable.numerics.bivariate import quadrant_probabilities
from solvable.numerics.gaussian import graded_legendre

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
