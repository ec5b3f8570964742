"""Random features of a two-layer network: theory and runs, for regression and classification."""

from __future__ import annotations

import numpy as np

from solvable.core.model import Data
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.models.features.learners import RandomFeatures
from solvable.models.features.one_step.logistic import classes_of
from solvable.models.features.two_layer.logistic import check_penalty, logistic_points
from solvable.models.features.two_layer.model import TwoLayer
from solvable.models.features.two_layer.ridge import ridge_points
from solvable.models.features.two_layer.run import sphere_rows, train_second_layer


@theory(TwoLayer, RandomFeatures, references=("mei2022generalization", "gerace2020generalisation"))
def random_features(model: TwoLayer, learner: RandomFeatures, alpha: np.ndarray) -> Prediction:
    """The errors of the second layer trained on random features; differentiable in every number."""
    if learner.loss == "logistic":
        found, uncertainty = logistic_points(model, learner.penalty, alpha)
        order = {name: getattr(found, name) for name in ("m", "psi", "Q1", "Q2", "V1", "V2")}
    else:
        found, uncertainty = ridge_points(model, learner.penalty, alpha)
        order = {"kappa": found.kappa, "h": found.h}
    return Prediction(found.metrics, order, found.status, found.residual, found.iterations, uncertainty)


@simulation(TwoLayer, RandomFeatures, references=("gerace2020generalisation",))
def run_random_features(model: TwoLayer, learner: RandomFeatures, data: Data, rng: np.random.Generator) -> Outcome:
    """The true nonlinear features of random rows on the sphere."""
    if learner.loss == "logistic":
        check_penalty(learner.penalty)
        classes_of(model.target, model.noise)
    W = sphere_rows(rng, model.units(len(data.truth)), len(data.truth))
    return train_second_layer(model, W, learner.penalty, learner.loss, data, rng)
