"""The stability of a fixed point: which directions grow out of it, by labels or by a small overlap.

Around an M that vanishes in some directions, the labels may have a mean on them (`trivial` directions, learned at
once), or a small positive overlap dM there becomes gain E[G dM G]: it grows if the gain exceeds the inverse of the
largest eigenvalue of E[G (x) G], which belongs to a positive matrix, since the map keeps matrices positive.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.base import Linearisation
from solvable.numerics.subspaces import tidy


def trivial_directions(lin: Linearisation) -> np.ndarray:
    """The directions (r x k) on which the labels have a mean: the range of E[m m^T], above its numerical error."""
    values, vectors = np.linalg.eigh(lin.trivial)
    level = np.full(len(values), zero_level(lin))
    if lin.trivial_change is not None:
        level = 1e-7 + 5 * np.abs(np.sum(vectors * (lin.trivial_change @ vectors), 0))
    return tidy(lin.basis @ vectors[:, values > level], 1e-3)


def zero_level(lin: Linearisation) -> float:
    """The size below which an entry of the linearisation cannot be told from zero."""
    return 1e-7 + 5 * lin.error


def growing_overlap(lin: Linearisation) -> tuple[float, np.ndarray]:
    """The largest rate of growth 1/gain_c of a small overlap, and the positive matrix (k x k) that grows so.

    Where several grow equally fast it is the sum of them that the iteration from the identity leads to.
    """
    k = lin.basis.shape[1]
    values, vectors = np.linalg.eigh((lin.easy + lin.easy.T) / 2)
    top = vectors[:, values > values[-1] - max(1e-9, 3 * lin.error)]
    push = (top @ (top.T @ np.eye(k).ravel())).reshape(k, k)
    push = (push + push.T) / 2
    return float(values[-1]), push


def support(lin: Linearisation, push: np.ndarray) -> np.ndarray:
    """The directions (r x k) in which a growing overlap has any extent."""
    values, vectors = np.linalg.eigh(push)
    return tidy(lin.basis @ vectors[:, values > 1e-3 * values[-1]], 1e-3)
