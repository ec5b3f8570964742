r"""Branches of fixed points of r x r overlaps, each point continued from its neighbours in the number of samples.

With the information E[g g^T](M) of the labels and the Gaussian prior N(0, I_r) the fixed points solve

    Mhat = gain E[g g^T](M),    M = I - (I + Mhat)^{-1},

and are the stationary points of the free entropy (relative to knowing nothing)

    phi(M) = Tr M / 2 + log det(I - M) / 2 + gain (Psi(M) - Psi(0)).

AMP reaches the smallest fixed point above an infinitesimal positive start: directions on which the labels have a mean
are learned at once, those on which a small overlap grows are learned next, and both are looked for again given what is
known, until no positive perturbation grows (`climb`). Without noise a direction may be recovered exactly: the labels
that depend on k directions U only, and not flatly, must be more than k per unknown, for U and for what is left of U
once any part of it is known. The rest then sees the channel in which U is known. [aubin2018committee,
troiani2024fundamental]

Continuing a curve from its neighbours is cheap, but leaves rounding behind that depends on which neighbours there were.
So a computation (a grid of gains, a search for thresholds) has a memory of its own (`Branches`), empty at its start.
"""

from __future__ import annotations

import dataclasses
import threading

import numpy as np

from solvable.core.status import Status
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.solvers.newton import LocalModel, Relaxed, relax
from solvable.numerics.cache import Cache
from solvable.numerics.subspaces import complement, tidy
from solvable.numerics.symmetric import log_one_plus, one_minus_exp

_SEED = 0.01
"""The size of the overlap given to a growing direction before it is followed."""
_FORGOTTEN = 1e-8
"""Directions with a smaller overlap are not learned."""
_UNSTABLE = 0.02
"""How far the largest eigenvalue of the measured Jacobian must exceed one to count as unstable."""
_INFORMED = 1e-3
"""The V from which informed starts set out."""
_MOST_CHILDREN = 64
_ALIGNED = 0.995
"""The cosine of the angle within which directions about to be known exactly count as those of a subspace."""


@dataclasses.dataclass(frozen=True)
class Point:
    """One fixed point. `exact` (r x m) are the directions recovered exactly, `inner` the point of the others.

    Otherwise M = U (I - exp(-L)) U^T with U (r x k). `rate` is that of the free entropy's divergence,
    phi = rate * log(1/V) + `value`, which exact recovery makes infinite. `radius` is the largest eigenvalue of the
    Jacobian of the iteration, `speed` is d Tr M / d log gain along the curve of fixed points,
    `errors` (r x r) estimates that of each entry of M.
    """

    gain: float
    M: np.ndarray
    U: np.ndarray
    L: np.ndarray
    value: float
    value_error: float
    status: Status = Status.CONVERGED
    residual: float = 0.0
    uncertainty: float = 0.0
    radius: float = 0.0
    speed: float = 0.0
    evaluations: int = 0
    rate: float = 0.0
    exact: np.ndarray | None = None
    inner: Point | None = None
    model: LocalModel | None = None
    errors: np.ndarray | None = None

    @property
    def free_entropy(self) -> float:
        return np.inf if self.exact is not None else self.value

    @property
    def Mhat(self) -> np.ndarray:
        """M (I - M)^{-1}, infinite in the directions recovered exactly."""
        exact, finite = self._field
        projector = exact @ exact.T
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(projector) > 1e-12, np.inf * projector, finite)

    @property
    def _field(self) -> tuple[np.ndarray, np.ndarray]:
        """All directions recovered exactly, also those that followed once others were (r x m), and M (I - M)^{-1} in
        the rest."""
        if self.exact is None:
            return np.zeros((len(self.M), 0)), self.U @ _exp_minus_one(self.L) @ self.U.T
        if self.inner is None:
            return self.exact, np.zeros_like(self.M)
        rest = complement(self.exact)
        exact, finite = self.inner._field
        return np.column_stack([self.exact, rest @ exact]), rest @ finite @ rest.T


def _exp_minus_one(L: np.ndarray) -> np.ndarray:
    a, u = np.linalg.eigh(L)
    return (u * np.expm1(a)) @ u.T


class Branches:
    """Fixed points at the gains asked for so far, with those of the channels in which some directions are known.

    `lock` is for a computation that threads share: the order of its questions is part of its result.
    """

    def __init__(self, output: PosteriorOutput):
        self.output = output
        self.lock = threading.RLock()
        self._children = Cache(lambda directions: Branches(output.known(directions)), _MOST_CHILDREN)
        self._climbed: dict[float, Point] = {}
        self._largest: dict[float, Point] = {}
        self._optimal: dict[float, Point] = {}

    def uninformed_point(self, gain: float) -> Point:
        """The uninformed fixed point at one gain, continued from the nearest smaller gain already solved."""
        gain = float(gain)
        if gain not in self._climbed:
            below = [p for p in self._climbed.values() if p.gain < gain and p.status == Status.CONVERGED]
            before = max(below, key=lambda p: p.gain, default=None)
            self._climbed[gain] = self.climb(gain, before)
        return self._climbed[gain]

    def optimal_point(self, gain: float) -> Point:
        """The fixed point of largest free entropy at one gain, among those that different starts lead to."""
        gain = float(gain)
        if gain not in self._optimal:
            self._optimal[gain] = self._best(gain)
        return self._optimal[gain]

    def largest_point(self, gain: float) -> Point:
        """The fixed point below everything known, continued from the nearest larger gain already solved."""
        gain = float(gain)
        if gain not in self._largest:
            above = [p for p in self._largest.values() if p.gain > gain and p.status == Status.CONVERGED]
            start = min(above, key=lambda p: p.gain, default=None)
            if start is None or start.exact is not None:
                start = _known(np.eye(self.output.projections), gain)
            self._largest[gain] = self.climb(gain, start)
        return self._largest[gain]

    def climb(self, gain: float, start: Point | None = None, within: np.ndarray | None = None) -> Point:
        """Follow the iteration from `start` (nothing, if None) to a stable fixed point.

        `within` (r x w) restricts learning to a subspace: what the labels say of other directions is ignored.
        """
        r = self.output.projections
        within = np.eye(r) if within is None else within
        if gain <= 0:
            return Point(gain, np.zeros((r, r)), np.zeros((r, 0)), np.zeros((0, 0)), 0.0, 0.0)
        if start is not None and start.exact is not None and self.output.pins(start.exact, gain):
            return self._exactly(start.exact, gain, start, within)
        end = climb(self.output, gain, start, within)
        return end if isinstance(end, Point) else self._exactly(end, gain, None, within)

    def _best(self, gain: float) -> Point:
        uninformed = self.uninformed_point(gain)
        found = [uninformed]
        subspaces = self.output.subspaces
        for U in subspaces:
            if self.output.pins(U, gain):
                found.append(self._exactly(U, gain, None, np.eye(self.output.projections), optimal=True))
        # Exact recovery has an infinite free entropy: where it is possible the rest need not be tried.
        if max(point.rate for point in found) <= 0:
            largest = self.largest_point(gain)
            if not _same(uninformed, largest):
                found += [largest, *(self.climb(gain, _known(U, gain)) for U in subspaces[:-1])]
        found = [p for p in found if p.status == Status.CONVERGED] or found
        best = max(found, key=lambda p: (round(p.rate, 9), p.value))
        for other in found:
            close = abs(other.value - best.value) <= 1e-8 + other.value_error + best.value_error
            if close and abs(other.rate - best.rate) < 1e-9 and not _same(other, best):
                return dataclasses.replace(best, status=Status.AMBIGUOUS_BRANCH)
        return best

    def _exactly(
        self, exact: np.ndarray, gain: float, start: Point | None, within: np.ndarray, optimal: bool = False
    ) -> Point:
        """The point with these directions known exactly and the others where that knowledge leads them."""
        r, rest = self.output.projections, complement(exact)
        M = exact @ exact.T
        rate = (gain * self.output.mass(exact) - exact.shape[1]) / 2
        empty = np.zeros((r, 0)), np.zeros((0, 0))
        remaining = _inside(rest, within)
        if not remaining.shape[1]:
            return Point(gain, M, *empty, 0.0, 0.0, rate=rate, exact=exact)
        child = self._children(exact)
        if optimal:
            inner = child.optimal_point(gain)
        elif remaining.shape[1] == rest.shape[1]:
            inner = child.uninformed_point(gain)
        else:
            inner = child.climb(gain, start.inner if start is not None else None, rest.T @ remaining)
        M = M + rest @ inner.M @ rest.T
        U, L = empty
        errors = None if inner.errors is None else np.abs(rest) @ inner.errors @ np.abs(rest).T
        rate = rate + inner.rate
        return dataclasses.replace(inner, M=M, U=U, L=L, rate=rate, exact=exact, inner=inner, model=None, errors=errors)


def _known(U: np.ndarray, gain: float) -> Point:
    """A start that knows the directions U, up to V = 1e-3, and nothing else."""
    L = -np.log(_INFORMED) * np.eye(U.shape[1])
    return Point(gain, U @ one_minus_exp(L) @ U.T, U, L, 0.0, 0.0)


def _inside(rest: np.ndarray, within: np.ndarray) -> np.ndarray:
    """The part (r x k) of the span of `rest` that lies in the span of `within`."""
    if within.shape[0] == within.shape[1]:
        return rest
    left, size, _ = np.linalg.svd(rest.T @ within, full_matrices=False)
    return rest @ left[:, size > 1 - 1e-6]


def _same(a: Point, b: Point) -> bool:
    return bool(np.abs(a.M - b.M).max() <= 1e-5 + a.uncertainty + b.uncertainty)


def climb(output: PosteriorOutput, gain: float, start: Point | None, within: np.ndarray) -> Point | np.ndarray:
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
            end, exact, used = _relaxed(output, gain, U, L, model)
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
        seed = _growing(output, gain, U, L, within)
        if seed is None:
            break
        (U, L), model = seed, None
    else:
        end = None if end is None else end._replace(status=Status.UNSTABLE)
    return _point(output, gain, U, L, end if U.shape[1] else None, evaluations)


def _relaxed(
    output: PosteriorOutput, gain: float, U: np.ndarray, L: np.ndarray, model: LocalModel | None
) -> tuple[Relaxed, np.ndarray | None, int]:
    """The fixed point within U, or the directions that become exactly known on the way; and the evaluations."""
    k, used = U.shape[1], 0
    sharp = 1 if any(output.pins(exact, gain) for exact in [*output.subspaces, U]) else 0
    while True:
        end = relax(output, gain, U, L, model, stop_deep=sharp)
        used += end.evaluations
        if not end.deep:
            return end, None, used
        exact = _sharp_directions(output, U, end.L)
        for near in (exact, *_aligned(output.subspaces, exact)):
            if output.pins(near, gain):
                return end, near, used
        # Not these alone: follow on until further directions are as sharp, or to a fixed point close by.
        sharp = exact.shape[1] + 1 if exact.shape[1] < k else 0
        L, model = end.L, end.model


def _growing(
    output: PosteriorOutput, gain: float, U: np.ndarray, L: np.ndarray, within: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The learned directions and L with those added that the labels or a growing overlap bring; None if none."""
    basis = within @ np.linalg.svd(within.T @ U)[0][:, U.shape[1] :] if U.shape[1] else within
    if not basis.shape[1]:
        return None
    basis = tidy(basis)
    M = U @ one_minus_exp(L) @ U.T
    lin = output.linearisation(M, basis)
    new = lin.trivial_directions()
    if new.shape[1]:
        wider = np.column_stack([U, new])
        return wider, log_one_plus(gain * wider.T @ output.labels(M).information @ wider)
    rate, push = lin.growing_overlap()
    if gain * rate <= 1 + gain * lin.error:
        return None
    wider = np.column_stack([U, lin.support(push)])
    seed = np.zeros((wider.shape[1],) * 2)
    seed[: len(L), : len(L)] = L
    added = wider[:, U.shape[1] :]
    seed[len(L) :, len(L) :] = _SEED * _normalised(added.T @ basis @ push @ basis.T @ added)
    return wider, seed


def _sharp_directions(output: PosteriorOutput, U: np.ndarray, L: np.ndarray) -> np.ndarray:
    """The directions in which V is below the channel's resolution."""
    values, vectors = np.linalg.eigh(L)
    sharp = values > output.sharp
    return tidy(U if sharp.all() else U @ vectors[:, sharp], 1e-2)


def _aligned(subspaces: list[np.ndarray], exact: np.ndarray) -> list[np.ndarray]:
    """The subspaces within a small angle of the directions `exact`.

    Where the labels correlate a direction that will be known exactly with another, what is known best is turned by an
    angle that vanishes only with V.
    """
    same = [U for U in subspaces if U.shape == exact.shape]
    return [U for U in same if np.linalg.svd(U.T @ exact, compute_uv=False).min() > _ALIGNED]


def _forget(U: np.ndarray, end: Relaxed) -> tuple[np.ndarray, np.ndarray, LocalModel | None]:
    """Leave out the directions whose overlap has decayed."""
    values, vectors = np.linalg.eigh(end.L)
    kept = values > _FORGOTTEN
    if kept.all():
        return U, end.L, end.model
    return U @ vectors[:, kept], np.diag(values[kept]), None


def _point(
    output: PosteriorOutput, gain: float, U: np.ndarray, L: np.ndarray, end: Relaxed | None, evaluations: int
) -> Point:
    M = U @ one_minus_exp(L) @ U.T
    if end is None:
        return Point(gain, M, U, L, 0.0, 0.0, evaluations=evaluations)
    found, nothing = output.labels(M), output.labels(np.zeros_like(M))
    value = (float(np.trace(M)) - float(np.trace(L))) / 2 + gain * (found.entropy - nothing.entropy)
    error = gain * (found.entropy_error + nothing.entropy_error)
    return Point(
        gain,
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
        errors=np.abs(end.model.U) @ end.errors @ np.abs(end.model.U).T,
    )


def _normalised(S: np.ndarray) -> np.ndarray:
    return S / np.linalg.norm(S, 2)
