"""Exact asymptotics of Bayes-optimal learning and AMP for several projections, and the thresholds between them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from solvable.channels import Channel
from solvable.core.results import Prediction
from solvable.engine.matrix_evolution import MatrixStateEvolution
from solvable.engine.matrix_points import MatrixFixedPoints
from solvable.engine.matrix_transitions import find_matrix_thresholds
from solvable.engine.staircase import LearnedStep, staircase
from solvable.engine.thresholds import Thresholds
from solvable.models.index.multi_index import MultiIndex

_RECOVERED = 1e-12
"""Directions with a smaller V are known to rounding: errors do not depend on them any more."""


def bayes_optimal(model: MultiIndex, alpha: Any) -> Prediction:
    """The fixed point of largest free entropy: the error of the exact posterior mean."""
    points = matrix_evolution(model).optimal(np.ravel(alpha))
    return _prediction(model.multi_channel, points, np.shape(alpha))


def message_passing(model: MultiIndex, alpha: Any) -> Prediction:
    """The fixed point that the iteration reaches from an uninformed start."""
    points = matrix_evolution(model).uninformed(np.ravel(alpha))
    return _prediction(model.multi_channel, points, np.shape(alpha))


def multi_thresholds(model: MultiIndex) -> Thresholds:
    """weak_recovery, algorithmic and information_theoretic; step_2, .. for the later steps of the staircase; and
    specialization, where projections that the target does not distinguish come apart."""
    return Thresholds(_thresholds(model.multi_channel))


def learned_steps(model: MultiIndex) -> list[LearnedStep]:
    """Which directions are learned in which order, and from which alpha on."""
    return [dataclasses.replace(s, directions=s.directions.copy()) for s in _steps(model.multi_channel)]


def matrix_evolution(model: MultiIndex) -> MatrixStateEvolution:
    """The state evolution of a model of several projections, made once for each channel."""
    return _evolution(model.multi_channel)


@functools.lru_cache(maxsize=32)
def _evolution(channel: Channel) -> MatrixStateEvolution:
    return MatrixStateEvolution(channel)


@functools.lru_cache(maxsize=32)
def _steps(channel: Channel) -> tuple[LearnedStep, ...]:
    return tuple(staircase(_evolution(channel)))


@functools.lru_cache(maxsize=32)
def _thresholds(channel: Channel) -> Thresholds:
    return find_matrix_thresholds(_evolution(channel), list(_steps(channel)))


def _prediction(channel: Channel, points: MatrixFixedPoints, shape: tuple[int, ...]) -> Prediction:
    r = channel.projections
    metrics: dict[str, np.ndarray] = {"overlap": points.M}
    metrics |= {f"overlap_{i + 1}": points.M[:, i, i] for i in range(r)}
    metrics["estimation_error"] = r - np.trace(points.M, axis1=1, axis2=2)
    uncertainty = {name: points.uncertainty for name in metrics}
    uncertainty["overlap"] = np.broadcast_to(points.uncertainty[:, None, None], points.M.shape)
    uncertainty["estimation_error"] = r * points.uncertainty
    for name, (value, error) in _label_errors(channel, points).items():
        metrics[name], uncertainty[name] = value, error

    def reshape(value: np.ndarray) -> np.ndarray:
        return np.reshape(value, (*shape, *value.shape[1:]))

    return Prediction(
        metrics={name: reshape(value) for name, value in metrics.items()},
        order_parameters={
            "M": reshape(points.M),
            "Mhat": reshape(points.Mhat),
            "free_entropy": reshape(points.free_entropy),
        },
        status=reshape(points.status),
        residual=reshape(points.residual),
        iterations=reshape(points.iterations),
        uncertainty={name: reshape(value) for name, value in uncertainty.items()},
    )


def _label_errors(channel: Channel, points: MatrixFixedPoints) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The errors of predicted labels at each point, with those of M and of the average over omega carried over."""
    known: dict[bytes, dict[str, tuple[float, float]]] = {}
    found: dict[str, list[tuple[float, float]]] = {}
    for M, error in zip(points.M, points.uncertainty, strict=True):
        key = M.tobytes()
        if key not in known:
            errors = channel.predictor.errors((np.eye(len(M)) - M)[None])
            known[key] = {name: (float(a[0]), float(b[0])) for name, (a, b) in errors.items()}
        v = np.linalg.eigvalsh(np.eye(len(M)) - M)
        live = v[v > _RECOVERED]
        # Along a direction an error falls no faster than itself over V; the classification error starts like sqrt(q).
        steepness = float(np.sum(1 / live)) / max(len(live), 1)
        for name, (value, own) in known[key].items():
            q = np.sqrt(max(1 - float(v[0]), 1e-12)) if name == "classification_error" else 1.0
            found.setdefault(name, []).append((value, own + error * value * steepness / q))
    return {name: (np.array([v for v, _ in rows]), np.array([e for _, e in rows])) for name, rows in found.items()}
