r"""Averages over the turns and reflections O of a plane of a weight exp(f), by the trapezoidal rule in the angle.

$f(O) = Tr[O^T A] - Tr[\Lambda O^T G O] / 2$, as in `turns`, which has larger groups.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.sequence.turns import Turned

_SPACING = 0.6
"""Of angles, in units of the narrowest width of the weight."""
_LEAST, _MOST, _NUMBERS = 24, 4096, 2**18


def average_over_angles(A: np.ndarray, G: np.ndarray, precision: np.ndarray, width: float) -> Turned:
    """At A, G (n, 2, 2) and one Lambda = `precision`; `width` is the narrowest of the weight, in radians."""
    count = int(np.clip(np.ceil(2 * np.pi / (_SPACING * width)), _LEAST, _MOST))
    angle = 2 * np.pi * np.arange(count) / count
    c, s = np.cos(angle), np.sin(angle)
    turns = np.stack([c, -s, s, c], 1).reshape(-1, 2, 2)
    turns = np.concatenate([turns, turns * np.array([1.0, -1.0])])
    rows = max(1, _NUMBERS // count)
    parts = [_average(A[i : i + rows], G[i : i + rows], precision, turns) for i in range(0, len(A), rows)]
    return Turned(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _average(A: np.ndarray, G: np.ndarray, precision: np.ndarray, turns: np.ndarray) -> Turned:
    n, flat = len(A), turns.reshape(len(turns), -1)
    squares = np.einsum("kia,ab,kjb->kij", turns, precision, turns).reshape(len(turns), -1)
    log_p = A.reshape(n, -1) @ flat.T - G.reshape(n, -1) @ squares.T / 2
    top = log_p.max(axis=1, keepdims=True)
    p = np.exp(log_p - top)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    first = (p @ flat).reshape(n, 2, 2)
    second = (p @ (flat[:, :, None] * flat[:, None, :]).reshape(len(turns), -1)).reshape(n, 2, 2, 2, 2)
    return Turned(top[:, 0] + np.log(total[:, 0] / len(turns)), first, second)
