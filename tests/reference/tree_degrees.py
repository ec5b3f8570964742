r"""What is learned of a tree target, from the definition of its degrees: SciPy's quadrature, and sums written out.

With orthonormal Hermite polynomials $P = \sum_q u_q h_q$ and $g(\sigma z) = \sum_k c_k h_k(z)$ a learner of all
polynomials of degree Q explains the part of the label that they span: of $h_k$ the choices of k degrees whose sum is at
most Q. One that knows the part of degree Q of the hidden feature alone, of correlation rho with it, explains

    r (E[g(sigma a) g(sigma b)] - E[g]^2),        a and b of correlation rho^2 / r,

since two hidden features that share what is known have that correlation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import hermite_e
from scipy.integrate import quad

Function = Callable[[float], float]
_END = 12.0


def mean(f: Function, breaks: tuple[float, ...] = ()) -> float:
    """E f(z), z ~ N(0, 1)."""
    ends = sorted({-_END, 0.0, _END, *(b for b in breaks if abs(b) < _END)})

    def weighted(z: float) -> float:
        return f(z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    return sum(quad(weighted, *pair, limit=400, epsabs=1e-14, epsrel=1e-13)[0] for pair in itertools.pairwise(ends))


def _hermite(k: int, z: float) -> float:
    return float(hermite_e.hermeval(z, np.eye(k + 1)[k])) / math.sqrt(math.factorial(k))


class Tree:
    """Branches with a polynomial P, of coefficients `inner` of h_1, h_2, .., and any g that breaks at zero at most."""

    def __init__(self, inner: list[float], outer: Function):
        self.sigma = math.sqrt(sum(u * u for u in inner))
        self.shares = {q: u * u / self.sigma**2 for q, u in enumerate(inner, 1) if u}
        self._g = lambda z: outer(self.sigma * z)
        self.level = mean(self._g)
        self.variance = mean(lambda z: self._g(z) ** 2) - self.level**2

    def coefficient(self, k: int) -> float:
        """c_k."""
        return mean(lambda z: self._g(z) * _hermite(k, z))

    def learned(self, degree: float) -> float:
        """By polynomials of degree at most `degree`."""
        total = 0.0
        for k in range(1, int(degree) // min(self.shares) + 1):
            weight = 0.0
            for counts in itertools.product(range(k + 1), repeat=len(self.shares)):
                if sum(counts) == k and sum(n * q for n, q in zip(counts, self.shares, strict=True)) <= degree:
                    ways = math.factorial(k) // math.prod(map(math.factorial, counts))
                    weight += ways * math.prod(p**n for n, p in zip(counts, self.shares.values(), strict=True))
            total += weight * self.coefficient(k) ** 2
        return total

    def known(self, degree: float) -> float:
        """The share of the hidden feature's variance of degree at most `degree`."""
        return sum(share for q, share in self.shares.items() if q <= degree)

    def read(self, degree: float, branches: int) -> float:
        """By a function of the part of degree at most `degree` of the sum over branches."""
        rho = self.known(degree) / branches
        if rho == 0:
            return 0.0
        if rho > 1 - 1e-12:
            return self.variance
        root, left = math.sqrt(rho), math.sqrt(1 - rho)

        def given(x: float) -> float:
            return mean(lambda z: self._g(root * x + left * z), (-root * x / left,))

        return branches * (mean(lambda x: given(x) ** 2) - self.level**2)
