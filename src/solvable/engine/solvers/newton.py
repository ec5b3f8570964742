r"""Newton's method for a matrix of overlaps within a subspace: its fixed points in few evaluations of the labels.

In the directions U (r x k orthonormal) write V = exp(-L), M = U (I - exp(-L)) U^T. One step of state evolution is

    L -> Phi(L) = log(I + gain U^T E[g g^T](M) U),

which keeps the order of positive matrices: dE[g g^T] = E[H dM H], H the Hessian of log Z, is positive for positive dM.
So the steps from a start below a fixed point never pass it, the Jacobian J of Phi has its largest eigenvalue on a
positive matrix, and a fixed point is stable if and only if no positive perturbation grows.

Evaluating E[g g^T] is what costs. It does not depend on the gain (samples per unknown), so one local model of it,
dI = B dL, is kept along a whole curve: measured by differences where nothing is known, corrected by every later
evaluation (Broyden's rule). The step is Newton's, (I - J)^{-1} (Phi(L) - L), where the largest eigenvalue of J is below
one; the plain step, lengthened while it keeps growing, where the iteration is leaving an unstable point. A Newton step
that does not shrink the residual is taken back and replaced by a plain one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.core.status import Status
from solvable.engine.outputs.posterior import DEEPEST, PosteriorOutput
from solvable.numerics.symmetric import (
    clipped,
    exp_derivative,
    log_derivative,
    log_one_plus,
    one_minus_exp,
    positive_directions,
    smat,
    svec,
)

_TOLERANCE = 1e-9
_USELESS = 0.2
"""The uncertainty of M above which a fixed point does not count as found."""
_MOVED = 0.4
"""How far L may move before the local model is measured anew to judge stability."""
_DOUBTFUL = 0.97
"""The largest eigenvalue of J from which on stability is judged by a measurement at the point itself."""


class LocalModel(NamedTuple):
    """E[g g^T] near L = `x` in the directions U: its value, its error, and its slope B = dI/dL, in svec coordinates.

    `measured_at` is the L where all of B was last measured by differences.
    """

    U: np.ndarray
    x: np.ndarray
    value: np.ndarray
    error: float
    B: np.ndarray
    measured_at: np.ndarray


class Relaxed(NamedTuple):
    """Where a relaxation ended: L, and the local model there.

    `residual` is |Phi(L) - L|, `radius` the largest eigenvalue of J (with the error that differences of inexact values
    leave in it) and `push` the positive matrix it belongs to,
    `uncertainty` an estimate of the error of the entries of M in the basis U, and `speed` d Tr M / d log gain along
    the curve of fixed points; `errors` (k x k) are estimates for each entry of M.
    `deep` tells that the relaxation was stopped because some direction is known better than
    the channel resolves.
    """

    L: np.ndarray
    model: LocalModel
    residual: float
    radius: float
    radius_error: float
    push: np.ndarray
    uncertainty: float
    speed: float
    status: Status
    deep: bool
    evaluations: int
    errors: np.ndarray


def relax(
    output: PosteriorOutput,
    gain: float,
    U: np.ndarray,
    start: np.ndarray,
    model: LocalModel | None = None,
    *,
    stop_deep: int = 0,
    limit: int = 120,
) -> Relaxed:
    """Follow the map from L = `start` to a fixed point; `model` is what is known of the labels nearby.

    Where exact recovery is possible, `stop_deep` = m > 0 ends it once V is below the channel's resolution in m
    directions.
    """
    run = _Run(output, gain, U, stop_deep)
    x = svec(start)
    if model is not None and np.array_equal(smat(model.x), start):
        # Rounding makes svec(smat(x)) another x, and the labels have been evaluated at this one.
        x = model.x.copy()
    return run.follow(run.first(x, model), limit)


class _Run:
    def __init__(self, output: PosteriorOutput, gain: float, U: np.ndarray, stop_deep: int):
        self.output, self.gain, self.U, self.stop_deep = output, gain, U, stop_deep
        self.evaluations = 0
        self.slope_error = 0.0

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """The information at L, its error, and R."""
        self.evaluations += 1
        found = self.output.labels(self.U @ one_minus_exp(smat(x)) @ self.U.T)
        value = svec(self.U.T @ found.information @ self.U)
        if not np.isfinite(value).all():
            return value, found.error, np.full_like(x, np.nan)
        return value, found.error, svec(log_one_plus(self.gain * smat(value))) - x

    def slope(self, value: np.ndarray) -> np.ndarray:
        """d log(I + A) / dA at A = gain E[g g^T]."""
        if not np.isfinite(value).all():
            return np.full((len(value), len(value)), np.nan)
        return log_derivative(self.gain * smat(value))

    def first(self, x: np.ndarray, model: LocalModel | None) -> State:
        """The state at the start, with the slope of a model of the same directions if there is one."""
        value, error, R = self.evaluate(x)
        slope = self.slope(value)
        if model is None or model.U.shape != self.U.shape or not np.allclose(model.U, self.U, atol=1e-12):
            # Nothing known: the first step is the plain one, and the slope is learned on the way.
            return State(x, value, error, R, slope, np.zeros_like(slope), np.full_like(x, np.inf))
        return State(x, value, error, R, slope, self.gain * slope @ model.B, model.measured_at)

    def measure(self, state: State) -> State:
        """The state with J by differences along positive directions."""
        directions = positive_directions(smat(state.x))
        # The step balances the curvature of the map, of order one in L, against the error of one evaluation.
        h = float(np.clip(np.sqrt(self.gain * float(np.abs(state.slope).max()) * state.error), 1e-4, 0.03))
        found = [self.evaluate(state.x + h * d) for d in directions.T]
        changes = [(R - state.R) / h + d for (_, _, R), d in zip(found, directions.T, strict=True)]
        self.slope_error = 2 * max(self.noise(state._replace(error=error)) for _, error, _ in found) / h
        return state._replace(J=np.stack(changes, 1) @ np.linalg.inv(directions), measured_at=state.x)

    def moved(self, state: State, x: np.ndarray, found: tuple[np.ndarray, float, np.ndarray]) -> State:
        """The state at x, with J corrected along the way there (Broyden's rule)."""
        value, error, R = found
        dx = x - state.x
        length = float(dx @ dx)
        J = state.J
        if length > 1e-20:
            J = J + np.outer(R - state.R + dx - J @ dx, dx) / length
        return State(x, value, error, R, self.slope(value), J, state.measured_at)

    def noise(self, state: State) -> float:
        """What the error of the labels makes of R."""
        return self.gain * float((np.abs(state.slope) @ entry_errors(state)).max())

    def follow(self, state: State, limit: int) -> Relaxed:
        pace, refused, stalled, least, onward, by_newton = 1.0, 0, 0, np.inf, True, True
        while self.evaluations < limit:
            if not (np.isfinite(state.R).all() and np.isfinite(state.J).all()):
                return self._end(state, Status.NONFINITE)
            size, noise = state.size, self.noise(state)
            # A quadrature that changes with M jitters within its error: no progress there, waited for the longer the
            # larger the residual, is the end of progress. On the way to exact recovery, which is known to be possible,
            # a small residual that stays positive is real.
            least, stalled = (size, 0) if size < 0.7 * least else (least, stalled + 1)
            still = (size <= 0.2 * noise and stalled > 3) or (size <= 0.5 * noise and stalled > 12)
            jitter = still and not (onward and self.stop_deep)
            if jitter or size <= _TOLERANCE + min(0.01 * noise, 1e-5):
                return self._end(state, Status.CONVERGED)
            depths = np.linalg.eigvalsh(smat(state.x))
            if self.stop_deep and depths[-self.stop_deep] > self.output.sharp:
                return self._end(state, Status.CONVERGED, deep=True)
            step, newton = next_step(state, pace)
            if newton != by_newton:
                pace, by_newton = 1.0, newton
                step, _ = next_step(state, pace)
            # Features of the map are as wide as L itself near zero, and as its logarithm far from it.
            capped = float(np.linalg.norm(step)) / min(0.7 + 0.15 * depths[-1], 0.02 + 1.5 * depths[-1])
            plain = svec(clipped(smat(state.x + state.R), DEEPEST))
            trial = well_inside(state.x, step / max(capped, 1.0))
            if newton and np.abs(trial - state.x).max() < 1e-3 * size:
                # The step points out of the positive matrices: an eigenvalue of L is held at zero.
                trial = plain
            found = self.evaluate(trial)
            new_size, onward = float(np.abs(found[2]).max()), float(found[2] @ state.R) > 0
            if newton and onward and new_size > 3 * size:
                # Past a bottleneck, or over a gap? A parabola through both ends tells where to look.
                part = least_on_the_way(state, trial - state.x, found[2])
                if part is not None:
                    trial = state.x + part * (trial - state.x)
                    found = self.evaluate(trial)
                    new_size, onward = float(np.abs(found[2]).max()), float(found[2] @ state.R) > 0
            elif newton and new_size > 0.9 * size and not onward:
                pace, refused = 1.0, refused + 1
                if refused % 3:
                    # Too far: what was found there corrects the slope, and the next step is shorter.
                    state = state._replace(J=self.moved(state, trial, found).J, measured_at=state.measured_at.copy())
                    continue
                if not state.measured:
                    state = self.measure(state)
                    continue
                trial, found = plain, self.evaluate(plain)
            # Newton's step falls short by up to a half where the residual is convex, as it is before a fold, and by
            # more where the plain step is used: lengthen both while they go on the same way.
            slow = onward and new_size > 0.3 * size
            if not slow or capped <= 1 or newton:
                pace = 1.0 if not slow or capped > 1 else 2.0 if newton else 2 * pace
            refused = 0
            state = self.moved(state, trial, found)
        return self._end(state, Status.MAX_STEPS)

    def _end(self, state: State, status: Status, deep: bool = False) -> Relaxed:
        if status == Status.NONFINITE:
            nothing = np.full_like(state.J, np.nan)
            model = LocalModel(self.U, state.x, state.value, state.error, nothing, state.measured_at)
            push = np.eye(self.U.shape[1])
            nan = np.nan
            x, used = smat(state.x), self.evaluations
            return Relaxed(x, model, nan, nan, nan, push, nan, nan, status, False, used, nan * push)
        far = np.linalg.norm(state.x - state.measured_at) > _MOVED
        doubtful = not state.measured and spectral_radius(state.J)[0] > _DOUBTFUL
        if status == Status.CONVERGED and not deep and (far or doubtful):
            state = self.measure(state)
        radius, push = spectral_radius(state.J)
        B = np.linalg.pinv(self.gain * state.slope) @ state.J
        model = LocalModel(self.U, state.x, state.value, state.error, B, state.measured_at)
        response = np.linalg.pinv(np.eye(len(state.x)) - state.J) @ (self.gain * state.slope)
        widths = exp_derivative(smat(state.x))
        # The errors of the entries have unknown signs, so their effects add up; the residual leaves one more.
        shift = np.abs(response) @ entry_errors(state) + np.abs(state.R) / max(1 - radius, 1e-3)
        errors = np.abs(widths) @ shift
        uncertainty = min(1.0, float(errors.max()))
        if status == Status.CONVERGED and uncertainty > _USELESS:
            status = Status.MAX_STEPS
        speed = float(np.trace(smat(widths @ response @ state.value)))
        return Relaxed(
            L=smat(state.x),
            model=model,
            residual=state.size,
            radius=radius,
            radius_error=self.slope_error,
            push=smat(push),
            uncertainty=uncertainty,
            speed=speed,
            status=status,
            deep=deep,
            evaluations=self.evaluations,
            errors=smat(errors),
        )


class State(NamedTuple):
    """One L on the way: the labels' information there, R = Phi(L) - L, and the matrices d log(I + A)/dA and J."""

    x: np.ndarray
    value: np.ndarray
    error: float
    R: np.ndarray
    slope: np.ndarray
    J: np.ndarray
    measured_at: np.ndarray

    @property
    def size(self) -> float:
        return float(np.abs(self.R).max())

    @property
    def measured(self) -> bool:
        return self.measured_at is self.x


def well_inside(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """x + step, but not below a tenth of x: a fixed point close to zero must not be missed for zero itself."""
    least = 0.1 * smat(x)
    return svec(clipped(least + clipped(smat(x + step) - least, np.inf), DEEPEST))


def entry_errors(state: State) -> np.ndarray:
    """The errors of the entries of E[g g^T]: that reported belongs to the largest, others are smaller as they are."""
    size = np.sqrt(np.maximum(np.diag(smat(state.value)), 0.0))
    return state.error * svec(np.outer(size, size)) / max(float(size.max()) ** 2, 1e-300)


def least_on_the_way(state: State, step: np.ndarray, R: np.ndarray) -> float | None:
    """The part of a step at which the residual, a parabola along it, is zero or least; None if it stays well above."""
    start = float(state.R @ state.R)
    fall = float(state.R @ (step - state.J @ step))
    bend = float(state.R @ R) - start + fall
    if bend <= 0 or fall <= 0 or start - fall**2 / (4 * bend) > 0.25 * start:
        return None
    root = fall**2 - 4 * bend * start
    return (fall - np.sqrt(root)) / (2 * bend) if root > 0 else fall / (2 * bend)


def next_step(state: State, stretch: float) -> tuple[np.ndarray, bool]:
    """Newton's step in the modes of J that decay, the plain step in those that grow; and whether it is mostly Newton's.

    `stretch` lengthens all of it, or the plain part where that leads.
    """
    values, modes = np.linalg.eig(state.J)
    grows = np.real(values) >= 1
    parts, rest = _in_modes(modes, state.R)
    gain = np.where(grows, 1.0, 1 / np.where(grows, 1.0, 1 - values))
    newton = bool(np.linalg.norm(parts[grows]) < 0.1 * np.linalg.norm(parts))
    return np.real(modes @ (np.where(grows | newton, stretch, 1.0) * gain * parts) + rest), newton


def _in_modes(modes: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
    """R in the modes of J, and what is outside of them: a J that is known in few directions, all of whose other
    eigenvalues are zero, may lack modes by rounding. There the plain step is Newton's."""
    try:
        return np.linalg.solve(modes, R), 0.0
    except np.linalg.LinAlgError:
        parts = np.linalg.lstsq(modes, R, rcond=1e-8)[0]
        return parts, R - modes @ parts


def spectral_radius(J: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest real eigenvalue of J and its eigenvector, signed to have a positive trace."""
    values, vectors = np.linalg.eig(J)
    top = int(np.argmax(np.real(values)))
    push = np.real(vectors[:, top])
    push = push / np.linalg.norm(push)
    return float(np.real(values[top])), push if np.trace(smat(push)) >= 0 else -push
