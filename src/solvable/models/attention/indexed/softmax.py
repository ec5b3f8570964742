r"""Labels that are the rows of an attention matrix, $y = softmax(\beta h)$: linear measurements of the weights.

The logarithm of a row gives the differences $h_{ab} - h_{ac}$, and a symmetric h whose rows have no differences is a
multiple of $11^T$: a label of T tokens is exactly T (T + 1)/2 - 1 noiseless linear measurements, whatever $\beta$. With
untied keys and queries h is not symmetric, and a label is T (T - 1) of them. [boncoraglio2025bayes]
"""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels.sequence.indexed_layers import entries
from solvable.engine.token_pairs import pairs
from solvable.numerics.subspaces import complement


def log_softmax(h: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax of each row of h (..., T, T)."""
    shifted = h - h.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def visible(T: int) -> np.ndarray:
    r"""Orthonormal rows (k x T (T + 1)/2) of the scores $h_{ab}/\sqrt{1 + \delta_{ab}}$, $a \le b$, that a label shows.

    They are orthogonal to the one direction that it hides, $1/\sqrt{1 + \delta_{ab}}$.
    """
    return entries(T)[2]


@functools.cache
def visible_of_row(T: int) -> np.ndarray:
    """Orthonormal rows (T - 1, T) of what a row of scores shows, where nothing is symmetric: all but its mean."""
    return complement(np.full((T, 1), T**-0.5)).T


def measurements(log_y: np.ndarray, beta: float) -> np.ndarray:
    """The visible scores of labels whose logarithms are `log_y` (n, T, T), (n, k)."""
    T = log_y.shape[-1]
    first, second, scale = pairs(T)
    rows = log_y / beta
    # With h_11 = 0 the first row is known, h being symmetric the first column, and so every row.
    column = rows[:, :1, :] - rows[:, :1, :1]
    h = rows - rows[:, :, :1] + column.transpose(0, 2, 1)
    return (h[:, first, second] / scale) @ visible(T).T
