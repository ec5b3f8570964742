"""Thresholds of several projections: the staircase of what is learned when, and the hard phases between its steps.

Start from nothing known, U = {}. Directions on which the labels have a mean, given U, are learned as soon as U is
(trivial steps; any overlap with U decides which they are). When there are none, let M_U(alpha) be what the iteration
knows within U. A small overlap outside grows once

    alpha * lambda_max(E[G (x) G] at M_U(alpha)) >= 1,

with G the conditional second moment of the other directions (easy steps). M_U grows with alpha, perhaps by jumps and
up to exact recovery, and so does the left side: the smallest such alpha is where the next directions are learned.
Directions with no such alpha even if U is known exactly are hard.

Between the steps the uninformed fixed point may jump (a spinodal, where its Jacobian reaches eigenvalue one): found on
a coarse scan in gain, refined by bisection and by the law (1 - largest eigenvalue)^2 ~ distance in gain. Where the free
entropy prefers another fixed point before that jump, learning is possible but AMP does not achieve it: a hard phase.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np

from solvable.channels.base import Channel, Linearisation, TargetChannel
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.solvers.base import Thresholds
from solvable.engine.solvers.branches import Branches, Point
from solvable.numerics.roots import regula_falsi
from solvable.numerics.subspaces import complement

LARGEST_GAIN = 1e3
"""Directions that need more samples than this per dimension are called hard."""
_ONSET = 1e-7
"""Relative precision of the alpha at which a step begins."""
_MOST_TRIALS = 80
_JUMP = 0.03
"""A change of Tr M between neighbouring gains, beyond what its speed at both explains, that is looked into."""
_WIDTH = 1e-3
"""Relative width of an interval of gains in which such a change counts as a jump."""
_PRECISION = 2e-5
"""Relative precision of a threshold found by bisection."""
_RATIO = 1.35
"""Ratio of neighbouring gain in the scan."""


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

    @property
    def noise(self) -> float:
        """The excess that cannot be told from zero."""
        return 1e-10 + 0.1 * self.alpha * self.lin.error


def _next_easy(branches: Branches, U: np.ndarray, alpha: float) -> tuple[np.ndarray, float, float] | None:
    """The next directions, the alpha from which they are learned, and its error; None if there is no such alpha."""
    basis = complement(U)
    # Exact knowledge of U is the most that helps: no smaller alpha than this can do.
    best = branches.output.channel.most_growth(U) if U.shape[1] else None
    if best is None:
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
    last = high

    def excess(alpha: np.ndarray) -> float:
        nonlocal low, high, last
        last = _onset(branches, U, basis, float(alpha), low.point)
        low, high = (last, high) if last.excess < 0 else (low, last)
        return last.excess

    regula_falsi(
        excess,
        low.alpha,
        high.alpha,
        ends=(low.excess, high.excess),
        tolerance=lambda alpha: last.noise,
        precision=_ONSET * low.alpha / (1 + high.alpha),
        halve_every=3,
        max_steps=_MOST_TRIALS,
    )
    if abs(last.excess) < last.noise:
        return last, 0.0
    return high, high.alpha - low.alpha


def find_thresholds(branches: Branches, steps: list[LearnedStep]) -> Thresholds:
    """weak_recovery, algorithmic and information_theoretic as for one projection; step_2, .. for the later steps of
    the staircase; and specialization, where directions that the target's symmetry under exchange of projections
    cannot tell apart at first come apart."""
    weak = min(step.alpha for step in steps)
    algorithmic, information_theoretic = _hard_phase(branches, steps, weak)
    found = Thresholds(weak_recovery=weak, algorithmic=algorithmic, information_theoretic=information_theoretic)
    for number, step in enumerate(steps[1:], start=2):
        found[f"step_{number}"] = step.alpha
    special = _specialization(branches.output.channel, steps)
    if special is not None:
        found["specialization"] = special
    return found


def _hard_phase(branches: Branches, steps: list[LearnedStep], weak: float) -> tuple[float, float]:
    """The upper and lower end of the last hard phase; `weak` twice if there is none."""
    finite = [step.alpha for step in steps if 0 < step.alpha < np.inf]
    top = 2 * max([float(branches.output.projections), *finite])
    if any(step.kind == "hard" for step in steps):
        beyond = top
        while beyond <= LARGEST_GAIN:
            if _lead(branches, beyond) > 0:
                return np.inf, _lower_end(branches, beyond)
            beyond *= 2
    jump = _last_jump(branches, _scan(weak, top))
    if jump is None or not _lead(branches, jump * (1 - 2 * _PRECISION)) > 0:
        return weak, weak
    return jump, _lower_end(branches, jump * (1 - 2 * _PRECISION))


def _lead(branches: Branches, gain: float) -> float:
    """By how much the free entropy of another fixed point exceeds that of the uninformed one.

    Infinite if only the other knows some directions exactly, minus infinity if there is no other.
    """
    best, reached = branches.optimal_point(gain), branches.uninformed_point(gain)
    if _differ(best, reached):
        return best.value - reached.value if abs(best.rate - reached.rate) < 1e-9 else np.inf
    other = branches.largest_point(gain) if best.exact is None else best
    return other.value - reached.value if _differ(other, reached) else -np.inf


def _differ(one: Point, other: Point) -> bool:
    # Right at a jump the linear error estimate is unbounded, while the other side of it is far away.
    room = 1e-4 + min(one.uncertainty + other.uncertainty, 0.05)
    return bool(np.abs(one.M - other.M).max() > room)


def _scan(weak: float, top: float) -> list[float]:
    start = weak if 0 < weak < top else 0.05 * top
    return [float(a) for a in np.geomspace(start, top, 2 + int(np.log(top / start) / np.log(_RATIO)))]


def _last_jump(branches: Branches, scan: list[float]) -> float | None:
    """The largest gain at which the uninformed fixed point jumps."""
    points = [branches.uninformed_point(gain) for gain in scan]
    for low, high in reversed(list(itertools.pairwise(points))):
        found = _jump_between(branches, low, high)
        if found is not None:
            return found
    return None


def _jump_between(branches: Branches, low: Point, high: Point) -> float | None:
    width = high.gain / low.gain - 1
    smooth = (low.speed + high.speed) / 2 * np.log(high.gain / low.gain)
    # A small jump to exact recovery hides in an interval that is not short.
    becomes_exact = _exact_directions(high) > _exact_directions(low) and width > _WIDTH
    if abs(np.trace(high.M - low.M) - smooth) < _JUMP and not becomes_exact:
        return None
    if width < _WIDTH:
        return _fold(branches, low, high)
    middle = branches.uninformed_point(float(np.sqrt(low.gain * high.gain)))
    upper = _jump_between(branches, middle, high)
    return _jump_between(branches, low, middle) if upper is None else upper


def _exact_directions(point: Point) -> int:
    if point.exact is None:
        return 0
    return point.exact.shape[1] + (_exact_directions(point.inner) if point.inner is not None else 0)


def _fold(branches: Branches, low: Point, high: Point) -> float:
    """The gain of a jump between two points, from below, where (1 - radius)^2 falls linearly to zero."""
    before: Point | None = None
    while high.gain / low.gain - 1 > _PRECISION:
        gain = (low.gain + high.gain) / 2
        predicted = _extrapolated(before, low)
        if predicted is not None and low.gain < predicted < high.gain:
            # Step to just above the prediction and just below it in turn, so that both ends close in on it.
            margin = 0.1 * max(predicted - low.gain, _PRECISION * low.gain)
            gain = predicted + margin if predicted + margin < high.gain else predicted - margin
        middle = branches.uninformed_point(float(gain))
        if np.linalg.norm(middle.M - low.M) < np.linalg.norm(middle.M - high.M):
            before, low = low, middle
        else:
            high = middle
    predicted = _extrapolated(before, low)
    return predicted if predicted is not None and low.gain < predicted < high.gain else (low.gain + high.gain) / 2


def _extrapolated(before: Point | None, low: Point) -> float | None:
    if before is None or not before.radius < low.radius < 1:
        return None
    a, b = (1 - before.radius) ** 2, (1 - low.radius) ** 2
    return float(low.gain + b * (low.gain - before.gain) / (a - b))


def _lower_end(branches: Branches, gain: float) -> float:
    """The smallest gain from which on, up to the given one, Bayes-optimal learning beats AMP."""
    exact = {branches.output.gain_exact(U) for U in branches.output.subspaces}
    low, lead_low = gain, _lead(branches, gain)
    high, lead_high = low, lead_low
    while lead_low > 0:
        high, lead_high = low, lead_low
        # Where exact recovery begins the lead falls from infinity at once: look at both sides.
        below = [a for a in exact if high / _RATIO < a < high * (1 - 1e-6)]
        low = max(below) * (1 - 1e-6) if below else high / _RATIO
        lead_low = _lead(branches, low)
        if below and not lead_low > 0 and _lead(branches, max(below) * (1 + 1e-6)) > 0:
            return max(below)
        if low < 1e-3:
            return 0.0
    # Smooth in the gain where both fixed points exist, infinite or absent elsewhere: there the bracket is halved.
    found = regula_falsi(
        lambda gain: _lead(branches, float(gain)),
        low,
        high,
        ends=(lead_low, lead_high),
        tolerance=0.0,
        precision=_PRECISION * low / (1 + high),
        halve_every=3,
    )
    return float(found.low + found.high) / 2


def _specialization(channel: Channel, steps: list[LearnedStep]) -> float | None:
    """The gain of the easy step, after a first one, that breaks a symmetry under exchange of two projections."""
    if not isinstance(channel, TargetChannel):
        return None
    target, r = channel.target, channel.projections
    z = np.random.default_rng(0).standard_normal((64, r))
    values = target.numpy(z)
    for number, step in enumerate(steps):
        if step.kind != "easy" or not number:
            continue
        learned = np.column_stack([earlier.directions for earlier in steps[:number]])
        for i, j in itertools.combinations(range(r), 2):
            swapped = z.copy()
            swapped[:, [i, j]] = z[:, [j, i]]
            if not np.allclose(target.numpy(swapped), values, rtol=1e-9, atol=1e-12):
                continue
            odd = np.zeros(r)
            odd[i], odd[j] = 1 / np.sqrt(2), -1 / np.sqrt(2)
            even = abs(odd)
            # Known is their sum, and what comes now is their difference.
            if np.linalg.norm(step.directions.T @ odd) > 1 - 1e-6 and np.linalg.norm(learned.T @ even) > 0.5:
                return step.alpha
    return None
