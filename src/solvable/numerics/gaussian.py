"""Gaussian expectations with exact treatment of kinks and jumps.

Plain Gauss-Hermite quadrature is wrong by 1e-2 on sign-like functions. Here the line is cut into panels at every
break of the integrand, and each panel carries Gauss-Legendre nodes, graded towards its ends so that square-root and
logarithmic end singularities cost nothing. Smooth Gaussian integrals use the trapezoidal rule, which converges
exponentially and, unlike Gauss-Hermite, resolves steep sigmoids.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

RADIUS = 9.0
"""Gaussian variables are cut at this many standard deviations (mass beyond: 2e-19)."""

_STANDARD_EDGES = (-6.0, -4.0, -2.5, -1.2, 0.0, 1.2, 2.5, 4.0, 6.0)
_SQRT_2PI = np.sqrt(2 * np.pi)


@functools.cache
def gauss_legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, w / 2


@functools.cache
def graded_legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on [0, 1] after the substitution t = s^3 (10 - 15 s + 6 s^2), flat to second order at both ends.

    An integrand that behaves like t^(1/2) or log t at an end becomes smooth in s, and t^(-1/2) at least bounded.
    """
    s, w = gauss_legendre(nodes)
    return s**3 * (10 - 15 * s + 6 * s**2), w * 30 * s**2 * (1 - s) ** 2


@functools.cache
def nested_fejer(nodes: int = 15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fejer's second rule on [0, 1] with 2^k - 1 nodes, and the weights of the rule on every second of them.

    The nodes are open, so that a jump at an end does no harm, and the difference of the two rules tells the error.
    """

    def weights(count: int) -> np.ndarray:
        angle = np.pi * np.arange(1, count + 1) / (count + 1)
        odd = np.arange(1, count + 1, 2)
        return 2 * np.sin(angle) / (count + 1) * (np.sin(np.outer(angle, odd)) / odd).sum(axis=1)

    coarse = np.zeros(nodes)
    coarse[1::2] = weights(nodes // 2)
    return (1 - np.cos(np.pi * np.arange(1, nodes + 1) / (nodes + 1))) / 2, weights(nodes), coarse


@functools.cache
def normal_trapezoid(step: float = 0.2, radius: float = 6.0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for E f(x), x ~ N(0, 1), f analytic: the trapezoidal rule, weights summing to one."""
    half = int(radius / step)
    x = step * np.arange(-half, half + 1)
    w = np.exp(-(x**2) / 2)
    return x, w / w.sum()


def panels(edges: Sequence[float] | np.ndarray, nodes: int = 24, graded: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and plain (Lebesgue) weights on the consecutive panels [edges[i], edges[i+1]]."""
    edges = np.asarray(edges, float)
    low, width = edges[:-1], np.diff(edges)
    keep = width > 1e-12
    t, w = graded_legendre(nodes) if graded else gauss_legendre(nodes)
    return (low[keep, None] + width[keep, None] * t).ravel(), (width[keep, None] * w).ravel()


def standard_edges(breaks: Sequence[float] | np.ndarray = (), radius: float = RADIUS) -> np.ndarray:
    """Panel ends for a Gaussian integral: the breaks of the integrand among ends fit for the Gaussian weight."""
    inside = [b for b in (*breaks, *_STANDARD_EDGES) if -radius < b < radius]
    return np.unique(np.concatenate([[-radius], inside, [radius]]))


def ladder_edges(breaks: Sequence[float] | np.ndarray, radius: float = RADIUS, finest: float = 5e-7) -> np.ndarray:
    """Panel ends that shrink geometrically towards every break, to resolve structure there at any scale >= finest."""
    steps = 0.5 * 0.25 ** np.arange(0, 1 + int(np.ceil(np.log(0.5 / finest) / np.log(4))))
    near = np.concatenate([-steps, [0.0], steps])
    breaks = np.asarray(breaks, float)
    # Where two breaks are close their ladders would interleave: a rung belongs to the nearest break.
    rungs = (breaks[:, None] + near).ravel()
    owner = np.repeat(np.arange(len(breaks)), len(near))
    if len(breaks) > 1:
        nearest = np.abs(rungs[:, None] - breaks).argmin(1)
        rungs = rungs[nearest == owner]
    return standard_edges(rungs, radius)


def normal_density(x: np.ndarray) -> np.ndarray:
    """The standard normal density."""
    return np.exp(-(x**2) / 2) / _SQRT_2PI


def gaussian_panels(
    breaks: Sequence[float] | np.ndarray = (), nodes: int = 24, radius: float = RADIUS
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for E f(z), z ~ N(0, 1), f smooth between `breaks` (end singularities allowed)."""
    z, w = panels(standard_edges(breaks, radius), nodes)
    return z, w * normal_density(z)


def row_panels(
    breaks: np.ndarray, nodes: int = 10, radius: float = RADIUS, edges: Sequence[float] = _STANDARD_EDGES
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, k) and weights for E f(x), x ~ N(0, 1), of n functions at once, each with its own `breaks` (n, b).

    Breaks beyond the radius do no harm: their panels have no width.
    """
    ends = np.broadcast_to((-radius, *edges, radius), (len(breaks), len(edges) + 2))
    ends = np.sort(np.concatenate([ends, np.clip(breaks, -radius, radius)], axis=1), axis=1)
    t, w = gauss_legendre(nodes)
    width = np.diff(ends, axis=1)[:, :, None]
    x = (ends[:, :-1, None] + width * t).reshape(len(breaks), -1)
    return x, (width * w).reshape(len(breaks), -1) * normal_density(x)


def expectation(function: Callable[[np.ndarray], np.ndarray], breaks: Sequence[float] = (), nodes: int = 48) -> float:
    """E f(z) for z ~ N(0, 1) and a vectorised f that is smooth between `breaks`."""
    z, w = gaussian_panels(breaks, nodes)
    return float(np.sum(w * function(z)))


def hermite_functions(z: np.ndarray, order: int) -> np.ndarray:
    """Orthonormal Hermite polynomials h_k = He_k / sqrt(k!) for k = 0..order, stacked along a new first axis."""
    h = np.empty((order + 1, *np.shape(z)))
    h[0] = 1.0
    if order:
        h[1] = z
    for k in range(2, order + 1):
        h[k] = (z * h[k - 1] - np.sqrt(k - 1) * h[k - 2]) / np.sqrt(k)
    return h
