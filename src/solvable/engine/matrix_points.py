"""Fixed points of the state evolution of several projections, one or an array of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.core.status import Status
from solvable.engine.matrix_relaxation import LocalModel
from solvable.numerics.subspaces import complement


@dataclasses.dataclass(frozen=True)
class MatrixFixedPoints:
    """Solutions at an array of alpha: overlaps M (n, r, r), Mhat, free entropy, status, error estimate of the entries
    of M, residual of log(I + Mhat), and evaluations of the channel's information."""

    M: np.ndarray
    Mhat: np.ndarray
    free_entropy: np.ndarray
    status: np.ndarray
    uncertainty: np.ndarray
    residual: np.ndarray
    iterations: np.ndarray


@dataclasses.dataclass(frozen=True)
class Point:
    """One fixed point. `exact` (r x m) are the directions recovered exactly, `inner` the point of the others.

    Otherwise M = U (I - exp(-L)) U^T with U (r x k). `rate` is that of the free entropy's divergence,
    phi = rate * log(1/V) + `value`, which exact recovery makes infinite. `radius` is the largest eigenvalue of the
    Jacobian of the iteration, `speed` is d Tr M / d log alpha along the curve of fixed points.
    """

    alpha: float
    M: np.ndarray
    U: np.ndarray
    L: np.ndarray
    value: float
    value_error: float
    status: Status = Status.CONVERGED
    residual: float = 0.0
    uncertainty: float = 0.0
    radius: float = 0.0
    speed: float = 0.0
    evaluations: int = 0
    rate: float = 0.0
    exact: np.ndarray | None = None
    inner: Point | None = None
    model: LocalModel | None = None

    @property
    def free_entropy(self) -> float:
        return np.inf if self.exact is not None else self.value

    @property
    def Mhat(self) -> np.ndarray:
        """M (I - M)^{-1}, infinite in the directions recovered exactly."""
        if self.exact is None:
            return self.U @ _exp_minus_one(self.L) @ self.U.T
        projector = self.exact @ self.exact.T
        rest = complement(self.exact)
        inner = rest @ self.inner.Mhat @ rest.T if self.inner is not None else np.zeros(projector.shape)
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(projector) > 1e-12, np.inf * projector, inner)


def _exp_minus_one(L: np.ndarray) -> np.ndarray:
    a, u = np.linalg.eigh(L)
    return (u * np.expm1(a)) @ u.T


def collect(points: list[Point], alpha: np.ndarray) -> MatrixFixedPoints:
    """The points in the order of alpha."""
    by_alpha = {point.alpha: point for point in points}
    chosen = [by_alpha[float(a)] for a in np.ravel(alpha)]

    def column(name: str) -> np.ndarray:
        return np.array([getattr(point, name) for point in chosen])

    return MatrixFixedPoints(
        column("M"),
        column("Mhat"),
        column("free_entropy"),
        column("status").astype(int),
        column("uncertainty"),
        column("residual"),
        column("evaluations"),
    )
