r"""All features of a wide teacher together: what is left of the labels, at a common rate of information.

With $u = (n/d)/(\Delta + \epsilon)$ feature j has $\kappa_j = u a_j^2$, and

    eps(u) = sum_j a_j^2 D(kappa_j),        cost(u) = sum_j h(q_j),

D and h those of `feature.py`; D = g(1), h = 0 for the features that are not learned. Amplitudes fall with j, so that
the first ones are learned. Of a power law $a_j = j^{-\beta}$ the first features are summed one by one, and the learned
ones beyond by Euler and Maclaurin's formula, whose integral over j is one over $x = \log\kappa$ and is tabulated,

    int a_j^2 D dj = u^(1/(2 beta) - 1) / (2 beta) int kappa^(1 - 1/(2 beta)) D dx;

those that are not learned have a zeta function: the cost does not depend on the width, which may be infinite.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable

import numpy as np

from solvable.models.lowrank.wide_teacher.feature import Feature, cost
from solvable.numerics.interpolation import PiecewiseChebyshev, chebyshev_nodes, fit

_DIRECT = 64
"""How many features are summed one by one."""
_DEGREE = 16
_FAR = 1e6
"""Without noise: how far beyond the last transition the curve is followed to its limit, as a factor."""


class Features(abc.ABC):
    """Features of falling amplitudes, of which the first `limit` may be learned."""

    feature: Feature
    width: float
    limit: float

    @property
    @abc.abstractmethod
    def power(self) -> float:
        """The sum of all squared amplitudes."""

    @abc.abstractmethod
    def squares(self, j: np.ndarray) -> np.ndarray:
        """a_j^2, of j up to the width."""

    @abc.abstractmethod
    def learned(self, u: np.ndarray) -> np.ndarray:
        """How many features are learned at rates u."""

    @abc.abstractmethod
    def error(self, u: np.ndarray) -> np.ndarray:
        """eps(u)."""

    @abc.abstractmethod
    def cost(self, u: np.ndarray) -> np.ndarray:
        """The sum of h."""

    @abc.abstractmethod
    def jumps(self, highest: float) -> np.ndarray:
        """Rates u up to `highest` at which features are learned, as far as their jumps matter one by one."""

    @abc.abstractmethod
    def highest(self, alpha: float, noise: float) -> float:
        """A rate above which u (noise + eps(u)) stays above alpha, or nothing is left to learn."""

    @property
    def unlearned(self) -> float:
        """What is left if nothing is learned: g(1) times the sum of all squares."""
        return self.feature.kernel.total * self.power

    def kappa(self, u: np.ndarray, count: int) -> np.ndarray:
        """kappa_j of the first features, 0 for those that are not there or may not be learned: (..., count)."""
        j = np.arange(1, count + 1)
        squares = np.where(j <= self.limit, self.squares(np.minimum(j, self.width)), 0.0)
        return np.asarray(u)[..., None] * squares


class EqualFeatures(Features):
    """As many features as the width, all of amplitude 1/sqrt(width)."""

    def __init__(self, feature: Feature, width: float, limit: float):
        self.feature, self.width, self.limit = feature, width, min(limit, width)

    @property
    def power(self) -> float:
        return 1.0

    def squares(self, j: np.ndarray) -> np.ndarray:
        return np.full(np.shape(j), 1 / self.width)

    def learned(self, u: np.ndarray) -> np.ndarray:
        return self.limit * (np.asarray(u) >= self.width * self.feature.transitions[0])

    def error(self, u: np.ndarray) -> np.ndarray:
        share = self.limit / self.width
        return share * _deficits(self.feature, np.asarray(u) / self.width) + (1 - share) * self.feature.kernel.total

    def cost(self, u: np.ndarray) -> np.ndarray:
        return self.limit * _costs(self.feature, np.asarray(u) / self.width)

    def jumps(self, highest: float) -> np.ndarray:
        found = self.width * self.feature.transitions
        return found[found <= highest]

    def highest(self, alpha: float, noise: float) -> float:
        least = noise + self.feature.kernel.total * (1 - self.limit / self.width)
        return alpha / least if least > 0 else _FAR * max(self.jumps(np.inf)[-1], alpha)


class PowerLawFeatures(Features):
    """Amplitudes j^-exponent, j up to the width, which may be infinite for an exponent above 1/2."""

    def __init__(self, feature: Feature, exponent: float, width: float, limit: float, direct: int = _DIRECT):
        self.feature, self.exponent, self.width, self.limit = feature, exponent, width, min(limit, width)
        self._direct = int(min(direct, width))

    @functools.cached_property
    def power(self) -> float:
        first = self.squares(np.arange(1, self._direct + 1))
        return float(first.sum() + self._left(np.array(float(self._direct))))

    def squares(self, j: np.ndarray) -> np.ndarray:
        return np.asarray(j, float) ** (-2 * self.exponent)

    def learned(self, u: np.ndarray) -> np.ndarray:
        return self._count(np.asarray(u, float), self.feature.branches[0].low)

    def _count(self, u: np.ndarray, low: float) -> np.ndarray:
        """How many features have log kappa >= low, and may be learned."""
        # Rounding must not leave out the feature at whose own transition the rate lies.
        count = np.floor((u * np.exp(-low)) ** (0.5 / self.exponent) * (1 + 1e-13))
        return np.minimum(count, self.limit)

    def error(self, u: np.ndarray) -> np.ndarray:
        u = np.asarray(u, float)
        near = _deficits(self.feature, self.kappa(u, self._direct)) @ self.squares(np.arange(1, self._direct + 1))
        beyond = self._left(np.maximum(self.learned(u), self._direct))
        return near + self._far(u, self._errors) + self.feature.kernel.total * beyond

    def cost(self, u: np.ndarray) -> np.ndarray:
        u = np.asarray(u, float)
        return _costs(self.feature, self.kappa(u, self._direct)).sum(-1) + self._far(u, self._costs)

    def _far(self, u: np.ndarray, ends: Callable[..., np.ndarray]) -> np.ndarray:
        """A sum over the learned features that are not summed one by one, branch by branch, from the `ends` of each."""
        found, done = np.zeros(u.shape), np.full(u.shape, float(self._direct))
        for branch in reversed(self.feature.branches):
            last = np.maximum(done, self._count(u, branch.low))
            more = last > done
            if np.any(more):
                j, rate = np.stack([done[more] + 1, last[more]]), u[more]
                x = np.clip(np.log(rate) - 2 * self.exponent * np.log(j), branch.low, np.nextafter(branch.high, 0.0))
                found[more] += ends(rate, j, x)
            done = last
        return found

    def _errors(self, u: np.ndarray, j: np.ndarray, x: np.ndarray) -> np.ndarray:
        r"""The sum of f = a_j^2 D between two j: its integral, half of f at both ends, a twelfth of its slopes.

        The slope in j is $df/dj = -(2\beta/j) f (1 + d\log D/dx)$.
        """
        steep = 2 * self.exponent
        f = self.squares(j) * np.exp(self.feature.log_deficit(x))
        slope = steep / j * f * (1 + self.feature.log_deficit_slope(x))
        integral = u ** (1 / steep - 1) / steep * self._integral(x)
        return f.sum(0) / 2 + (slope[0] - slope[1]) / 12 + integral[0] - integral[1]

    def _costs(self, u: np.ndarray, j: np.ndarray, x: np.ndarray) -> np.ndarray:
        r"""The same of h. At a maximum $dh = -\kappa\, dD$, which gives its slope and, by parts, its integral."""
        steep = 2 * self.exponent
        h, D = cost(self.feature.logit(x)), np.exp(x + self.feature.log_deficit(x))  # D times kappa
        slope = -steep / j * D * self.feature.log_deficit_slope(x)
        by_parts = (steep - 1) * u ** (1 / steep) / steep * self._integral(x) - j * (h + D)
        return h.sum(0) / 2 + (slope[0] - slope[1]) / 12 + by_parts[0] - by_parts[1]

    @functools.cached_property
    def _integral(self) -> PiecewiseChebyshev:
        """The integral over x of kappa^(1 - 1/(2 beta)) D."""
        x = chebyshev_nodes(self.feature.edges, _DEGREE)
        D = np.exp((1 - 0.5 / self.exponent) * x + self.feature.log_deficit(x))
        return fit(self.feature.edges, _DEGREE, D).antiderivative()

    def _left(self, done: np.ndarray) -> np.ndarray:
        """The sum of the squared amplitudes beyond the first `done`, at least `_direct` of them."""
        start = _zeta_tail(done, 2 * self.exponent, self.width)
        return np.where(done < self.width, start, 0.0)

    def jumps(self, highest: float) -> np.ndarray:
        j = np.arange(1, min(self._direct, self.limit) + 1)
        with np.errstate(divide="ignore", over="ignore"):  # amplitudes too small for a number are never learned
            found = (self.feature.transitions[:, None] / self.squares(j)).ravel()
        return np.sort(found[found <= highest])

    def highest(self, alpha: float, noise: float) -> float:
        kernel, start = self.feature.kernel, self.feature.transitions[0]
        if self.limit < self.width:
            left = float(self._left(np.array(max(self.limit, float(self._direct)))))
            return alpha / (noise + kernel.total * left)
        if math.isinf(self.width):
            # Right after feature j is learned u eps(u) is at least u times what is left, which grows with j.
            j, steep = 1.0, 2 * self.exponent
            while start * kernel.total * (j + 1) * (j / (j + 1)) ** steep / (steep - 1) < alpha:
                j *= 2
            return min(start * j**steep, alpha / noise if noise > 0 else math.inf)
        if noise > 0:
            return alpha / noise
        return _FAR * max(self.feature.transitions[-1] / float(self.squares(np.array(self.limit))), alpha)


def _deficits(feature: Feature, kappa: np.ndarray) -> np.ndarray:
    """D of features at kappa."""
    return _where_learned(feature, kappa, lambda x: np.exp(feature.log_deficit(x)), feature.kernel.total)


def _costs(feature: Feature, kappa: np.ndarray) -> np.ndarray:
    """h of features at kappa."""
    return _where_learned(feature, kappa, lambda x: cost(feature.logit(x)), 0.0)


def _where_learned(
    feature: Feature, kappa: np.ndarray, function: Callable[[np.ndarray], np.ndarray], otherwise: float
) -> np.ndarray:
    with np.errstate(divide="ignore"):
        x = np.log(kappa)
    learned = x >= feature.branches[0].low - 1e-13
    found = np.full(x.shape, otherwise)
    found[learned] = function(np.maximum(x[learned], feature.branches[0].low))
    return found


def _zeta_tail(done: np.ndarray, power: float, width: float) -> np.ndarray:
    """The sum of j^-power over done < j <= width, by Euler and Maclaurin; `done` is at least some ten."""

    def ends(j: np.ndarray) -> np.ndarray:
        """What an end of the sum, half a step beyond the last term, adds to the integral."""
        return power * j ** (-power - 1) * (1 / 24 - 7 * (power + 1) * (power + 2) / (5760 * j**2))

    low = done + 0.5
    if math.isinf(width):
        return low ** (1 - power) / (power - 1) - ends(low)
    span = np.log((width + 0.5) / low)
    whole = span if power == 1 else np.expm1((1 - power) * span) / (1 - power)
    return low ** (1 - power) * whole - ends(low) + ends(np.array(width + 0.5))
