r"""Exact asymptotics of `Lazy`: ridge regression of the labels on all symmetric matrices, in closed form.

The minimiser S of $\frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d}\|S\|_F^2$ is, for d to
infinity, as good as $k R$ with $R = A^* + \delta Z$, Z a Gaussian symmetric matrix, where k in (0, 1] solves

    k^2 - (1 + 2 alpha + lambda) k + 2 alpha = 0.

With $D = \delta^2$ and $Q = E A^2$,

    D = (Q (1 - k)^2 + Delta/2) / (2 alpha - k^2),   mse = (2 alpha Q (1 - k)^2 + k^2 Delta/2) / (2 alpha - k^2),
    sum of squared residuals / d^2 = D (2 alpha - k)^2,       |S|_F^2 / d = k^2 (Q + D).

As the penalty vanishes k = min(2 alpha, 1): the labels are interpolated up to alpha = 1/2, where with noise the error
diverges; beyond, this is least squares.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.models.matrix.learners import Lazy
from solvable.models.matrix.matrix_model import MatrixModel
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.quadratic_network import QuadraticNetwork

_ROUNDING = 1e-15


@theory(QuadraticNetwork, Lazy, references=("chizat2019lazy", "hastie2022surprises"))
@theory(MatrixSensing, Lazy, references=("chizat2019lazy", "hastie2022surprises"))
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
