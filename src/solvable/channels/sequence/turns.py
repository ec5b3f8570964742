r"""Averages over turns, the orthogonal matrices O of O(r), of a weight exp(f) with a mode on each sheet det O = +-1,

$$ f(O) = Tr[O^T A] - \tfrac12 Tr[\Lambda O^T G O] . $$

Around the mode O_* of a sheet $O = O_* (I - S)(I + S)^{-1}$ with S antisymmetric, D = r (r - 1)/2 numbers, in which an
even (Haar) draw has the density $h(S) \sim \det(I + S)^{-(r-1)}$. Most draws are even ones squeezed, S = L s, with L
from the curvature of f; for r = 3 this is the angular central Gaussian that bounds a Bingham law, with tails that are
heavy enough for weights to be bounded. A share of the draws is not squeezed, and each has the weight e^f over the
density of the mixture, so that wide laws and those of several modes are covered too.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from solvable.channels.sequence.tables import Table, solved
from solvable.numerics.batches import in_batches
from solvable.numerics.sobol import normal_points

_ROWS = 64
EVEN = 8
"""One draw in so many is even."""
TAIL = 2.0
"""A squeezed draw has the width sqrt(1 / (1 + curvature / this))."""
_STEPS, _STILL = 15, 1e-2


class Turned(NamedTuple):
    """Of each row: the log of the mean of exp(f), and the means of O and of O (x) O (n, r, r, r, r) under exp(f)."""

    log_Z: np.ndarray
    first: np.ndarray
    second: np.ndarray


def average_over_turns(A: np.ndarray, G: np.ndarray, precision: np.ndarray, power: int, draw: int) -> Turned:
    """At A, G (n, r, r) and one Lambda = `precision` (r, r), by 2^power draws of each sheet."""
    n, r, _ = A.shape
    # In the frame of A the draws turn with omega: what turns all samples alike turns their averages, to the last digit.
    frame = _frame(A)
    A, precision = A @ frame, frame.swapaxes(1, 2) @ precision @ frame
    sheets = [_around(A, G, precision, sign) for sign in (1, -1)]
    base, even = even_turns(r, power, draw)
    rows = [np.concatenate([part, part]) for part in (A, G, precision)]
    rows += [np.concatenate(parts) for parts in zip(*sheets, strict=True)]
    program = _program(r)
    with jax.enable_x64(True):
        fixed = [jnp.asarray(part) for part in (base, even)]
        found = in_batches(lambda *row: program(*fixed, *row), *rows, batch=_ROWS, alone=False)
    top, total, first, second = (part.reshape(2, n, *part.shape[1:]) for part in found)
    most = top.max(axis=0)
    weight = np.exp(top - most)
    whole = np.sum(weight * total, axis=0)
    log_Z = most + np.log(whole / (2 * base.shape[1]))
    first = np.einsum("sn,snk->nk", weight / whole, first).reshape(n, r, r)
    second = np.einsum("sn,snkl->nkl", weight / whole, second).reshape(n, r, r, r, r)
    return Turned(
        log_Z, first @ frame.swapaxes(1, 2), np.einsum("niajb,nca,ndb->nicjd", second, frame, frame, optimize=True)
    )


def _frame(A: np.ndarray) -> np.ndarray:
    """The right singular vectors (n, r, r) of A, as columns; the largest entry of each left one is positive."""
    left, _, right = np.linalg.svd(A)
    largest = np.argmax(np.abs(left).round(9), axis=1)
    signs = np.sign(np.take_along_axis(left, largest[:, None, :], axis=1))
    return (right * signs.swapaxes(1, 2)).swapaxes(1, 2)


def antisymmetric(s: np.ndarray, r: int) -> np.ndarray:
    """S (.., r, r) of its D numbers (.., D) above the diagonal."""
    S = np.zeros((*s.shape[:-1], r, r))
    row, column = np.triu_indices(r, 1)
    S[..., row, column], S[..., column, row] = s, -s
    return S


@functools.lru_cache(maxsize=16)
def even_turns(r: int, power: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers s (D, 2^power) of even draws of SO(r), and which of them are to stay so."""
    if r == 3:
        # An axis, and an angle of density (1 - cos)/pi that has a coordinate of its own: what matters most is even.
        axis, height, share = ndtr(normal_points(3, power, 3000 + draw)).T
        angle = _angles(share)
        ring = np.sqrt(1 - (2 * height - 1) ** 2)
        direction = np.stack([ring * np.cos(2 * np.pi * axis), ring * np.sin(2 * np.pi * axis), 2 * height - 1], 1)
        s = np.tan(angle / 2)[:, None] * direction
    else:
        X, triangle = np.linalg.qr(normal_points(r * r, power, 3000 + draw).reshape(-1, r, r))
        X = X * np.where(np.einsum("nii->ni", triangle) < 0, -1.0, 1.0)[:, None, :]
        X[:, :, 0] *= np.linalg.det(X)[:, None]
        S = np.linalg.solve((np.eye(r) + X).swapaxes(1, 2), (np.eye(r) - X).swapaxes(1, 2))
        row, column = np.triu_indices(r, 1)
        s = S[:, column, row]
    return np.ascontiguousarray(s.T), np.arange(len(s)) < len(s) // EVEN


def _angles(share: np.ndarray) -> np.ndarray:
    """The angle of a turn of space below which there is this share of even ones, by Newton's rule."""
    angle = np.cbrt(6 * np.pi * share).clip(max=np.pi)
    for _ in range(60):
        angle = (angle - (angle - np.sin(angle) - np.pi * share) / np.maximum(1 - np.cos(angle), 1e-12)).clip(0, np.pi)
    return angle.clip(max=np.pi - 1e-9)


def _around(
    A: np.ndarray, G: np.ndarray, precision: np.ndarray, sign: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The mode O_* of a sheet (n, r, r); L, its inverse (n, D, D) and log det L (n,)."""
    start = mode(A, G, precision, sign)
    P = curvature(start, A, G, precision)
    values, vectors = np.linalg.eigh(P)
    squeeze = np.sqrt(1 + np.maximum(values, 0.0) / TAIL)
    L = np.einsum("nij,nj,nkj->nik", vectors, 1 / squeeze, vectors)
    inverse = np.einsum("nij,nj,nkj->nik", vectors, squeeze, vectors)
    return start, L, inverse, -np.log(squeeze).sum(axis=1)


def mode(A: np.ndarray, G: np.ndarray, precision: np.ndarray, sign: int) -> np.ndarray:
    """Where f is largest on a sheet, or close to it: by steps that never lower it."""
    # Multiples of one in Lambda and in G add a constant to f; without them the steps are as long as they can be.
    (precision, widest), (G, largest) = _without_least(precision), _without_least(G)
    rate = (widest * largest)[:, None, None]
    turn = _polar(A, sign)
    for _ in range(_STEPS):
        before, turn = turn, _polar(A - G @ turn @ precision + rate * turn, sign)
        if np.abs(turn - before).max(initial=0.0) < _STILL:
            break
    return turn


def _without_least(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric matrices (n, r, r) less their least eigenvalue, and the largest of what is left."""
    values = np.linalg.eigvalsh(S)
    return S - values[:, :1, None] * np.eye(S.shape[-1]), values[:, -1] - values[:, 0]


def _polar(B: np.ndarray, sign: int) -> np.ndarray:
    """The turn of a sheet that is closest to B (n, r, r)."""
    left, _, right = np.linalg.svd(B)
    left[:, :, -1] *= (sign * np.sign(np.linalg.det(left @ right)))[:, None]
    return left @ right


def curvature(turn: np.ndarray, A: np.ndarray, G: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """That of -f in the numbers s at a turn O, (n, D, D): with H = O^T G O and the precision P of
    -2 Tr[S^2 O^T A] + Tr[S^2 (P H + H P)] - 2 Tr[P S H S]."""
    r = precision.shape[-1]
    one = antisymmetric(np.eye(r * (r - 1) // 2), r)
    C, H = turn.swapaxes(1, 2) @ A, turn.swapaxes(1, 2) @ G @ turn
    both = precision @ H + H @ precision - (C + C.swapaxes(1, 2))
    P = np.einsum("kij,ljm,nmi->nkl", one, one, both, optimize=True)
    P = P - 2 * np.einsum("nai,kij,njm,lma->nkl", precision, one, H, one, optimize=True)
    return P + P.swapaxes(1, 2)


@functools.lru_cache(maxsize=16)
def _program(r: int) -> Any:
    """The compiled sums over draws of rows (A, G, Lambda, O_*, L, its inverse, log det L): 1, O and O (x) O."""
    row, column = np.triu_indices(r, 1)

    def table(s: list[Any]) -> Table:
        S: Table = [[jnp.zeros_like(s[0])] * r for _ in range(r)]
        for number, (i, j) in enumerate(zip(row, column, strict=True)):
            S[i][j], S[j][i] = s[number], -s[number]
        return S

    def of_one(base: Any, even: Any, A: Any, G: Any, precision: Any, start: Any, L: Any, inverse: Any, log_L: Any):
        s = jnp.where(even, base, L @ base)
        back = jnp.where(even, inverse @ base, base)
        one = [jnp.zeros((r, base.shape[1])).at[i].set(1.0) for i in range(r)]
        half, determinant = solved(table(list(s)), 1.0, one, r)
        _, squeezed = solved(table(list(back)), 1.0, [jnp.zeros(base.shape[1])] * r, r)
        # The density of the mixture over that of even draws.
        density = jnp.exp((r - 1) * (jnp.log(determinant) - jnp.log(squeezed)) - log_L) * (1 - 1 / EVEN) + 1 / EVEN
        X = [[2 * half[i][j] - (1.0 if i == j else 0.0) for j in range(r)] for i in range(r)]
        turn = [[sum(start[i, k] * X[k][j] for k in range(r)) for j in range(r)] for i in range(r)]
        f = sum(A[i, j] * turn[i][j] for i in range(r) for j in range(r))
        for a in range(r):
            for b in range(r):
                GO = [sum(G[i, k] * turn[k][b] for k in range(r)) for i in range(r)]
                f = f - 0.5 * precision[a, b] * sum(turn[i][a] * GO[i] for i in range(r))
        log_p = f - jnp.log(density)
        top = jnp.max(log_p)
        p = jnp.exp(log_p - top)
        flat = jnp.stack([turn[i][j] for i in range(r) for j in range(r)])
        return top, jnp.sum(p), flat @ p, (flat * p) @ flat.T

    def program(*arguments: Any):
        constants, rows = arguments[:2], arguments[2:]
        return jax.lax.map(lambda row: of_one(*constants, *row), rows)

    return jax.jit(program)
