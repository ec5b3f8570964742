"""The theory of `OneStep`: the step, the features it makes, and the second layer trained on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.core.errors import bad_parameter
from solvable.core.registry import theory
from solvable.core.results import Prediction
from solvable.models.features.one_step.bulk import Exact, Isotropic, exact_bulk
from solvable.models.features.one_step.grid import Grid, spiked_grid
from solvable.models.features.one_step.learner import OneStep
from solvable.models.features.one_step.logistic import Classes, Classifier, classes_of, logistic_on_spikes, xi_rule
from solvable.models.features.one_step.ridge import Setting, Solution, ridge_on_spikes
from solvable.models.features.one_step.step import Step, first_step, values_of
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.batches import in_batches, rounded_up_to_power

_ROUNDING = 1e-13
_FEWEST = 4
_MOST_VALUES = 16
"""The equations of K values have K (K + 1) unknowns, and their memory grows as K^4."""

Ingredients = tuple[Isotropic | Exact, Grid, Setting, Any]


def ingredients(model: TwoLayer, learner: OneStep, fine: bool = True) -> tuple[Step, Ingredients]:
    """The step, and what the equations of the second layer take besides alpha."""
    step = first_step(model, learner)
    if len(step.fractions) > _MOST_VALUES:
        takes = f"of at most {_MOST_VALUES} values that differ, up to their sign if the activation is odd, for a theory"
        raise bad_parameter("second_layer", f"{len(step.fractions)} values", takes)
    if learner.bulk == "exact" and len(step.fractions) > 1:
        takes = "'isotropic' with several values of the second layer: the exact bulk is solved for one"
        raise bad_parameter("bulk", learner.bulk, takes)
    exact = learner.bulk == "exact"
    bulk = exact_bulk(model, step, fine) if exact else Isotropic(jnp.asarray(step.fractions), jnp.asarray(step.norms))
    grid = spiked_grid(model.activation, model.target, step.spikes, step.norms, step.alignment, fine)
    per_unit = 0.0 if learner.units is None else 1.0 / learner.units
    return step, (bulk, grid, Setting(learner.penalty, 1 / model.width, model.noise, per_unit), step.alignment)


@jax.jit
def _ridge(given: Ingredients, alpha: Any) -> Solution:
    bulk, grid, setting, alignment = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), given)
    return jax.vmap(lambda alpha: ridge_on_spikes(bulk, grid, alpha, setting, alignment))(alpha)


@jax.jit
def _logistic(given: Ingredients, classes: Classes, rule: tuple[Any, Any], alpha: Any) -> Classifier:
    bulk, grid, setting, alignment = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), given)
    return jax.lax.map(lambda a: logistic_on_spikes(bulk, grid, classes, a, setting, alignment, rule), alpha)


@theory(TwoLayer, OneStep, references=("ba2022high", "cui2024asymptotics", "dandi2024random"))
def one_step(model: TwoLayer, learner: OneStep, alpha: np.ndarray) -> Prediction:
    """The errors of the second layer after one giant step of the first; differentiable in every number."""
    step, found, errors = _found_and_errors(model, learner, alpha)
    # The linear part of the target is along theta, times its sign.
    turned = found.metrics["cosine"] * np.sign(model.target_moments.slope or 1.0)
    overlaps = {name: _plain(getattr(found, name)) for name in ("m", "zeta", "psi")}
    order = _rows(model, learner, step, alpha) | overlaps
    metrics = found.metrics | {"cosine": turned}
    return Prediction(metrics, order, found.status, found.residual, found.iterations, errors)


def _found_and_errors(model: TwoLayer, learner: OneStep, alpha: Any) -> tuple[Step, Any, dict[str, Any]]:
    """The solution on fine grids, and by how much coarser ones differ."""
    step, given = ingredients(model, learner)
    solve = _solver(model, learner, step)
    if is_traced((model, learner, alpha)):
        found = solve(given, jnp.asarray(alpha), True)
        return step, found, {name: jnp.zeros_like(value) for name, value in found.metrics.items()}
    coarser = ingredients(model, learner, fine=False)[1]
    batch = rounded_up_to_power(len(alpha), _FEWEST)
    found = in_batches(lambda a: solve(given, a, True), alpha, batch=batch)
    rough = in_batches(lambda a: solve(coarser, a, False), alpha, batch=batch)
    errors = {
        name: np.abs(value - rough.metrics[name]) + (_ROUNDING + found.residual) * np.abs(value)
        for name, value in found.metrics.items()
    }
    return step, found, errors


def _solver(model: TwoLayer, learner: OneStep, step: Step) -> Callable[[Ingredients, Any, bool], Any]:
    if learner.loss == "square":
        return lambda given, alpha, fine: _ridge(given, alpha)
    if len(step.fractions) > 1:
        raise bad_parameter("second_layer", learner.second_layer, "of one value for the logistic loss")
    classes = classes_of(model.target, model.noise)
    return lambda given, alpha, fine: _logistic(given, classes, xi_rule(fine), alpha)


def _rows(model: TwoLayer, learner: OneStep, step: Step, alpha: Any) -> dict[str, Any]:
    """The spike r of a unit of value one, the mean squared length c of the rows, and their alignment gamma."""
    alike = jnp.ones_like(alpha)
    u = np.array(values_of(model, learner))[:, 0]
    largest = int(np.argmax(np.abs(u)))
    spike = step.spikes[largest] / u[largest] if u[largest] != 0 else 0.0
    return {"spike": spike * alike, "norm": (step.fractions @ step.norms) * alike, "alignment": step.alignment * alike}


def _plain(overlap: Any) -> Any:
    """One number a point where the second layer has one value."""
    return overlap[:, 0] if overlap.ndim == 2 and overlap.shape[1] == 1 else overlap
