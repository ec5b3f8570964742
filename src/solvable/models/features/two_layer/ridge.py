r"""Ridge regression on random features, n = alpha d samples and p = width d units, in closed form up to one unknown.

By Gaussian equivalence (`averages`) the feature vector is $\mu_0 1 + \mu_1 W x + \mu_* \xi$ with covariance
$\Sigma = \mu_1^2 W W^T + \mu_*^2$. Of the labels only the linear part, $t_1 = |E[y\,x]|$, can be learned; what is left
acts as noise of variance $s_2 = E[y^2] - E[y]^2 - t_1^2$, the mean being fitted through $\mu_0$ where that is not zero
(otherwise it is part of $s_2$). With a = n/p, $\lambda$ the penalty and averages over the eigenvalues of $\Sigma$,

    kappa = lambda + kappa <Sigma / (kappa + a Sigma)>

has one positive solution, the effective penalty: $\lambda/\kappa$ is the factor by which the residual of a sample
shrinks when it is learned. With $F(\kappa) = \kappa - \kappa\langle\Sigma/(\kappa + a\Sigma)\rangle - \lambda$ and

    h = (1/d) Tr (1 + rho W^T W)^-1,   rho = a mu1^2 / (kappa + a mu*^2),   1/h = 1 + omega / (1 + omega h / width),

$\omega$ = width $\rho$ (the law of Marchenko and Pastur), the mean squared errors on fresh and on training labels are

    test = (s2 + t1^2 (h - kappa h')) / F',      train = test (lambda / kappa)^2.

F is convex and negative at 0, so that Newton steps from above fall onto its root. A penalty of zero has $\kappa = 0$
beyond the interpolation threshold n = p, where F' vanishes and the error diverges. In the limit of infinite width
these are the errors of kernel ridge regression.

The linear part of the output is $\mu_1 W^T a/\sqrt p$. It has the component $t_1 (1 - h)$ along that of the target, and
the square $t_1^2 (1 - h - s h') + test\,(1 - h - \kappa h')/\alpha$, $s = \kappa + a\mu_*^2$. These are the equations
of [mei2022generalization, gerace2020generalisation] without their iteration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.models.features.two_layer.averages import moments
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.batches import in_batches, rounded_up_to_power
from solvable.numerics.fixed_point import solve_fixed_point

_TINY = 1e-100
_ROUNDING = 4e-16
_RTOL = 1e-11
_FEWEST = 4


class Problem(NamedTuple):
    """What the equations depend on besides alpha: numbers of the activation, of the labels, and the penalty.

    `linear` and `rest` are mu1^2 and mu*^2, `narrow` is 1/width, `signal` t1^2, `scatter` s2 without the noise.
    """

    linear: Any
    rest: Any
    narrow: Any
    signal: Any
    scatter: Any
    noise: Any
    penalty: Any


class Point(NamedTuple):
    """The solution at one alpha, and how it ended; `slope` is F'."""

    kappa: Any
    h: Any
    slope: Any
    metrics: dict[str, Any]
    status: Any
    residual: Any
    iterations: Any


def problem(model: TwoLayer, penalty: Any, fine: bool = True) -> Problem:
    """The numbers of a model; with `fine` False by quadratures of half as many nodes."""
    sigma, target = moments(model.activation, fine), moments(model.target, fine)
    scatter = target.rest + (target.mean**2 if sigma.mean == 0 else 0.0)
    return Problem(sigma.slope**2, sigma.rest, 1 / model.width, target.slope**2, scatter, model.noise, penalty)


def ridge_points(model: TwoLayer, penalty: Any, alpha: Any) -> tuple[Point, dict[str, Any]]:
    """The solutions at an array of alpha, and the numerical error of each metric."""
    if is_traced((model, penalty, alpha)):
        fine = _solved(problem(model, penalty), jnp.asarray(alpha))
        return fine, {name: jnp.zeros_like(value) for name, value in fine.metrics.items()}
    problems = problem(model, penalty), problem(model, penalty, fine=False)
    batch = rounded_up_to_power(len(alpha), _FEWEST)
    fine, coarse = in_batches(lambda alpha: _both(problems, alpha), alpha, batch=batch)
    with np.errstate(divide="ignore", invalid="ignore"):
        rounding = _ROUNDING * (1 + 1 / fine.slope)
        errors = {
            name: np.abs(value - coarse.metrics[name]) + rounding * (np.abs(value) + model.noise)
            for name, value in fine.metrics.items()
        }
    return fine, errors


@jax.jit
def _solved(problem: Problem, alpha: Any) -> Point:
    return jax.vmap(_point, in_axes=(None, 0))(jax.tree.map(jnp.asarray, problem), alpha)


@jax.jit
def _both(problems: tuple[Problem, Problem], alpha: Any) -> tuple[Point, Point]:
    fine, coarse = problems
    return _solved(fine, alpha), _solved(coarse, alpha)


def _resolvent(kappa: Any, alpha: Any, problem: Problem) -> tuple[Any, Any]:
    """h, and kappa <Sigma / (kappa + a Sigma)>."""
    linear, rest, narrow = problem.linear, problem.rest, problem.narrow
    s = kappa + alpha * narrow * rest
    omega = alpha * linear / s
    b, small = 1 + omega - omega * narrow, 4 * omega * narrow
    root = jnp.sqrt(b**2 + small)
    # Of the two forms of the root of a quadratic equation that without a difference.
    h = jnp.where(b > 0, 2 / jnp.where(b > 0, b + root, 1.0), 2 * (root - b) / jnp.where(small > 0, small, 1.0))
    share = linear * h / (1 + omega * narrow * h) + rest * (1 - narrow * (1 - h))
    return h, kappa / s * share


def _equation(kappa: Any, alpha: Any, problem: Problem) -> Any:
    """F(kappa) + lambda."""
    return kappa - _resolvent(kappa, alpha, problem)[1]


def _newton(kappa: Any, args: Any) -> Any:
    alpha, problem = args
    value, slope = jax.value_and_grad(_equation)(kappa, alpha, problem)
    return jnp.maximum(kappa - (value - problem.penalty) / slope, _TINY)


def _point(problem: Problem, alpha: Any) -> Point:
    linear, rest, narrow, signal, scatter, noise, penalty = problem
    start = penalty + linear + rest
    found = solve_fixed_point(_newton, start, (alpha, problem), memory=0, rtol=_RTOL, atol=1e-90, max_steps=400)
    # Without penalty kappa vanishes beyond the interpolation threshold.
    ranks = jnp.where(rest > 0, 1.0, jnp.minimum(1.0, narrow))
    fitted = alpha * narrow < ranks
    ridgeless = (penalty == 0) & ~fitted
    # A last step leaves the rounding of F alone: the error that training labels show is of first order in kappa.
    kappa = jnp.where(ridgeless, _TINY, _newton(found.value, (alpha, problem)))
    h, dh = jax.value_and_grad(lambda k: _resolvent(k, alpha, problem)[0])(kappa)
    slope = jax.grad(_equation)(kappa, alpha, problem)
    shrunk = jnp.where(ridgeless, slope, penalty / kappa)
    s = kappa + alpha * narrow * rest
    excess = scatter + signal * (h - kappa * dh)
    test = (excess + noise) / slope
    # Without samples the limit of few of them.
    learned = jnp.where(alpha > 0, (1 - h - kappa * dh) / jnp.where(alpha > 0, alpha, 1.0), 0.0)
    square = signal * (1 - h - s * dh) + test * learned
    diverged = ridgeless & (alpha * narrow == ranks)
    metrics = cosines(jnp.sqrt(signal) * (1 - h), square, 1.0) | {
        "generalization_error": jnp.where(diverged, jnp.inf, (excess + noise * (1 - slope)) / slope),
        "training_error": jnp.where(diverged, 0.0, test * shrunk**2),
    }
    status = jnp.where(diverged, int(Status.DIVERGED), jnp.where(ridgeless, int(Status.CONVERGED), found.status))
    return Point(kappa, h, slope, metrics, status, jnp.where(ridgeless, 0.0, found.residual), found.iterations)
