r"""Exact asymptotics of `Lazy`: ridge regression of the labels on all symmetric matrices, in closed form.

The minimiser S of $\frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d}\|S\|_F^2$ is, for d to
infinity, as good as $k R$ with $R = A^* + \delta Z$, Z a Gaussian symmetric matrix, where k in (0, 1] solves

    k^2 - (1 + 2 alpha + lambda) k + 2 alpha = 0:

the ridge regression of a vector (`engine.erm.closed`) from 2 alpha samples for each unknown, of labels whose square is
that of A*, $Q = E A^2$, with noise of variance Delta/2. With $D = \delta^2$

    D = (Q (1 - k)^2 + Delta/2) / (2 alpha - k^2),                mse = Q (1 - k)^2 + k^2 D,
    sum of squared residuals / d^2 = D (2 alpha - k)^2,           |S|_F^2 / d = k^2 (Q + D).

As the penalty vanishes k = min(2 alpha, 1): the labels are interpolated up to alpha = 1/2, where with noise the error
diverges; beyond, this is least squares.

Runs solve the normal equations by iterations that never form a matrix of d^2 unknowns.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_number
from solvable.core.model import Learner
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.engine.erm.closed import ridge_regression
from solvable.engine.operators import Features
from solvable.models.matrix.model import MatrixData, MatrixModel, errors

_ROUNDING = 1e-15
"""A few units in the last place."""
_TOLERANCE = 1e-10
_STEPS = 20_000


class Lazy(Learner):
    r"""Ridge regression on the features, as a network does that stays close to its start (the tangent kernel).

    $\min_S \frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d} \|S\|_F^2$ over all symmetric
    S, with $\lambda$ = `penalty`. A penalty of 0 is the limit of a vanishing one.
    """

    penalty: float = 0.0

    def __check_init__(self):
        real_number("penalty", self.penalty, "a finite number, zero or positive", lambda x: x >= 0)


@theory(MatrixModel, Lazy, references=("chizat2019lazy", "hastie2022surprises"))
def lazy(model: MatrixModel, learner: Lazy, alpha: np.ndarray) -> Prediction:
    """The errors and the loss of ridge regression; differentiable in the penalty, the noise and the law."""
    metrics, delta, uncertainty = _metrics(model.law.second_moment, model.noise, learner.penalty, alpha)
    finite = jnp.isfinite(metrics["estimation_error"])
    return Prediction(
        metrics=metrics,
        order_parameters={"delta": delta},
        status=jnp.where(finite, int(Status.CONVERGED), int(Status.NONFINITE)),
        uncertainty=uncertainty,
    )


@jax.jit
def _metrics(Q: Any, noise: Any, penalty: Any, alpha: Any) -> tuple[dict[str, jax.Array], jax.Array, dict[str, Any]]:
    """The metrics, delta, and the rounding errors of the metrics."""
    k, D, T, _ = ridge_regression(Q, noise / 2, penalty, 2 * alpha)
    sampled, left = alpha > 0, 2 * alpha - k
    kept = jnp.where(D > 0, k**2 * D, 0.0)
    mse = Q * (1 - k) ** 2 + kept
    # Where the labels are fitted the residuals vanish, however large D is.
    fit = jnp.where(left == 0, 0.0, D * left * left)  # in this order, since left**2 may underflow
    unseen = (2 * Q + noise) * (penalty / (1 + penalty)) ** 2  # fit/alpha as alpha falls to 0
    metrics = cosines(k * Q, k**2 * (Q + D), Q) | {
        "estimation_error": mse,
        "generalization_error": 2 * mse,
        "training_error": jnp.where(sampled, fit / jnp.where(sampled, alpha, 1.0), unseen),
        "training_loss": fit + penalty * (k**2 * Q + jnp.where(jnp.isfinite(kept), kept, 0.0)),
    }
    delta = jnp.where(D > 0, jnp.sqrt(jnp.where(D > 0, D, 1.0)), jnp.where(sampled, 0.0, jnp.inf))
    # Digits are lost in 1 - k, in 2 alpha - k, and in T close to the interpolation threshold.
    steep, lost = 1 + 1 / jnp.where(T > 0, T, 1.0), 2 * Q * (1 - k)
    blur = mse * steep + lost * steep
    fit_blur = fit * (steep + 4 * alpha / jnp.where(left > 0, left, 1.0)) + lost * steep * left
    share = fit_blur / jnp.where(sampled, alpha, 1.0)
    errors = {
        "cosine": metrics["cosine"] * steep,
        "squared_overlap": 2 * metrics["squared_overlap"] * steep,
        "estimation_error": blur,
        "generalization_error": 2 * blur,
        "training_error": jnp.where(sampled, share, unseen),
        "training_loss": fit_blur + steep * metrics["training_loss"],
    }
    return metrics, delta, {name: _ROUNDING * jax.lax.stop_gradient(value) for name, value in errors.items()}


@simulation(MatrixModel, Lazy, references=("chizat2019lazy",))
def run_lazy(model: MatrixModel, learner: Lazy, data: MatrixData, rng: np.random.Generator) -> Outcome:
    """The ridge estimate; without penalty the least squares solution of least norm."""
    operator, penalty, d = data.operator, float(learner.penalty), data.operator.size
    S, iterations, converged = ridge(operator, data.y, penalty * d)
    residual = data.y - operator.forward(S)
    metrics = errors(S, data.truth) | {
        "training_error": float(np.mean(residual**2)),
        "training_loss": float(residual @ residual) / d**2 + penalty / d * float(np.sum(S**2)),
    }
    return Outcome(metrics, S, converged, details={"iterations": iterations})


def ridge(operator: Features, labels: np.ndarray, decay: float) -> tuple[np.ndarray, int, bool]:
    r"""The symmetric S that minimises $\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + decay\,\|S\|_F^2$, by LSQR from 0.

    Every iterate is a combination of features, so that the limit without decay is the minimiser of least norm, and all
    of them are symmetric. Returns S, the number of steps and whether the residual or its gradient fell below the
    tolerance.
    """
    from scipy.sparse.linalg import LinearOperator, lsqr  # loaded when needed: it takes long to import

    d = operator.size
    linear = LinearOperator(
        shape=(operator.samples, d * d),
        matvec=lambda vector: operator.forward(vector.reshape(d, d)),  # pyright: ignore[reportCallIssue]
        rmatvec=lambda g: operator.adjoint(np.ravel(g)).ravel(),  # pyright: ignore[reportCallIssue]
        dtype=np.float64,
    )
    options = {"atol": _TOLERANCE, "btol": _TOLERANCE, "conlim": 0, "iter_lim": _STEPS}
    vector, stop, iterations, *_ = lsqr(linear, labels, damp=np.sqrt(decay), **options)
    return vector.reshape(d, d), int(iterations), stop != 7
