"""The theory of `OneStep`: the step, the features it makes, and the second layer trained on them."""

from __future__ import annotations

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
from solvable.models.features.one_step.ridge import Setting, Solution, ridge_on_spikes
from solvable.models.features.one_step.step import Step, first_step, values_of
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.batches import in_batches, rounded_up_to_power

_ROUNDING = 1e-13
_FEWEST = 4

Ingredients = tuple[Isotropic | Exact, Grid, Setting, Any]


def ingredients(model: TwoLayer, learner: OneStep, fine: bool = True) -> tuple[Step, Ingredients]:
    """The step, and what the equations of the second layer take besides alpha."""
    step = first_step(model, learner)
    if learner.bulk == "exact" and len(values_of(model, learner)) > 1:
        takes = "'isotropic' with several values of the second layer: the exact bulk is solved for one"
        raise bad_parameter("bulk", learner.bulk, takes)
    exact = learner.bulk == "exact"
    bulk = exact_bulk(model, step, fine) if exact else Isotropic(jnp.asarray(step.fractions), jnp.asarray(step.norms))
    grid = spiked_grid(model.activation, model.target, step.spikes, step.norms, step.alignment, fine)
    per_unit = 0.0 if learner.units is None else 1.0 / learner.units
    return step, (bulk, grid, Setting(learner.penalty, 1 / model.width, model.noise, per_unit), step.alignment)


@jax.jit
def _solved(given: Ingredients, alpha: Any) -> Solution:
    bulk, grid, setting, alignment = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), given)
    sign = jnp.where(alignment < 0, -1.0, 1.0)  # the linear part of the target is gamma v + ..: it has its sign
    found = jax.vmap(lambda alpha: ridge_on_spikes(bulk, grid, alpha, setting, alignment))(alpha)
    return found._replace(metrics=found.metrics | {"cosine": sign * found.metrics["cosine"]})


@theory(TwoLayer, OneStep, references=("ba2022high", "cui2024asymptotics", "dandi2024random"))
def one_step(model: TwoLayer, learner: OneStep, alpha: np.ndarray) -> Prediction:
    """The errors of the second layer after one giant step of the first; differentiable in every number."""
    step, given = ingredients(model, learner)
    if is_traced((model, learner, alpha)):
        found = _solved(given, jnp.asarray(alpha))
        errors = {name: jnp.zeros_like(value) for name, value in found.metrics.items()}
    else:
        _, coarser = ingredients(model, learner, fine=False)
        batch = rounded_up_to_power(len(alpha), _FEWEST)
        found, rough = (in_batches(lambda a, g=g: _solved(g, a), alpha, batch=batch) for g in (given, coarser))
        errors = {
            name: np.abs(value - rough.metrics[name]) + _ROUNDING * np.abs(value) + found.residual * np.abs(value)
            for name, value in found.metrics.items()
        }
    overlaps = {name: _plain(getattr(found, name)) for name in ("m", "zeta", "psi")}
    return Prediction(
        found.metrics,
        _rows(model, learner, step, found) | overlaps,
        found.status,
        found.residual,
        found.iterations,
        errors,
    )


def _rows(model: TwoLayer, learner: OneStep, step: Step, found: Solution) -> dict[str, Any]:
    """The spike r of a unit of value one, the mean squared length c of the rows, and their alignment gamma."""
    alike = jnp.ones_like(found.test)
    u = np.array(values_of(model, learner))[:, 0]
    largest = int(np.argmax(np.abs(u)))
    spike = step.spikes[largest] / u[largest] if u[largest] != 0 else 0.0
    return {"spike": spike * alike, "norm": (step.fractions @ step.norms) * alike, "alignment": step.alignment * alike}


def _plain(overlap: Any) -> Any:
    """One number a point where the second layer has one value."""
    return overlap[:, 0] if overlap.shape[1] == 1 else overlap
