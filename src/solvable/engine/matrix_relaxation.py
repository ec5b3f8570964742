r"""The state evolution map of a matrix of overlaps within a subspace, and its fixed points in few evaluations.

In the directions U (r x k orthonormal) write V = exp(-L), M = U (I - exp(-L)) U^T. One step of state evolution is

    L -> Phi(L) = log(I + alpha U^T E[g g^T](M) U),

which keeps the order of positive matrices: dE[g g^T] = E[H dM H], H the Hessian of log Z, is positive for positive dM.
So the steps from a start below a fixed point never pass it, the Jacobian J of Phi has its largest eigenvalue on a
positive matrix, and a fixed point is stable if and only if no positive perturbation grows.

Evaluating E[g g^T] is what costs. It does not depend on alpha, so one local model of it, dI = B dL, is kept along a
whole curve: measured by differences where nothing is known, corrected by every later evaluation (Broyden's rule). The
step is Newton's, (I - J)^{-1} (Phi(L) - L), where the largest eigenvalue of J is below one; the plain step, lengthened
while it keeps growing, where the iteration is leaving an unstable point. A Newton step that does not shrink the
residual is taken back and replaced by a plain one.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from solvable.channels.multi import MatrixInformation, MultiChannel
from solvable.core.status import Status
from solvable.engine.symmetric import (
    exp_derivative,
    log_derivative,
    log_one_plus,
    one_minus_exp,
    positive_directions,
    positive_part,
    smat,
    svec,
)

_CACHE = 4096
_TOLERANCE = 1e-9
_DEEPEST = 200.0
_MOVED = 0.4
"""How far L may move before the local model is measured anew to judge stability."""


class Labels:
    """E[g g^T] and Psi of a channel, each M evaluated once, and continued to V below the channel's resolution.

    There E[g g^T] grows like V^-1 without noise, V^-1/2 for discrete labels without noise, and no more with noise.
    """

    def __init__(self, channel: MultiChannel):
        self.channel = channel
        self.calls = 0
        self.floor = channel.resolution
        self._power = 0.0 if not channel.deterministic else 0.5 if channel.discrete else 1.0
        self._known: dict[bytes, MatrixInformation] = {}

    def __call__(self, M: np.ndarray) -> MatrixInformation:
        v, u = np.linalg.eigh(np.eye(len(M)) - M)
        if v[0] >= self.floor:
            return self._evaluated(M)
        v = np.maximum(v, np.exp(-_DEEPEST))
        c = np.maximum(v, self.floor)
        found = self._evaluated((u * (1 - c)) @ u.T)
        stretch = (u * (c / v) ** (self._power / 2)) @ u.T
        information = stretch @ found.information @ stretch
        diagonal = np.diag(u.T @ found.information @ u)
        grown = np.log(c / v) * c if self._power == 1 else (c - v * (c / v) ** self._power) / (1 - self._power)
        beyond = 0.02 * float(np.log(c / v).max()) * np.abs(information).max()
        return MatrixInformation(
            information,
            found.entropy + 0.5 * float(np.sum(diagonal * grown)),
            found.error * float((c / v).max()) ** self._power + beyond,
            found.entropy_error,
        )

    def _evaluated(self, M: np.ndarray) -> MatrixInformation:
        key = np.round(M, 13).tobytes()
        if key not in self._known:
            self.calls += 1
            if len(self._known) >= _CACHE:
                self._known.clear()
            found = self.channel.information((M + M.T) / 2)
            information = np.asarray(found.information, float)
            self._known[key] = found._replace(information=(information + information.T) / 2)
        return self._known[key]


@dataclasses.dataclass
class LocalModel:
    """E[g g^T] near the last point in the directions U: value, error, and slope B = dI/dL, in svec coordinates."""

    U: np.ndarray
    x: np.ndarray
    value: np.ndarray
    error: float
    B: np.ndarray
    measured_at: np.ndarray | None = None

    def learn(self, x: np.ndarray, found: _Evaluation) -> None:
        """Move to x, correcting the slope along the way there."""
        dx = x - self.x
        length = float(dx @ dx)
        if length > 1e-20:
            self.B = self.B + np.outer(found.value - self.value - self.B @ dx, dx) / length
        self.x, self.value, self.error = x, found.value, found.error


class _Evaluation(NamedTuple):
    value: np.ndarray
    error: float


class Relaxed(NamedTuple):
    """Where a relaxation ended: L, and the local model there.

    `residual` is |Phi(L) - L|, `radius` the largest eigenvalue of J with the positive matrix `push` it belongs to, and
    `uncertainty` an estimate of the error of the entries of M in the basis U. `deep` tells that the relaxation was
    stopped because some direction is known better than the channel resolves.
    """

    L: np.ndarray
    model: LocalModel
    residual: float
    radius: float
    push: np.ndarray
    uncertainty: float
    status: Status
    deep: bool
    evaluations: int


def relax(
    labels: Labels,
    alpha: float,
    U: np.ndarray,
    start: np.ndarray,
    model: LocalModel | None = None,
    *,
    stop_deep: int = 0,
    limit: int = 120,
) -> Relaxed:
    """Follow the map from L = `start` to a fixed point; `model` is what is known of the labels nearby.

    With `stop_deep` = m > 0 it ends early once V is below the channel's resolution in m directions.
    """
    return _Run(labels, alpha, U, svec(start), model, stop_deep).follow(limit)


class _Run:
    model: LocalModel

    def __init__(
        self, labels: Labels, alpha: float, U: np.ndarray, x: np.ndarray, model: LocalModel | None, stop_deep: int
    ):
        self.labels, self.alpha, self.U, self.stop_deep = labels, alpha, U, stop_deep
        self.evaluations = 0
        found = self.evaluate(x)
        if model is not None and model.U.shape == U.shape and np.allclose(model.U, U, atol=1e-12):
            self.model = dataclasses.replace(model)
            self.model.learn(x, found)
        else:
            self.model = self.measure(x, found)

    def evaluate(self, x: np.ndarray) -> _Evaluation:
        self.evaluations += 1
        found = self.labels(self.U @ one_minus_exp(smat(x)) @ self.U.T)
        return _Evaluation(svec(self.U.T @ found.information @ self.U), found.error)

    def measure(self, x: np.ndarray, found: _Evaluation) -> LocalModel:
        """The slope by differences along positive directions; an older slope is corrected, not thrown away."""
        directions = positive_directions(smat(x))
        # The step balances the curvature of the map against the error of one evaluation.
        scale = max(float(np.abs(found.value).max()), 1e-12)
        h = float(np.clip(np.sqrt(found.error / scale), 1e-4, 0.03))
        changes = [(self.evaluate(x + h * d).value - found.value) / h for d in directions.T]
        B = np.stack(changes, 1) @ np.linalg.inv(directions)
        return LocalModel(self.U, x, found.value, found.error, B, x)

    def image(self, model: LocalModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Phi(L) - L, J and d log(I + A) dA at the model's point."""
        A = self.alpha * smat(model.value)
        slope = log_derivative(A)
        return svec(log_one_plus(A)) - model.x, self.alpha * slope @ model.B, slope

    def follow(self, limit: int) -> Relaxed:
        stretch, status, last_size = 1.0, Status.MAX_STEPS, np.inf
        while self.evaluations < limit:
            model = self.model
            R, J, slope = self.image(model)
            size = float(np.abs(R).max())
            if not np.isfinite(size):
                return self._end(Status.NONFINITE, False)
            noise = self.alpha * float(np.abs(slope).max()) * model.error
            # A quadrature that changes with M jitters within its error: no progress there is the end of progress.
            if size <= _TOLERANCE + 0.02 * noise or (size <= 0.5 * noise and size > 0.5 * last_size):
                status = Status.CONVERGED
                break
            last_size = size
            depths = np.linalg.eigvalsh(smat(model.x))
            depth = float(depths[-1])
            if self.stop_deep and depths[-self.stop_deep] > -np.log(self.labels.floor):
                return self._end(Status.CONVERGED, True)
            newton = spectral_radius(J)[0] < 1
            step = np.linalg.solve(np.eye(len(R)) - J, R) if newton else stretch * R
            step *= min(1.0, (0.7 + 0.15 * depth) / float(np.linalg.norm(step)))
            stretch = 1.0 if newton else 2 * stretch
            trial = svec(positive_part(smat(model.x + step)))
            if newton and np.abs(trial - model.x).max() < 1e-3 * size:
                # The step points out of the positive matrices: an eigenvalue of L is held at zero.
                trial = svec(positive_part(smat(model.x + R)))
            there = self.evaluate(trial)
            after = svec(log_one_plus(self.alpha * smat(there.value))) - trial
            new_size = float(np.abs(after).max())
            climbing = float(after @ R) > 0 and new_size < 1.5 * size
            if newton and not (new_size < 0.9 * size or climbing):
                if model.measured_at is not model.x:
                    self.model = self.measure(model.x, _Evaluation(model.value, model.error))
                    continue
                trial = svec(positive_part(smat(model.x + R)))
                there = self.evaluate(trial)
            self.model = dataclasses.replace(model)
            self.model.learn(trial, there)
        return self._end(status, False)

    def _end(self, status: Status, deep: bool) -> Relaxed:
        model = self.model
        far = model.measured_at is None or np.linalg.norm(model.x - model.measured_at) > _MOVED
        if status == Status.CONVERGED and not deep and far:
            model = self.model = self.measure(model.x, _Evaluation(model.value, model.error))
        R, J, slope = self.image(model)
        radius, push = spectral_radius(J)
        response = np.linalg.pinv(np.eye(len(R)) - J) @ (self.alpha * slope)
        L = smat(model.x)
        # Unknown signs of the entries' errors: the sum of their effects, then through M = I - exp(-L).
        shift = np.abs(exp_derivative(L)) @ (np.abs(response).sum(1) * model.error + np.abs(R) / max(1 - radius, 1e-3))
        residual = float(np.abs(R).max())
        noise = self.alpha * float(np.abs(slope).max()) * model.error
        if status == Status.MAX_STEPS and residual < noise:
            status = Status.CONVERGED
        return Relaxed(
            L, model, residual, radius, smat(push), min(1.0, float(shift.max())), status, deep, self.evaluations
        )


def spectral_radius(J: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest real eigenvalue of J and its eigenvector, signed to have a positive trace."""
    values, vectors = np.linalg.eig(J)
    top = int(np.argmax(np.real(values)))
    push = np.real(vectors[:, top])
    push = push / np.linalg.norm(push)
    return float(np.real(values[top])), push if np.trace(smat(push)) >= 0 else -push
