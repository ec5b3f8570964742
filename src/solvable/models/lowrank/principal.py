"""The leading eigenvector of a matrix, of the covariance of samples, or of an unfolded tensor, by Lanczos iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

_DENSE = 100
"""Up to this size a matrix is reduced exactly: Lanczos iteration needs room."""
_BASIS = 40
"""How many vectors the iteration keeps: the gap of an outlier that has just left the bulk is small."""
_TOLERANCE = 1e-9


class Component(NamedTuple):
    """A unit `vector` (d), its eigenvalue and the next, and whether they were found."""

    vector: np.ndarray
    eigenvalue: float
    second: float
    converged: bool


def of_symmetric(Y: np.ndarray, rng: np.random.Generator) -> Component:
    """Of the largest eigenvalue of a symmetric matrix (d x d)."""
    return _leading(len(Y), lambda v: Y @ v, lambda: Y, rng)


def of_rows(X: np.ndarray, rng: np.random.Generator) -> Component:
    """Of the largest eigenvalue of X^T X / n, for samples X (n x d)."""
    n, d = X.shape
    if d <= n:
        return _leading(d, lambda v: (X @ v) @ X / n, lambda: X.T @ X / n, rng)
    left = _leading(n, lambda u: X @ (u @ X) / n, lambda: X @ X.T / n, rng)
    vector = X.T @ left.vector
    length = float(np.linalg.norm(vector))
    return left._replace(vector=vector / length if length > 0 else vector)


def of_unfolding(Y: np.ndarray, rng: np.random.Generator) -> Component:
    """Of the largest eigenvalue of M M^T, with M (d x d^(k-1)) the rows of a tensor of order k."""
    M = Y.reshape(len(Y), -1)
    return _leading(len(Y), lambda v: M @ (v @ M), lambda: M @ M.T, rng)


def _leading(
    size: int,
    product: Callable[[np.ndarray], np.ndarray],
    matrix: Callable[[], np.ndarray],
    rng: np.random.Generator,
) -> Component:
    if size <= _DENSE:
        values, vectors = scipy.linalg.eigh(matrix())
        return Component(vectors[:, -1], float(values[-1]), float(values[-2]) if size > 1 else np.nan, True)
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh  # loaded when needed: it takes long to import

    operator = LinearOperator((size, size), matvec=product, dtype=float)  # pyright: ignore[reportCallIssue]
    try:
        start = rng.standard_normal(size)
        options: Any = {"which": "LA", "v0": start, "ncv": _BASIS, "tol": _TOLERANCE, "maxiter": 50 * size}
        values, vectors = eigsh(operator, 2, **options)
    except ArpackError:
        return Component(np.zeros(size), np.nan, np.nan, False)
    return Component(vectors[:, -1], float(values[-1]), float(values[0]), True)
