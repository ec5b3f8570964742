r"""Bayes-optimal learning of a symmetric matrix, and the message passing that attains it.

The posterior mean of A* given n = alpha d^2 labels is as good as that given $A^* + \sqrt D Z$, Z a Gaussian symmetric
matrix, whose effective noise D solves

    D = (Delta + 2 mmse(D)) / (4 alpha),        estimation error = mmse(D) = 2 alpha D - Delta / 2.

Without noise mmse(D)/D tends to $1 - \sum_i w_i^2$ as D falls, w the weights of the atoms of the law of eigenvalues, so
that D = 0, perfect recovery, is the only solution from $\alpha = (1 - \sum_i w_i^2)/2$ on. For every law that we tried
mmse(D)/D decreases with D: the solution is unique, there is no hard phase, and message passing reaches it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.learners import AMP, BayesOptimal
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.models.matrix.effective_noise import BayesPoints, solve
from solvable.models.matrix.matrix_model import MatrixModel
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.quadratic_network import QuadraticNetwork
from solvable.spectra import Law
from solvable.spectra.convolution import free_sum
from solvable.spectra.denoising import mmse_forms, mmse_of


@theory(QuadraticNetwork, BayesOptimal, references=("maillard2024bayes", "xu2025fundamental"))
@theory(MatrixSensing, BayesOptimal, references=("maillard2024bayes", "xu2025fundamental"))
@theory(QuadraticNetwork, AMP, references=("maillard2024bayes", "xu2025fundamental"))
@theory(MatrixSensing, AMP, references=("maillard2024bayes", "xu2025fundamental"))
def bayes_optimal(model: MatrixModel, learner: BayesOptimal | AMP, alpha: np.ndarray) -> Prediction:
    """The error of the posterior mean; message passing has the same, since the fixed point is unique."""
    points = bayes_points(model.law, float(model.noise), np.ravel(alpha))
    return points.prediction({"estimation_error": 1.0, "generalization_error": 2.0})


def bayes_points(law: Law, noise: float, alpha: np.ndarray) -> BayesPoints:
    """The Bayes-optimal errors of any law of eigenvalues, for an array of alpha."""
    alpha = np.asarray(alpha, float)
    variance = float(law.variance)
    if variance <= 1e-14 * float(law.second_moment):  # a multiple of the identity is known beforehand
        zero = np.zeros_like(alpha)
        with np.errstate(divide="ignore"):
            return BayesPoints(noise / (4 * alpha) if noise else zero, zero, zero, zero)
    return solve(lambda D: _mmse(law, D), noise / 2, 2 * alpha, variance, float(recovery_slope(law)))


def recovery_slope(law: Law) -> Any:
    r"""The limit of mmse(D)/D as D falls: $1 - \sum_i w_i^2$ over the atoms."""
    return 1 - jnp.sum(law.atoms[1] ** 2)


@jax.jit
def _mmse(law: Law, D: Any) -> tuple[jax.Array, jax.Array]:
    """mmse(D) for an array of D and its numerical error.

    The latter is estimated by the difference of the two formulas, or by the mass that the quadrature misses where one
    of the formulas suffers from cancellation.
    """

    def at(D: Any) -> tuple[jax.Array, jax.Array]:
        found = free_sum(law, D)
        by_cube, by_square = mmse_forms(law, found)
        lost = D * jnp.abs(1 - jnp.sum(found.weight))
        return mmse_of(law, found), jnp.minimum(jnp.abs(by_cube - by_square), lost)

    return jax.vmap(at)(D)
