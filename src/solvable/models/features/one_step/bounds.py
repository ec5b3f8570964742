r"""Between which errors the best penalty keeps ridge regression on the features, before and after one step.

Given the projection kappa on the spike, the output is $\sum m_a \mu_{0a} + \kappa \sum \zeta_a \mu_{1a} + \sum \mu_{1a}
w_a\cdot x_\perp$ and noise (`grid`). The m are fitted for free, the others at the price of many samples and units. The
label has the mean h(kappa) and the slope h1(kappa) along the rest of the target's direction, so that, P the projection
onto a span in the mean square over kappa ~ N(0, 1),

    upper = E[g^2] - |P h|^2 on mu0_a,
    lower = E[g^2] - |P h|^2 on (mu0_a, kappa mu1_a) - |P h1|^2 on mu1_a,      lower <= inf_lambda error <= upper,

for any number of samples and units. The upper one is the error of an infinite penalty, or of few samples; the lower one
is approached for alpha >> width >> 1. After a step on the population h = g and h1 = 0: these are then the distances of
g to two spans [dandi2024random].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.checks import real_array
from solvable.core.errors import bad_parameter
from solvable.core.precision import float64
from solvable.models.features.learners import RandomFeatures
from solvable.models.features.one_step.grid import Grid, spiked_grid
from solvable.models.features.one_step.learner import OneStep
from solvable.models.features.one_step.step import first_step
from solvable.models.features.two_layer.model import TwoLayer
from solvable.targets.target import Target

_COLLINEAR = 1e-13
"""Directions whose singular value is below this share of the largest are one."""
_STEPS = np.geomspace(1e-2, 1e2, 41)
_DECADES = 1e-6


class Bounds(NamedTuple):
    """The least error of any number of samples and units, and that of few samples, on the noiseless label."""

    lower: float
    upper: float


class BestBounds(NamedTuple):
    """Bounds with the best step, and the step at which each is reached."""

    lower: float
    upper: float
    lower_step: float
    upper_step: float


def risk_bounds(model: TwoLayer, learner: OneStep | RandomFeatures) -> Bounds:
    """The bounds on the error with the best penalty, whatever the samples, the width and the penalty of the learner.

    **Raises:** `ValueError` for a logistic loss, or a target that the learner has no theory for.
    """
    if learner.loss != "square":
        raise bad_parameter("loss", learner.loss, "'square': the bounds are those of ridge regression")
    if isinstance(learner, RandomFeatures):
        target, fitted = model.target_moments, model.activation_moments.mean != 0
        floor = target.rest + (0.0 if fitted else target.mean**2)
        linear = target.slope**2
        return Bounds(floor if model.activation_moments.slope != 0 else floor + linear, floor + linear)
    return _after(model, learner)


@float64
def _after(model: TwoLayer, learner: OneStep) -> Bounds:
    step = first_step(model, learner)
    return _bounds(spiked_grid(model.activation, model.target, step.spikes, step.norms, step.alignment))


def best_step_bounds(model: TwoLayer, learner: OneStep) -> BestBounds:
    """Each bound at the step that makes it least, among steps from 0.01 to 100; the step of the learner is not used."""
    from scipy.optimize import minimize_scalar  # loaded when needed: it takes long to import

    def at(step: float) -> Bounds:
        return risk_bounds(model, eqx.tree_at(lambda one: one.step, learner, float(step)))

    table = np.array([at(step) for step in _STEPS])
    found = []
    for which in (0, 1):
        best = int(np.argmin(table[:, which]))
        ends = np.log(_STEPS[[max(best - 1, 0), min(best + 1, len(_STEPS) - 1)]])
        fine: Any = minimize_scalar(
            lambda x, which=which: at(np.exp(x))[which], bounds=ends, method="bounded", options={"xatol": _DECADES}
        )
        found.append((float(fine.fun), float(np.exp(fine.x))))
    (lower, lower_step), (upper, upper_step) = found
    return BestBounds(lower, upper, lower_step, upper_step)


@float64
def span_bounds(target: Target, activation: Target, spikes: Sequence[float] | np.ndarray, norms: Any = 1.0) -> Bounds:
    """The bounds for given spikes r u along the target and squared lengths c of the rows, one for each value u."""
    spikes = np.atleast_1d(real_array("spikes", spikes))
    norms = np.broadcast_to(real_array("norms", norms), spikes.shape)
    if not np.all(norms > 0):
        raise bad_parameter("norms", norms, "positive")
    return _bounds(spiked_grid(activation, target, spikes, norms, 1.0))


def _bounds(grid: Grid) -> Bounds:
    root = np.sqrt(np.asarray(grid.weight))
    means, slopes = np.asarray(grid.mu0) * root, np.asarray(grid.mu1) * root
    tilted, h, h1 = np.asarray(grid.kappa) * slopes, np.asarray(grid.h) * root, np.asarray(grid.h1) * root
    # What is neither h nor h1: the label bends, or jumps, along the rest of the target's direction.
    scatter = max(float(np.asarray(grid.weight) @ np.asarray(grid.hh) - h @ h - h1 @ h1), 0.0)
    lower = _distance(h, np.concatenate([means, tilted])) + _distance(h1, slopes)
    return Bounds(scatter + lower, scatter + _distance(h, means) + float(h1 @ h1))


def _distance(h: np.ndarray, rows: np.ndarray) -> float:
    """The squared distance of h to the span of rows."""
    sizes = np.linalg.norm(rows, axis=1)
    rows = rows[sizes > 0] / sizes[sizes > 0, None]
    if not len(rows):
        return float(h @ h)
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    basis = basis[values > _COLLINEAR * values[0]]
    rest = h - basis.T @ (basis @ h)
    return float(rest @ rest)
