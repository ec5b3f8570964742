r"""The kernel of an activation: how much of a neuron's output an estimate of its weights explains.

With the Hermite coefficients $\sigma = \sum_l c_l h_l$ and z, z' standard normal of correlation q,

    E sigma(z) sigma(z') = c_0^2 + c_1^2 q + c_2^2 q^2 + g(q),        g(q) = sum_{l>=3} c_l^2 q^l.

The first three parts are apart: a constant, one vector and one matrix, which all neurons of a wide network share. What
is left of a single neuron at overlap q is $D = g(1) - g(q)$, needed to relative precision as q comes near to one, so
that everything here is a function of $\delta = 1 - q$.

Coefficients of a smooth activation fall exponentially. At a kink or a jump they fall like a power, $c_l^2 \sim l^{-p}$
with p = 5/2 or 3/2: beyond the last one computed they are taken as such a power, with the mass that is known to be
left, $\int_L^\infty l^{-p} q^l dl = L^{1-p} E_p(-L \log q)$, E_p the exponential integral.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
from scipy import special

from solvable.core.precision import float64
from solvable.numerics.gaussian import expectation
from solvable.targets.hermite import hermite_coefficients
from solvable.targets.target import Target

_ORDER = 1024
"""Coefficients that are computed; the coarser kernel has half as many."""
_ROUNDING = 1e-27
"""Squared coefficients below this, relative to all, are rounding."""
_NOTHING = 1e-13
"""A mass beyond the last coefficient below this, relative to all, is rounding."""
_STEEPEST = 6.0
"""Coefficients that fall faster than this power have fallen altogether."""


@dataclasses.dataclass(frozen=True)
class Tail:
    """The squared coefficients beyond `start`: a power l^-exponent of total `mass`, the exponent half an odd number."""

    start: float
    mass: float
    exponent: float

    def deficit(self, rate: np.ndarray) -> np.ndarray:
        r"""The mass less $\sum_l c_l^2 q^l$ at $-\log q$ = `rate`: mass (1 - (p - 1) E_p(x)), nothing cancelled."""
        return self.mass * self._missing(self.start * rate)

    def slope(self, rate: np.ndarray) -> np.ndarray:
        r"""$\sum_l l c_l^2 q^l$: mass (p - 1) start E_{p-1}(x)."""
        p, x = self.exponent, self.start * rate
        with np.errstate(divide="ignore"):
            root = np.sqrt(np.pi / x) * special.erfc(np.sqrt(x))  # E_{1/2}
        lower = root if p == 1.5 else (1 - Tail(1.0, 1.0, p - 1)._missing(x)) / (p - 2)
        return self.mass * (p - 1) * self.start * lower

    def _missing(self, x: np.ndarray) -> np.ndarray:
        """1 - (p - 1) E_p(x), from p = 3/2 upwards by p E_{p+1}(x) = exp(-x) - x E_p(x)."""
        found = -np.expm1(-x) + np.sqrt(np.pi * x) * special.erfc(np.sqrt(x))
        for p in np.arange(1.5, self.exponent):
            found = -np.expm1(-x) + x * (1 - found) / (p - 1)
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """g of an activation, by the squares `weights` of its coefficients of these `degrees`, and the `tail` beyond.

    `low` are c_0, c_1 and c_2 themselves; `linear` and `quadratic` the squares of the last two.
    """

    degrees: np.ndarray
    weights: np.ndarray
    low: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tail: Tail | None = None

    @property
    def linear(self) -> float:
        return self.low[1] ** 2

    @property
    def quadratic(self) -> float:
        return self.low[2] ** 2

    @functools.cached_property
    def total(self) -> float:
        """g(1)."""
        return float(self.weights.sum()) + (self.tail.mass if self.tail else 0.0)

    @property
    def dimension(self) -> float:
        r"""The limit of $D/(\delta g')$ as q comes near to one: 1, or 2 for an activation with a jump."""
        return 2.0 if self.tail is not None and self.tail.exponent == 1.5 else 1.0

    def deficit(self, delta: np.ndarray) -> np.ndarray:
        """D = g(1) - g(1 - delta)."""
        rate = _rate(delta)
        found = -np.expm1(-rate[..., None] * self.degrees) @ self.weights
        return found + self.tail.deficit(rate) if self.tail else found

    def slope(self, delta: np.ndarray) -> np.ndarray:
        """g'(1 - delta)."""
        rate = _rate(delta)
        found = np.exp(-rate[..., None] * (self.degrees - 1)) @ (self.degrees * self.weights)
        return found + self.tail.slope(rate) * np.exp(rate) if self.tail else found


def _rate(delta: np.ndarray) -> np.ndarray:
    """-log q, at most a number whose exponential is still finite."""
    with np.errstate(divide="ignore"):
        return np.minimum(-np.log1p(-np.asarray(delta, float)), 600.0)


class Kernels(NamedTuple):
    """The kernel of an activation, and one from half as many coefficients, which tells the error."""

    fine: Kernel
    coarse: Kernel


@functools.lru_cache(maxsize=64)
@float64
def kernels_of(activation: Target) -> Kernels:
    """Both kernels of an activation of one variable."""
    coefficients = hermite_coefficients(activation, _ORDER)
    power = expectation(lambda z: activation.numpy(z[:, None]) ** 2, activation.breaks.tolist(), nodes=160)
    return Kernels(_kernel(coefficients, power), _kernel(coefficients[: _ORDER // 2 + 1], power))


def _kernel(coefficients: np.ndarray, power: float) -> Kernel:
    squares = coefficients**2
    degrees = 3 + np.nonzero(squares[3:] > _ROUNDING * power)[0]
    weights = squares[degrees]
    low = float(coefficients[0]), float(coefficients[1]), float(coefficients[2])
    return Kernel(degrees, weights, low, _tail(squares, degrees, power))


def _tail(squares: np.ndarray, degrees: np.ndarray, power: float) -> Tail | None:
    """The power that goes on as the last half of the coefficients does: of mass 2^(1-p) times theirs with it."""
    order = len(squares) - 1
    mass = power - float(squares.sum())
    if mass < _NOTHING * power:
        return None
    last = float(squares[order // 2 + 1 :].sum())
    exponent = 1 - math.log2(mass / (mass + last))
    if exponent > _STEEPEST:
        return None
    # Degrees come in steps of two where the activation is odd or even; their sum begins half a step before the first.
    start = float(degrees[-1] + np.diff(degrees[-2:])[0] / 2)
    return Tail(start, mass, max(round(exponent - 0.5) + 0.5, 1.5))
