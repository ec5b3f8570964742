"""The error of a wide teacher by SciPy, from kernels in closed form, one feature after the other.

Kernels are g(q) = E sigma(z) sigma(z') - c_1^2 q of normal z, z' of correlation q. A feature takes the best of q = 0
and the stationary points of kappa g(q) + log(1 - q) + q, found by a dense table and interpolation; the error is the
root of n/d = u (noise + eps(u)) of least free energy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, zeta


class Kernel(NamedTuple):
    """c_1^2, what is left of g at 1 - q = delta, and the slope of g there."""

    linear: float
    deficit: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]


def _series(squares: dict[int, float]) -> Kernel:
    high = [(degree, square) for degree, square in squares.items() if degree > 2]
    return Kernel(
        squares.get(1, 0.0),
        lambda d: sum(-c * np.expm1(k * np.log1p(-d)) for k, c in high),
        lambda d: sum(c * k * (1 - d) ** (k - 1) for k, c in high),
    )


def _erf_deficit(d):
    # (2/pi)(asin(2/3) - asin(2q/3)) as the arc sine of a difference, so that nothing cancels.
    a, b = 2 / 3, 2 * (1 - d) / 3
    of_sine = a * np.sqrt(1 - b * b) - b * np.sqrt(1 - a * a)
    return 2 / np.pi * np.arcsin(of_sine) - 4 / (3 * np.pi) * d


KERNELS = {
    "he3(z)": _series({3: 6.0}),
    "z + he3(z)/6": _series({1: 1.0, 3: 1 / 6}),
    "he3(z)/sqrt(6) + he5(z)/sqrt(120)": _series({3: 1.0, 5: 1.0}),
    "erf(z)": Kernel(
        4 / (3 * np.pi), _erf_deficit, lambda d: 4 / (3 * np.pi) * (1 / np.sqrt(1 - 4 * (1 - d) ** 2 / 9) - 1)
    ),
    "sign(z)": Kernel(
        2 / np.pi,
        lambda d: 4 / np.pi * np.arcsin(np.sqrt(d / 2)) - 2 / np.pi * d,
        lambda d: 2 / np.pi * (1 / np.sqrt(d * (2 - d)) - 1),
    ),
}


def solved(
    name: str, exponent: float, width: float, noise: float, alpha: float, summed: int = 5000, limit: float = np.inf
) -> dict[str, float]:
    """The error, its part without the linear one, and the number of features learned, of the first `limit`."""
    linear, deficit, slope = KERNELS[name]
    t = np.arange(-9.0, 32.0, 1e-4)
    delta = expit(-t)
    total = float(deficit(np.array(1 - 1e-16)))
    x = t - np.log(slope(delta))
    rise = slice(int(np.argmin(x[t < 20])), None)
    x, D, h = x[rise], deficit(delta[rise]), (np.logaddexp(0.0, t) - expit(t))[rise]
    gain = np.exp(x) * (total - D) - h
    first = int(np.argmax(gain > 0))
    start = np.interp(0.0, gain[first - 1 : first + 1], x[first - 1 : first + 1])
    count = int(min(width, summed, limit))
    squares = np.arange(1, count + 1) ** (-2.0 * exponent) if exponent else np.full(count, 1 / width)
    tail = 0.0
    if width > count:
        tail = zeta(2 * exponent, count + 1) - (zeta(2 * exponent, width + 1) if np.isfinite(width) else 0.0)

    def left(u: float) -> tuple[float, float, int]:
        at = np.log(u * squares)
        known = at >= start
        parts = np.where(known, np.exp(np.interp(at, x, np.log(D))), total)
        return squares @ parts + total * tail, np.interp(at[known], x, h).sum(), int(known.sum())

    def excess(u: float) -> float:
        return np.log(u * (noise + left(u)[0]) / alpha)

    power = squares.sum() + tail
    low = 0.5 * alpha / (noise + total * power)
    high = min(1.01 * alpha / noise, 1e9 * low) if noise else 1e9 * low
    jumps = np.exp(start) / squares
    jumps = jumps[(jumps > low) & (jumps < high)][:200]
    grid = np.unique(np.concatenate([np.geomspace(low, high, 1500), jumps * (1 - 1e-12), jumps * (1 + 1e-12)]))
    values = np.array([excess(u) for u in grid])
    found = []
    for i in np.nonzero((values[:-1] < 0) & (values[1:] >= 0))[0]:
        u = brentq(excess, grid[i], grid[i + 1], xtol=1e-13 * grid[i], rtol=1e-13)
        error, cost, learned = left(u)
        found.append((alpha * np.log(noise + error) + cost, error, learned))
    _, error, learned = min(found)
    V, N = linear * power, noise + error
    half = (N + (alpha - 1) * V) / 2
    return {
        "generalization_error": error + (np.sqrt(half**2 + V * N) - half if V else 0.0),
        "nonlinear_error": error,
        "effective_width": learned,
    }
