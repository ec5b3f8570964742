"""T x T matrices as tables of arrays, for programs whose innermost axis runs over nodes of an integral."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp

Table = list[list[Any]]


def softmax(scores: Table) -> Table:
    """That of each row."""
    table = []
    for row in scores:
        top = functools.reduce(jnp.maximum, row)
        powers = [jnp.exp(score - top) for score in row]
        total = functools.reduce(jnp.add, powers)
        table.append([power / total for power in powers])
    return table


def solved(A: Table, residual: Any, right: list[Any], T: int) -> tuple[list[Any], Any]:
    """(residual I + A)^-1 times T rows, and the determinant, by elimination without pivots.

    All pivots are positive for A = softmax(u u^T), a positive diagonal matrix times the positive definite exponential;
    and for any softmax with a residual of at least one: the eigenvalues of its leading parts are at most one in
    modulus, in conjugate pairs and never -1.
    """
    A = [[A[t][s] + residual if t == s else A[t][s] for s in range(T)] for t in range(T)]
    right, determinant = list(right), 1.0
    for t in range(T):
        determinant = determinant * A[t][t]
        for below in range(t + 1, T):
            ratio = A[below][t] / A[t][t]
            A[below] = [A[below][s] - ratio * A[t][s] if s > t else None for s in range(T)]
            right[below] = right[below] - ratio * right[t]
    for t in reversed(range(T)):
        for later in range(t + 1, T):
            right[t] = right[t] - A[t][later] * right[later]
        right[t] = right[t] / A[t][t]
    return right, determinant


def upper(parts: list[Any]) -> list[Any]:
    """The products of each part with itself and with the later ones."""
    return [parts[i] * parts[j] for i in range(len(parts)) for j in range(i, len(parts))]
