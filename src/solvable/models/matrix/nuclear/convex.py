r"""Least squares under a penalty on the trace, over positive semi-definite matrices: the runs of `NuclearNorm`.

Times $d^2$, the objective is $P(S) = |y - \mathcal{F} S|^2 + \lambda d\, \mathrm{Tr}\, S$ with
$(\mathcal{F} S)_\mu = \mathrm{Tr}[G_\mu S]$. Its dual bounds the minimum from below and so certifies a solution:

    min_S P(S) = max_u 2 u.y - |u|^2   over the u with   2 F* u <= lambda d I.

**Small penalties.** Proximal gradient takes ever more steps as the penalty falls. Instead the dual is solved by
proximal steps: with v = u / lambda, and an extra penalty $\kappa$ that shrinks from step to step,

    S <- argmin |y + kappa v - F S|^2 + (lambda + kappa) d Tr S,    v <- (y + kappa v - F S) / (lambda + kappa).

A fixed point solves the problem of penalty $\lambda$ whatever $\kappa$ is. With $\lambda = 0$ it is the limit of a
vanishing penalty: the interpolator of least trace where there is one, otherwise semi-definite least squares.

**More than one solution.** A sample of quadratic features demands $\mathrm{Tr}\, S \ge -\sqrt d\, y$, since
$x^T S x \ge 0$. At small d noise can make this the only bound that counts: then every interpolator orthogonal to that
x with this trace is a solution, and what a run returns is one of them, of high rank. `details["unique"]` tells: with
more than n entries in a symmetric matrix of the rank of S there are others.
"""

from __future__ import annotations

import numbers
from typing import NamedTuple, Protocol

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.operators import Features
from solvable.models.matrix.model import MatrixData, MatrixModel, errors
from solvable.models.matrix.nuclear.theory import NuclearNorm
from solvable.numerics.proximal_gradient import proximal_gradient

_GAP = 1e-9
"""The duality gap over the objective at which a solution is accepted. The relative error of S is of that size, up to
some ten times as large, in all cases that we tried."""
_LOOSE_GAP = 1e-3
"""The gap above which descent on a network of d units or more, or the stages of a small penalty, went wrong."""
_SMALL = 2e-3
"""Penalties below this share of the smallest one that makes S vanish are reached through larger ones."""
_FIRST, _SHRINK, _STAGES = 0.1, 0.3, 40
"""The first extra penalty, over the same; its ratio from stage to stage; and the largest number of stages."""
_ERROR = 1e-4
"""The estimated relative error of S at which the stages end."""
_ZERO = 1e-6
"""Eigenvalues below this share of the norm count as zero, or below the relative error where that is larger."""
_STEPS, _NETWORK_STEPS = 50_000, 20_000
_START = 0.1
"""The size of the eigenvalues of S at the start, over that of the teacher: small weights."""


class Solver(Protocol):
    """Minimises $|y - F S|^2 + \\lambda d\\,\\mathrm{Tr}\\,S$, starting where it last ended."""

    convex: bool
    iterations: int

    def solve(self, labels: np.ndarray, penalty: float, tolerance: float) -> tuple[np.ndarray, bool]:
        """The minimiser S, and whether the solver's own test with this relative tolerance was met."""
        ...


class Minimum(NamedTuple):
    """The minimiser S and whether it is one; the relative duality gap (without penalty that of the last stage), the
    estimated relative error of S (0 if there were no stages) and the penalty of the last stage."""

    S: np.ndarray
    converged: bool
    duality_gap: float
    error: float
    penalty: float


@simulation(MatrixModel, NuclearNorm, references=("erba2025nuclear",))
def run_nuclear_norm(model: MatrixModel, learner: NuclearNorm, data: MatrixData, rng: np.random.Generator) -> Outcome:
    """Proximal gradient on S, or descent on the weights of a network; with a width below d the latter only."""
    operator, penalty, d = data.operator, float(learner.penalty), data.operator.size
    units = hidden_units(learner.width, d)
    if learner.solver == "network":
        solver = NetworkDescent(operator, units, rng)
    elif units >= d:
        solver = ProximalGradient(operator, rng)
    else:
        takes = f"'network' when `width` limits the rank ({units} units for d = {d}): that problem is not convex"
        raise bad_parameter("solver", learner.solver, takes)
    found = minimise(solver, operator, data.y, penalty)
    S, residual = found.S, data.y - operator.forward(found.S)
    # Labels of variance 2 |A|_F^2 / d come from a matrix of this norm, should S itself be zero to rounding.
    size = max(float(np.linalg.norm(S)), float(np.sqrt(d * np.mean(data.y**2) / 2)))
    rank = int(np.sum(np.linalg.eigvalsh(S) > max(_ZERO, found.error) * size))
    metrics = errors(S, data.truth) | {
        "training_error": float(np.mean(residual**2)),
        "training_loss": float(residual @ residual) / d**2 + penalty / d * float(np.trace(S)),
        "rank": rank / d,
    }
    details = {
        "iterations": solver.iterations,
        "duality_gap": found.duality_gap,
        "error": found.error,
        "last_penalty": found.penalty,
        "units": units,
    }
    if solver.convex:
        details["unique"] = rank * (rank + 1) // 2 <= operator.samples
    return Outcome(metrics, S, found.converged, details=details)


def hidden_units(width: int | float | None, d: int) -> int:
    """The number of units that a width stands for: d if None, the width if whole, otherwise its share of d."""
    if width is None:
        return d
    return int(width) if isinstance(width, numbers.Integral) else max(1, round(width * d))


def minimise(solver: Solver, operator: Features, labels: np.ndarray, penalty: float) -> Minimum:
    """The minimum for any penalty from 0 on: at once, or for a small one through extra penalties that shrink.

    Stages end when the estimated error of S is small: the change over the last one, continued as a geometric series,
    and ten times the tolerance of its solution. The duality gap must be small as well where the problem is convex.
    """
    d = operator.size

    def gap(S: np.ndarray, labels: np.ndarray, penalty: float) -> float:
        residual = labels - operator.forward(S)
        return duality_gap(labels, residual, operator.adjoint(residual), float(np.trace(S)), penalty * d)

    largest = 2 * float(np.linalg.eigvalsh(operator.adjoint(labels))[-1]) / d  # from this penalty on S = 0
    if penalty >= _SMALL * largest:
        S, solved = solver.solve(labels, penalty, _GAP)
        found = gap(S, labels, penalty)
        return Minimum(S, solved and not (solver.convex and found > _LOOSE_GAP), found, 0.0, penalty)
    S, multipliers = np.zeros((d, d)), np.zeros_like(labels)
    extra, tolerance, change = _FIRST * largest, 1e-3, np.inf
    for _ in range(_STAGES):
        shifted, total = labels + extra * multipliers, penalty + extra
        before, (S, solved) = S, solver.solve(shifted, total, tolerance)
        change_before, change = change, float(np.linalg.norm(S - before) / max(np.linalg.norm(S), 1e-300))
        ratio = min(change / max(change_before, 1e-300), 0.9)
        error = change * ratio / (1 - ratio) + 10 * tolerance
        found = gap(S, labels, penalty) if penalty else gap(S, shifted, total)
        certified = not solver.convex or found <= _LOOSE_GAP
        if not solved or (error <= _ERROR and certified):
            break
        if solver.convex:  # without convexity a fixed point need not be stable: then the penalty alone shrinks
            multipliers = (shifted - operator.forward(S)) / total
        extra, tolerance = _SHRINK * extra, max(min(tolerance, 0.003 * change), _GAP)
    return Minimum(S, solved and error <= _ERROR and certified, found, error, total)


class ProximalGradient:
    r"""Accelerated proximal gradient, from where it last ended.

    $S \leftarrow \mathrm{prox}(Y + \frac{2}{L} \mathcal{F}^*(y - \mathcal{F} Y))$, where the prox lowers the
    eigenvalues by $\lambda d/L$ and clips them at 0, and L bounds the curvature $2\|\mathcal{F}\|^2$. The gradient is
    known at every S, so that the duality gap takes only the eigenvalues of F* r.
    """

    convex = True

    def __init__(self, operator: Features, rng: np.random.Generator, max_steps: int = _STEPS):
        self.operator, self.max_steps, self.iterations = operator, max_steps, 0
        self.S = np.zeros((operator.size, operator.size))
        self.L = 2.1 * largest_square(operator, rng)

    def solve(self, labels: np.ndarray, penalty: float, tolerance: float) -> tuple[np.ndarray, bool]:
        """The minimiser, and whether the duality gap fell below `tolerance` times the objective."""
        trace_penalty = penalty * self.operator.size
        steps = proximal_gradient(
            self.operator.forward,
            lambda FS: -2 * self.operator.adjoint(labels - FS),
            lambda S, L: _lowered(S, trace_penalty / L),
            lambda a, b: float(np.sum((a - b) ** 2)),
            self.S,
            self.L,
            linear=True,
        )
        for step, found in enumerate(steps):
            if self.iterations >= self.max_steps:
                break
            self.S, self.L, self.iterations = found.x, found.L, self.iterations + 1
            assert found.gradient is not None  # it is linear
            if step % 10 == 0:
                trace = float(np.trace(found.x))
                if duality_gap(labels, labels - found.image, found.gradient / -2, trace, trace_penalty) <= tolerance:
                    return self.S, True
        return self.S, False


class NetworkDescent:
    r"""Trains a network under weight decay by L-BFGS, a quasi-Newton descent on V, from small random weights.

    A network of p units computes $\hat y = \mathrm{Tr}[G S]$ with $S = W^T W/\sqrt{pd}$. With $V = W/(pd)^{1/4}$ this
    is $S = V^T V$, $\mathrm{Tr}\, S = |V|_F^2$, and the gradient of $|y - \mathcal{F}S|^2$ is
    $-4 V \mathcal{F}^*(y - \mathcal{F}S)$: the width enters through the number of rows of V only. Weight decay
    $\lambda_W |W|_F^2$ on the sum of squares is the penalty $\lambda d\,\mathrm{Tr}\,S$ with
    $\lambda = \lambda_W \sqrt{p/d}$. With d units or more every local minimum is global: it is the convex problem's.
    With fewer units it may not be.
    """

    def __init__(self, operator: Features, units: int, rng: np.random.Generator, max_steps: int = _NETWORK_STEPS):
        self.operator, self.units, self.max_steps, self.iterations = operator, units, max_steps, 0
        self.convex = units >= operator.size
        self._rng = rng
        self.V: np.ndarray | None = None

    def solve(self, labels: np.ndarray, penalty: float, tolerance: float) -> tuple[np.ndarray, bool]:
        """S at the end of the descent, and whether it ended by itself: the objective falls no more, relatively."""
        from scipy.optimize import minimize  # loaded when needed: it takes long to import

        d, decay = self.operator.size, penalty * self.operator.size
        V = self._start(labels, tolerance)
        # L-BFGS compares changes to the larger of the objective and 1: with these units the objective is.
        unit = 1e-9 * max(float(labels @ labels), 1e-300)

        def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
            V = weights.reshape(self.units, d)
            residual = labels - self.operator.forward(V.T @ V)
            slope = 2 * decay * V - 4 * V @ self.operator.adjoint(residual)
            return float(residual @ residual + decay * weights @ weights) / unit, slope.ravel() / unit

        steps = max(1, self.max_steps - self.iterations)
        options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": max(1e-3 * tolerance**2, 1e-14), "gtol": 0.0}
        found = minimize(objective, V.ravel(), jac=True, method="L-BFGS-B", options=options)
        self.V = V = found.x.reshape(self.units, d)
        self.iterations += int(found.nit)
        return V.T @ V, found.status == 0

    def _start(self, labels: np.ndarray, tolerance: float) -> np.ndarray:
        noise = self._rng.standard_normal((self.units, self.operator.size)) / np.sqrt(self.operator.size)
        if self.V is not None:  # a unit of weight zero would stay there: move by less than was solved for
            return self.V + tolerance * np.linalg.norm(self.V) / np.linalg.norm(noise) * noise
        # The variance of a label is about 2 |A*|_F^2 / d.
        return np.sqrt(_START * np.sqrt(np.mean(labels**2))) * noise


def duality_gap(
    labels: np.ndarray, residual: np.ndarray, adjoint_residual: np.ndarray, trace: float, trace_penalty: float
) -> float:
    r"""$(P(S) - D(u))/P(S)$ for $D(u) = 2 u\cdot y - |u|^2$ and the best feasible multiple u of the residual.

    `adjoint_residual` is $\mathcal{F}^*(y - \mathcal{F}S)$ and `trace_penalty` $\lambda d$. Without penalty no multiple
    of the residual is feasible in general, and the gap is that to 0.
    """
    fit, along = float(residual @ residual), float(residual @ labels)
    primal = fit + trace_penalty * trace
    if primal <= 0:
        return 0.0
    top = float(np.linalg.eigvalsh(adjoint_residual)[-1])
    largest = trace_penalty / (2 * top) if top > 0 else np.inf
    share = max(min(largest, along / fit), 0.0) if fit > 0 else 0.0
    return (primal - 2 * share * along + share**2 * fit) / primal


def largest_square(operator: Features, rng: np.random.Generator, steps: int = 30) -> float:
    """The largest eigenvalue of F* F by power iteration, from below."""
    S = rng.standard_normal((operator.size, operator.size))
    S, value = S + S.T, 0.0
    for _ in range(steps):
        S = S / np.linalg.norm(S)
        image = operator.adjoint(operator.forward(S))
        value, S = float(np.sum(S * image)), image
    return value


def _lowered(M: np.ndarray, by: float) -> np.ndarray:
    """M with its eigenvalues lowered and clipped at 0: the prox of `by` times the trace, on the semi-definite cone."""
    values, vectors = np.linalg.eigh(M)
    kept = values > by
    return (vectors[:, kept] * (values[kept] - by)) @ vectors[:, kept].T
