r"""The leading eigenvectors of the spectral operators of one block, on one instance.

With $G_i$ (s x s) what label i says in the block, and an eigenvector as a matrix of s columns:

- symmetric, $B \to \sum_i x_i x_i^T B\, T_i$ on d x s matrices, $T = G (I + G)^{-1}$. The eigenvector without sample i
  sees it at $\omega_i = (I - m T_i)\, B^T x_i$, where m is the resolvent of `spectrum` at the outlier.
- asymmetric, $\Omega \to (X X^T - I)\, G\, \Omega$ on n x s matrices. It gives $B = X^T G\, \Omega$, which without
  sample i is seen at $\omega_i = \gamma\, \Omega_i$, with $\gamma$ the eigenvalue.

T is unbounded below where a label makes z nearly certain to be small. That is harmless at the top of the spectrum but
slows Lanczos down, so large matrices use T with its eigenvalues cut at -20, where R = T / (1 - m T) is close to its
limit -1/m already; small ones are reduced densely and need no cut. The operators are those of [lu2020phase] and
[maillard2022construction] for one projection, and of [kovacevic2025spectral, defilippis2025optimal] for several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

_SMALLEST_SECOND_MOMENT = 1e-12
_DENSE_UP_TO = 3000
_DENSE_ASYMMETRIC = 40
_LANCZOS_CUT = -20.0
_TOLERANCE = 1e-8


class Eigenvectors(NamedTuple):
    """The leading eigenvalues, largest first, with their eigenvectors B (k, d, s) of norm sqrt(d) and the fields
    omega (k, n, s) at which each sees the samples when they are left out."""

    values: np.ndarray
    B: np.ndarray
    fields: np.ndarray

    @property
    def count(self) -> int:
        """How many were found."""
        return len(self.values)


def symmetric(
    X: np.ndarray, G: np.ndarray, count: int, m: np.ndarray, rng: np.random.Generator, dense: bool = False
) -> Eigenvectors:
    """The `count` largest eigenvalues of the symmetric operator; `m` (s x s) is its resolvent at the outlier.

    Up to 3000 unknowns, and with `dense` at any size, the matrix is formed and reduced.
    """
    n, d = X.shape
    s = G.shape[1]
    size = d * s
    count = min(count, size)
    dense = dense or size <= _DENSE_UP_TO or count >= size - 1
    T = preprocessed(G, None if dense else _LANCZOS_CUT)
    if not (np.isfinite(T).all() and np.isfinite(X).all()):
        return _none(n, d, s)
    if dense:
        S = np.block([[X.T @ (T[:, a, b, None] * X) for b in range(s)] for a in range(s)])
        values, vectors = scipy.linalg.eigh(S, subset_by_index=[size - count, size - 1], overwrite_a=True)
    else:
        values, vectors = _lanczos(X, T, count, rng)
    order = np.argsort(-values)
    # Coordinates run over the d inputs within each column.
    B = np.sqrt(d) * vectors.T[order].reshape(-1, s, d).swapaxes(1, 2)
    seen = X @ B
    fields = seen - np.einsum("st,ntu,knu->kns", m, T, seen)
    return Eigenvectors(values[order], B, fields)


def preprocessed(G: np.ndarray, cut: float | None = None) -> np.ndarray:
    """T = G (I + G)^-1 of each label, with its eigenvalues no lower than `cut` if given."""
    values, vectors = np.linalg.eigh(G + np.eye(G.shape[1]))
    T = 1 - 1 / np.maximum(values, _SMALLEST_SECOND_MOMENT)
    T = T if cut is None else np.maximum(T, cut)
    return (vectors * T[:, None]) @ np.swapaxes(vectors, 1, 2)


def _lanczos(X: np.ndarray, T: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    def product(flat: np.ndarray) -> np.ndarray:
        """B -> sum_i x_i x_i^T B T_i, the columns of B one after the other."""
        seen = X @ np.reshape(flat, (T.shape[1], -1)).T
        return (X.T @ np.einsum("nst,nt->ns", T, seen)).T.ravel()

    operator = _operator(product, X.shape[1] * T.shape[1])
    options = {"v0": rng.standard_normal(operator.shape[0]), "ncv": 80 + 2 * count, "tol": _TOLERANCE}
    try:
        found: Any = scipy.sparse.linalg.eigsh(operator, k=count, which="LA", **options)
        return found
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        return error.eigenvalues, error.eigenvectors


def asymmetric(X: np.ndarray, G: np.ndarray, count: int, rng: np.random.Generator) -> Eigenvectors:
    """The `count` eigenvalues of largest real part of the asymmetric operator, by Arnoldi with two products a step."""
    n, d = X.shape
    s = G.shape[1]
    if not (np.isfinite(G).all() and np.isfinite(X).all() and np.any(np.abs(G) > 1e-9)):
        return _none(n, d, s)
    count = min(count, n * s)

    def product(flat: np.ndarray) -> np.ndarray:
        """Omega -> (X X^T - I) G Omega, without forming the matrix."""
        weighted = np.einsum("nst,nt->ns", G, np.reshape(flat, (n, s)))
        return (X @ (X.T @ weighted) - weighted).ravel()

    operator = _operator(product, n * s)
    if n * s <= _DENSE_ASYMMETRIC:
        values, vectors = np.linalg.eig(operator.matmat(np.eye(n * s)))
    else:
        options = {"v0": rng.standard_normal(n * s), "ncv": min(n * s, 60 + 2 * count), "tol": _TOLERANCE}
        try:
            found: Any = scipy.sparse.linalg.eigs(operator, k=count, which="LR", **options)
        except scipy.sparse.linalg.ArpackNoConvergence as error:
            found = error.eigenvalues, error.eigenvectors
        values, vectors = found
    # Of a conjugate pair the one of positive imaginary part is first, whatever the order it was found in.
    order = np.lexsort((-np.imag(values), -np.real(values)))[:count]
    Omega = np.array([_real(values[j], vectors[:, j]) for j in order]).reshape(-1, n, s)
    B = X.T @ np.einsum("nst,knt->kns", G, Omega)
    norm = np.maximum(np.linalg.norm(B, axis=(1, 2), keepdims=True), 1e-300) / np.sqrt(d)
    gamma = np.real(values)[order]
    return Eigenvectors(gamma, B / norm, gamma[:, None, None] * Omega / norm)


def _operator(product: Callable[[np.ndarray], np.ndarray], size: int) -> Any:
    return scipy.sparse.linalg.LinearOperator((size, size), matvec=product, dtype=np.float64)  # pyright: ignore


def _real(value: Any, vector: np.ndarray) -> np.ndarray:
    """A real eigenvector; of a conjugate pair, to which two close eigenvalues may turn, one gives the real part and the
    other the imaginary part. The phase makes the vector as real as possible, so that the result is reproducible."""
    turned = vector * np.exp(-0.5j * np.angle(np.sum(vector**2)))
    return np.real(turned) if np.imag(value) >= 0 else np.imag(turned)


def _none(n: int, d: int, s: int) -> Eigenvectors:
    return Eigenvectors(np.empty(0), np.empty((0, d, s)), np.empty((0, n, s)))
