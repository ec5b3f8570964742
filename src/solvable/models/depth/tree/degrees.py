r"""The degrees of a tree target: how its variance spreads over polynomials of the inputs and of its directions.

With $P = \sum_q u_q h_q$ in orthonormal Hermite polynomials, $\sigma^2 = \sum_q u_q^2$ and $p_q = u_q^2/\sigma^2$, the
hidden feature $h = m^{-1/2}\sum_j a_j P(z_j)$ of many directions is the sum of independent Gaussians of variances
$\sigma^2 p_q$, one for each degree q in the inputs. With $g(\sigma z) = \sum_k c_k h_k(z)$, $h_k(h/\sigma)$ is a sum of
products of k of them, of which the part of total degree D has the share

    Pr(q_1 + .. + q_k = D),   the q's independent with probabilities p_q,

of its variance. So of the label's variance $\sum_{k>0} c_k^2$ polynomials of degree at most Q explain

    L(Q) = sum_k c_k^2 Pr(q_1 + .. + q_k <= Q),

and a function of the part of h of degree at most Q, which has the share $\rho^2 = \sum_{q\le Q} p_q$ of its variance,

    R(Q) = sum_k c_k^2 rho^(2k) r^(1-k)

if there are r branches and only the sum of their hidden features is known.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.numerics.gaussian import gaussian_panels, hermite_functions
from solvable.targets.target import Target

MOST_DEGREE = 20
"""Degrees in the inputs that are told apart."""
_POWERS = 150
_NODES = 64
_REACH = 14.0
_ROUNDING = 1e-13
"""Of a coefficient, relative to the root mean square of the function."""
_ZERO = 10**-5.5
"""A coefficient below this, relative to the standard deviation, is taken for zero, as in `targets.hermite`."""


@dataclasses.dataclass(frozen=True, eq=False)
class Degrees:
    """Hermite coefficients of both functions: `inner` (u_q), `sigma`, and `outer` (c_k) with its `variance`."""

    inner: np.ndarray
    sigma: float
    outer: np.ndarray
    variance: float

    @property
    def _blur(self) -> float:
        """How far a share may be off that is taken for none: by coefficients taken for zero, and by rounding."""
        left_out = np.where(self.shares == 0, self.inner / self.sigma, 0.0)[1:]
        size = 1 + float(self.outer[0]) ** 2 / self.variance
        return float(left_out @ left_out) * MOST_DEGREE + _ROUNDING**2 * size

    def error(self, learned: np.ndarray) -> np.ndarray:
        """How far a sum of squares of coefficients may be off: most where it is large, least where it is zero."""
        share = np.clip(np.asarray(learned) / self.variance, 0.0, 1.0)
        return self.variance * (2 * np.sqrt(share * self._blur) + self._blur)

    def error_of_part(self, part: np.ndarray) -> np.ndarray:
        """The same of a share of the hidden feature's variance."""
        return self._beyond * (part == 1) + 2 * np.sqrt(part * self._blur) + self._blur

    def read_error(self, degree: float, branches: int) -> float:
        """What `read` leaves out: powers beyond those it sums, and degrees beyond those of a whole hidden feature."""
        rho = self.part(degree)
        if rho == 1.0 and branches == 1:
            return self._beyond * len(self.outer) * self.variance
        tail = max(self.variance - float(np.sum(self.outer[1:] ** 2)), 0.0)
        return branches * tail * (rho / branches) ** len(self.outer)

    @property
    def _beyond(self) -> float:
        """The share of the hidden feature of degrees that are not told apart."""
        return max(1 - float(self.shares.sum()), 0.0)

    def check(self) -> None:
        """Refuse functions that leave no label, or whose hidden features have a mean that grows with d."""
        if not self.sigma > 0:
            raise bad_parameter("inner", "a constant", "a function that varies")
        if abs(self.inner[0]) > _ZERO * self.sigma:
            raise bad_parameter("inner", f"of mean {self.inner[0]:.6g}", "of mean zero: subtract it")
        if not self.variance > 0:
            raise bad_parameter("outer", "a constant", "a function that varies")

    @property
    def shares(self) -> np.ndarray:
        """p_q for q = 0, 1, .. of the degrees that are told apart, 0 where it cannot be told from zero."""
        seen = np.where(np.abs(self.inner) > _ZERO * self.sigma, self.inner, 0.0)
        seen[0] = 0.0
        return (seen / self.sigma) ** 2

    @property
    def lowest(self) -> int:
        """The lowest degree of the inner function."""
        return int(np.nonzero(self.shares)[0][0]) if self.shares.any() else MOST_DEGREE + 1

    @property
    def highest(self) -> float:
        """Its highest degree, infinite unless it is a polynomial."""
        whole = 1 - self.shares.sum() < _ZERO
        return float(np.nonzero(self.shares)[0][-1]) if whole else math.inf

    @property
    def linear(self) -> bool:
        """Whether the outer function has a linear part, by which the label follows the hidden feature itself."""
        return abs(self.outer[1]) > _ZERO * math.sqrt(self.variance)

    @property
    def second_power(self) -> int:
        """The lowest power above one in the outer function, or one more than those looked at."""
        there = np.nonzero(np.abs(self.outer[2:]) > _ZERO * math.sqrt(self.variance))[0]
        return int(there[0]) + 2 if there.size else len(self.outer)

    def part(self, degree: float) -> float:
        """rho^2: the share of the hidden feature of degree at most Q."""
        if degree >= self.highest:
            return 1.0
        return float(self.shares[: int(degree) + 1].sum())

    def learned(self, degree: float) -> float:
        """L(Q): the variance of the label that polynomials of degree at most Q explain."""
        top = int(min(degree, MOST_DEGREE))
        spread, total = np.zeros(top + 1), 0.0
        spread[0] = 1.0
        for power in range(1, top + 1):  # a power has at least its own degree
            spread = np.convolve(spread, self.shares[: top + 1])[: top + 1]
            total += float(self.outer[power]) ** 2 * float(spread.sum())
        return min(total, self.variance)

    def read(self, degree: float, branches: int) -> float:
        """R(Q): the variance explained by a function of the part of degree at most Q of the sum over branches."""
        rho = self.part(degree)
        if rho == 1.0 and branches == 1:
            return self.variance
        powers = np.arange(1, len(self.outer))
        return float(np.sum(self.outer[1:] ** 2 * (rho / branches) ** powers) * branches)


@functools.lru_cache(maxsize=64)
def degrees_of(inner: Target, outer: Target) -> Degrees:
    """The coefficients of both functions, by panels that end on their breaks."""
    z, weight = gaussian_panels(inner.breaks, _NODES, _REACH)
    values = _finite("inner", inner, z)
    u = hermite_functions(z, MOST_DEGREE) @ (weight * values)
    sigma = math.sqrt(max(float(weight @ values**2) - float(u[0]) ** 2, 0.0))
    if sigma < _ZERO * math.sqrt(float(weight @ values**2) + 1e-300):
        sigma = 0.0
    z, weight = gaussian_panels(outer.breaks / (sigma or 1.0), _NODES, _REACH)
    values = _finite("outer", outer, sigma * z)
    c = hermite_functions(z, _POWERS) @ (weight * values)
    second = float(weight @ values**2)
    variance = second - float(c[0]) ** 2
    return Degrees(u, sigma, c, variance if variance > _ZERO**2 * second else 0.0)


def _finite(name: str, target: Target, z: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        values = target.numpy(z[:, None])
    if not np.all(np.isfinite(values)):
        raise bad_parameter(name, str(target), "finite for every z")
    return values
