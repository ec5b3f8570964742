r"""Bayes-optimal learning of a symmetric matrix, and the message passing that attains it.

The posterior mean of A* given n = alpha d^2 labels is as good as that given $A^* + \sqrt D Z$, Z a Gaussian symmetric
matrix, whose effective noise D solves

    D = (Delta + 2 mmse(D)) / (4 alpha),        estimation error = mmse(D) = 2 alpha D - Delta / 2.

Without noise mmse(D)/D tends to $1 - \sum_i w_i^2$ as D falls, w the weights of the atoms of the law of eigenvalues, so
that D = 0, perfect recovery, is the only solution from $\alpha = (1 - \sum_i w_i^2)/2$ on. For every law that we tried
mmse(D)/D decreases with D: the solution is unique, there is no hard phase, and message passing reaches it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.learners import AMP, BayesOptimal
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.models.matrix.matrix_model import MatrixModel
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.quadratic_network import QuadraticNetwork
from solvable.numerics.batches import in_batches
from solvable.numerics.roots import illinois
from solvable.spectra import Law
from solvable.spectra.convolution import free_sum
from solvable.spectra.denoising import mmse_forms, mmse_of

_SMALLEST = 1e-12
"""The effective noise, over the variance of the eigenvalues, below which mmse(D) is proportional to D."""
_STRIDE = 2.5
"""How far log D goes down at a time in search of a bracket."""
_RESIDUAL = 1e-10


class BayesPoints(NamedTuple):
    """Effective noise D, estimation error, its numerical error, the relative residual of D's equation, and status."""

    effective_noise: np.ndarray
    estimation_error: np.ndarray
    uncertainty: np.ndarray
    residual: np.ndarray
    status: np.ndarray


@theory(QuadraticNetwork, BayesOptimal)
@theory(MatrixSensing, BayesOptimal)
@theory(QuadraticNetwork, AMP)
@theory(MatrixSensing, AMP)
def bayes_optimal(model: MatrixModel, learner: BayesOptimal | AMP, alpha: np.ndarray) -> Prediction:
    """The error of the posterior mean; message passing has the same, since the fixed point is unique."""
    points = bayes_points(model.law, float(model.noise), np.ravel(alpha))
    error, uncertainty = points.estimation_error, points.uncertainty
    return Prediction(
        metrics={"estimation_error": error, "generalization_error": 2 * error},
        order_parameters={"effective_noise": points.effective_noise},
        status=points.status,
        residual=points.residual,
        uncertainty={"estimation_error": uncertainty, "generalization_error": 2 * uncertainty},
    )


def bayes_points(law: Law, noise: float, alpha: np.ndarray) -> BayesPoints:
    """The Bayes-optimal errors of any law of eigenvalues, for an array of alpha."""
    alpha = np.asarray(alpha, float)
    variance = float(law.variance)
    if variance <= 1e-14 * float(law.second_moment):  # a multiple of the identity is known beforehand
        zero = np.zeros_like(alpha)
        with np.errstate(divide="ignore"):
            return BayesPoints(noise / (4 * alpha) if noise else zero, zero, zero, zero, zero.astype(int))
    measured = alpha > 0
    D, error, uncertainty, residual = np.full((4, len(alpha)), np.nan)
    D[~measured], error[~measured], uncertainty[~measured], residual[~measured] = np.inf, variance, 0.0, 0.0
    if measured.any():
        D[measured], error[measured], uncertainty[measured], residual[measured] = _solve(law, noise, alpha[measured])
    status = np.where(residual < _RESIDUAL, int(Status.CONVERGED), int(Status.MAX_STEPS))
    return BayesPoints(D, error, uncertainty, residual, status)


def _solve(law: Law, noise: float, alpha: np.ndarray) -> tuple[np.ndarray, ...]:
    """D, the estimation error, its numerical error and the residual of the logarithm of D's equation."""
    variance, slope = float(law.variance), float(recovery_slope(law))
    smallest = _SMALLEST * variance

    def excess(log_D: np.ndarray) -> np.ndarray:
        """log of (Delta + 2 mmse(D)) / (4 alpha D), which falls with D and vanishes at the solution."""
        D = np.exp(log_D)
        found = np.maximum(in_batches(lambda D: _mmse(law, D), D)[0], 0.0)
        return np.log(np.maximum(noise + 2 * found, 1e-300) / (4 * alpha * D))

    # mmse <= variance bounds D from above; from there down until the sign changes.
    low = high = np.log((noise + 2 * variance) / (4 * alpha))
    # As D falls mmse = slope D and the equation is linear: its solution holds where it is too small to be resolved.
    tiny = noise / np.maximum(4 * alpha - 2 * slope, 1e-300)
    below = (slope <= 2 * alpha) & (tiny < smallest)
    least = np.log(np.maximum(noise / (4 * alpha), smallest))
    searching = ~below
    while searching.any():
        high = np.where(searching, low, high)
        low = np.where(searching, np.maximum(low - _STRIDE, least), low)
        searching &= (excess(low) < 0) & (low > least)
    D = np.exp(illinois(excess, low, high))
    error, uncertainty = in_batches(lambda D: _mmse(law, D), D)
    residual = np.abs(np.log(np.maximum(noise + 2 * error, 1e-300) / (4 * alpha * D)))
    return (
        np.where(below, tiny, D),
        np.where(below, slope * tiny, error),
        np.where(below, 1e-6 * slope * tiny, uncertainty),
        np.where(below, 0.0, residual),
    )


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
