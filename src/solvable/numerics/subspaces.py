"""Orthonormal bases of subspaces of R^r, in coordinates that a person would choose."""

from __future__ import annotations

import numpy as np

_DENOMINATOR = 60
"""Projectors whose entries are multiples of 1/60 are recognised: axes, (1,1), (1,1,1), (1,2), (1,3), .. and signs."""


def complement(directions: np.ndarray) -> np.ndarray:
    """Orthonormal columns that complete `directions` (r x k) to a basis: coordinate axes where these fit."""
    r, k = directions.shape
    axes = np.eye(r)
    basis = directions
    kept: list[np.ndarray] = []
    # Take the axes furthest from the span first, so that coordinate subspaces are completed by coordinate axes.
    for _ in range(r - k):
        residual = axes - basis @ (basis.T @ axes)
        best = residual[:, np.argmax(np.round(np.linalg.norm(residual, axis=0), 9))]
        column = best / np.linalg.norm(best)
        kept.append(column)
        basis = np.column_stack([basis, column])
    return np.stack(kept, 1) if kept else np.zeros((r, 0))


def tidy(directions: np.ndarray, tolerance: float = 1e-6) -> np.ndarray:
    """An orthonormal basis of (nearly) the same subspace: its projector rounded to simple fractions if it has any.

    A coordinate subspace comes back as coordinate axes; other subspaces start with the axis they contain most of.
    """
    r, k = directions.shape
    projector = directions @ np.linalg.pinv(directions)
    rounded = np.round(projector * _DENOMINATOR) / _DENOMINATOR
    simple = np.abs(rounded - projector).max(initial=0.0) < tolerance
    if simple and np.abs(rounded @ rounded - rounded).max() < 1e-12 and round(float(np.trace(rounded))) == k:
        projector = rounded
    rest = np.linalg.eigh(np.eye(r) - projector)[1][:, k:]
    return complement(rest) if k else np.zeros((r, 0))
