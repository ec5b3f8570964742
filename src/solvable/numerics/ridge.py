r"""Ridge regression with a penalty that a part of the samples, set aside, has chosen.

Both forms of it solve $(A + \lambda I)\,c = b$ and predict $B c$: on p features F, $A = F^T F$ and $b = F^T y$; by a
kernel matrix K of n samples, A = K and b = y. So the search for the penalty is one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

LOWEST, HIGHEST = -8.0, 4.0
"""Powers of ten of the penalty over the mean eigenvalue of A that are looked at."""


class Ridge(NamedTuple):
    """The coefficients c, and the penalty."""

    coefficients: np.ndarray
    penalty: float


def solve(A: np.ndarray, b: np.ndarray, penalty: float) -> np.ndarray:
    """c of a positive semidefinite A."""
    shifted = A.copy()
    shifted[np.diag_indices_from(shifted)] += penalty
    try:
        return cho_solve(cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False), b, check_finite=False)
    except LinAlgError:  # singular without a penalty: the solution of least norm
        return np.linalg.lstsq(A, b, rcond=None)[0]


def best_penalty(A: np.ndarray, b: np.ndarray, B: np.ndarray, aside: np.ndarray) -> float:
    """The penalty of least squared error on labels set aside, predicted by B c; to a third of a power of ten.

    The error is taken to have one minimum in the penalty: the search goes downhill. It ends at the ends of a range
    where a penalty is as good as none, or leaves nothing of the estimate.
    """
    scale = float(np.trace(A)) / len(A)
    if not scale > 0:
        return 1.0
    known: dict[float, float] = {}

    def error(power: float) -> float:
        power = round(power, 6)
        if power not in known:
            found = B @ solve(A, b, scale * 10.0**power)
            known[power] = float(np.mean((found - aside) ** 2))
        return known[power]

    place = -1.0
    for step in (1.0, 1 / 3):
        while True:
            near = [p for p in (place - step, place, place + step) if LOWEST - 1e-9 <= p <= HIGHEST + 1e-9]
            best = min(near, key=error)
            if best == place or math.isclose(best, place):
                break
            place = best
    return scale * 10.0**place


def on_features(F: np.ndarray, y: np.ndarray, penalty: float | None, trained: int) -> Ridge:
    """Ridge regression on features; a penalty of None is chosen with the samples beyond the first `trained`."""
    A, b = _gram(F[:trained]), F[:trained].T @ y[:trained]
    if penalty is None:
        penalty = best_penalty(A, b, F[trained:], y[trained:])
    A += _gram(F[trained:])
    b += F[trained:].T @ y[trained:]
    return Ridge(solve(A, b, penalty), penalty)


def by_kernel(K: np.ndarray, y: np.ndarray, penalty: float | None, trained: int) -> Ridge:
    """The same by a kernel matrix of all samples."""
    if penalty is None:
        seen = slice(None, trained)
        penalty = best_penalty(K[seen, seen], y[seen], K[trained:, seen], y[trained:])
    return Ridge(solve(K, y, penalty), penalty)


def trained_samples(n: int, validation: float) -> int:
    """How many of n samples are left to train on when a share is set aside; of few samples at least one of each."""
    return max(1, min(n - 1, round((1 - validation) * n)))


def _gram(F: np.ndarray) -> np.ndarray:
    return F.T @ F
