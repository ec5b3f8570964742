r"""Sums over all integers of functions that are smooth on a logarithmic scale, by a few hundred weighted terms.

$\sum_{k \ge 1} f(k)$ is summed term by term for small k, and then over the integers of one octave after another, each
by the Gauss rule of its sum: nodes $x_i$ and weights $w_i$ with

    sum_{k=a}^{2a-1} f(k) = sum_i w_i f(x_i)        for every polynomial f of degree up to 2 m - 1.

The polynomials that are orthogonal on $0, .., N - 1$ (Gram's, the discrete Chebyshev polynomials) obey
$\beta_j = j^2 (N^2 - j^2)/(4 (4 j^2 - 1))$ in their three-term recurrence, and the rule follows from the tridiagonal
matrix of it, as that of Gauss and Legendre does, which it becomes for large N. For $f = k^{-s}$ the error of m = 18
nodes is that of rounding. What is left beyond the last octave, $k \ge X$ = `end`, a caller adds from the asymptotic
form of f: a sum of powers is $\sum_{k \ge X} k^{-s} = (X - 1/2)^{1 - s}/(s - 1)$, to a relative $1/X^2$.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

_ALONE, _OCTAVES = 64, 54
"""Terms below the first are summed one by one; the octaves above reach 2^60."""
FINE, COARSE = 18, 16
"""How many nodes an octave has, and in a second rule whose difference from the first tells the error."""


class IntegerRule(NamedTuple):
    """Logarithms of nodes, and weights, for the sum over the integers from 1 up to, but without, `end`."""

    logs: np.ndarray
    weights: np.ndarray
    end: float


@functools.lru_cache(maxsize=32)
def integer_rule(count: int = FINE, last: int | None = None) -> IntegerRule:
    """The rule with so many nodes an octave, for the integers up to `last` if there is one.

    Rules of any number of nodes have the same length: what is missing to that of `FINE` are nodes of no weight.
    """
    end = float(_ALONE * 2**_OCTAVES) if last is None else last + 1.0
    nodes = [np.arange(1.0, min(_ALONE, end))]
    weights = [np.ones(len(nodes[0]))]
    first = float(_ALONE)
    while first < end:
        length = min(first, end - first)
        x, w = _gram_rule(length, int(min(count, length)))
        spare = max(0, int(min(FINE, length)) - len(x))
        nodes += [first + x, np.ones(spare)]
        weights += [w, np.zeros(spare)]
        first *= 2
    return IntegerRule(np.log(np.concatenate(nodes)), np.concatenate(weights), end)


def _gram_rule(length: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss rule of the sum over 0, 1, .., length - 1."""
    j = np.arange(1.0, count)
    beside = j / 2 * np.sqrt((length**2 - j**2) / (4 * j**2 - 1))
    x, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return x + (length - 1) / 2, length * vectors[0] ** 2
