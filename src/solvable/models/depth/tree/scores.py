"""What a learner of a tree target has found: the errors of its predictions on fresh inputs, and its layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.models.depth.tree.model import TreeData, TreeTarget

FRESH = 10_000
"""Fresh inputs that errors are averaged over."""

Function = Callable[[np.ndarray], np.ndarray]


def scores(
    model: TreeTarget,
    data: TreeData,
    rng: np.random.Generator,
    predict: Function,
    directions: np.ndarray | None = None,
    features: Function | None = None,
) -> dict[str, float]:
    """The metrics of a function of inputs, of `directions` (d x p) of a first layer, of hidden `features` (n x q)."""
    d = data.X.shape[1]
    X = rng.standard_normal((FRESH, d)) / np.sqrt(d)
    hidden = model.hidden(X, data.truth, data.signs)
    y, predicted = model.labels(hidden), predict(X)
    cosine = _correlation(y, predicted)
    found = {
        "generalization_error": float(np.mean((y - predicted) ** 2)),
        "training_error": float(np.mean((data.y - predict(data.X)) ** 2)),
        "cosine": cosine,
        "squared_overlap": cosine**2,
    }
    if directions is not None:
        found["first_layer"] = share_in_span(directions, data.truth)
    if features is not None:
        found["second_layer"] = explained(features(X), hidden.sum(axis=1))
    return found


def share_in_span(directions: np.ndarray, truth: np.ndarray) -> float:
    """The mean over columns of the share of their squared length in the span of the truth (d x k, orthogonal)."""
    inside = np.sum((truth.T @ directions) ** 2, axis=0) / np.sum(truth[:, 0] ** 2)
    length = np.sum(directions**2, axis=0)
    return float(np.mean(np.divide(inside, length, out=np.zeros_like(length), where=length > 0)))


def explained(features: np.ndarray, values: np.ndarray) -> float:
    """The share of the variance of values that a linear function of features explains, fitted on one half of them."""
    half = len(values) // 2
    F = np.column_stack([np.ones(len(values)), features])
    fitted = F @ np.linalg.lstsq(F[:half], values[:half], rcond=None)[0]
    return max(0.0, 1 - float(np.mean((values[half:] - fitted[half:]) ** 2) / np.var(values[half:])))


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt(np.mean(a**2) * np.mean(b**2)))
    return float(np.mean(a * b)) / scale if scale > 0 else 0.0
