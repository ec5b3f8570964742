r"""The theory of `PowerLawFeatures`: the equations of `equivalent` with sums over infinitely many eigenvalues.

The sums are over $s_k = 1/(1 + \nu k^\alpha)$. Up to $X = 2^{60}$ terms they are those of `numerics.series`; beyond,
where $X^{-\alpha}/\nu$ is small, they follow from the expansion

    s^(2-j) (1 - s)^j = sum_i (-1)^i (i + 1) (nu k^alpha)^-(2 - j + i).

The equation for nu is solved for its logarithm by bisection and Newton steps, of which the last carries the
derivatives. It begins between bounds that follow, with $m = \min(n, p)$ and $c = \frac{\pi/\alpha}{\sin(\pi/\alpha)}$,
from $\lambda/\nu < n$, $T < \frac{\alpha}{\alpha - 1}/\nu$, $T > c\,\nu^{-1/\alpha} - 1$ and, for K eigenvalues,
$T > K/(1 + \nu K^\alpha)$. The uncertainty is what a coarser rule of the sums changes, and rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.engine.cosines import cosines
from solvable.models.features.equivalent import Sums, gaps, risk
from solvable.models.features.learners import RandomFeatures
from solvable.models.features.power_law.model import PowerLawFeatures
from solvable.numerics.batches import in_batches
from solvable.numerics.roots import halving
from solvable.numerics.series import COARSE, FINE, integer_rule

_TERMS = 6
"""Of the expansion beyond the last octave; up to 10^15 samples X^-alpha/nu is below 10^-3."""
_HALVINGS, _NEWTON = 36, 2
_ROUNDING = 3e-15
_SOLVED = 1e-10
"""The largest residual of a converged point."""


class Problem(NamedTuple):
    """The numbers of model and learner, and the rule for sums over eigenvalues: `tail` is 0 where they are finite."""

    alpha: Any
    source: Any
    noise: Any
    penalty: Any
    logs: Any
    weights: Any
    log_end: Any
    tail: Any


def problem_of(model: PowerLawFeatures, penalty: Any, count: int = FINE) -> Problem:
    """The problem with a rule of so many nodes an octave."""
    logs, weights, end = integer_rule(count, model.terms)
    alpha, source, noise, penalty = (
        jnp.asarray(x, float) for x in (model.capacity, model.source, model.noise, penalty)
    )
    return Problem(alpha, source, noise, penalty, logs, weights, np.log(end - 0.5), np.float64(model.terms is None))


@theory(PowerLawFeatures, RandomFeatures, references=("defilippis2024dimension",))
def power_law(model: PowerLawFeatures, learner: RandomFeatures, n: Any, p: Any) -> Prediction:
    """Bias, variance and what follows from them; differentiable in every number of model, learner and axes."""
    if learner.loss != "square":
        raise NotSolvable(
            f"PowerLawFeatures has real labels: no theory is known of RandomFeatures with {learner.loss}."
        )
    fine, coarse = (problem_of(model, learner.penalty, count) for count in (FINE, COARSE))
    if is_traced((fine, n, p)):
        return Prediction(*solved(fine, n, p)[:2])
    if learner.penalty == 0 and model.terms is not None and np.any(np.minimum(n, p) >= model.terms):
        raise bad_parameter("penalty", 0.0, f"positive where min(n, p) reaches terms = {model.terms}: nu is 0 there")
    metrics, order, status, residual = in_batches(lambda n, p: solved(fine, n, p), n, p)
    coarser = in_batches(lambda n, p: solved(coarse, n, p), n, p)[0]
    rounding = _ROUNDING * (1 + float(model.capacity))
    with np.errstate(invalid="ignore"):  # infinite at the interpolation threshold
        uncertainty = {name: abs(value - coarser[name]) + rounding * abs(value) for name, value in metrics.items()}
    return Prediction(metrics, order, status, residual, _HALVINGS + _NEWTON + 1, uncertainty)


@jax.jit
def solved(problem: Problem, n: Any, p: Any) -> tuple[dict, dict, Any, Any]:
    """Metrics, order parameters, status, and the relative change of nu by one more step, at each n and p."""
    # With no sample or no feature nothing is learned: ordinary numbers stand in for what is then not used.
    seen = (n > 0) & (p > 0)
    n, p = jnp.where(seen, n, 1.0), jnp.where(seen, p, 2.0)
    fixed = jax.lax.stop_gradient

    def step(t: Any, problem: Problem, n: Any, p: Any) -> Any:
        value, slope = _equation(problem, n, p, t, _sums(problem, t))
        return value / fixed(slope)

    still = fixed((problem, n, p))
    bracket = halving(lambda t: step(t, *still) < 0, *_bounds(*still), _HALVINGS)
    t = jax.lax.fori_loop(0, _NEWTON, lambda _, t: t + step(t, *still), bracket.middle)
    t += step(t, problem, n, p)
    sums = _sums(problem, t)
    value, slope = _equation(problem, n, p, t, sums)
    residual = jnp.where(seen, jnp.abs(value / slope), 0.0)
    metrics, order = _results(problem, seen, n, p, t, sums)
    good = jnp.isfinite(metrics["generalization_error"])
    status = jnp.where(residual <= _SOLVED, int(Status.CONVERGED), int(Status.MAX_STEPS))
    status = jnp.where(good, status, int(Status.NONFINITE))
    return metrics, order, *fixed((status, residual))


def _equation(problem: Problem, n: Any, p: Any, t: Any, sums: Sums) -> tuple[Any, Any]:
    """T - R at t = log nu, where R solves (n - R)(1 - R/p) = penalty/nu, and minus the derivative of that in t."""
    ratio = _ratio(problem.penalty, t)
    g, w = gaps(jnp, n, p, ratio)
    steepness = w + g / p
    slope = jnp.where(steepness > 0, ratio / jnp.where(steepness > 0, steepness, 1.0), 0.0)
    return sums.freedom - (n - g), sums.mixed + slope


def _results(problem: Problem, seen: Any, n: Any, p: Any, t: Any, sums: Sums) -> tuple[dict, dict]:
    """Metrics and order parameters."""
    penalty, noise = problem.penalty, problem.noise
    gap = gaps(jnp, n, p, _ratio(penalty, t))
    found = risk(n, p, noise, gap, sums)
    signal = sums.learned + 2 * sums.crossed + sums.missed
    bias, variance = jnp.where(seen, found.bias, signal), jnp.where(seen, found.variance, 0.0)
    # The first sample: g/n for n to 0, where nu = (penalty + sum of the eigenvalues)/n.
    trace = jnp.exp(-problem.alpha * problem.logs) @ problem.weights
    trace += problem.tail * jnp.exp((1 - problem.alpha) * problem.log_end) / (problem.alpha - 1)
    shrinkage = jnp.where(seen, found.shrinkage, penalty / (penalty + trace))
    metrics = {
        "bias": bias,
        "variance": variance,
        "generalization_error": bias + variance,
        "training_error": shrinkage**2 * (bias + variance + noise),
    } | cosines(jnp.where(seen, found.inner, 0.0), jnp.where(seen, found.norm, 0.0), signal)
    order = {
        "nu": jnp.where(seen, jnp.exp(t), jnp.inf),
        "degrees_of_freedom": jnp.where(seen, sums.freedom, 0.0),
        "samples_left": jnp.where(seen, gap.samples, 0.0),
        "features_left": jnp.where(seen, gap.features, 1.0),
    }
    return metrics, order


def _ratio(penalty: Any, t: Any) -> Any:
    """penalty / nu."""
    return jnp.where(penalty > 0, jnp.exp(jnp.log(jnp.where(penalty > 0, penalty, 1.0)) - t), 0.0)


def _bounds(problem: Problem, n: Any, p: Any) -> tuple[Any, Any]:
    """Numbers between which log nu lies."""
    alpha, penalty = problem.alpha, problem.penalty
    most = jnp.minimum(n, p)
    c = (jnp.pi / alpha) / jnp.sin(jnp.pi / alpha)
    infinite = -alpha * jnp.log((most + 1) / c)
    # Where all K eigenvalues can be learned, K <= min(n, p), only the penalty keeps nu away from 0.
    spare = jnp.expm1(problem.log_end - jnp.log(most))
    finite = jnp.where(spare > 0, jnp.log(jnp.where(spare > 0, spare, 1.0)) - alpha * problem.log_end, -jnp.inf)
    finite = jnp.maximum(finite, jnp.log(jnp.where(penalty > 0, penalty, jnp.exp(-700.0))) - jnp.log(n))
    low = jnp.where(problem.tail > 0, infinite, finite)
    return low, jnp.log(jnp.maximum(4 * penalty / n, 2 * alpha / (alpha - 1) / most))


def _sums(problem: Problem, t: Any) -> Sums:
    """The sums of `equivalent` at t = log nu, an array of one dimension."""
    tau = t[:, None] + problem.alpha * problem.logs
    small = jnp.exp(-jnp.abs(tau))
    s, other = (jnp.where(side, 1.0, small) / (1 + small) for side in (tau < 0, tau >= 0))
    power = 1 + 2 * problem.alpha * problem.source
    ones, squares = problem.weights, problem.weights * jnp.exp(-power * problem.logs)
    beyond = [_beyond(problem, jnp.stack([jnp.zeros_like(power), power]), t, 2 - j).T for j in range(3)]
    return Sums(
        jnp.sum(s * s * ones, axis=1) + beyond[0][0],
        jnp.sum(s * other * ones, axis=1) + beyond[1][0],
        jnp.sum(s * s * squares, axis=1) + beyond[0][1],
        jnp.sum(s * other * squares, axis=1) + beyond[1][1],
        jnp.sum(other * other * squares, axis=1) + beyond[2][1],
    )


def _beyond(problem: Problem, powers: Any, t: Any, least: int) -> Any:
    """The sums of k^-power s^least (1-s)^(2-least) over k from the end of the rule on, one for each power."""
    i = np.arange(_TERMS)
    order = least + i
    rates = powers[:, None] + problem.alpha * order - 1
    terms = (-1.0) ** i * (i + 1) * jnp.exp(-order * t[:, None, None] - rates * problem.log_end) / rates
    return problem.tail * terms.sum(axis=-1)
