"""The staircase z1^2 + sign(z1 z2 z3), without noise: once z_1 is known, what is left is a parity of z_2 and z_3.

A label y leaves at most four candidates for z_1: c = +-sqrt(y + 1) with s = -1 and, for y > 1, c = +-sqrt(y - 1) with
s = +1. Given z_1 = c the pair (z_2, z_3) is Gaussian with the sign of its product known, s sign(c), and

    Z = sum_c N(c; omega_1, V_11) / (2 |c|) P(sign(z_2 z_3) = s sign(c) | z_1 = c).

Averages at overlaps that keep z_1 apart, M = q (+) M', M' of (z_2, z_3):

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

from solvable.channels.base import Average, Channel, LabelLaw, Linearisation, Posterior
from solvable.channels.closed.base import ClosedChannel, kronecker, mixture_moments, shares, weighted_square
from solvable.channels.closed.discrete import density
from solvable.channels.closed.signs import Parity
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian import gauss_legendre, normal_density, normal_trapezoid, panels
from solvable.numerics.gaussian_many import omega_rule
from solvable.numerics.orthants import mean_sign, same_sign, standardised

_PANELS = np.array([-8.5, -5.5, -3.5, -2.0, -0.8, 0.0, 0.8, 2.0, 3.5, 5.5, 8.5])
_LARGEST = 20.0
_STANDARD = np.array([1.2, 2.5, 4.0, 6.0, 8.0])


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
        log_Z, share = shares(log_weight)
        points = np.concatenate([c[..., None], centre + pair_mean.reshape(n, 4, 2)], -1)
        mean, covariance = mixture_moments(share, points)
        covariance[:, 1:, 1:] += np.einsum("nc,ncij->nij", share, pair_second.reshape(n, 4, 2, 2))
        return Posterior(log_Z, mean, covariance)

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
            easy = [self._easy(basis, density(f)) for f in (1.0, COARSER)]
        elif np.abs(M[1:]).max() < 1e-9 and np.abs(basis[0]).max() < 1e-9:
            G = 2 / np.pi * basis[1:].T @ np.array([[0.0, 1.0], [1.0, 0.0]]) @ basis[1:]
            q, none = float(M[0, 0]), np.zeros((2, 2))
            easy = [block_averages(q, none, density(f)).certainty * np.kron(G, G) for f in (1.0, COARSER)]
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
        fine, coarse = (mean_square_sign(rest, density(f)) * 2 / np.pi * np.arcsin(q) for f in (1.0, COARSER))
        return {"generalization_error": (3 - 2 * q**2 - fine, abs(fine - coarse))}


def _known_sign(a, b, rho, tilt, scale, positive, V) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log P, shift of the mean and covariance of pairs z ~ N(., V) given the sign of their product, row by row."""
    minus, plus = same_sign(a, b, rho, tilt)
    log_P = np.where(positive, plus.log_P, minus.log_P)
    slope = np.where(positive[:, None], plus.slope, minus.slope) / scale
    curvature = np.where(positive[:, None, None], plus.curvature, minus.curvature) / np.outer(scale, scale)
    covariance = V + V @ (curvature - slope[:, :, None] * slope[:, None, :]) @ V
    return log_P, slope @ V, covariance


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
