"""Nodes over the projections that a label leaves open: a trapezoidal rule where they are two, weighted draws beyond."""

from __future__ import annotations

import functools

import numpy as np

from solvable.numerics.sobol import normal_points

REACH = 5.2
_STEP, _NARROW = 0.5, 1.2
"""The step of the trapezoidal rule in units of the prior's width, and of that of what the label leaves."""
_POINTS = (21, 27, 37, 51, 69, 93, 125, 169, 229, 309)
_DRAWS = 10
"""The logarithm of the number of weighted draws, to base 2."""
_FEW = 2


def drawn(numbers: int) -> bool:
    """Whether an integral over so many numbers is one over draws."""
    return numbers > _FEW


def nodes_of(shape: tuple[int, int], ratio: float, draw: int, fineness: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (tokens, layers, k) of N(0, I), `shape` being the first two, and the logarithms of their weights.

    `ratio` is the width of what the label leaves over that of the prior.
    """
    if drawn(shape[0] * shape[1]):
        power = _DRAWS + round(np.log2(fineness))
        nodes = normal_points(shape[0] * shape[1], power, 1000 + draw)
        log_weights = np.full(len(nodes), -power * np.log(2))
    else:
        wanted = 2 * REACH * fineness / min(_STEP, _NARROW * ratio)
        nodes, log_weights = _disc(next((m for m in _POINTS if m >= wanted), _POINTS[-1]))
    return np.ascontiguousarray(nodes.T.reshape(*shape, -1)), log_weights


@functools.lru_cache(maxsize=16)
def _disc(points: int) -> tuple[np.ndarray, np.ndarray]:
    """The trapezoidal rule of a Gaussian in two dimensions within a disc, `points` on its diameter."""
    x = np.linspace(-REACH, REACH, points)
    nodes = np.stack(np.meshgrid(x, x), -1).reshape(-1, 2)
    nodes = nodes[np.sum(nodes**2, 1) <= REACH**2 + 1e-9]
    log_weights = -np.sum(nodes**2, 1) / 2
    return nodes, log_weights - np.log(np.exp(log_weights).sum())
