r"""State evolution of several projections: Bayes-optimal learning and AMP as fixed points of an r x r matrix.

With the information E[g g^T](M) of the channel and the Gaussian prior N(0, I_r) the fixed points solve

    Mhat = alpha E[g g^T](M),    M = I - (I + Mhat)^{-1},

and are the stationary points of the free entropy (relative to knowing nothing)

    phi(M) = Tr M / 2 + log det(I - M) / 2 + alpha (Psi(M) - Psi(0)).

AMP reaches the smallest fixed point above an infinitesimal positive start: directions on which the labels have a mean
are learned at once, those on which a small overlap grows are learned next, and both are looked for again given what is
known, until no positive perturbation grows. Without noise a direction may be recovered exactly: the labels that depend
on k directions U only, and not flatly, must be more than k per unknown, for U and for what is left of U once any part
of it is known. The rest then sees the channel in which U is known.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np

from solvable.channels.multi import Linearisation, MultiChannel, complement
from solvable.core.status import Status
from solvable.engine.growth import growing_overlap, support, trivial_directions
from solvable.engine.labels import Labels
from solvable.engine.matrix_points import MatrixFixedPoints, Point, collect
from solvable.engine.matrix_relaxation import LocalModel, Relaxed, relax
from solvable.engine.symmetric import log_one_plus, one_minus_exp, tidy

_SEED = 0.01
"""The size of the overlap given to a growing direction before it is followed."""
_INFORMED = 1e-3
"""The V from which informed starts set out."""
_FORGOTTEN = 1e-8
"""Directions with a smaller overlap are not learned."""
_UNSTABLE = 0.02
"""How far the largest eigenvalue of the measured Jacobian must exceed one to count as unstable."""


class MatrixStateEvolution:
    """Fixed points of one channel of r projections with a Gaussian prior."""

    def __init__(self, channel: MultiChannel):
        self.channel = channel
        self.labels = Labels(channel)
        self._frozen: dict[bytes, MatrixStateEvolution] = {}
        self._linearised: dict[tuple[bytes, bytes], Linearisation] = {}
        self._masses: dict[bytes, float] = {}
        self._climbed: dict[float, Point] = {}
        self._largest: dict[float, Point] = {}
        self._optimal: dict[float, Point] = {}

    @property
    def projections(self) -> int:
        return self.channel.projections

    @property
    def calls(self) -> int:
        """How often the information of the channel, or of one with known directions, has been evaluated."""
        return self.labels.calls + sum(child.calls for child in self._frozen.values())

    def uninformed(self, alpha: np.ndarray) -> MatrixFixedPoints:
        """The fixed points that AMP reaches from an uninformed start."""
        return collect([self.uninformed_point(a) for a in _ascending(alpha)], alpha)

    def optimal(self, alpha: np.ndarray) -> MatrixFixedPoints:
        """The fixed points of largest free entropy: what no learner can beat."""
        ascending = _ascending(alpha)
        for a in ascending:
            self.uninformed_point(a)
        # From above: what is known at a larger alpha bounds what can be known at a smaller one.
        return collect([self.optimal_point(a) for a in reversed(ascending)], alpha)

    def free_entropy(self, M: np.ndarray, alpha: float) -> float:
        """phi at any M with eigenvalues below one."""
        found, nothing = self.labels(M), self.labels(np.zeros_like(M))
        log_det = float(np.log(np.linalg.eigvalsh(np.eye(len(M)) - M)).sum())
        return (float(np.trace(M)) + log_det) / 2 + alpha * (found.entropy - nothing.entropy)

    def uninformed_point(self, alpha: float) -> Point:
        """The uninformed fixed point at one alpha, continued from the nearest smaller alpha already solved."""
        alpha = float(alpha)
        if alpha not in self._climbed:
            below = [p for p in self._climbed.values() if p.alpha < alpha and p.status == Status.CONVERGED]
            before = max(below, key=lambda p: p.alpha, default=None)
            self._climbed[alpha] = self.climb(alpha, before)
        return self._climbed[alpha]

    def optimal_point(self, alpha: float) -> Point:
        """The fixed point of largest free entropy at one alpha, among those that different starts lead to."""
        alpha = float(alpha)
        if alpha not in self._optimal:
            self._optimal[alpha] = self._best(alpha)
        return self._optimal[alpha]

    def largest_point(self, alpha: float) -> Point:
        """The fixed point below everything known, continued from the nearest larger alpha already solved."""
        alpha = float(alpha)
        if alpha not in self._largest:
            above = [p for p in self._largest.values() if p.alpha > alpha and p.status == Status.CONVERGED]
            start = min(above, key=lambda p: p.alpha, default=None)
            if start is None or start.exact is not None:
                start = self._known(np.eye(self.projections), alpha)
            self._largest[alpha] = self.climb(alpha, start)
        return self._largest[alpha]

    def climb(self, alpha: float, start: Point | None = None, within: np.ndarray | None = None) -> Point:
        """Follow the iteration from `start` (nothing, if None) to a stable fixed point.

        `within` (r x w) restricts learning to a subspace: what the labels say of other directions is ignored.
        """
        r = self.projections
        within = np.eye(r) if within is None else within
        if alpha <= 0:
            return self._point(alpha, np.zeros((r, 0)), np.zeros((0, 0)), None, 0)
        if start is not None and start.exact is not None and self.pins(start.exact, alpha):
            return self._exactly(start.exact, alpha, start, within)
        U, L, model = np.zeros((r, 0)), np.zeros((0, 0)), None
        if start is not None and start.exact is None:
            U, L, model = start.U, start.L, start.model
        end, evaluations = None, 0
        for _ in range(3 * r + 2):
            if U.shape[1]:
                end, exact, used = self._relaxed(alpha, U, L, model)
                evaluations += used
                if exact is not None:
                    return self._exactly(exact, alpha, None, within)
                if end.status != Status.CONVERGED:
                    L = end.L
                    break
                if end.radius > 1 + _UNSTABLE + end.radius_error:
                    L, model = end.L + _SEED * _normalised(end.push), end.model
                    continue
                U, L, model = _forget(U, end)
            seed = self._growing(alpha, U, L, within)
            if seed is None:
                break
            (U, L), model = seed, None
        else:
            end = None if end is None else end._replace(status=Status.UNSTABLE)
        return self._point(alpha, U, L, end if U.shape[1] else None, evaluations)

    def pins(self, directions: np.ndarray, alpha: float) -> bool:
        """Whether, without noise, exact knowledge of these directions is stable."""
        return alpha > self.alpha_exact(directions)

    def alpha_exact(self, directions: np.ndarray) -> float:
        """The alpha above which exact knowledge of these directions (r x k) is stable.

        For each part W of them that may be known (columns), the labels that depend on them, but not on W alone, must
        exceed the unknowns left: alpha (mass(all) - mass(W)) > k - dim W. Infinite with noise or discrete labels.
        """
        k = directions.shape[1]
        if not self.channel.deterministic or self.channel.discrete or not k:
            return np.inf
        whole = self._mass(directions)
        parts = (list(chosen) for size in range(k) for chosen in itertools.combinations(range(k), size))
        masses = ((whole - self._mass(directions[:, part]), k - len(part)) for part in parts)
        return max(left / mass if mass > 1e-12 else np.inf for mass, left in masses)

    def frozen(self, directions: np.ndarray) -> MatrixStateEvolution:
        """The state evolution of the other directions once these are known exactly."""
        key = np.round(directions, 10).tobytes()
        if key not in self._frozen:
            self._frozen[key] = MatrixStateEvolution(self.channel.frozen(directions))
        return self._frozen[key]

    def linearisation(self, M: np.ndarray, basis: np.ndarray) -> Linearisation:
        """The channel's linearisation, computed once for each M and basis."""
        key = (np.round(M, 12).tobytes(), np.round(basis, 10).tobytes())
        if key not in self._linearised:
            found = self.channel.linearisation(M, basis)
            if not (np.isfinite(found.trivial).all() and np.isfinite(found.easy).all()):
                raise ArithmeticError(f"the linearisation of {self.channel!r} at M = {M.tolist()} is not finite.")
            self._linearised[key] = found
        return self._linearised[key]

    @functools.cached_property
    def subspaces(self) -> list[np.ndarray]:
        """The coordinate subspaces, of which a better fixed point may know one: smallest first, the whole last."""
        r = self.projections
        sizes = range(1, r + 1)
        return [np.eye(r)[:, list(axes)] for size in sizes for axes in itertools.combinations(range(r), size)]

    def _best(self, alpha: float) -> Point:
        uninformed = self.uninformed_point(alpha)
        found = [uninformed]
        for U in self.subspaces:
            if self.pins(U, alpha):
                found.append(self._exactly(U, alpha, None, np.eye(self.projections), optimal=True))
        # Exact recovery has an infinite free entropy: where it is possible the rest need not be tried.
        if max(point.rate for point in found) <= 0:
            largest = self.largest_point(alpha)
            if not _same(uninformed, largest):
                found += [largest, *(self.climb(alpha, self._known(U, alpha)) for U in self.subspaces[:-1])]
        found = [p for p in found if p.status == Status.CONVERGED] or found
        best = max(found, key=lambda p: (round(p.rate, 9), p.value))
        for other in found:
            close = abs(other.value - best.value) <= 1e-8 + other.value_error + best.value_error
            if close and abs(other.rate - best.rate) < 1e-9 and not _same(other, best):
                return dataclasses.replace(best, status=Status.AMBIGUOUS_BRANCH)
        return best

    def _known(self, U: np.ndarray, alpha: float) -> Point:
        """A start that knows the directions U, up to V = 1e-3, and nothing else."""
        L = -np.log(_INFORMED) * np.eye(U.shape[1])
        return Point(alpha, U @ one_minus_exp(L) @ U.T, U, L, 0.0, 0.0)

    def _relaxed(
        self, alpha: float, U: np.ndarray, L: np.ndarray, model: LocalModel | None
    ) -> tuple[Relaxed, np.ndarray | None, int]:
        """The fixed point within U, or the directions that become exactly known on the way; and the evaluations."""
        k, used = U.shape[1], 0
        sharp = 1 if any(self.pins(exact, alpha) for exact in [*self.subspaces, U]) else 0
        while True:
            end = relax(self.labels, alpha, U, L, model, stop_deep=sharp)
            used += end.evaluations
            if not end.deep:
                return end, None, used
            exact = self._sharp_directions(U, end.L)
            if self.pins(exact, alpha):
                return end, exact, used
            # Not these alone: follow on until further directions are as sharp, or to a fixed point close by.
            sharp = exact.shape[1] + 1 if exact.shape[1] < k else 0
            L, model = end.L, end.model

    def _growing(
        self, alpha: float, U: np.ndarray, L: np.ndarray, within: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The learned directions and L with those added that the labels or a growing overlap bring; None if none."""
        basis = within @ np.linalg.svd(within.T @ U)[0][:, U.shape[1] :] if U.shape[1] else within
        if not basis.shape[1]:
            return None
        basis = tidy(basis)
        M = U @ one_minus_exp(L) @ U.T
        lin = self.linearisation(M, basis)
        new = trivial_directions(lin)
        if new.shape[1]:
            wider = np.column_stack([U, new])
            return wider, log_one_plus(alpha * wider.T @ self.labels(M).information @ wider)
        rate, push = growing_overlap(lin)
        if alpha * rate <= 1 + alpha * lin.error:
            return None
        wider = np.column_stack([U, support(lin, push)])
        seed = np.zeros((wider.shape[1],) * 2)
        seed[: len(L), : len(L)] = L
        added = wider[:, U.shape[1] :]
        seed[len(L) :, len(L) :] = _SEED * _normalised(added.T @ basis @ push @ basis.T @ added)
        return wider, seed

    def _sharp_directions(self, U: np.ndarray, L: np.ndarray) -> np.ndarray:
        """The directions in which V is below the channel's resolution."""
        values, vectors = np.linalg.eigh(L)
        sharp = values > self.labels.sharp
        return tidy(U if sharp.all() else U @ vectors[:, sharp], 1e-2)

    def _exactly(
        self, exact: np.ndarray, alpha: float, start: Point | None, within: np.ndarray, optimal: bool = False
    ) -> Point:
        """The point with these directions known exactly and the others where that knowledge leads them."""
        r, rest = self.projections, complement(exact)
        M = exact @ exact.T
        rate = (alpha * self._mass(exact) - exact.shape[1]) / 2
        empty = np.zeros((r, 0)), np.zeros((0, 0))
        remaining = _inside(rest, within)
        if not remaining.shape[1]:
            return Point(alpha, M, *empty, 0.0, 0.0, rate=rate, exact=exact)
        child = self.frozen(exact)
        if optimal:
            inner = child.optimal_point(alpha)
        elif remaining.shape[1] == rest.shape[1]:
            inner = child.uninformed_point(alpha)
        else:
            inner = child.climb(alpha, start.inner if start is not None else None, rest.T @ remaining)
        return Point(
            alpha,
            M + rest @ inner.M @ rest.T,
            *empty,
            inner.value,
            inner.value_error,
            inner.status,
            inner.residual,
            inner.uncertainty,
            inner.radius,
            inner.speed,
            inner.evaluations,
            rate + inner.rate,
            exact,
            inner,
        )

    def _mass(self, directions: np.ndarray) -> float:
        key = np.round(directions, 10).tobytes()
        if key not in self._masses:
            self._masses[key] = self.channel.pinned_mass(directions) if directions.shape[1] else 0.0
        return self._masses[key]

    def _point(self, alpha: float, U: np.ndarray, L: np.ndarray, end: Relaxed | None, evaluations: int) -> Point:
        M = U @ one_minus_exp(L) @ U.T
        if end is None:
            return Point(alpha, M, U, L, 0.0, 0.0, evaluations=evaluations)
        found, nothing = self.labels(M), self.labels(np.zeros_like(M))
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


def _inside(rest: np.ndarray, within: np.ndarray) -> np.ndarray:
    """The part (r x k) of the span of `rest` that lies in the span of `within`."""
    if within.shape[0] == within.shape[1]:
        return rest
    left, size, _ = np.linalg.svd(rest.T @ within, full_matrices=False)
    return rest @ left[:, size > 1 - 1e-6]


def _forget(U: np.ndarray, end: Relaxed) -> tuple[np.ndarray, np.ndarray, LocalModel | None]:
    """Leave out the directions whose overlap has decayed."""
    values, vectors = np.linalg.eigh(end.L)
    kept = values > _FORGOTTEN
    if kept.all():
        return U, end.L, end.model
    return U @ vectors[:, kept], np.diag(values[kept]), None


def _normalised(S: np.ndarray) -> np.ndarray:
    return S / np.linalg.norm(S, 2)


def _same(a: Point, b: Point) -> bool:
    return bool(np.abs(a.M - b.M).max() <= 1e-5 + a.uncertainty + b.uncertainty)


def _ascending(alpha: np.ndarray) -> list[float]:
    return sorted({float(a) for a in np.ravel(alpha)})
