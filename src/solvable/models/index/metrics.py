"""The metrics of a posterior mean in theory, from the overlaps that it reaches: one projection, or several."""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels import Channel
from solvable.core.results import Prediction
from solvable.engine.cosines import cosine_error, cosines
from solvable.engine.solvers.base import FixedPoints, plain

_RECOVERED = 1e-12
"""Directions with a smaller V are known to rounding: errors do not depend on them any more."""


def prediction(channel: Channel, points: FixedPoints) -> Prediction:
    """Every metric at fixed points, with the numerical error of the overlaps carried over."""
    metrics, uncertainty = errors_at(channel, points.overlap, points.variance, points.uncertainty)
    return points.prediction(metrics, uncertainty)


@functools.lru_cache(maxsize=64)
def knowing_nothing(channel: Channel) -> Prediction:
    """The metrics without samples, computed once for equal channels."""
    return prediction(channel, FixedPoints.nothing(channel.projections))


def errors_at(
    channel: Channel, M: np.ndarray, V: np.ndarray, error: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The metrics of an estimator with W*^T W_hat/d = W_hat^T W_hat/d = M (k, r, r) and V = I - M, and their errors.

    `error` (k,) is that of the entries of M. Along a direction an error of labels falls no faster than itself over V,
    and the classification error starts like sqrt(q).
    """
    r = channel.projections
    metrics, q = overlaps(M), np.trace(M, axis1=1, axis2=2) / r
    metrics |= {**cosines(q, q, 1.0), "estimation_error": np.trace(V, axis1=1, axis2=2)}
    uncertainty = {name: np.broadcast_to(_beside(error, value), value.shape) for name, value in metrics.items()}
    uncertainty |= {"cosine": cosine_error(q, error), "estimation_error": r * error}
    for name, (value, own) in channel.predictor.errors(V).items():
        metrics[name] = value
        uncertainty[name] = own + error * value * _steepness(V, name)
    return metrics, uncertainty


def overlaps(M: np.ndarray) -> dict[str, np.ndarray]:
    """`overlap`, the matrices M (k, r, r) of a posterior mean, and their diagonals; the numbers (k,) where r = 1."""
    r = M.shape[-1]
    return {"overlap": plain(M)} | {f"overlap_{i + 1}": M[:, i, i] for i in range(r) if r > 1}


def _beside(error: np.ndarray, value: np.ndarray) -> np.ndarray:
    return error.reshape(error.shape + (1,) * (value.ndim - 1))


def _steepness(V: np.ndarray, name: str) -> np.ndarray:
    v = np.linalg.eigvalsh(V)
    live = v > _RECOVERED
    mean = np.sum(np.where(live, 1 / np.where(live, v, 1.0), 0.0), 1) / np.maximum(live.sum(1), 1)
    return mean / np.sqrt(np.maximum(1 - v[:, 0], 1e-12)) if name == "classification_error" else mean
