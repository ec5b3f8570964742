"""Small symmetric matrices: products and spectra without overhead, as vectors, functions of them, and derivatives.

A symmetric matrix S is written as the vector svec(S) of its upper entries, those off the diagonal times sqrt(2), so
that scalar products are kept: <svec(S), svec(T)> = Tr(S T).
"""

from __future__ import annotations

import functools

import numpy as np


@functools.cache
def _upper(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    row, column = np.triu_indices(size)
    return row, column, np.where(row == column, 1.0, np.sqrt(2.0))


def svec(S: np.ndarray) -> np.ndarray:
    """The upper entries of a symmetric matrix, scaled to keep scalar products."""
    row, column, scale = _upper(len(S))
    return scale * (S[row, column] + S[column, row]) / 2


def smat(x: np.ndarray) -> np.ndarray:
    """The symmetric matrix of a vector made by `svec`."""
    size = int((np.sqrt(8 * len(x) + 1) - 1) / 2)
    row, column, scale = _upper(size)
    S = np.zeros((size, size))
    S[row, column] = S[column, row] = x / scale
    return S


def log_one_plus(A: np.ndarray) -> np.ndarray:
    """log(I + A) for a positive A; eigenvalues that rounding or quadrature made negative count as zero."""
    a, u = np.linalg.eigh(A)
    return (u * np.log1p(np.maximum(a, 0.0))) @ u.T


def one_minus_exp(L: np.ndarray) -> np.ndarray:
    """I - exp(-L), accurate where L is small."""
    a, u = np.linalg.eigh(L)
    return (u * -np.expm1(-a)) @ u.T


def clipped(S: np.ndarray, high: float) -> np.ndarray:
    """S with its eigenvalues clipped to [0, high]."""
    a, u = np.linalg.eigh(S)
    return S if a[0] >= 0 and a[-1] <= high else (u * np.clip(a, 0.0, high)) @ u.T


def log_derivative(A: np.ndarray) -> np.ndarray:
    """The matrix of dA -> d log(I + A) between svec coordinates (Daleckii-Krein)."""
    a, u = np.linalg.eigh(A)
    a = np.maximum(a, 0.0)
    difference = a[:, None] - a
    near = np.abs(difference) < 1e-6 * (1 + a)
    slope = (np.log1p(a)[:, None] - np.log1p(a)) / np.where(near, 1.0, difference)
    return _between_eigenbases(np.where(near, 1 / (1 + (a[:, None] + a) / 2), slope), u)


def exp_derivative(L: np.ndarray) -> np.ndarray:
    """The matrix of dL -> d(I - exp(-L)) between svec coordinates."""
    a, u = np.linalg.eigh(L)
    difference = a[:, None] - a
    near = np.abs(difference) < 1e-6
    slope = -(np.exp(-a)[:, None] - np.exp(-a)) / np.where(near, 1.0, difference)
    return _between_eigenbases(np.where(near, np.exp(-(a[:, None] + a) / 2), slope), u)


def _between_eigenbases(slopes: np.ndarray, u: np.ndarray) -> np.ndarray:
    columns = []
    for unit in np.eye(len(u) * (len(u) + 1) // 2):
        columns.append(svec(u @ (slopes * (u.T @ smat(unit) @ u)) @ u.T))
    return np.stack(columns, 1)


def positive_directions(L: np.ndarray) -> np.ndarray:
    """Positive matrices (as svec columns) that span the symmetric ones, made of the eigenvectors u_i of L.

    They are u_i u_i^T and (u_i + u_j)(u_i + u_j)^T / 2, so that a step along any of them stays positive.
    """
    u = np.linalg.eigh(L)[1]
    size = len(u)
    found = []
    for i in range(size):
        for j in range(i, size):
            v = u[:, i] if i == j else (u[:, i] + u[:, j]) / np.sqrt(2)
            found.append(svec(np.outer(v, v)))
    return np.stack(found, 1)


def times(rows: np.ndarray, M: np.ndarray) -> np.ndarray:
    """rows @ M, without the slow product of a long column with one number."""
    return rows * M[0, 0] if M.shape == (1, 1) else rows @ M


def eigh(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a symmetric matrix, without the LAPACK call for one direction."""
    return (S[0], np.ones((1, 1))) if S.shape == (1, 1) else np.linalg.eigh(S)


def compose(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The symmetric matrix with these eigenvalues and eigenvectors."""
    return values[:, None] if len(values) == 1 else (vectors * values) @ vectors.T
