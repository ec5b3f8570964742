"""Random-feature ridge regression from its published equations, by SciPy alone.

The equations are those of Defilippis, Loureiro and Misiakiewicz (arXiv:2405.15699) with the loss summed over samples,
as printed: with a square root, nu_2, nu_1, Upsilon and chi. Sums over infinitely many eigenvalues are taken term by
term up to a number of them, and beyond as an integral with the first terms of Euler and Maclaurin.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

VALUES = [
    # capacity, source, n, p, penalty, noise, number of eigenvalues; bias, variance, nu_1, nu_2 (theory sheet, rel 1e-7)
    (
        1.3,
        0.5,
        120,
        130,
        1e-6,
        0.01,
        1500,
        0.3459695684350532,
        0.12507829538104792,
        0.000486593828614,
        0.006324420039096,
    ),
    (
        1.73,
        0.61,
        1000,
        317,
        0.037,
        0.3,
        20000,
        0.00048993119054950,
        0.0730224422493200,
        4.8925808958e-05,
        0.000211741985,
    ),
]
EXPONENTS = [
    # capacity, source, l, q; exponents of bias and variance (theory sheet, closed form)
    (1.5, 0.4, 0.6, 0.8, 0.48, 0.6),
    (1.5, 0.4, 5.0, 0.7, 0.84, 0.3),
    (2.0, 0.8, 0.4, 0.5, 0.64, 0.8),
    (1.3, 0.25, 0.9, 0.4, 0.26, 0.6),
    (2.5, 1.4, 0.3, 0.9, 0.6, 0.88),
    (2.0, 0.8, 4.0, 1.5, 2.5, 0.0),
]


def power_law(capacity, source, terms=None, direct=20_000):
    """The sum over eigenvalues k^-capacity and squared coefficients k^-(1 + 2 capacity source) of a function of both.

    `total(f)` sums f(eigenvalue, squared coefficient), term by term or, for infinitely many, with an integral.
    """
    exponent = 1 + 2 * capacity * source

    def at(f, k):
        return f(k**-capacity, k**-exponent)

    def total(f):
        if terms is not None:
            return float(np.sum(at(f, np.arange(1.0, terms + 1))))
        start = float(direct)
        head = float(np.sum(at(f, np.arange(1.0, start))))

        def inside(v):  # k = start e^v
            k = start * np.exp(v)
            return at(f, k) * k

        tail = sum(quad(inside, a, a + 4, epsabs=0, epsrel=1e-12)[0] for a in np.arange(0, 600, 4) if inside(a) > 0)
        step = 1e-3 * start
        slope = (at(f, start + step) - at(f, start - step)) / (2 * step)
        return head + tail + at(f, start) / 2 - slope / 12

    return total


def published(total, n, p, penalty, noise):
    """Bias, variance, nu_1 and nu_2 for sums made by `total`; p may be infinite."""
    if p == np.inf:
        return kernel(total, n, penalty, noise)

    def root(nu):
        return np.sqrt((1 - n / p) ** 2 + 4 * penalty / (p * nu))

    def equation(t):
        nu = np.exp(t)
        return 1 + n / p - root(nu) - 2 / p * total(lambda e, b: e / (e + nu))

    nu2 = float(np.exp(brentq(equation, -60, 40, xtol=1e-14, rtol=1e-14)))
    nu1 = nu2 / 2 * (1 - n / p + root(nu2))
    t2 = total(lambda e, b: (e / (e + nu2)) ** 2)
    chi = total(lambda e, b: e / (e + nu2) ** 2) / (p - t2)
    upsilon = p / n * ((1 - nu1 / nu2) ** 2 + (nu1 / nu2) ** 2 * t2 / (p - t2))
    missed = total(lambda e, b: b / (e + nu2) ** 2) + chi * total(lambda e, b: b * e / (e + nu2) ** 2)
    return nu2**2 / (1 - upsilon) * missed, noise * upsilon / (1 - upsilon), nu1, nu2


def kernel(total, n, penalty, noise):
    """The same for infinitely many features: kernel ridge regression, n - penalty/nu = Tr Sigma (Sigma + nu)^-1."""

    def equation(t):
        nu = np.exp(t)
        return n - penalty / nu - total(lambda e, b: e / (e + nu))

    nu = float(np.exp(brentq(equation, -60, 40, xtol=1e-14, rtol=1e-14)))
    upsilon = total(lambda e, b: (e / (e + nu)) ** 2) / n
    bias = nu**2 * total(lambda e, b: b / (e + nu) ** 2) / (1 - upsilon)
    return bias, noise * upsilon / (1 - upsilon), nu, nu
