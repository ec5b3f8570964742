"""Logistic regression on random features: that on spiked features (`one_step.logistic`) without a spike."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.core.errors import bad_parameter
from solvable.models.features.one_step.bulk import Isotropic
from solvable.models.features.one_step.grid import Grid
from solvable.models.features.one_step.logistic import Classes, Classifier, classes_of, logistic_on_spikes, xi_rule
from solvable.models.features.one_step.ridge import Setting
from solvable.models.features.two_layer.averages import moments
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.batches import in_batches, rounded_up_to_power

_ROUNDING = 1e-12
_FEWEST = 4


def check_penalty(penalty: Any) -> None:
    """Refuse a penalty of zero: separable classes then have their minimum at infinity."""
    if not is_traced(penalty) and penalty == 0:
        raise bad_parameter("penalty", penalty, "positive for the logistic loss")


def logistic_points(model: TwoLayer, penalty: Any, alpha: Any) -> tuple[Classifier, dict[str, Any]]:
    """The solutions at an array of alpha, and the numerical error of each metric."""
    check_penalty(penalty)
    classes, sign = classes_of(model.target, model.noise), np.sign(model.target_moments.slope or 1.0)
    numbers = penalty, 1 / model.width
    if is_traced((model, penalty, alpha)):
        found = _turned(_solved(frozen_features(model), classes, numbers, xi_rule(), jnp.asarray(alpha)), sign)
        return found, {name: jnp.zeros_like(value) for name, value in found.metrics.items()}
    batch = rounded_up_to_power(len(alpha), _FEWEST)
    fine, coarse = (
        in_batches(
            lambda a, which=which: _solved(frozen_features(model, which), classes, numbers, xi_rule(which), a),
            alpha,
            batch=batch,
        )
        for which in (True, False)
    )
    errors = {
        name: np.abs(value - coarse.metrics[name]) + (_ROUNDING + fine.residual) * np.abs(value)
        for name, value in fine.metrics.items()
    }
    return _turned(fine, sign), errors


def _turned(found: Classifier, sign: float) -> Classifier:
    """With the cosine with the linear part of the target, which is along theta times its sign."""
    return found._replace(metrics=found.metrics | {"cosine": sign * found.metrics["cosine"]})


def frozen_features(model: TwoLayer, fine: bool = True) -> Grid:
    """Features that depend on no projection: one node."""
    sigma, one = moments(model.activation, fine), np.ones(1)
    mu0, mu1, mu2 = (np.full((1, 1), part) for part in (sigma.mean, sigma.slope, sigma.rest))
    return Grid(0 * one, one, mu0, mu1, mu2, 0 * one, 0 * one, 0 * one)


@jax.jit
def _solved(grid: Grid, classes: Classes, numbers: tuple[Any, Any], rule: tuple[Any, Any], alpha: Any) -> Classifier:
    penalty, narrow = (jnp.asarray(number, float) for number in numbers)
    grid = jax.tree.map(jnp.asarray, grid)
    bulk, setting = Isotropic(jnp.ones(1), jnp.ones(1)), Setting(penalty, narrow, 0.0, 0.0)
    return jax.vmap(lambda a: logistic_on_spikes(bulk, grid, classes, a, setting, jnp.zeros(()), rule))(alpha)
