"""The staircase of a target: which directions are learned, in which order, and from how many samples.

Start from nothing known, U = {}. Directions on which the labels have a mean, given U, are learned as soon as U is
(trivial steps; any overlap with U decides which they are). When there are none, let M_U(alpha) be what the iteration
knows within U. A small overlap outside grows once

    alpha * lambda_max(E[G (x) G] at M_U(alpha)) >= 1,

with G the conditional second moment of the other directions (easy steps). M_U grows with alpha, perhaps by jumps and
up to exact recovery, and so does the left side: the smallest such alpha is where the next directions are learned.
Directions with no such alpha even if U is known exactly are hard.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from solvable.channels.base import Linearisation
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.solvers.branches import Branches, Point
from solvable.numerics.subspaces import complement

LARGEST_GAIN = 1e3
"""Directions that need more samples than this per dimension are called hard."""
_PRECISION = 1e-7
_MOST_TRIALS = 30


@dataclasses.dataclass(frozen=True)
class LearnedStep:
    """`directions` (r x k orthonormal columns) learned above `alpha`, known up to `error`.

    `kind` is "trivial" (at once, given the steps before), "easy" (above alpha) or "hard" (never, at n = alpha d).
    """

    directions: np.ndarray
    alpha: float
    kind: str
    error: float


def staircase(branches: Branches) -> list[LearnedStep]:
    """The steps in the order in which they are learned; together their directions are a basis."""
    r = branches.output.projections
    steps: list[LearnedStep] = []
    U, alpha, error = np.zeros((r, 0)), 0.0, 0.0
    while U.shape[1] < r:
        basis = complement(U)
        # How much of U is known does not change which directions its knowledge makes trivial.
        new = branches.output.linearisation(0.5 * U @ U.T, basis).trivial_directions()
        if new.shape[1]:
            steps.append(LearnedStep(new, alpha, "trivial", error))
        else:
            easy = _next_easy(branches, U, alpha)
            if easy is None:
                steps.append(LearnedStep(basis, np.inf, "hard", 0.0))
                break
            new, alpha, error = easy
            steps.append(LearnedStep(new, alpha, "easy", error))
        U = np.column_stack([U, new])
    return steps


class _Onset(NamedTuple):
    """alpha * lambda_max - 1 at one alpha, the linearisation behind it, and what is known there."""

    alpha: float
    excess: float
    rate: float
    lin: Linearisation
    point: Point | None


def _next_easy(branches: Branches, U: np.ndarray, alpha: float) -> tuple[np.ndarray, float, float] | None:
    """The next directions, the alpha from which they are learned, and its error; None if there is no such alpha."""
    basis = complement(U)
    # Exact knowledge of U is the most that helps: no smaller alpha than this can do.
    known = _with_known(branches.output, U)
    best = known.growing_overlap()[0]
    if best <= known.zero_level:
        return None
    least = max(alpha, 1 / best)
    onset = _onset(branches, U, basis, least, None)
    width = 0.0
    if onset.excess < -1e-9 - 2 * least * onset.lin.error:
        found = _cross(branches, U, basis, onset)
        if found is None:
            return None
        onset, width = found
    _, push = onset.lin.growing_overlap()
    error = onset.alpha * onset.lin.error / onset.rate + width
    return onset.lin.support(push), onset.alpha, error


def _with_known(output: PosteriorOutput, U: np.ndarray) -> Linearisation:
    """The linearisation where U is known exactly and nothing else."""
    if not U.shape[1]:
        return output.linearisation(np.zeros((len(U), len(U))), np.eye(len(U)))
    left = len(U) - U.shape[1]
    return output.known(U).linearisation(np.zeros((left, left)), np.eye(left))


def linearised_at(output: PosteriorOutput, point: Point, basis: np.ndarray) -> Linearisation:
    """The linearisation at a fixed point, also where some directions are known exactly."""
    if point.exact is None:
        return output.linearisation(point.M, basis)
    rest = complement(point.exact)
    inner, child = rest.T @ basis, output.known(point.exact)
    if point.inner is not None:
        return linearised_at(child, point.inner, inner)._replace(basis=basis)
    return child.linearisation(np.zeros((rest.shape[1],) * 2), inner)._replace(basis=basis)


def _onset(branches: Branches, U: np.ndarray, basis: np.ndarray, alpha: float, before: Point | None) -> _Onset:
    point = branches.climb(alpha, before, within=U) if U.shape[1] else None
    output = branches.output
    lin = _with_known(output, U) if point is None else linearised_at(output, point, basis)
    rate = lin.growing_overlap()[0]
    return _Onset(alpha, alpha * rate - 1, rate, lin, point)


def _cross(branches: Branches, U: np.ndarray, basis: np.ndarray, low: _Onset) -> tuple[_Onset, float] | None:
    """The alpha above `low` from which a small overlap grows, and the width of its bracket."""
    high = low
    while high.excess < 0:
        if high.alpha >= LARGEST_GAIN:
            return None
        low, high = high, _onset(branches, U, basis, min(1.4 * high.alpha, LARGEST_GAIN), high.point)
    low_weight = high_weight = 1.0
    for _ in range(_MOST_TRIALS):
        if high.alpha - low.alpha < _PRECISION * high.alpha:
            break
        width = high.alpha - low.alpha
        below, above = low_weight * low.excess, high_weight * high.excess
        secant = (low.alpha * above - high.alpha * below) / (above - below)
        trial = _onset(branches, U, basis, float(secant), low.point)
        if abs(trial.excess) < 1e-10 + 0.1 * trial.alpha * trial.lin.error:
            return trial, 0.0
        # Regula falsi, the weight of an end kept twice halved; the middle where the excess jumps and this is slow.
        if trial.excess < 0:
            low, low_weight, high_weight = trial, 1.0, high_weight / 2
        else:
            high, high_weight, low_weight = trial, 1.0, low_weight / 2
        if high.alpha - low.alpha > 0.5 * width:
            middle = _onset(branches, U, basis, (low.alpha + high.alpha) / 2, low.point)
            low, high = (middle, high) if middle.excess < 0 else (low, middle)
            low_weight = high_weight = 1.0
    return high, high.alpha - low.alpha
