r"""Exact asymptotics of `Lazy`: ridge regression of the labels on all symmetric matrices, in closed form.

The minimiser S of $\frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d}\|S\|_F^2$ is, for d to
infinity, as good as $k R$ with $R = A^* + \delta Z$, Z a Gaussian symmetric matrix, where k in (0, 1] solves

    k^2 - (1 + 2 alpha + lambda) k + 2 alpha = 0.

With $D = \delta^2$ and $Q = E A^2$,

    D = (Q (1 - k)^2 + Delta/2) / (2 alpha - k^2),   mse = (2 alpha Q (1 - k)^2 + k^2 Delta/2) / (2 alpha - k^2),
    sum of squared residuals / d^2 = D (2 alpha - k)^2,       |S|_F^2 / d = k^2 (Q + D).

As the penalty vanishes k = min(2 alpha, 1): the labels are interpolated up to alpha = 1/2, where with noise the error
diverges; beyond, this is least squares.

Runs solve the normal equations by iterations that never form a matrix of d^2 unknowns.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status
from solvable.engine.operators import Features
from solvable.models.matrix.learners import Lazy
from solvable.models.matrix.model import MatrixData, MatrixModel, errors

_ROUNDING = 1e-15
_TOLERANCE = 1e-10
_STEPS = 20_000


@theory(MatrixModel, Lazy, references=("chizat2019lazy", "hastie2022surprises"))
def lazy(model: MatrixModel, learner: Lazy, alpha: np.ndarray) -> Prediction:
    """The errors and the loss of ridge regression; differentiable in the penalty, the noise and the law."""
    metrics, delta, rounding = _ridge(model.law.second_moment, model.noise, learner.penalty, np.ravel(alpha))
    finite = jnp.isfinite(metrics["estimation_error"])
    return Prediction(
        metrics=metrics,
        order_parameters={"delta": delta},
        status=jnp.where(finite, int(Status.CONVERGED), int(Status.NONFINITE)),
        uncertainty={name: rounding * value for name, value in metrics.items()},
    )


@jax.jit
def _ridge(Q: Any, noise: Any, penalty: Any, alpha: Any) -> tuple[dict[str, jax.Array], jax.Array, jax.Array]:
    """The metrics, delta, and the rounding error of the metrics relative to them."""
    k = shrinkage(alpha, penalty)
    sampled = alpha > 0
    regular = sampled & (2 * alpha > k**2)
    divisor = jnp.where(regular, 2 * alpha - k**2, 1.0)
    bias = Q * (1 - k) ** 2
    # Without samples S = 0; at alpha = 1/2 without penalty the error is infinite, or 0 if there is no noise.
    singular = jnp.where(noise > 0, jnp.inf, 0.0)
    D = jnp.where(regular, (bias + noise / 2) / divisor, 0.0)
    mse = jnp.where(regular, (2 * alpha * bias + k**2 * noise / 2) / divisor, jnp.where(sampled, singular, Q))
    fit = D * (2 * alpha - k) ** 2
    square = jnp.where(sampled, k**2 * (Q + D), 0.0)
    unseen = (2 * Q + noise) * (penalty / (1 + penalty)) ** 2  # fit/alpha as alpha falls to 0
    metrics = {
        "estimation_error": mse,
        "generalization_error": 2 * mse,
        "training_error": jnp.where(sampled, fit / jnp.where(sampled, alpha, 1.0), unseen),
        "training_loss": fit + penalty * square,
    }
    delta = jnp.where(D > 0, jnp.sqrt(jnp.where(D > 0, D, 1.0)), jnp.where(sampled, singular, jnp.inf))
    return metrics, delta, _ROUNDING * (1 + 1 / divisor)


def shrinkage(alpha: Any, penalty: Any) -> jax.Array:
    r"""The smaller root k of $k^2 - (1 + 2\alpha + \lambda) k + 2\alpha = 0$."""
    gap = (1 - 2 * alpha) ** 2 + penalty * (2 + 4 * alpha + penalty)
    root = jnp.where(gap > 0, jnp.sqrt(jnp.where(gap > 0, gap, 1.0)), 0.0)
    return 4 * alpha / (1 + 2 * alpha + penalty + root)


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
