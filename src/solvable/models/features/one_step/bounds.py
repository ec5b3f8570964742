r"""Bounds on the error of spiked features in the limit of an infinite batch, where the spike is the target's direction.

Whatever the penalty, the features of value u give the functions mu0(u kappa) for free and kappa mu1(u kappa) at the
price of many samples and units, so that the least error over the penalty lies between two distances to a span,

    inf_b E(g - sum b_a kappa mu1_a - sum b'_a mu0_a)^2   <=   inf_lambda error   <=   inf_b' E(g - sum b'_a mu0_a)^2,

averages over kappa ~ N(0, 1), $\mu$ those of `grid` [dandi2024random]. The upper one is the error from few samples, the
lower one that of alpha >> width >> 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from solvable.core.checks import real_array
from solvable.core.errors import bad_parameter
from solvable.core.precision import float64
from solvable.models.features.one_step.grid import spiked_grid
from solvable.models.features.one_step.learner import OneStep
from solvable.models.features.one_step.step import first_step
from solvable.models.features.two_layer.model import TwoLayer
from solvable.targets.target import Target

_COLLINEAR = 1e-13
"""Directions whose singular value is below this share of the largest are one."""


class Bounds(NamedTuple):
    """The least error of any number of samples and units, and that of few samples, with the best penalty."""

    lower: float
    upper: float


@float64
def span_bounds(target: Target, activation: Target, spikes: Sequence[float] | np.ndarray, norms: Any = 1.0) -> Bounds:
    """The bounds for given spikes r u and squared lengths c of the rows, one of each for each value u."""
    spikes = np.atleast_1d(real_array("spikes", spikes))
    norms = np.broadcast_to(real_array("norms", norms), spikes.shape)
    if not np.all(norms > 0):
        raise bad_parameter("norms", norms, "positive")
    grid = spiked_grid(activation, target, spikes, norms, 1.0)
    root = np.sqrt(np.asarray(grid.weight))
    means, slopes, g = np.asarray(grid.mu0) * root, np.asarray(grid.kappa * grid.mu1) * root, np.asarray(grid.h) * root
    return Bounds(_distance(g, np.concatenate([means, slopes])), _distance(g, means))


def risk_bounds(model: TwoLayer, learner: OneStep) -> Bounds:
    """The bounds after a step on an infinite batch, whatever the penalty and the samples; without the noise."""
    if not np.isinf(learner.batch):
        raise bad_parameter("batch", learner.batch, "inf: the bounds are those of a step on the population")
    step = float64(first_step)(model, learner)
    return span_bounds(model.target, model.activation, np.asarray(step.spikes), np.asarray(step.norms))


def _distance(g: np.ndarray, rows: np.ndarray) -> float:
    """The squared distance of g to the span of rows."""
    sizes = np.linalg.norm(rows, axis=1)
    rows = rows[sizes > 0] / sizes[sizes > 0, None]
    if not len(rows):
        return float(g @ g)
    _, values, basis = np.linalg.svd(rows, full_matrices=False)
    basis = basis[values > _COLLINEAR * values[0]]
    rest = g - basis.T @ (basis @ g)
    return float(rest @ rest)
