"""Measurement operators: the linear map between a signal and the n projections that the labels are made of.

A signal is an array of d rows and p columns (p = number of directions learned together), a measurement an array of
n rows and p columns. Message passing needs the map and its adjoint, nothing else, so a family whose features are not
plain vectors (x x^T contracted with a matrix, say) brings its own `Operator`.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np


class Operator(Protocol):
    """A random linear map R^d -> R^n with independent entries of variance 1/d, applied column by column.

    The scale matters: a signal with |w|^2 = d must give projections of unit variance.
    """

    @property
    def samples(self) -> int:
        """The number n of measurements."""
        ...

    @property
    def dimension(self) -> int:
        """The number d of unknowns per direction, counted so that |w|^2 = d for a typical signal."""
        ...

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """(d, p) -> (n, p), a new array."""
        ...

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        """(n, p) -> (d, p), a new array."""
        ...


@dataclasses.dataclass(frozen=True)
class Dense:
    """The operator of an explicit matrix `X` (n x d, entries of variance 1/d), in either memory order and never copied.

    Row-major and column-major storage cost the same within a few percent for both products: BLAS streams `X` once in
    each, so neither a transposed copy nor a conversion is worth its memory.
    """

    X: np.ndarray

    @property
    def samples(self) -> int:
        return self.X.shape[0]

    @property
    def dimension(self) -> int:
        return self.X.shape[1]

    def forward(self, signal: np.ndarray) -> np.ndarray:
        return self.X @ signal

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        # For p > 1 OpenBLAS is about a third faster with the thin factor on the left; for p = 1 both are one gemv.
        return (residual.T @ self.X).T
