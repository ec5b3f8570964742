r"""Kernel ridge regression on index models: a function of few directions, learned degree by degree.

From $n = \alpha d$ samples, alpha of order one, an inner-product kernel learns no more than the linear part of the
label. Beside the mean its matrix is $X X^T + c\,I$, with c the part of k(x, x) that is not linear
(`Kernel.curvature`): ridge regression with the penalty $\lambda + c$ on labels with
$\gamma = |E[y z]|$, for which all else in them is noise. With S and D of `engine.erm.closed`, and g of the mean
$\mu$ and variance v,

    error = v - gamma^2 + gamma^2 (1 - S)^2 + S^2 D,
    training error = (lambda/(lambda + c))^2 D (alpha - S)^2 / alpha.

A penalty that is chosen on samples set aside tends to the best one, $\lambda + c = \max(c, \Delta/\gamma^2)$ with
$\Delta = E[y^2] - E[y]^2 - \gamma^2$. [elkaroui2010spectrum]

From $n = d^\kappa$ samples, $\kappa$ not a whole number, it learns the part of g of degree at most $\kappa$, and
nothing of the rest: the error stands at the squares of the Hermite coefficients of higher degree. These plateaus are
what `thresholds(model, Kernel(degree))` gives. [ghorbani2021linearized, mei2022generalization]
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import NotSolvable
from solvable.core.model import Data
from solvable.core.registry import simulation, theory, thresholds_of
from solvable.core.results import Outcome, Prediction
from solvable.engine.cosines import cosines, cosines_of
from solvable.engine.erm.closed import ridge_regression
from solvable.engine.kernel import Kernel
from solvable.engine.kernel.fit import fit_kernel
from solvable.models.index.multi_index import MultiIndex
from solvable.targets.hermite import HermiteTensor, hermite_tensor, kernel_error

DEGREES = 6
"""How far the plateaus of a kernel of any degree are named."""
FRESH = 10_000
"""Fresh inputs that errors are averaged over."""


class Moments(NamedTuple):
    """Of g: mean, linear part (r) and variance; of the labels: the factor of g, and their variance."""

    mean: float
    linear: np.ndarray
    variance: float
    slope: float
    second: float
    error: float


def moments(model: MultiIndex) -> Moments:
    """Moments of g and of labels, of which a part may be of another law."""
    if model.named_channel is not None:
        raise NotSolvable(
            f"the theory of Kernel is for labels g(z) + noise, which those of {model.named_channel!r} are not: write "
            "the target as text, such as 'sign(z)'."
        )
    tensor = hermite_tensor(model.target, 1)
    linear = linear_part(tensor, model.projections)
    mean = tensor.coefficients[(0,) * model.projections]
    square = tensor.variance + mean**2
    slope = sum(p * s for p, s, _ in model.components)
    second = sum(p * (s**2 * square + noise) for p, s, noise in model.components)
    error = tensor.error + tensor.variance_error
    return Moments(mean, linear, tensor.variance, slope, second - (slope * mean) ** 2, error)


def linear_part(tensor: HermiteTensor, r: int) -> np.ndarray:
    """The coefficients of degree one, 0 where they cannot be told from it."""
    units = (tuple(int(i == j) for j in range(r)) for i in range(r))
    return np.array([tensor.coefficients[k] if k in tensor.nonzero else 0.0 for k in units])


@theory(MultiIndex, Kernel, references=("elkaroui2010spectrum", "hastie2022surprises"))
def kernel(model: MultiIndex, learner: Kernel, alpha: np.ndarray) -> Prediction:
    """The errors of ridge regression with what the curvature of the kernel adds to the penalty."""
    found = moments(model)
    power, c = float(found.linear @ found.linear), learner.curvature
    seen = found.slope**2 * power
    rest = jnp.maximum(found.second - seen, 0.0)
    if learner.penalty is not None:
        strength = learner.penalty + c
    else:
        strength = jnp.maximum(c, rest / seen) if seen > 0 else math.inf
    if isinstance(strength, float) and math.isinf(strength):  # the best estimate is none
        S, D, share = jnp.zeros_like(alpha), jnp.zeros_like(alpha), 1.0
    else:
        S, D, _, _ = ridge_regression(seen, rest, strength, jnp.asarray(alpha))
        share = (strength - c) / strength if c > 0 else 1.0
    missed = max(found.variance - power, 0.0) + ((1 - found.slope) * found.mean) ** 2
    variance = jnp.where(S > 0, S**2 * D, 0.0)
    some = jnp.where(alpha > 0, alpha, 1.0)
    residual = jnp.where(alpha > S, D * (alpha - S) ** 2, 0.0) / some
    fitted = jnp.where(S > 0, residual, found.second)  # without samples, or a direction, all is left
    metrics = cosines(
        found.slope * math.sqrt(power) * S, seen * S**2 + variance, jnp.full_like(S, float(model.projections))
    )
    metrics |= {
        "generalization_error": missed + power * (1 - found.slope * S) ** 2 + variance,
        "training_error": share**2 * fitted,
    }
    rounding = 1e-12 * (1 + found.second) + 4 * found.error
    uncertainty = {name: jax.lax.stop_gradient(rounding + 1e-12 * jnp.abs(value)) for name, value in metrics.items()}
    return Prediction(metrics, {"S": S, "D": D}, uncertainty=uncertainty)


@thresholds_of(MultiIndex, Kernel, references=("ghorbani2021linearized", "mei2022generalization"))
def plateaus(model: MultiIndex, learner: Kernel) -> dict[str, float]:
    """The errors that remain at n = d^kappa, q < kappa < q + 1, as plateau_q; for degrees up to six unless told.

    They are against the noiseless label, of any noise.
    """
    top = DEGREES if math.isinf(learner.degree) else int(learner.degree)
    tensor = hermite_tensor(model.target, top)
    return {f"plateau_{q}": kernel_error(tensor, q) for q in range(top + 1)}


@simulation(MultiIndex, Kernel, references=("ghorbani2021linearized",))
def run_kernel(model: MultiIndex, learner: Kernel, data: Data, rng: np.random.Generator) -> Outcome:
    """One fit, its penalty chosen on samples set aside unless given, and its errors on fresh inputs."""
    fit = fit_kernel(learner, data.X, data.y)
    d = len(data.truth)
    X = rng.standard_normal((FRESH, d)) / np.sqrt(d)
    label = model.target.numpy(X @ data.truth)
    linear = linear_part(hermite_tensor(model.target, 1), model.projections)
    size = float(np.linalg.norm(linear))
    estimate = np.outer(fit.gradient, linear / size if size > 0 else linear)
    metrics = cosines_of(estimate, data.truth) | {
        "generalization_error": float(np.mean((label - fit.predict(X)) ** 2)),
        "training_error": float(np.mean((data.y - fit.predict(data.X)) ** 2)),
    }
    return Outcome(metrics, estimate, details={"penalty": fit.penalty})
