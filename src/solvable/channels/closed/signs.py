"""Functions of signs: the parity sign(z1 z2), with or without label noise, and committees without.

Every atom is a union of orthants. For the parity, with a = omega_1 / sqrt(V_11), b = omega_2 / sqrt(V_22),
rho = V_12 / sqrt(V_11 V_22), s = sqrt(1 - rho^2),

    dP(+)/domega_1 = phi(a) / sqrt(V_11) [2 Phi((b - rho a) / s) - 1],    d^2 P(+)/domega_1 domega_2 = 2 N(omega; 0, V),

and P(+) = P(z_1 z_2 > 0) by Owen's function; for diagonal V, P(+) = [1 + erf(a/sqrt 2) erf(b/sqrt 2)] / 2. Committees
of two are alike (`numerics.orthants`), which has the number of positive projections of three, too. Where that is lost
to rounding, for labels that omega all but excludes, each orthant is integrated over z_1, with (z_2, z_3) given z_1 in
closed form.
"""

from __future__ import annotations

import itertools

import numpy as np

from solvable.channels.base import Posterior
from solvable.channels.closed.base import mixture_moments, peaked_nodes, shares
from solvable.channels.closed.discrete import DiscreteChannel, Regions
from solvable.numerics.orthants import log_quadrant, positive_counts, quadrant, same_sign, standardised


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


_LOST = 1e-7


class SignSum2(DiscreteChannel):
    """y = sign(z1) + sign(z2)."""

    formula = "sign(z1) + sign(z2)"
    values = (-2.0, 0.0, 2.0)
    walls = np.eye(2)

    def __init__(self):
        super().__init__(0.0)

    def regions(self, Omega: np.ndarray, V: np.ndarray) -> Regions:
        a, b, rho, s, scale = standardised(Omega, V)
        none, both, mixed = quadrant(-a, -b, rho, s), quadrant(a, b, rho, s), same_sign(a, b, rho, s)[0]
        return Regions(
            np.stack([none.log_P, mixed.log_P, both.log_P], 1),
            np.stack([-none.slope, mixed.slope, both.slope], 1) / scale,
            np.stack([none.curvature, mixed.curvature, both.curvature], 1) / np.outer(scale, scale),
        )


class ThreeSigns(DiscreteChannel):
    """A function of the number of positive projections among three."""

    walls = np.eye(3)
    counts: tuple[tuple[int, ...], ...]
    """For each atom, the numbers of positive projections that give it."""

    def __init__(self):
        super().__init__(0.0)

    @property
    def resolution(self) -> float:
        return 1e-4

    @property
    def row_resolution(self) -> float:
        return 1e-6

    def regions(self, Omega: np.ndarray, V: np.ndarray) -> Regions:
        """Atoms less probable than `_LOST` get probability zero: their derivatives would be noise."""
        scale = np.sqrt(np.diag(V))
        found = positive_counts(Omega / scale, V / np.outer(scale, scale))
        merge = np.array([[float(j in group) for j in range(4)] for group in self.counts])
        P = found.P @ merge.T
        lost = P < _LOST
        inverse = np.where(lost, 0.0, 1 / np.where(lost, 1.0, P))
        slope = np.einsum("kj,nji->nki", merge, found.gradient) * inverse[..., None] / scale
        curvature = np.einsum("kj,njil->nkil", merge, found.hessian) * inverse[..., None, None]
        log_P = np.where(lost, -np.inf, np.log(np.where(lost, 1.0, P)))
        return Regions(log_P, slope, curvature / np.outer(scale, scale))

    def posterior(self, observation: np.ndarray, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        result = super().posterior(observation, Omega, V)
        lost = np.isinf(result.log_Z)
        for value, group in zip(self.values, self.counts, strict=True):
            here = lost & (np.abs(observation - value) < 0.5)
            if here.any():
                for whole, part in zip(result, _by_orthants(Omega[here], V, group), strict=True):
                    whole[here] = part
        return result


class SignSum3(ThreeSigns):
    """y = sign(z1) + sign(z2) + sign(z3)."""

    formula = "sign(z1) + sign(z2) + sign(z3)"
    values = (-3.0, -1.0, 1.0, 3.0)
    counts = ((0,), (1,), (2,), (3,))


class Majority(ThreeSigns):
    """y = sign(sign(z1) + sign(z2) + sign(z3))."""

    formula = "sign(sign(z1) + sign(z2) + sign(z3))"
    values = (-1.0, 1.0)
    counts = ((0, 1), (2, 3))


def _by_orthants(Omega: np.ndarray, V: np.ndarray, group: tuple[int, ...]) -> Posterior:
    """The posterior on the orthants with a number of positive projections in `group`, in logarithms throughout."""
    slope, rest = V[1:, 0] / V[0, 0], V[1:, 1:] - np.outer(V[1:, 0], V[0, 1:]) / V[0, 0]
    n = len(Omega)
    log_weights, points, spreads = [], [], []
    for signs in itertools.product((1.0, -1.0), repeat=3):
        if sum(sign > 0 for sign in signs) not in group:
            continue
        flips = np.array(signs[1:])
        _, _, rho, s, scale = standardised(np.zeros((1, 2)), rest)
        rho = rho * signs[1] * signs[2]

        def centres(size: np.ndarray, row: np.ndarray, sign: float = signs[0]) -> np.ndarray:
            """The mean of (z_2, z_3) given z_1 = sign * size."""
            return Omega[row, None, 1:] + (sign * size - Omega[row, :1])[..., None] * slope

        def log_f(size: np.ndarray, row: np.ndarray, sign=signs[0], flips=flips, rho=rho, s=s, scale=scale, at=centres):
            a, b = np.moveaxis(at(size, row) * flips / scale, -1, 0)
            pair = log_quadrant(a.ravel(), b.ravel(), rho, s).reshape(size.shape)
            return pair - (sign * size - Omega[row, :1]) ** 2 / (2 * V[0, 0])

        far = np.abs(Omega).max(1)[:, None] * (1 + np.abs(slope).sum()) + 12 * np.sqrt(V[0, 0])
        size, log_weight = peaked_nodes(log_f, np.zeros((n, 1)), far, 24)
        row = np.arange(n)
        centre = centres(size, row)
        a, b = np.moveaxis((centre * flips / scale).reshape(-1, 2), -1, 0)
        pair = quadrant(a, b, rho, s)
        g = pair.slope * flips / scale
        curvature = pair.curvature * np.outer(flips, flips) / np.outer(scale, scale)
        shift = (g @ rest).reshape(centre.shape)
        covariance = rest + rest @ (curvature - g[:, :, None] * g[:, None, :]) @ rest
        log_weights.append(log_weight + log_f(size, row))
        points.append(np.concatenate([signs[0] * size[..., None], centre + shift], -1))
        spreads.append(covariance.reshape(n, -1, 2, 2))
    log_Z, share = shares(np.concatenate(log_weights, 1))
    mean, covariance = mixture_moments(share, np.concatenate(points, 1))
    covariance[:, 1:, 1:] += np.einsum("nl,nlij->nij", share, np.concatenate(spreads, 1))
    return Posterior(log_Z - np.log(2 * np.pi * V[0, 0]) / 2, mean, covariance)
