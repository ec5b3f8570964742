"""Quadrature of positive functions that may be narrow: one peak a segment, found by zooming in before integrating."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.numerics.gaussian import gauss_legendre

_DROP = 34.0
"""The logarithm of the function is followed down to this much below its peak."""

_GRID, _ROUNDS = 14, 9


def peaked_nodes(
    log_f: Callable[[np.ndarray, np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes t (n, S * nodes) and log weights for the integral of f over S segments [low, high] (n, S) a row.

    `log_f(t, row)` takes t (k, G) and the rows (k,) that they belong to. Each round samples the segments on a grid and
    keeps what lies within `_DROP` of the largest value, until that is most of the segment.
    """
    n, segments = low.shape
    low, high = low.ravel().copy(), high.ravel().copy()
    row = np.repeat(np.arange(n), segments)
    steps = np.linspace(0.0, 1.0, _GRID)
    wide = np.arange(len(low))
    for _ in range(_ROUNDS):
        start, width = low[wide], high[wide] - low[wide]
        values = log_f(start[:, None] + width[:, None] * steps, row[wide])
        seen = values >= values.max(1, keepdims=True) - _DROP
        first = np.maximum(seen.argmax(1) - 1, 0)
        last = np.minimum(_GRID - seen[:, ::-1].argmax(1), _GRID - 1)
        low[wide], high[wide] = start + width * steps[first], start + width * steps[last]
        wide = wide[last - first < 0.6 * _GRID]
        if not wide.size:
            break
    t, w = gauss_legendre(nodes)
    width = (high - low)[:, None]
    at = low[:, None] + width * t
    with np.errstate(divide="ignore"):
        log_weight = np.log(width * w)
    return at.reshape(n, -1), log_weight.reshape(n, -1)


def shares(log_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log of the summed weights of each row, and every node's share in it."""
    top = log_weight.max(1, keepdims=True)
    share = np.exp(log_weight - top)
    total = share.sum(1, keepdims=True)
    return (top + np.log(total))[:, 0], share / total


def mixture_moments(share: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, r) and covariance (n, r, r) of points (n, L, r) with shares (n, L)."""
    mean = (share[:, None, :] @ points)[:, 0]
    offset = points - mean[:, None]
    return mean, offset.transpose(0, 2, 1) @ (share[..., None] * offset)
