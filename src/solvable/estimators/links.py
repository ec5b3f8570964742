r"""A link of one projection that is read off the data: piecewise linear, with Gaussian noise.

    y = g(z) + sqrt(noise) xi,      g(z) = c_0 + c_1 z + sum_j b_j |z - t_j|,      kinks t_j at fixed places.

On each piece the posterior of z given its label and omega is a Gaussian cut at the ends of the piece, so that all of
it is had in closed form. Nothing is extrapolated but a straight line, which a polynomial of data with tails would not
survive.

A link is fitted to projections omega that are not z: z | omega ~ N(omega, V). Least squares of y on
$E[g(z)|\omega]$, with $E|z - t|$ the mean of a folded Gaussian, undoes what that blurs; the variance of g(z) given
omega is taken off the residuals to leave the noise.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr
from sklearn.linear_model import RidgeCV

from solvable.channels.base import Channel, Posterior

KINKS = (-2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0)
_PENALTIES = np.geomspace(1e-4, 1e3, 15)
_LEAST_NOISE = 1e-3
"""The noise is at least this share of the variance of the labels."""
_FAR = 1e5


class PiecewiseLinear(Channel):
    """Labels y = g(z) + sqrt(noise) xi of one projection, g with `kinks` t, an offset, a slope and `bends` b."""

    def __init__(self, offset: float, slope: float, bends: np.ndarray, noise: float, kinks: tuple[float, ...] = KINKS):
        self.offset, self.slope, self.bends, self.noise = offset, slope, np.asarray(bends, float), noise
        self.kinks = np.asarray(kinks, float)

    @property
    def projections(self) -> int:
        return 1

    @property
    def definition(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("offset", "slope", "bends", "noise", "kinks")}

    @property
    def text(self) -> str:
        """g as a formula that a target takes."""
        terms = [f"{self.offset:.6g}", f"{self.slope:.6g}*z"]
        terms += [f"{b:.6g}*abs(z - {t:g})" for b, t in zip(self.bends, self.kinks, strict=True)]
        return " + ".join(terms).replace("- -", "+ ").replace("+ -", "- ")

    def value(self, z: np.ndarray) -> np.ndarray:
        """g(z), elementwise."""
        return self.offset + self.slope * z + np.abs(z[..., None] - self.kinks) @ self.bends

    def smoothed(self, omega: np.ndarray, V: float) -> np.ndarray:
        """E[g(z)] for z ~ N(omega, V), elementwise."""
        return self.offset + self.slope * omega + folded(omega, V, self.kinks) @ self.bends

    @functools.cached_property
    def pieces(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The lower and upper end of each piece, and g = a + b z on it."""
        ends = np.concatenate([[-np.inf], self.kinks, [np.inf]])
        signs = np.where(np.arange(len(ends) - 1)[:, None] > np.arange(len(self.kinks)), 1.0, -1.0)
        return ends[:-1], ends[1:], self.offset - signs @ (self.bends * self.kinks), self.slope + signs @ self.bends

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def posterior(self, observation: np.ndarray, Omega: np.ndarray, V: np.ndarray, evidence: bool = True) -> Posterior:
        low, high, a, b = self.pieces
        y, omega, v = observation[:, None], Omega, float(V[0, 0])
        variance = 1 / (b**2 / self.noise + 1 / v)
        mean, s = variance * (b * (y - a) / self.noise + omega / v), np.sqrt(variance)
        # Ends that are farther than _FAR standard deviations are as good as there.
        alpha, beta = (np.where(np.isinf(x), x, np.clip(x, -_FAR, _FAR)) for x in ((low - mean) / s, (high - mean) / s))
        log_mass = _log_mass(alpha, beta)
        total = self.noise + b**2 * v
        log_weight = -((y - a - b * omega) ** 2) / (2 * total) - np.log(2 * np.pi * total) / 2 + log_mass
        log_Z = logsumexp(log_weight, axis=1)
        share = np.exp(log_weight - log_Z[:, None])
        # The moments of a Gaussian cut at alpha and beta, in units of its own.
        at_low, at_high = (np.exp(-(x**2) / 2 - np.log(2 * np.pi) / 2 - log_mass) for x in (alpha, beta))
        finite_low, finite_high = (np.where(np.isfinite(x), x, 0.0) for x in (alpha, beta))
        # Rounding in pieces far away must not leave them.
        shift = np.clip(at_low - at_high, alpha, beta)
        spread = np.clip(1 + finite_low * at_low - finite_high * at_high - shift**2, 0.0, 1.0)
        centres = mean + s * shift
        z = np.sum(share * centres, axis=1)
        second = np.sum(share * (variance * spread + (centres - z[:, None]) ** 2), axis=1)
        return Posterior(log_Z, z[:, None], np.maximum(second, 1e-300)[:, None, None])


def fitted(omega: np.ndarray, V: float, y: np.ndarray) -> PiecewiseLinear:
    """The link of labels y whose projections are known as z ~ N(omega, V), by ridge regression on its bends.

    The penalty on the bends is the best in leaving one out; offset and slope are free.
    """
    kinks = np.asarray(KINKS)
    straight = np.stack([np.ones_like(omega), omega], axis=1)
    bent = folded(omega, V, kinks)
    onto = np.linalg.lstsq(straight, np.column_stack([bent, y]), rcond=None)[0]
    rest = np.column_stack([bent, y]) - straight @ onto
    ridge = RidgeCV(alphas=len(y) * _PENALTIES, fit_intercept=False).fit(rest[:, :-1], rest[:, -1])
    bends = np.asarray(ridge.coef_, float)
    offset, slope = onto[:, -1] - onto[:, :-1] @ bends
    link = PiecewiseLinear(float(offset), float(slope), bends, 1.0)
    left = float(np.mean((y - link.smoothed(omega, V)) ** 2))
    noise = max(left - float(np.mean(_variance(link, omega, V))), _LEAST_NOISE * float(np.var(y)), 1e-12)
    return PiecewiseLinear(link.offset, link.slope, bends, noise)


def folded(omega: np.ndarray, V: float, kinks: np.ndarray) -> np.ndarray:
    """E|z - t| for z ~ N(omega, V) and each kink t, along a new last axis."""
    s = np.sqrt(max(V, 1e-12))
    x = (np.asarray(omega)[..., None] - kinks) / s
    return s * (x * (2 * ndtr(x) - 1) + np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2))


def _variance(link: PiecewiseLinear, omega: np.ndarray, V: float) -> np.ndarray:
    """The variance of g(z), z ~ N(omega, V)."""
    nodes, weight = np.polynomial.hermite_e.hermegauss(31)
    values = link.value(omega[:, None] + np.sqrt(V) * nodes)
    mean = values @ weight / weight.sum()
    return (values - mean[:, None]) ** 2 @ weight / weight.sum()


def _log_mass(alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """log(Phi(beta) - Phi(alpha)), computed in the tail where both are."""
    right = alpha > 0
    upper, lower = np.where(right, -alpha, beta), np.where(right, -beta, alpha)
    top, below = log_ndtr(upper), log_ndtr(lower)
    return top + np.log(-np.expm1(np.minimum(below - top, -1e-15)))
