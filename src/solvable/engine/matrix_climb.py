"""The way up: from what is known to a stable fixed point of the matrix state evolution.

AMP reaches the smallest fixed point above an infinitesimal positive start: directions on which the labels have a mean
are learned at once, those on which a small overlap grows are learned next, and both are looked for again given what is
known, until no positive perturbation grows. On the way some directions may become exactly known.
"""

from __future__ import annotations

import numpy as np

from solvable.core.status import Status
from solvable.engine.growth import growing_overlap, support, trivial_directions
from solvable.engine.matrix_output import MatrixOutput
from solvable.engine.matrix_points import Point
from solvable.engine.matrix_relaxation import LocalModel, Relaxed, relax
from solvable.numerics.subspaces import tidy
from solvable.numerics.symmetric import log_one_plus, one_minus_exp

_SEED = 0.01
"""The size of the overlap given to a growing direction before it is followed."""
_FORGOTTEN = 1e-8
"""Directions with a smaller overlap are not learned."""
_UNSTABLE = 0.02
"""How far the largest eigenvalue of the measured Jacobian must exceed one to count as unstable."""


def climb(output: MatrixOutput, alpha: float, start: Point | None, within: np.ndarray) -> Point | np.ndarray:
    """Follow the iteration from `start` (nothing, if None) within a subspace (r x w) to a stable fixed point.

    Where some directions become exactly known on the way, these (r x k) are returned instead.
    """
    r = output.projections
    U, L, model = np.zeros((r, 0)), np.zeros((0, 0)), None
    if start is not None and start.exact is None:
        U, L, model = start.U, start.L, start.model
    end, evaluations = None, 0
    for _ in range(3 * r + 2):
        if U.shape[1]:
            end, exact, used = _relaxed(output, alpha, U, L, model)
            evaluations += used
            if exact is not None:
                return exact
            if end.status != Status.CONVERGED:
                L = end.L
                break
            if end.radius > 1 + _UNSTABLE + end.radius_error:
                L, model = end.L + _SEED * _normalised(end.push), end.model
                continue
            U, L, model = _forget(U, end)
        seed = _growing(output, alpha, U, L, within)
        if seed is None:
            break
        (U, L), model = seed, None
    else:
        end = None if end is None else end._replace(status=Status.UNSTABLE)
    return _point(output, alpha, U, L, end if U.shape[1] else None, evaluations)


def _relaxed(
    output: MatrixOutput, alpha: float, U: np.ndarray, L: np.ndarray, model: LocalModel | None
) -> tuple[Relaxed, np.ndarray | None, int]:
    """The fixed point within U, or the directions that become exactly known on the way; and the evaluations."""
    k, used = U.shape[1], 0
    sharp = 1 if any(output.pins(exact, alpha) for exact in [*output.subspaces, U]) else 0
    while True:
        end = relax(output.labels, alpha, U, L, model, stop_deep=sharp)
        used += end.evaluations
        if not end.deep:
            return end, None, used
        exact = _sharp_directions(output, U, end.L)
        if output.pins(exact, alpha):
            return end, exact, used
        # Not these alone: follow on until further directions are as sharp, or to a fixed point close by.
        sharp = exact.shape[1] + 1 if exact.shape[1] < k else 0
        L, model = end.L, end.model


def _growing(
    output: MatrixOutput, alpha: float, U: np.ndarray, L: np.ndarray, within: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The learned directions and L with those added that the labels or a growing overlap bring; None if none."""
    basis = within @ np.linalg.svd(within.T @ U)[0][:, U.shape[1] :] if U.shape[1] else within
    if not basis.shape[1]:
        return None
    basis = tidy(basis)
    M = U @ one_minus_exp(L) @ U.T
    lin = output.linearisation(M, basis)
    new = trivial_directions(lin)
    if new.shape[1]:
        wider = np.column_stack([U, new])
        return wider, log_one_plus(alpha * wider.T @ output.labels(M).information @ wider)
    rate, push = growing_overlap(lin)
    if alpha * rate <= 1 + alpha * lin.error:
        return None
    wider = np.column_stack([U, support(lin, push)])
    seed = np.zeros((wider.shape[1],) * 2)
    seed[: len(L), : len(L)] = L
    added = wider[:, U.shape[1] :]
    seed[len(L) :, len(L) :] = _SEED * _normalised(added.T @ basis @ push @ basis.T @ added)
    return wider, seed


def _sharp_directions(output: MatrixOutput, U: np.ndarray, L: np.ndarray) -> np.ndarray:
    """The directions in which V is below the channel's resolution."""
    values, vectors = np.linalg.eigh(L)
    sharp = values > output.labels.sharp
    return tidy(U if sharp.all() else U @ vectors[:, sharp], 1e-2)


def _forget(U: np.ndarray, end: Relaxed) -> tuple[np.ndarray, np.ndarray, LocalModel | None]:
    """Leave out the directions whose overlap has decayed."""
    values, vectors = np.linalg.eigh(end.L)
    kept = values > _FORGOTTEN
    if kept.all():
        return U, end.L, end.model
    return U @ vectors[:, kept], np.diag(values[kept]), None


def _point(
    output: MatrixOutput, alpha: float, U: np.ndarray, L: np.ndarray, end: Relaxed | None, evaluations: int
) -> Point:
    M = U @ one_minus_exp(L) @ U.T
    if end is None:
        return Point(alpha, M, U, L, 0.0, 0.0, evaluations=evaluations)
    found, nothing = output.labels(M), output.labels(np.zeros_like(M))
    value = (float(np.trace(M)) - float(np.trace(L))) / 2 + alpha * (found.entropy - nothing.entropy)
    error = alpha * (found.entropy_error + nothing.entropy_error)
    return Point(
        alpha,
        M,
        U,
        L,
        value,
        error,
        end.status,
        end.residual,
        end.uncertainty,
        end.radius,
        end.speed,
        evaluations,
        model=end.model if end.model.U.shape == U.shape else None,
    )


def _normalised(S: np.ndarray) -> np.ndarray:
    return S / np.linalg.norm(S, 2)
