"""Averages of the staircase z1^2 + sign(z1 z2 z3) at overlaps that keep z_1 apart: M = q (+) M', M' of (z_2, z_3).

Let A_+- be the sum of N(c; omega_1, V_1) / (2 |c|) over the candidates c of z_1 with s sign(c) = +-1, c_+- the mean
candidate under it, a_+- = A_+- / (A_+ + A_-), t = a_+ - a_-, and m = 2 P(z_2 z_3 > 0 | omega_2, omega_3) - 1. Then

    Z = (A_+ + A_-) (1 + t m) / 2,
    E[g_1^2]   = E[(a_+ c_+ + a_- c_- - omega_1)^2 + h(t) a_+ a_- (c_+ - c_-)^2] / V_1^2,
    E[g' g'^T] = E[t^2 K(t)],
    h(t) = E_m[m^2 (1 - t^2) / (1 - t^2 m^2)],    K(t) = E_m[grad m grad m^T / (1 - t^2 m^2)].

The outer averages are over (z_1, s, omega_1) with s a fair coin, the inner ones over omega' ~ N(0, M'). Reflection of
z_1 turns t into -t, which makes the odd terms vanish; so only z_1 > 0 is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.channels.closed.parity import Parity
from solvable.numerics.gaussian import normal_density, normal_trapezoid, panels
from solvable.numerics.gaussian_many import omega_rule

_LARGEST = 20.0
_STANDARD = np.array([1.2, 2.5, 4.0, 6.0, 8.0])


SIGNS = np.array([-1.0, 1.0, 1.0, -1.0])
"""The sign of z_2 z_3 = s sign(c) that each candidate implies: c > 0 and c < 0 at s = -1, then at s = 1."""


class FirstStage(NamedTuple):
    """Nodes over (z_1, s, omega_1): weights, omega_1, log (A_+ + A_-), half the log odds, and mean candidates."""

    weight: np.ndarray
    omega: np.ndarray
    log_A: np.ndarray
    half_log_odds: np.ndarray
    c_plus: np.ndarray
    c_minus: np.ndarray


class StaircaseAverages(NamedTuple):
    """E[g_1^2], E[g' g'^T] (2 x 2), E[log Z] and E[t^2]."""

    first: float
    pair: np.ndarray
    entropy: float
    certainty: float


def candidates(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The candidates c (..., 4) of z_1, in the order of SIGNS, and -log(2 |c|), which is -inf where there is none.

    `square` (..., 2) is y + 1 and y - 1: what z_1^2 is for s = -1 and s = 1.
    """
    square = np.repeat(square, 2, -1)
    size = np.sqrt(np.maximum(square, 1e-300))
    return size * np.array([1.0, -1.0, 1.0, -1.0]), np.where(square > 0, -np.log(2 * size), -np.inf)


def label_rule(V: float, fineness: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z_1 > 0, the `square` of their labels, and weights over (|z_1|, s); `V` is the variance to resolve.

    Another candidate appears where z_1 passes sqrt(2) at s = -1: there b = sqrt(z_1^2 - 2) is the variable. The squares
    are made from the variables themselves, for y - 1 loses a small z_1^2 to rounding.
    """
    nodes = round(12 * fineness)
    z, z_weight = panels(_edges(np.sqrt(V)), nodes)
    low, low_weight = panels(_edges(np.sqrt(V), np.sqrt(2)), nodes)
    high = np.sqrt(2 + z**2)
    first = np.concatenate([z, low, high])
    square = np.concatenate([np.stack(pair, 1) for pair in ((high**2, z**2), (low**2, low**2 - 2), (high**2, z**2))])
    weight = np.concatenate([z_weight, low_weight, z_weight * z / high]) * normal_density(first)
    return first, square, weight


def _edges(width: float, end: float = np.inf) -> np.ndarray:
    rungs = width * 3.0 ** np.arange(20)
    edges = np.unique(np.concatenate([[0.0], rungs[rungs < 0.8], _STANDARD]))
    return edges if np.isinf(end) else np.append(edges[edges < end - 0.1], end)


def first_stage(q: float, fineness: float) -> FirstStage:
    """The nodes at overlap q of z_1: z_1 and s first, then omega_1 | z_1 ~ N(q z_1, q V_1)."""
    V = 1 - q
    z, square, weight = label_rule(V, fineness)
    x, x_weight = normal_trapezoid(0.25 / fineness, 6.5) if q > 0 else (np.zeros(1), np.ones(1))
    omega = q * z[:, None] + np.sqrt(q * V) * x
    c, log_jacobian = candidates(square)
    log_A = log_jacobian[:, None, :] - (c[:, None, :] - omega[..., None]) ** 2 / (2 * V) - np.log(2 * np.pi * V) / 2
    positive = SIGNS > 0
    log_plus, c_plus = _combined(log_A[..., positive], c[:, None, positive])
    log_minus, c_minus = _combined(log_A[..., ~positive], c[:, None, ~positive])
    total = np.logaddexp(log_plus, log_minus)
    return FirstStage(weight[:, None] * x_weight, omega, total, (log_plus - log_minus) / 2, c_plus, c_minus)


def _combined(log_weight: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log of the summed weights, and the mean value."""
    total = np.logaddexp(log_weight[..., 0], log_weight[..., 1])
    return total, np.sum(np.exp(log_weight - total[..., None]) * values, -1)


def block_averages(q: float, M: np.ndarray, fineness: float = 1.0) -> StaircaseAverages:
    """The averages at the overlap q of z_1 and M (2 x 2) of (z_2, z_3)."""
    stage = first_stage(q, fineness)
    V = 1 - q
    odds = np.abs(stage.half_log_odds)
    a_plus = np.exp(-np.logaddexp(0, -2 * stage.half_log_odds))
    a_minus = np.exp(-np.logaddexp(0, 2 * stage.half_log_odds))
    mean = a_plus * stage.c_plus + a_minus * stage.c_minus
    square = (mean - stage.omega) ** 2
    log_Z = stage.log_A - np.log(2)
    t_squared = np.tanh(odds) ** 2
    pair = np.zeros((2, 2))
    if np.any(M):
        table = _second_stage(M, fineness)(np.minimum(odds, _LARGEST))
        square = square + table[..., 0] * a_plus * a_minus * (stage.c_plus - stage.c_minus) ** 2
        log_Z = log_Z + table[..., 1]
        pair = np.einsum("ij,ijk->k", stage.weight * t_squared, table[..., 2:]).reshape(2, 2)
    return StaircaseAverages(
        float(np.sum(stage.weight * square)) / V**2,
        pair,
        float(np.sum(stage.weight * log_Z)),
        float(np.sum(stage.weight * t_squared)),
    )


def mean_square_sign(M: np.ndarray, fineness: float) -> float:
    """E[m^2], the squared mean sign of z_2 z_3 given omega' ~ N(0, M)."""
    parity = Parity()
    rule = omega_rule(M, parity.walls, fineness)
    m = parity.predict(rule.omega, np.eye(2) - M)
    return float(rule.weight @ m**2 + 1 - rule.weight.sum())


def _second_stage(M: np.ndarray, fineness: float):
    """h, E_m[(1 + t m) log(1 + t m)] and the entries of K as a spline in half the log odds, t = tanh."""
    parity = Parity()
    rule = omega_rule(M, parity.walls, fineness)
    regions = parity.regions(rule.omega, np.eye(2) - M)
    P = np.exp(regions.log_P)
    rare = regions.log_P.argmin(1)
    gradient = 2 * (P[:, :, None] * regions.slope)[np.arange(len(rare)), rare]
    outer = (gradient[:, :, None] * gradient[:, None, :]).reshape(-1, 4)
    # The functions bend most at even odds.
    odds = _LARGEST * np.sinh(np.linspace(0.0, 3.0, round(81 * fineness)))[:, None] / np.sinh(3.0)
    share = 1 / (1 + np.exp(-2 * odds)), 1 / (1 + np.exp(2 * odds))
    mixed = 4 * P[:, 0] * P[:, 1]
    left = 4 * share[0] * share[1]  # 1 - t^2
    remaining = left + np.tanh(odds) ** 2 * mixed  # 1 - t^2 m^2
    h = (1 - mixed) * left / remaining
    likely = 2 * (share[0] * P[:, 1] + share[1] * P[:, 0]), 2 * (share[0] * P[:, 0] + share[1] * P[:, 1])
    entropy = sum(p * np.log(p) for p in likely) / 2
    certain = 1 - rule.weight.sum()
    certain_entropy = (share[0] * np.log(2 * share[0]) + share[1] * np.log(2 * share[1]))[:, 0]
    columns = [h @ rule.weight + certain, entropy @ rule.weight + certain * certain_entropy]
    table = np.column_stack([*columns, (rule.weight / remaining) @ outer])
    from scipy.interpolate import make_interp_spline  # loaded when needed: it takes long to import

    return make_interp_spline(odds[:, 0], table, k=5)
