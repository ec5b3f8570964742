"""Exact asymptotics of Bayes-optimal learning and AMP, and the thresholds between them: one projection, or several."""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels import Channel
from solvable.channels.exponents import weak_recovery
from solvable.channels.prediction import classification_error, generalization_error, quadrature_error
from solvable.core.learners import AMP, BayesOptimal
from solvable.core.registry import theory, thresholds_of
from solvable.core.results import Prediction
from solvable.engine.state_evolution import FixedPoints, InformationTable, ScalarStateEvolution
from solvable.engine.thresholds import Thresholds
from solvable.engine.transitions import find_thresholds
from solvable.models.index import multi_theory
from solvable.models.index.multi_index import MultiIndex
from solvable.priors import Prior


@theory(MultiIndex, BayesOptimal, references=("barbier2019optimal", "aubin2018committee"))
def bayes_optimal(model: MultiIndex, learner: BayesOptimal, alpha: np.ndarray) -> Prediction:
    """The fixed point of largest free entropy: the error of the exact posterior mean."""
    if model.target.projections > 1:
        return multi_theory.bayes_optimal(model, alpha)
    evolution = state_evolution(model)
    return _prediction(model, evolution.optimal(np.ravel(alpha)), np.shape(alpha))


@theory(MultiIndex, AMP, references=("barbier2019optimal", "aubin2018committee", "troiani2024fundamental"))
def approximate_message_passing(model: MultiIndex, learner: AMP, alpha: np.ndarray) -> Prediction:
    """The fixed point that the iteration reaches from an uninformed start."""
    if model.target.projections > 1:
        return multi_theory.message_passing(model, alpha)
    evolution = state_evolution(model)
    return _prediction(model, evolution.uninformed(np.ravel(alpha)), np.shape(alpha))


@thresholds_of(MultiIndex, references=("barbier2019optimal", "mondelli2017fundamental", "troiani2024fundamental"))
def thresholds(model: MultiIndex) -> Thresholds:
    """weak_recovery, algorithmic and information_theoretic, each as an alpha (0: any, infinite: none).

    With several projections also `step_2`, ... where the next directions of the staircase are learned.
    """
    if model.target.projections > 1:
        return multi_theory.multi_thresholds(model)
    return Thresholds(_thresholds(model.channel, model.prior))


def state_evolution(model: MultiIndex) -> ScalarStateEvolution:
    """The state evolution of a one-projection model, tabulated once for each channel."""
    return _evolution(model.channel, model.prior)


@functools.lru_cache(maxsize=64)
def _evolution(channel: Channel, prior: Prior) -> ScalarStateEvolution:
    return ScalarStateEvolution(_table(channel), channel, prior, weak_recovery(channel))


@functools.lru_cache(maxsize=64)
def _thresholds(channel: Channel, prior: Prior) -> Thresholds:
    return find_thresholds(_evolution(channel, prior))


@functools.lru_cache(maxsize=64)
def _table(channel: Channel) -> InformationTable:
    return InformationTable.of(channel)


def _prediction(model: MultiIndex, points: FixedPoints, shape: tuple[int, ...]) -> Prediction:
    metrics, slopes = errors_at(model, points.q, points.V)
    uncertainty = uncertainties(model, metrics, slopes, points.uncertainty)
    reshape = functools.partial(np.reshape, shape=shape)
    return Prediction(
        metrics={name: reshape(value) for name, value in metrics.items()},
        order_parameters={
            "q": reshape(points.q),
            "qhat": reshape(points.qhat),
            "free_entropy": reshape(points.free_entropy),
        },
        status=reshape(points.status),
        residual=reshape(points.residual),
        uncertainty={name: reshape(value) for name, value in uncertainty.items()},
    )


def uncertainties(model: MultiIndex, metrics: dict, slopes: dict, error: np.ndarray) -> dict[str, np.ndarray]:
    """The error estimate of each metric: that of q carried over, and that of the metric's own quadrature."""
    found = {name: np.abs(slopes[name]) * error for name in metrics}
    found["generalization_error"] += quadrature_error(model.channel.landscape) * metrics["generalization_error"]
    return found


def errors_at(model: MultiIndex, q: np.ndarray, V: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Every metric of an estimator with w_hat.w*/d = |w_hat|^2/d = q, V = 1 - q, and how fast it can change in q."""
    shape = model.channel.landscape
    functions = {"generalization_error": generalization_error}
    if model.channel.discrete:
        functions["classification_error"] = classification_error
    metrics = {"overlap": q, "squared_overlap": q, "estimation_error": V}
    slopes = {"overlap": np.ones_like(q), "squared_overlap": np.ones_like(q), "estimation_error": -np.ones_like(q)}
    for name, function in functions.items():
        metrics[name] = function(shape, V)
        # E = sum_k c_k^2 (1 - q^k) falls no faster than E / V; the classification error starts like sqrt(q) as well.
        slopes[name] = metrics[name] / np.maximum(V, 1e-300)
    if "classification_error" in slopes:
        slopes["classification_error"] /= np.sqrt(np.maximum(q, 1e-12))
    return metrics, slopes
