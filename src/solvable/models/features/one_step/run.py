"""Runs of `OneStep`: the gradient step is taken on a batch, and the second layer trained on fresh samples."""

from __future__ import annotations

import math

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.memory import check_memory
from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.features.one_step.learner import Atoms, OneStep
from solvable.models.features.one_step.logistic import classes_of
from solvable.models.features.two_layer.model import TwoLayer
from solvable.models.features.two_layer.run import sphere_rows, train_second_layer

_BLOCK = 2000


@simulation(TwoLayer, OneStep, references=("ba2022high", "cui2024asymptotics"))
def run_one_step(model: TwoLayer, learner: OneStep, data: Data, rng: np.random.Generator) -> Outcome:
    """One step from rows on the sphere, and the second layer on its features."""
    if learner.loss == "logistic":
        classes_of(model.target, model.noise)
    W = stepped_rows(model, learner, data.truth, rng)
    return train_second_layer(model, W, learner.penalty, learner.loss, data, rng)


def stepped_rows(model: TwoLayer, learner: OneStep, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The first layer after the step, p x d."""
    d, p = len(truth), model.units(len(truth))
    if math.isinf(learner.batch):
        raise bad_parameter("batch", learner.batch, "finite for a run, which sees a number of samples")
    count = max(1, round(learner.batch * d))
    check_memory(8.0 * (min(count, _BLOCK) + p) * (d + p), f"a step on {count} samples", "batch", learner.batch)
    W = sphere_rows(rng, p, d)
    u = rng.permutation(layer_values(learner.second_layer, p))
    gradient = np.zeros((p, d))
    for begin in range(0, count, _BLOCK):
        X, y = model.fresh(rng, truth, min(_BLOCK, count - begin))
        values, slopes = model.activation.value_and_slope(X @ W.T)
        residual = y - values @ u / p
        gradient += (slopes * residual[:, None]).T @ X
    return W + learner.step / count * u[:, None] * gradient


def layer_values(atoms: Atoms, p: int) -> np.ndarray:
    """p values with the fractions of the atoms, as closely as whole numbers allow."""
    u, fractions = np.array(atoms).T
    ends = np.round(np.cumsum(fractions) * p).astype(int)
    return np.repeat(u, np.diff(ends, prepend=0))
