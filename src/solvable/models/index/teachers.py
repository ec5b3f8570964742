"""Teachers of several projections."""

from __future__ import annotations

import numpy as np

from solvable.core.errors import bad_parameter


def orthonormal_teacher(rng: np.random.Generator, d: int, r: int) -> np.ndarray:
    """Gaussian weights W* (d x r) made orthogonal, each column of norm sqrt(d): W*^T W* = d I exactly.

    The columns are those of a Gaussian matrix after Gram-Schmidt, so their span is uniformly distributed.
    """
    if d < r:
        raise bad_parameter("d", d, f"at least the number of projections, {r}")
    return np.sqrt(d) * orthonormal(rng.standard_normal((d, r)))


def orthonormal(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns with the signs of Gram-Schmidt, which LAPACK's reflections leave open."""
    basis, triangle = np.linalg.qr(columns)
    return basis * np.where(np.diag(triangle) < 0, -1.0, 1.0)
