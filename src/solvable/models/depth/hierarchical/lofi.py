"""Layers of selected features on hierarchical targets, which know neither their polynomials nor their squares."""

from __future__ import annotations

import numpy as np

from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.cosines import cosines
from solvable.engine.lofi import NeuralLoFi
from solvable.engine.lofi.fit import fit_lofi
from solvable.models.depth.hierarchical.model import SHOWN, HierarchicalData, HierarchicalTarget

_FRESH = 4000


@simulation(HierarchicalTarget, NeuralLoFi, references="dandi2026deep")
def run_lofi(
    model: HierarchicalTarget, learner: NeuralLoFi, data: HierarchicalData, rng: np.random.Generator
) -> Outcome:
    """One fit, of the inputs, or of the features where those are Gaussian; its error is that on fresh samples.

    `feature_overlap` is the share of the variance of each hidden feature that a linear function of what the first layer
    passes on explains, and `features_learned` counts those of which it is more than a half.
    """
    points = data.Phi if data.inputs is None else data.inputs
    scale = np.sqrt(points.shape[1])
    fit = fit_lofi(learner, points / scale, data.y, rng)
    Phi, X = model.embedded(rng, _FRESH, data.dimension)
    seen = (Phi if X is None else X) / scale
    label, predicted = model.labels(Phi, data.truth, data.amplitudes), fit.predict(seen)
    moments = [float(a @ b) / _FRESH for a, b in ((predicted, label), (predicted, predicted), (label, label))]
    moments[2] += data.unseen
    overlap = np.zeros(SHOWN)
    hidden = Phi @ data.truth[:, :SHOWN]
    overlap[: hidden.shape[1]] = _explained(fit.features(seen, 1), hidden)
    metrics = {"generalization_error": moments[1] - 2 * moments[0] + moments[2], "feature_overlap": overlap}
    metrics |= {name: float(value) for name, value in cosines(*moments).items()}
    metrics["features_learned"] = float(np.sum(overlap > 0.5))
    details = {"penalty": fit.penalty, "eigenvalues": fit.stack.eigenvalues, "emergence": fit.stack.emergence}
    return Outcome(metrics, fit, details=details)


def _explained(features: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """The share of the variance of each hidden feature that features explain, fitted on one half of the samples."""
    F = np.column_stack([np.ones(len(features)), features])
    half = len(F) // 2
    fitted = F @ np.linalg.lstsq(F[:half], hidden[:half], rcond=None)[0]
    missed = np.mean((hidden[half:] - fitted[half:]) ** 2, axis=0) / np.var(hidden[half:], axis=0)
    return np.clip(1 - missed, 0.0, 1.0)
