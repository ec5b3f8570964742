"""Thresholds of the state evolution of several projections.

The staircase gives where directions begin to be learned. Between them the uninformed fixed point may jump (a spinodal,
where its Jacobian reaches eigenvalue one): found on a coarse scan in gain, refined by bisection and by the law
(1 - largest eigenvalue)^2 ~ distance in gain. Where the free entropy prefers another fixed point before that jump,
learning is possible but AMP does not achieve it: a hard phase.
"""

from __future__ import annotations

import itertools

import numpy as np

from solvable.channels.base import Channel, TargetChannel
from solvable.engine.solvers.base import Thresholds
from solvable.engine.solvers.branches import Branches, Point
from solvable.engine.solvers.staircase import LARGEST_GAIN, LearnedStep

_JUMP = 0.03
"""A change of Tr M between neighbouring gains, beyond what its speed at both explains, that is looked into."""
_WIDTH = 1e-3
"""Relative width of an interval of gains in which such a change counts as a jump."""
_PRECISION = 2e-5
"""Relative precision of a threshold found by bisection."""
_RATIO = 1.35
"""Ratio of neighbouring gain in the scan."""


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
            if _gain(branches, beyond) > 0:
                return np.inf, _lower_end(branches, beyond)
            beyond *= 2
    jump = _last_jump(branches, _scan(weak, top))
    if jump is None or not _gain(branches, jump * (1 - 2 * _PRECISION)) > 0:
        return weak, weak
    return jump, _lower_end(branches, jump * (1 - 2 * _PRECISION))


def _gain(branches: Branches, gain: float) -> float:
    """By how much the free entropy of another fixed point exceeds that of the uninformed one.

    Infinite if only the other knows some directions exactly, and NaN if there is no other.
    """
    best, reached = branches.optimal_point(gain), branches.uninformed_point(gain)
    if _differ(best, reached):
        return best.value - reached.value if abs(best.rate - reached.rate) < 1e-9 else np.inf
    other = branches.largest_point(gain) if best.exact is None else best
    return other.value - reached.value if _differ(other, reached) else np.nan


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
    low, gain_low = gain, _gain(branches, gain)
    high, gain_high = low, gain_low
    while gain_low > 0:
        high, gain_high = low, gain_low
        # Where exact recovery begins the gain falls from infinity at once: look at both sides.
        below = [a for a in exact if high / _RATIO < a < high * (1 - 1e-6)]
        low = max(below) * (1 - 1e-6) if below else high / _RATIO
        gain_low = _gain(branches, low)
        if below and not gain_low > 0 and _gain(branches, max(below) * (1 + 1e-6)) > 0:
            return max(below)
        if low < 1e-3:
            return 0.0
    while high / low - 1 > _PRECISION:
        middle = float(np.sqrt(low * high))
        if np.isfinite(gain_low) and np.isfinite(gain_high):
            # The gain is smooth in gain where both fixed points exist; stay off the ends so that both close in.
            share = gain_low / (gain_low - gain_high)
            middle = low + float(np.clip(share, 0.02, 0.98)) * (high - low)
        gain = _gain(branches, middle)
        if gain > 0:
            high, gain_high = middle, gain
        else:
            low, gain_low = middle, gain
    return (low + high) / 2


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
