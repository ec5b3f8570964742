r"""Approximate message passing: one loop for any measurement operator and any pair of denoisers.

The unknown is $W^*$ (d x p), seen through $z_i = (X W^*)_i$ and labels $y_i \sim P(y|z_i)$. Each step is

    V     = I - Q,  Q = W^T W / d, eigenvalues clipped to [vmin, 1]   covariance of z left by a posterior mean
    Omega = X W - O                                       leave-one-out mean of z; O is the memory of the correction
    g     = g_out(y, Omega, V)                            output denoiser: V^-1 (E[z | y, Omega, V] - Omega), or a prox
    a     = -(1/d) sum_i dg_i / dOmega_i                  Onsager coefficient: the empirical derivative, any sign
    B     = X^T g + W a                                   W* seen through Gaussian noise, at precision A
    W'    = f(B, a),  R = mean_k df_k / dB_k              signal denoiser and its mean response
    W    <- W + damping (W' - W)
    O    <- O + damping (g R - O)                         the same damping: the exact correction of the damped iteration

V is that of a posterior mean unless a side says otherwise: the signal, whose V then moves as slowly as W (a penalised
estimate has V = R), or the labels, where their scatter shows it. Likewise A is read off the norm of B or is a, as the
signal chooses.

Two roles that naive versions give to one matrix are kept apart: the Onsager coefficient is the measured derivative,
never clipped, while noise levels come from norms (V from W, A from B). With one matrix for both, or with W damped and
O not, about half of the runs on hard-to-start targets stop at a false fixed point. The damping of 1/2 kills modes that
change sign at each step; a start with |W|^2 of order one lets the norm align before it saturates; directions that fall
below the noise floor 0.01/d are kept alive with fresh noise, because a later stage of a staircase may need them.

An unknown that is seen through an interaction of itself, a spiked matrix or tensor, runs in the same loop
(`interactions`): X W is then the field of every row at once, B = g = Omega, and O has the earlier W in the place of g.

State evolution tracks the undamped loop (`damping=1`) exactly as d grows, from any start independent of X given W*.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from solvable.core.errors import bad_parameter
from solvable.core.status import Status
from solvable.engine.fluctuations import deviations, overlap_covariance
from solvable.engine.interactions import Interaction, Past
from solvable.engine.operators import Memory, Operator
from solvable.engine.sides import OutputDenoiser, OutputStep, SignalDenoiser, SignalStep
from solvable.numerics.symmetric import compose, eigh, times

_RATIO_OFFSET = 0.05
_RATIO_TOLERANCE = 0.2
_RATIO_ERRORS = 2.0
_RECOVERED_MOST = 1e-3
_LIVE = 20
"""A direction is live above this many noise floors."""
_NEAR = 0.03
"""The 1 - q below which a direction is nearly recovered: a few labels carry what is still learned about it."""
_STALLED = 0.1
"""By how much 1 - q of a nearly recovered direction may still fall while the run counts as still."""


@dataclasses.dataclass(frozen=True)
class History:
    """The order parameters along a run: at step t, `self_overlap[t]` = W^T W / d and `V[t]` as the step used them,
    `precision[t]` the A it found, `change[t]` the relative change of each eigendirection of the self-overlap."""

    self_overlap: np.ndarray
    V: np.ndarray
    precision: np.ndarray
    change: np.ndarray


@dataclasses.dataclass(frozen=True)
class AMPReport:
    """The end of a run, with what is needed to judge it without knowing the truth.

    Three estimates of one matrix must agree: A (norms), g^T g / d, and a (derivatives). `residual_ratios` and
    `derivative_ratios` are the eigenvalues of the last two relative to the first (0.05 added to each); sound runs have
    all of them within 0.2 of 1, or within two of their standard errors as sums over samples (`ratio_errors`, of both in
    turn). Where the output says itself what A is, `strength`, its ratios are the residual ones and there are no others.
    There are none for a signal that says its own V: for a penalised estimate the three are three things.
    Directions recovered so well that d V < 1, or that V is at its floor, are left out, since there g -> 0
    rightly, and so are those of which nothing was found. Whether they agree (`consistent`) and whether the run stopped
    moving (`converged`) are two facts: a run may do either without the other.
    `log_likelihood` is the mean leave-one-out log evidence of the labels and ranks the ends of different starts;
    `free_entropy` is the Bethe free entropy per unknown. Both are None if the denoisers do not provide them.
    `proposal` is what the signal side last proposed, of which `estimate` is the damped form: zeros are exact in it.
    `covariance` (p, p, p, p) is that of the entries of the overlap between instances of this size, expected from the
    run's own estimates (`fluctuations`); None where it is not known: the run did not stop, the weights are not
    Gaussian, the output does not tell the derivatives of each label, or the fixed point is not stable by them.
    """

    estimate: np.ndarray
    proposal: np.ndarray
    V: np.ndarray
    A: np.ndarray
    Omega: np.ndarray
    status: Status
    iterations: int
    residual_ratios: np.ndarray
    derivative_ratios: np.ndarray
    ratio_errors: np.ndarray
    log_likelihood: float | None
    free_entropy: float | None
    covariance: np.ndarray | None
    history: History

    @property
    def converged(self) -> bool:
        """Whether every live direction stopped moving."""
        return self.status == Status.CONVERGED

    @property
    def consistent(self) -> bool:
        """Whether the three estimates of A agree, whether or not the run stopped; never where it met a NaN."""
        ratios = np.concatenate([self.residual_ratios, self.derivative_ratios])
        tolerance = np.maximum(_RATIO_TOLERANCE, _RATIO_ERRORS * self.ratio_errors)
        return self.status != Status.NONFINITE and bool(np.all(np.abs(ratios - 1) < tolerance))

    @property
    def nearly_recovered(self) -> bool:
        """Whether the run claims to know every direction but for 3 %."""
        return bool(np.all(np.linalg.eigvalsh(self._self_overlap) > 1 - _NEAR))

    @property
    def trivial(self) -> bool:
        """Whether the run found nothing: no direction is above the noise that keeps it alive."""
        return bool(np.all(np.linalg.eigvalsh(self._self_overlap) <= _LIVE * _noise_floor(len(self.estimate))))

    def spread(self, turn: np.ndarray | None = None) -> np.ndarray:
        """The standard deviation (p x p) between instances expected of each entry of the overlap, NaN if not known.

        It is that of the overlap with W turned, W `turn`, where `turn` (p x p) is given.
        """
        p = self.estimate.shape[1]
        return (
            np.full((p, p), np.nan)
            if self.covariance is None
            else deviations(self.covariance, np.eye(p) if turn is None else turn)
        )

    @property
    def _self_overlap(self) -> np.ndarray:
        finite = np.nan_to_num(self.estimate, nan=0.0, posinf=0.0, neginf=0.0)
        return finite.T @ finite / len(finite)


def uninformed_start(rng: np.random.Generator, d: int, p: int) -> np.ndarray:
    """Pure noise with |W|^2 = p/4 on average: small enough to align with the truth before its norm saturates."""
    return 0.5 / np.sqrt(d) * rng.standard_normal((d, p))


def amp(
    operator: Operator,
    output: OutputDenoiser,
    signal: SignalDenoiser,
    start: np.ndarray,
    rng: np.random.Generator,
    *,
    memory: np.ndarray | None = None,
    damping: float = 0.5,
    max_steps: int = 600,
    tolerance: float = 1e-4,
    vmin: float = 1e-6,
    patience: int = 60,
    callback: Callable[[int, np.ndarray], None] | None = None,
) -> AMPReport:
    """Run the iteration of this module from `start` (d, p) until every live direction is still.

    A direction of W^T W / d is live above 20 times the noise floor, and still when it moved by less than `tolerance` of
    its length; or when it is recovered (1 - q below 10 `vmin`, and below 0.001) and its change no longer falls but
    stays below the root of that, the width that the floor of V leaves; or when it is nearly recovered (1 - q below
    0.03) and 1 - q moved by less than a tenth of itself in the last `patience` steps: where there are just as many
    labels as unknowns it falls like 1/t, and the few labels that matter keep W trembling. The run converges after two
    still steps if all directions are live, after `patience` still steps otherwise (the others may yet grow; raise
    `patience` close to a threshold). `memory` (n, p) is the Onsager term of the start: None for a start that does not
    depend on X, or on the interaction, given the truth. `damping` is the weight of the new iterate, 1 for none.
    `callback(t, W)` is called with W before each step t = 0, 1, ... and once more with the final W.
    """
    n, d = operator.samples, operator.dimension
    start = np.asarray(start, dtype=float)
    if start.ndim != 2 or start.shape[0] != d:
        raise bad_parameter("start", f"array of shape {start.shape}", f"of shape ({d}, p)")
    if not 0 < damping <= 1:
        raise bad_parameter("damping", damping, "in (0, 1]")
    if max_steps < 1:
        raise bad_parameter("max_steps", max_steps, "at least 1")
    p = start.shape[1]
    floor = _noise_floor(d)
    W = start
    past = _memory(operator, memory, p)
    said: np.ndarray | None = None
    trace: list[tuple[np.ndarray, ...]] = []
    last: _Step | None = None
    stillness, status = _Stillness(floor, tolerance, vmin, patience, p), Status.MAX_STEPS

    if not np.isfinite(W).all():
        return _report(W, None, Status.NONFINITE, trace, n, p, vmin)

    for t in range(max_steps):
        if callback is not None:
            callback(t, W)
        Q = W.T @ W / d
        q, u = eigh(Q)
        if q[0] < floor:
            low = q < floor
            W = W + np.sqrt(floor) * (rng.standard_normal((d, low.sum())) @ u[:, low].T)
            Q = W.T @ W / d
            q, u = eigh(Q)
        v = np.minimum(np.maximum(1 - q, vmin), 1.0)
        V = compose(v, u) if said is None else said
        Omega = operator.forward(W)
        Omega -= past.onsager(W)
        out = output(Omega, V)
        V = V if out.variance is None else out.variance
        a = (n / d) * out.minus_derivative
        B = operator.adjoint(out.g)
        B += times(W, a)
        if not np.isfinite(B).all():
            status = Status.NONFINITE
            break
        new = signal(B, a)
        step = new.estimate - W
        change = np.sqrt(_diagonal(step.T @ step, u) / (d * q))
        if not np.isfinite(change).all():
            status = Status.NONFINITE
            break
        by_norm = out.variance is None and new.variance is None
        trace.append((Q, V, new.precision, change))
        last = _Step(V, Omega, B, a, out, new, u, v if by_norm else _diagonal(V, u), by_norm)
        said = None if new.variance is None else V + damping * (new.variance - V)
        step *= damping
        past.follow(W, out.g, new.response, damping)
        W = W + step
        if stillness.reached(q.tolist(), change.tolist(), by_norm):
            status = Status.CONVERGED
            break

    if callback is not None:
        callback(len(trace), W)
    return _report(W, last, status, trace, n, p, vmin)


def _memory(operator: Operator, start: np.ndarray | None, p: int) -> Memory | Past:
    if isinstance(operator, Interaction):
        return operator.memory() if start is None else operator.memory(start)
    return Memory.of(start, operator.samples, p)


def _noise_floor(d: int) -> float:
    """The q below which a direction is kept alive with fresh noise."""
    return 0.01 / d


class _Stillness:
    """The stopping rule of `amp`; a handful of numbers, for which plain Python is faster than arrays."""

    def __init__(self, floor: float, tolerance: float, vmin: float, patience: int, p: int):
        self._live, self._tolerance, self._recovered = _LIVE * floor, tolerance, min(10 * vmin, _RECOVERED_MOST)
        self._width, self._patience = math.sqrt(self._recovered), patience
        self._before, self._steps = [np.inf] * p, 0
        self._past: collections.deque[list[float]] = collections.deque(maxlen=max(patience, 1))

    def reached(self, q: list[float], moves: list[float], by_norm: bool) -> bool:
        """Whether the run is over, given the self-overlap of each direction and its relative change.

        Only where V is had from the norm does a norm of one mean that a direction is recovered.
        """
        dead, settled = False, True
        past = self._past[0] if len(self._past) == self._past.maxlen else [-np.inf] * len(q)
        for q_j, now, before, long_ago in zip(q, moves, self._before, past, strict=True):
            if q_j <= self._live:
                dead = True
            elif now >= self._tolerance:
                recovered = 1 - q_j <= self._recovered and 0.9 * before < now < self._width
                stalled = self._recovered < 1 - q_j < _NEAR and abs(q_j - long_ago) < _STALLED * (1 - q_j)
                settled &= by_norm and (recovered or stalled)
        self._before = moves
        self._past.append(q)
        self._steps = self._steps + 1 if settled else 0
        return self._steps > (self._patience if dead else 1)


def _diagonal(S: np.ndarray, u: np.ndarray) -> np.ndarray:
    """$u_j^T S u_j$ for each column of u, for a positive S."""
    return S[0] if len(S) == 1 else np.abs(((S @ u) * u).sum(axis=0))


class _Step(NamedTuple):
    """The consistent set of quantities of one step, from which the report is made."""

    V: np.ndarray
    Omega: np.ndarray
    B: np.ndarray
    a: np.ndarray
    out: OutputStep
    new: SignalStep
    u: np.ndarray
    v: np.ndarray
    by_norm: bool


def _report(W: np.ndarray, last: _Step | None, status: Status, trace: list, n: int, p: int, vmin: float) -> AMPReport:
    if last is None:
        nan, none = np.full((p, p), np.nan), np.empty(0)
        history = History(np.empty((0, p, p)), np.empty((0, p, p)), np.empty((0, p, p)), np.empty((0, p)))
        return AMPReport(
            W, W, nan, nan, np.full((n, p), np.nan), status, 0, none, none, none, None, None, None, history
        )
    Q, V, precision, change = (np.stack(column) for column in zip(*trace, strict=True))
    A, log_Z, d = last.new.precision, last.out.log_Z, len(W)
    unknown = (d * last.v > 1) & (last.v > vmin)
    found = unknown & (_diagonal(Q[-1], last.u) > _LIVE * _noise_floor(d)) & (last.new.variance is None)
    g, derivatives = last.out.g, None if last.out.derivatives is None else last.out.derivatives()
    if last.out.strength is None:
        residual, residual_errors = _ratios(g.T @ g / d, g[:, :, None] * g[:, None, :], A, last.u[:, found], d)
        derivative, derivative_errors = _ratios(last.a, derivatives, A, last.u[:, found], d)
    else:
        residual, residual_errors = _ratios(n / d * last.out.strength, None, A, last.u[:, found], d)
        derivative, derivative_errors = np.empty(0), np.empty(0)
    converged = status == Status.CONVERGED
    return AMPReport(
        estimate=W,
        proposal=last.new.estimate,
        V=last.V,
        A=A,
        Omega=last.Omega,
        status=status,
        iterations=len(trace),
        residual_ratios=residual,
        derivative_ratios=derivative,
        ratio_errors=np.concatenate([residual_errors, derivative_errors]),
        log_likelihood=None if log_Z is None else float(np.mean(log_Z())),
        free_entropy=_free_entropy(last),
        covariance=_covariance(last, derivatives, last.u[:, unknown]) if converged else None,
        history=History(Q, V, precision, change),
    )


def _ratios(
    K: np.ndarray, samples: np.ndarray | None, A: np.ndarray, directions: np.ndarray, d: int
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of $A^{-1/2} K A^{-1/2}$ within `directions`, both offset so that A = 0 is harmless.

    With the standard error of each, K being the sum of `samples` (n, p, p) over d but for a sign; zero without them.
    """
    offset = _RATIO_OFFSET * np.eye(directions.shape[1])
    A_here, K_here = (directions.T @ M @ directions + offset for M in (A, K))
    if not K_here.size:
        return np.empty(0), np.empty(0)
    values, vectors = scipy.linalg.eigh(K_here, A_here)
    if samples is None:
        return values, np.zeros_like(values)
    x = directions @ vectors
    each = np.einsum("nab,aj,bj->nj", samples, x, x, optimize=True)
    return values, np.sqrt(len(each)) * each.std(axis=0) / d


def _covariance(step: _Step, derivatives: np.ndarray | None, directions: np.ndarray) -> np.ndarray | None:
    """That of the overlap between instances, zero in the recovered directions, which are not among `directions`."""
    p, k = directions.shape
    gaussian = step.by_norm and np.allclose(step.new.response @ (np.eye(p) + step.new.precision), np.eye(p), atol=1e-6)
    if derivatives is None or not gaussian:
        return None
    if not k:
        return np.zeros((p,) * 4)
    G = directions.T @ derivatives @ directions
    inside = overlap_covariance(step.out.g @ directions, G, directions.T @ step.V @ directions, len(step.B))
    if inside is None:
        return None
    return np.einsum("abcd,ia,jb,kc,ld->ijkl", inside, *[directions] * 4, optimize=True)


def _free_entropy(step: _Step) -> float | None:
    r"""The Bethe free entropy per unknown, equal to the replica-symmetric $\phi(Q)$ at a fixed point for large d:

    $\frac1d \{\sum_i [\log Z_i + \frac12 g_i^T V g_i] + \sum_k [\log Z_w(A, B_k) - B_k\cdot\hat w_k]\}
    + \frac12 \mathrm{Tr}\, A (\hat W^T \hat W / d + R)$, where R is the mean posterior covariance of a row.
    An interaction has a part of its own in the place of the sum over labels.
    """
    V, B, out, new = step.V, step.B, step.out, step.new
    if new.log_partition is None:
        return None
    if out.log_Z is not None:
        labels = np.sum(out.log_Z()) + 0.5 * np.vdot(out.g @ V, out.g)
    else:
        labels = None if out.bethe is None else out.bethe(new.estimate, new.response)
    if labels is None:
        return None
    d = B.shape[0]
    rows = new.log_partition() - np.vdot(B, new.estimate)
    second_moment = new.estimate.T @ new.estimate / d + new.response
    return float((labels + rows) / d + 0.5 * np.trace(new.precision @ second_moment))
