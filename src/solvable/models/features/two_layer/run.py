r"""Runs of two-layer networks: features of rows on the sphere, a second layer trained on them, and its scores.

The linear part of a network, $E[f(x)\,x] = \sum_k b_k E[\sigma'(|w_k| z)]\, w_k$ with $b = a/\sqrt p$, is exact by
Stein's lemma. Errors are averaged over fresh inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from solvable.channels.losses import Logistic, Square
from solvable.core.memory import check_memory
from solvable.core.model import Data
from solvable.core.results import Outcome
from solvable.engine.cosines import cosines_of
from solvable.engine.erm.direct import minimise
from solvable.models.features.two_layer.averages import smoothed
from solvable.models.features.two_layer.model import TwoLayer
from solvable.priors.penalties import Ridge

FRESH_INPUTS = 10_000
"""How many inputs the errors are averaged over."""
_BLOCK = 2000
_NORMS = 65
_ZERO = 1e-10


class Network(NamedTuple):
    """What was learned: the `first` layer W (p x d) and the `second` layer a (p), f = a . sigma(W x) / sqrt(p)."""

    first: np.ndarray
    second: np.ndarray


def sphere_rows(rng: np.random.Generator, p: int, d: int) -> np.ndarray:
    """p independent rows on the unit sphere of R^d."""
    W = rng.standard_normal((p, d))
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def features(model: TwoLayer, W: np.ndarray, X: np.ndarray) -> np.ndarray:
    """sigma(W x)/sqrt(p), one row an input."""
    return model.activation.numpy((X @ W.T)[..., None]) / np.sqrt(len(W))


def train_second_layer(
    model: TwoLayer, W: np.ndarray, penalty: float, loss: str, data: Data, rng: np.random.Generator
) -> Outcome:
    """Fit the second layer to the data on the features of W, and score it on fresh inputs."""
    n, p = len(data.y), len(W)
    check_memory(16.0 * n * p, f"the features, {n} x {p} numbers,", "width", model.width)
    Phi = features(model, W, data.X)
    found = minimise(Phi, data.y, Logistic() if loss == "logistic" else Square(), Ridge(float(penalty)))
    a, fitted = found.estimate, Phi @ found.estimate
    linear = (a / np.sqrt(p) * mean_slopes(model, np.linalg.norm(W, axis=1))) @ W
    metrics: dict[str, Any] = cosines_of(linear, model.direction(data.truth))
    metrics |= _errors(model, W, a, data.truth, loss, rng)
    if loss == "logistic":
        metrics["training_loss"] = float(np.mean(np.logaddexp(0.0, -data.y * fitted)))
    else:
        metrics["training_error"] = float(np.mean((data.y - fitted) ** 2))
    return Outcome(metrics, Network(W, a), found.converged, details={"norm": float(a @ a) / p})


def _errors(
    model: TwoLayer, W: np.ndarray, a: np.ndarray, truth: np.ndarray, loss: str, rng: np.random.Generator
) -> dict[str, float]:
    total = 0.0
    for _ in range(FRESH_INPUTS // _BLOCK):
        X = rng.standard_normal((_BLOCK, len(truth)))
        output, label = features(model, W, X) @ a, model.target.numpy(X @ truth)
        wrong = (np.sign(output) != label) if loss == "logistic" else (output - label) ** 2
        total += float(np.sum(wrong))
    mean = total / (FRESH_INPUTS // _BLOCK * _BLOCK)
    if loss == "logistic":
        return {"generalization_error": 4 * mean, "classification_error": mean}
    return {"generalization_error": mean}


def mean_slopes(model: TwoLayer, norms: np.ndarray) -> np.ndarray:
    """E[sigma'(s z)] for each norm s of a row: exact at the ends and a few points between, a cubic in between."""
    from scipy.interpolate import CubicSpline  # loaded when needed: it takes long to import

    low, high = float(norms.min()), float(norms.max())
    places = np.linspace(low, high, _NORMS) if high - low > 1e-9 * high else np.array([low])
    found = [smoothed(model.activation, np.zeros(1), s) for s in places]
    # An even activation has no mean slope: what rounding leaves of it has no direction.
    slopes = np.array(
        [part.slope[0] if abs(part.slope[0]) > _ZERO * np.sqrt(part.square[0]) else 0.0 for part in found]
    )
    return CubicSpline(places, slopes)(norms) if len(places) > 1 else np.full(norms.shape, slopes[0])
