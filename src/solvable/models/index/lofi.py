"""Layers of selected features on index models: how well they predict, and which projections the first layer picks."""

from __future__ import annotations

import numpy as np

from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.lofi import NeuralLoFi
from solvable.engine.lofi.fit import fit_lofi
from solvable.models.index.multi_index import MultiIndex
from solvable.numerics.subspaces import orthonormal

FRESH = 10_000
"""Fresh inputs that errors are averaged over."""


@simulation(MultiIndex, NeuralLoFi, references="dandi2026deep")
def run_lofi(model: MultiIndex, learner: NeuralLoFi, data: Data, rng: np.random.Generator) -> Outcome:
    """One fit, its errors on fresh inputs, and the shares of the projections in the span of the first layer."""
    d, r = data.truth.shape
    fit = fit_lofi(learner, data.X, data.y, rng)
    X = rng.standard_normal((FRESH, d)) / np.sqrt(d)
    label = model.target.numpy(X @ data.truth)
    span = orthonormal(fit.directions(X)[:, :d])
    share = np.sum((span.T @ data.truth) ** 2, axis=0) / np.sum(data.truth**2, axis=0)
    metrics = {
        "generalization_error": float(np.mean((label - fit.predict(X)) ** 2)),
        "training_error": float(np.mean((data.y - fit.predict(data.X)) ** 2)),
    }
    metrics |= {f"share_{k}": float(min(share[k - 1], 1.0)) for k in range(1, r + 1)}
    details = {"penalty": fit.penalty, "eigenvalues": fit.stack.eigenvalues, "emergence": fit.stack.emergence}
    return Outcome(metrics, fit, details=details)
