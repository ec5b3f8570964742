"""Orthonormal bases of subspaces of R^r, in coordinates that a person would choose."""

from __future__ import annotations

from fractions import Fraction

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


def snapped(direction: np.ndarray) -> np.ndarray:
    """The unit vector along a direction, its largest entry positive; simple ratios of entries made exact."""
    largest = int(np.argmax(np.abs(direction) > (1 - 1e-6) * np.abs(direction).max()))
    ratios = direction / direction[largest]
    simple = np.array([float(Fraction(float(x)).limit_denominator(_DENOMINATOR)) for x in ratios])
    ratios = np.where(np.abs(simple - ratios) < 1e-9, simple, ratios)
    return ratios / np.linalg.norm(ratios)


def tidy(directions: np.ndarray, tolerance: float = 1e-6, wanted: np.ndarray | None = None) -> np.ndarray:
    """An orthonormal basis of (nearly) the same subspace: its projector rounded to simple fractions if it has any.

    The `wanted` rows (orthonormal, inside it) are among the columns. The others are coordinate axes where these fit,
    then projections of the axes that the subspace contains most of. Columns are ordered by their first large entry.
    """
    r, k = directions.shape
    projector = directions @ np.linalg.pinv(directions)
    rounded = np.round(projector * _DENOMINATOR) / _DENOMINATOR
    simple = np.abs(rounded - projector).max(initial=0.0) < tolerance
    if simple and np.abs(rounded @ rounded - rounded).max() < 1e-12 and round(float(np.trace(rounded))) == k:
        projector = rounded
    rest = np.linalg.eigh(np.eye(r) - projector)[1][:, k:]
    chosen = np.zeros((0, r)) if wanted is None else wanted
    others = complement(np.column_stack([rest, chosen.T]))
    columns = np.array([*chosen, *(snapped(column) for column in others.T)]).reshape(k, r)
    first = np.argmax(np.abs(columns) > 0.999 * np.abs(columns).max(1, initial=0.0)[:, None], axis=1)
    return columns[sorted(range(k), key=lambda i: (first[i], *(-columns[i])))].T


def orthonormal(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns with the signs of Gram-Schmidt, which LAPACK's reflections leave open."""
    basis, triangle = np.linalg.qr(columns)
    return basis * np.where(np.diag(triangle) < 0, -1.0, 1.0)
