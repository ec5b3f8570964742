r"""Measurement operators: the linear map between a signal and the n projections that the labels are made of.

A signal is an array of d rows and p columns (p = number of directions learned together), a measurement an array of
n rows and p columns. Message passing needs the map and its adjoint, nothing else, so a model whose features are not
plain vectors brings its own `Operator`.

Features that are symmetric matrices G (`QuadraticFeatures`, `GaussianFeatures`) map a matrix,
$S \mapsto (\mathrm{Tr}[G_\mu S])_\mu$ and $g \mapsto \sum_\mu g_\mu G_\mu$; `PackedFeatures` makes an `Operator`
of them. Both products run over blocks of samples: nothing of size n d^2 is stored for quadratic features, and Gaussian
ones are drawn again at every pass when they would not fit in memory.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from scipy.linalg.blas import dsyrk, dtrmm  # pyright: ignore[reportAttributeAccessIssue]

from solvable.numerics.symmetric import times

_ROWS = 512
"""Samples in a block of quadratic features: enough for BLAS to be at full speed, few enough to stay in cache."""
_BLOCK_BYTES = 2**24
"""Memory of a block of Gaussian features."""
_KEPT_BYTES = 2**28
"""Gaussian features that need less memory than this are kept."""


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


class Memory:
    """The Onsager term O (n, p) of a linear map: it follows g R as the estimate follows what the signal proposes."""

    def __init__(self, onsager: np.ndarray):
        self._onsager = onsager

    @classmethod
    def of(cls, start: np.ndarray | None, n: int, p: int) -> Memory:
        """That of a start: none where the start does not depend on X given the truth."""
        return cls(np.zeros((n, p)) if start is None else np.array(start, dtype=float))

    def onsager(self, W: np.ndarray) -> np.ndarray:
        """What is subtracted from X W."""
        return self._onsager

    def follow(self, W: np.ndarray, g: np.ndarray, response: np.ndarray, damping: float) -> None:
        """A step from W, in which labels said g and the signal answered with a mean `response` (p, p)."""
        self._onsager *= 1 - damping
        self._onsager += times(g, damping * response)


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


class OnMatrices(Protocol):
    """An operator on the entries of matrices of one shape."""

    @property
    def shape(self) -> tuple[int, int]: ...


@dataclasses.dataclass(frozen=True)
class DenseOnMatrices(Dense):
    """The same on the entries of matrices of a given `shape`, row by row."""

    shape: tuple[int, int]


class Features(Protocol):
    """n symmetric feature matrices G of size d."""

    @property
    def samples(self) -> int:
        """The number n of features."""
        ...

    @property
    def size(self) -> int:
        """The dimension d."""
        ...

    def forward(self, S: np.ndarray) -> np.ndarray:
        """Tr[G S] for each feature, (n,), for a symmetric S (d x d)."""
        ...

    def adjoint(self, g: np.ndarray) -> np.ndarray:
        """The sum of g G over the features, d x d, for g (n,)."""
        ...

    def norms(self) -> np.ndarray:
        """The Frobenius norm of each feature, (n,)."""
        ...


@dataclasses.dataclass(frozen=True)
class QuadraticFeatures:
    r"""$G_\mu = (x_\mu x_\mu^T - I)/\sqrt d$ for the rows of `X` (n x d), of which nothing but X is kept.

    S and the sum over features are symmetric, so that triangles are enough: each product takes half the operations of
    the matrix product X S.
    """

    X: np.ndarray

    @classmethod
    def draw(cls, rng: np.random.Generator, n: int, d: int) -> QuadraticFeatures:
        """Features of n Gaussian inputs."""
        return cls(rng.standard_normal((n, d)))

    @property
    def samples(self) -> int:
        return self.X.shape[0]

    @property
    def size(self) -> int:
        return self.X.shape[1]

    def forward(self, S: np.ndarray) -> np.ndarray:
        r"""$(x^T S x - \mathrm{Tr}\, S)/\sqrt d$, where $x^T S x = x^T L x$ for the lower triangle L of S with entries
        below the diagonal doubled."""
        L = np.tril(2 * S, -1)
        np.fill_diagonal(L, np.diagonal(S))
        values, memory = np.empty(self.samples), np.empty((_ROWS, self.size))
        for start in range(0, self.samples, _ROWS):
            block = self.X[start : start + _ROWS]
            product = memory[: len(block)]
            np.copyto(product, block)
            dtrmm(1.0, L.T, product.T, overwrite_b=True)  # in place: (X L)^T = L^T X^T
            np.einsum("ij,ij->i", product, block, out=values[start : start + _ROWS])
        return (values - np.trace(S)) / np.sqrt(self.size)

    def adjoint(self, g: np.ndarray) -> np.ndarray:
        r"""$(\sum_\mu g_\mu x_\mu x_\mu^T - I \sum_\mu g_\mu)/\sqrt d$; samples of either sign of g are a Gram matrix
        of the rows $\sqrt{|g_\mu|}\, x_\mu$."""
        d = self.size
        total, scale = np.zeros((d, d), order="F"), np.sqrt(np.abs(g))
        for start in range(0, self.samples, _ROWS):
            block, signs = self.X[start : start + _ROWS], np.sign(g[start : start + _ROWS])
            for sign in (1.0, -1.0):
                chosen = np.flatnonzero(signs == sign)
                rows = np.ascontiguousarray(block[chosen])
                rows *= scale[start + chosen, None]
                total = dsyrk(sign, rows.T, beta=1.0, c=total, overwrite_c=True)  # the upper triangle
        total = np.triu(total, 1) + np.triu(total).T
        total.flat[:: d + 1] -= g.sum()
        return total / np.sqrt(d)

    def norms(self) -> np.ndarray:
        """$|x x^T - I|^2 = |x|^4 - 2 |x|^2 + d$."""
        squares = np.einsum("ij,ij->i", self.X, self.X)
        return np.sqrt((squares**2 - 2 * squares + self.size) / self.size)


class GaussianFeatures:
    """Symmetric Gaussian matrices G with entries of variance 1/d, 2/d on the diagonal.

    A sample is its upper triangle, d(d+1)/2 numbers. Block b of samples is drawn by a generator seeded with
    (`seed`, b), so that it can be drawn again whenever it is needed: it is kept if `keep`, or if all samples take less
    than 256 MB. Otherwise the memory is that of one block, and both products cost the drawing of all features.
    """

    def __init__(self, samples: int, size: int, seed: int, keep: bool | None = None):
        self._samples, self._size, self._seed = samples, size, seed
        entries = size * (size + 1) // 2
        self._rows = max(1, min(samples, _BLOCK_BYTES // (8 * entries)))
        self._place = np.triu_indices(size)
        # As a vector with off-diagonal entries times sqrt(2), G has independent entries of variance 2/d.
        self._weight = np.where(self._place[0] == self._place[1], 1.0, np.sqrt(2.0))
        self.kept = samples * entries * 8 < _KEPT_BYTES if keep is None else keep
        self._block = functools.cache(self._drawn_block) if self.kept else self._drawn_block

    @classmethod
    def draw(cls, rng: np.random.Generator, n: int, d: int) -> GaussianFeatures:
        """n features, from a seed that this generator draws."""
        return cls(n, d, seed=int(rng.integers(2**63)))

    @property
    def samples(self) -> int:
        return self._samples

    @property
    def size(self) -> int:
        return self._size

    def forward(self, S: np.ndarray) -> np.ndarray:
        vector = np.sqrt(2 / self._size) * self._weight * S[self._place]
        values = np.empty(self._samples)
        for rows, block in self._blocks():
            values[rows] = block @ vector
        return values

    def adjoint(self, g: np.ndarray) -> np.ndarray:
        vector = np.zeros(len(self._weight))
        for rows, block in self._blocks():
            vector += g[rows] @ block
        total = np.zeros((self._size, self._size))
        total[self._place] = np.sqrt(2 / self._size) * vector / self._weight
        total.T[self._place] = total[self._place]
        return total

    def norms(self) -> np.ndarray:
        squares = np.concatenate([np.einsum("ij,ij->i", block, block) for _, block in self._blocks()])
        return np.sqrt(2 / self._size * squares)

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The samples in each block, and their features as vectors of entries of unit variance."""
        for number, start in enumerate(range(0, self._samples, self._rows)):
            yield slice(start, start + self._rows), self._block(number)

    def _drawn_block(self, number: int) -> np.ndarray:
        rng = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(number,)))
        rows = min(self._rows, self._samples - number * self._rows)
        return rng.standard_normal((rows, len(self._weight)))


class PackedFeatures:
    r"""Symmetric features divided by their norms, as an operator on vectors w of N = d(d+1)/2 entries.

    w holds the entries of a symmetric matrix, those off the diagonal times $\sqrt 2$, so that norms are the same. The
    squared norms of quadratic features vary by a relative $\sqrt{8/d}$; without the division message passing is
    unstable at small d, and where it is stable its fixed point is the same.
    """

    def __init__(self, features: Features):
        self._features = features
        d = features.size
        self._place = np.triu_indices(d)
        self._weight = np.where(self._place[0] == self._place[1], 1.0, np.sqrt(2.0))
        self._packed = np.empty((d, d), int)
        self._packed[self._place] = self._packed.T[self._place] = np.arange(len(self._weight))
        self.norms = features.norms()[:, None]

    @property
    def samples(self) -> int:
        return self._features.samples

    @property
    def size(self) -> int:
        """The dimension d."""
        return self._features.size

    @property
    def dimension(self) -> int:
        return len(self._weight)

    def forward(self, signal: np.ndarray) -> np.ndarray:
        """The measurements (n, p) of p matrices (N, p)."""
        columns = [self._features.forward(self.matrix(column)) for column in signal.T]
        return np.stack(columns, axis=1) / self.norms

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        columns = [self.vector(self._features.adjoint(column)) for column in (residual / self.norms).T]
        return np.concatenate(columns, axis=1)

    def unit(self, variance: float) -> np.ndarray:
        """What Tr[G S] is divided by, (n, 1), to be a projection of w with |w|^2 = N, for |S|_F^2 = d `variance`."""
        return np.sqrt(self.size * variance / self.dimension) * self.norms

    def vector(self, S: np.ndarray) -> np.ndarray:
        """A symmetric matrix as a column of the same norm."""
        return (S[self._place] * self._weight)[:, None]

    def matrix(self, signal: np.ndarray) -> np.ndarray:
        """The symmetric matrix of a column, (N,) or (N, 1)."""
        return (np.ravel(signal) / self._weight)[self._packed]
