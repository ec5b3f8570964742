r"""Exact asymptotics of `NuclearNorm`: least squares over S >= 0 with a penalty on the trace, as a wide network learns.

The equations stand in `spectra.thresholded`. With $b = 2\alpha - Df$ the sum of squared residuals over d^2 is $D b^2$,
the penalty $\lambda K$. A penalty of 0 is the limit of a vanishing one: below the interpolation threshold b = 0 and
theta is positive, above it theta = 0. Without noise S is then A* itself from the recovery threshold on.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.engine.solvers.nested import Solution, solve, solve_interpolating
from solvable.models.matrix.model import MatrixModel
from solvable.models.matrix.nuclear.few_samples import FEW, few_samples
from solvable.models.matrix.nuclear.width import WidthTheory
from solvable.models.matrix.recovery import interpolation_point, least_trace_recovery, rank_share
from solvable.spectra import Discrete, Law
from solvable.spectra.thresholded import Thresholded, overlap_and_square, quadrature_error

_ROUNDING = 5e-13
_FAR = 1e6
"""How many times the largest eigenvalue theta may be: from there on S = 0, and integrals up to there would overflow."""
ERRORS = ("estimation_error", "generalization_error", "training_error", "training_loss", "rank")


class NuclearNorm(Learner):
    r"""The network of quadratic units trained with weight decay: least squares under a penalty on the trace.

    $\min_{S \succeq 0} \frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2
    + \frac{\lambda}{d} \mathrm{Tr}\, S$ with $\lambda$ = `penalty`. A network $S = W^T W/\sqrt{pd}$ of p >= d units
    trained on $\sum_\mu (y_\mu - \hat y_\mu)^2 + \lambda_W \|W\|_F^2$ solves the same problem with
    $\lambda = \lambda_W \sqrt{p/d}$. A penalty of 0 is the limit of a vanishing one.

    - `width`: None for p >= d; otherwise S has a rank of at most p: an integer is the number of units, a fraction up
      to 1 is the number of units over the dimension.
    - `solver`: how runs are made: `"convex"` (accelerated proximal gradient on S) or `"network"` (descent on W).
    """

    penalty: float = 0.0
    width: int | float | None = None
    solver: str = eqx.field(default="convex", static=True)

    def __check_init__(self):
        real_number("penalty", self.penalty, "a finite number, zero or positive", lambda x: x >= 0)
        if self.solver not in ("convex", "network"):
            raise bad_parameter("solver", self.solver, "'convex' or 'network'")
        if self.width is not None:
            takes = "None, an integer of at least 1 (units) or a fraction above 0 and up to 1 (units per dimension)"
            whole = isinstance(self.width, numbers.Integral)
            real_number("width", self.width, takes, lambda x: x >= 1 if whole else 0 < x <= 1)


class NuclearPoints(NamedTuple):
    """The solution at each alpha: D, u, theta, b = 2 alpha - Df, m = <S, A*>/d, q = |S|_F^2/d, the integrals, the
    metrics, how it ended."""

    D: np.ndarray
    u: np.ndarray
    theta: np.ndarray
    b: np.ndarray
    m: np.ndarray
    q: np.ndarray
    integrals: Thresholded
    metrics: dict[str, np.ndarray]
    residual: np.ndarray
    status: np.ndarray
    evaluations: np.ndarray


@theory(MatrixModel, NuclearNorm, references=("erba2025nuclear", "girardin2026width"))
def nuclear_norm(model: MatrixModel, learner: NuclearNorm, alpha: np.ndarray) -> Prediction:
    """The errors, losses and rank of the minimiser; differentiable in the penalty."""
    law, noise, alpha = model.law, float(model.noise), np.ravel(alpha)
    share = _width_share(learner.width, law)
    if share is not None:
        return _width_limited(law, noise, float(learner.penalty), share, alpha)
    penalty = float(jax.lax.stop_gradient(learner.penalty))
    points = nuclear_points(law, noise, penalty, alpha)
    metrics: dict[str, Any] = dict(points.metrics)
    if not isinstance(learner.penalty, numbers.Real):
        # A penalty that is differentiated: it differs from its value by its tangent only.
        slopes = penalty_slopes(points, penalty, alpha)
        metrics = {name: value + slopes[name] * (learner.penalty - penalty) for name, value in metrics.items()}
    with np.errstate(divide="ignore"):
        epsilon = 1 / (2 * points.b)
    return Prediction(
        metrics=metrics,
        order_parameters={"delta": np.sqrt(points.D), "theta": points.theta, "epsilon": epsilon},
        status=points.status,
        residual=points.residual,
        iterations=points.evaluations,
        uncertainty=uncertainties(law, noise, points, penalty, alpha),
    )


def nuclear_points(law: Law, noise: float, penalty: float, alpha: np.ndarray) -> NuclearPoints:
    """The solution for any law of eigenvalues, at an array of alpha."""
    recovered = np.zeros(alpha.shape, bool)
    if noise == 0 and penalty == 0:
        recovered = alpha >= least_trace_recovery(law)
    if noise == 0 and float(law.second_moment) == 0:
        recovered = np.full(alpha.shape, True)
    found = _placed(law, alpha, recovered)
    few = (alpha > 0) & (alpha < FEW) & ~recovered
    open_ = (alpha > 0) & ~recovered & ~few
    nothing = open_ & _shrunk_to_nothing(law, noise, penalty, alpha)
    if nothing.any():
        found.put(nothing, _nothing_kept(law, noise, penalty, alpha[nothing]))
    searched = open_ & ~nothing
    if searched.any():
        found.put(searched, solve(law, noise, penalty, alpha[searched]))
        if penalty == 0 and noise > 0 and not found.solved.all():
            _retry(found, law, noise, alpha)
    theta, b = _factors(found, penalty, alpha, open_)
    if few.any():
        limit = few_samples(law, noise, penalty, alpha[few])
        found.D[few], theta[few], b[few] = limit.D, limit.theta, limit.b
        for name in ("mse", "K", "rank"):
            getattr(found.integrals, name)[few] = getattr(limit, name)
    with np.errstate(all="ignore"):
        fit = np.where(open_ | few, (np.sqrt(found.D) * b) ** 2, 0.0)
        label_variance = 2 * float(law.second_moment) + noise
        training_error = np.where(alpha > 0, fit / alpha, label_variance if penalty > 0 else 0.0)
    mse, K = found.integrals.mse, found.integrals.K
    power, rank = float(law.second_moment), found.integrals.rank
    m, q = overlap_and_square(power, mse, found.D, found.integrals.Df, theta, K, rank)
    if few.any():
        m[few], q[few] = limit.overlap, limit.square
    errors = dict(zip(ERRORS, (mse, 2 * mse, training_error, fit + penalty * K, rank), strict=True))
    metrics = cosines(m, q, power) | errors
    status = np.where(found.solved, int(Status.CONVERGED), int(Status.MAX_STEPS))
    return NuclearPoints(
        found.D, found.u, theta, b, m, q, found.integrals, metrics, found.residual, status, found.evaluations
    )


def _shrunk_to_nothing(law: Law, noise: float, penalty: float, alpha: np.ndarray) -> np.ndarray:
    """Where the theta of S = 0, lambda/(4 alpha), is far above all eigenvalues of A* + delta Z."""
    D = (float(law.second_moment) + noise / 2) / (2 * np.maximum(alpha, FEW))
    return penalty / (4 * np.maximum(alpha, FEW)) > _FAR * (np.abs(np.array(law.ends)).max() + 2 * np.sqrt(D))


def _nothing_kept(law: Law, noise: float, penalty: float, alpha: np.ndarray) -> Solution:
    """S = 0: nothing lies above theta."""
    power, zero, theta = float(law.second_moment), np.zeros_like(alpha), penalty / (4 * alpha)
    unseen = dict.fromkeys(Thresholded._fields, zero) | {"theta": theta, "theta_in_u": zero + 1, "mse": zero + power}
    D, count = (power + noise / 2) / (2 * alpha), np.ones(len(alpha), int)
    return Solution(D, theta, Thresholded(**unseen), zero, count, count > 0)


def _retry(found: Solution, law: Law, noise: float, alpha: np.ndarray) -> None:
    """Solve anew, in a bracket, the points below the interpolation threshold that the search did not solve."""
    threshold, largest = interpolation_point(law, noise)
    for k in np.nonzero(~found.solved & (alpha < threshold) & np.isfinite(largest))[0]:
        again = solve_interpolating(law, noise, float(alpha[k]), largest)
        if again is not None:
            found.put(np.arange(len(alpha)) == k, again)


def _factors(found: Solution, penalty: float, alpha: np.ndarray, solved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """theta and b = 2 alpha - Df: of the two factors of lambda/2 the relatively smaller one is had from the other."""
    theta, b = found.integrals.theta, 2 * alpha - found.integrals.Df
    with np.errstate(all="ignore"):
        small_b = theta / np.sqrt(found.D) > b / (2 * alpha)
        other_b, other_theta = penalty / (2 * theta), np.where(b > 0, penalty / (2 * b), 0.0)
    return np.where(solved & ~small_b, other_theta, theta), np.where(solved & small_b, other_b, b)


def _placed(law: Law, alpha: np.ndarray, recovered: np.ndarray) -> Solution:
    """Arrays to be filled, holding already what is known: S = A* where recovered, and S = 0 without samples."""
    unknown = {name: np.full(alpha.shape, np.nan) for name in Thresholded._fields}
    integrals = Thresholded(**unknown)
    for where, mse, K, rank, theta in (
        (alpha == 0, float(law.second_moment), 0.0, 0.0, np.inf),
        (recovered, 0.0, float(law.mean), rank_share(law), 0.0),
    ):
        for part, value in zip(
            (integrals.mse, integrals.K, integrals.rank, integrals.theta), (mse, K, rank, theta), strict=True
        ):
            part[where] = value
        integrals.Df[where] = 2 * alpha[where]
    D = np.where(recovered, 0.0, np.inf)
    return Solution(
        D, D.copy(), integrals, np.zeros(alpha.shape), np.zeros(alpha.shape, int), np.ones(alpha.shape, bool)
    )


def penalty_slopes(points: NuclearPoints, penalty: float, alpha: np.ndarray) -> dict[str, np.ndarray]:
    """The derivative of each metric in the penalty, by the implicit function theorem."""
    dD, dtheta = _response(points, alpha, np.ones_like(alpha), np.zeros_like(alpha))
    return _changes(points, penalty, alpha, dD, dtheta, 1.0)


def uncertainties(
    law: Law, noise: float, points: NuclearPoints, penalty: float, alpha: np.ndarray
) -> dict[str, np.ndarray]:
    """The numerical error of each metric: that of the integrals, carried through the two equations."""
    few = (alpha > 0) & (alpha < FEW)
    solved = np.isfinite(points.D) & (points.D > 0) & ~few
    error = np.zeros_like(alpha)
    if solved.any():
        error[solved] = 2 * quadrature_error(law, points.D[solved], points.theta[solved])
    # With every eigenvalue below the cut S is zero, and no integral of it has an error.
    nothing = solved & (points.integrals.rank == 0) & (points.integrals.density == 0)
    error[nothing] = 0.0
    D = np.where(solved, points.D, 0.0)
    scale = float(law.second_moment) + D
    # mse is a sum of integrals over the eigenvalues below theta, and of what these leave of known ones.
    t, theta = points.integrals, np.where(solved & ~nothing, points.theta, 0.0)
    terms = D * (2 * np.abs(t.Df) + 1) + 2 * theta**2 * t.rank + t.mse
    error_mse = error * terms + (_ROUNDING + points.residual) * (t.mse + D)
    error_Df = error + _ROUNDING + points.residual
    from_Df = _response(points, alpha, 2 * points.theta * error_Df, np.zeros_like(alpha))
    from_mse = _response(points, alpha, np.zeros_like(alpha), error_mse)
    total = {name: np.zeros_like(alpha) for name in points.metrics}
    for dD, dtheta in (from_Df, from_mse):
        for name, change in _changes(points, penalty, alpha, dD, dtheta, 0.0).items():
            total[name] += np.abs(change)
    total["rank"] += error_Df
    error_m = error_mse + (D + np.where(solved, points.theta, 0.0) * np.sqrt(scale)) * error_Df
    for name, change in _turned(points, error_m, -2 * error_m).items():
        total[name] += np.abs(change)
    total["training_loss"] += np.where(nothing, 0.0, penalty * error_Df * np.sqrt(scale))
    total = {name: np.where(solved, np.nan_to_num(value, nan=np.inf), 0.0) for name, value in total.items()}
    if few.any():
        limit = few_samples(law, noise, penalty, alpha[few])
        for name, value in total.items():
            value[few] = limit.relative_error * points.metrics[name][few]
        total["estimation_error"][few], total["generalization_error"][few] = limit.error, 2 * limit.error
        with np.errstate(divide="ignore", invalid="ignore"):
            tilt = np.where(limit.square > 0, limit.tilt / np.sqrt(limit.square * law.second_moment), 0.0)
        total["cosine"][few] += tilt
        total["squared_overlap"][few] += (2 * points.metrics["cosine"][few] + tilt) * tilt
    return total


def _response(
    points: NuclearPoints, alpha: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The changes of D and theta if 2 theta (2 alpha - Df) rises by `first` and 2 alpha D - mse by `second`."""
    t, D, theta = points.integrals, points.D, points.theta
    with np.errstate(all="ignore"):
        mse_D, mse_theta = t.Df - 2 * theta * t.H + 4 * D * t.G, 2 * theta * t.rank - 4 * D * t.H
        A11, A12, A21, A22 = -4 * theta * t.G, 2 * points.b + 4 * theta * t.H, 2 * alpha - mse_D, -mse_theta
        determinant = A11 * A22 - A12 * A21
        return (A22 * first - A12 * second) / determinant, (A11 * second - A21 * first) / determinant


def _changes(
    points: NuclearPoints, penalty: float, alpha: np.ndarray, dD: np.ndarray, dtheta: np.ndarray, dpenalty: float
) -> dict[str, np.ndarray]:
    """How each metric changes with D, theta and the penalty."""
    t, D, theta, b = points.integrals, points.D, points.theta, points.b
    with np.errstate(all="ignore"):
        mse = 2 * alpha * dD
        fit = b**2 * dD + 2 * D * b * (2 * t.H * dtheta - 2 * t.G * dD)
        K = t.H * dD - t.rank * dtheta
        rank = t.density * ((theta - points.u) / D * dD - dtheta)
        loss = fit + penalty * K + dpenalty * t.K
        more = t.Df * dD + 2 * D * (t.G * dD - t.H * dtheta) - t.K * dtheta - theta * K
        errors = dict(zip(ERRORS, (mse, 2 * mse, fit / alpha, loss, rank), strict=True))
    return _turned(points, more - mse, 2 * more - mse) | errors


def _turned(points: NuclearPoints, dm: np.ndarray, dq: np.ndarray) -> dict[str, np.ndarray]:
    """How the cosines change with m and q."""
    cosine, there = points.metrics["cosine"], points.m > 0
    with np.errstate(all="ignore"):
        change = np.where(there, cosine * (dm / points.m - dq / (2 * points.q)), 0.0)
    return {"cosine": change, "squared_overlap": 2 * cosine * change}


def _width_share(width: Any, law: Law) -> float | None:
    """Hidden units over the dimension, or None where their number does not limit the rank."""
    if width is None:
        return None
    if isinstance(width, numbers.Integral):
        if not (isinstance(law, Discrete) and np.ptp(np.asarray(law.weights)) < 1e-12):
            raise bad_parameter(
                "width", width, "a fraction (hidden units per dimension), since this law of eigenvalues has no size"
            )
        width = int(width) / len(law.values)
    return None if width >= 1 else float(width)


def _width_limited(law: Law, noise: float, penalty: float, share: float, alpha: np.ndarray) -> Prediction:
    """The same for a network of fewer units than dimensions."""
    found = WidthTheory(law).solve(noise, penalty, share, alpha)
    power = float(law.second_moment)
    unseen = 2 * power + noise if penalty > 0 else 0.0

    def errors(part: Callable[[str], np.ndarray], unseen: float) -> dict[str, np.ndarray]:
        """`unseen` is the squared error of a single label."""
        mse, fit = part("estimation_error"), part("fit")
        with np.errstate(divide="ignore", invalid="ignore"):
            training_error = np.where(alpha > 0, fit / alpha, unseen)
        return dict(zip(ERRORS, (mse, 2 * mse, training_error, fit + part("reg"), part("rank")), strict=True))

    turned = cosines(found["overlap"], found["square"], power)
    cosine, squared = turned["cosine"], found["square"]
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = found["overlap_uncertainty"] / np.sqrt(squared * power)
        turn = np.where(squared > 0, turn + cosine * found["square_uncertainty"] / (2 * squared), 0.0)
    uncertainty = {"cosine": turn, "squared_overlap": (2 * cosine + turn) * turn}
    return Prediction(
        metrics=turned | errors(found.__getitem__, unseen),
        order_parameters={name: found[name] for name in ("delta", "theta", "epsilon")},
        status=found["status"],
        residual=found["residual"],
        uncertainty=uncertainty | errors(lambda name: found[f"{name}_uncertainty"], _ROUNDING * unseen),
    )
