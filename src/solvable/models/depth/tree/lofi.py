"""Layers of selected features on tree targets: the first finds the directions, the second what they are summed to."""

from __future__ import annotations

import numpy as np

from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.lofi import NeuralLoFi
from solvable.engine.lofi.fit import fit_lofi
from solvable.models.depth.tree.model import TreeData, TreeTarget
from solvable.models.depth.tree.scores import FRESH, scores
from solvable.numerics.subspaces import orthonormal


@simulation(TreeTarget, NeuralLoFi, references="dandi2026deep")
def run_lofi(model: TreeTarget, learner: NeuralLoFi, data: TreeData, rng: np.random.Generator) -> Outcome:
    """One fit; the second layer is that of the network, if it has one that selects."""
    n, d = data.X.shape
    fit = fit_lofi(learner, data.X, data.y, rng)
    found = scores(model, data, rng, fit.predict, features=_second(fit) if learner.layers > 1 else None)
    X = rng.standard_normal((FRESH, d)) / np.sqrt(d)
    span = orthonormal(fit.directions(X)[:, :d])
    found["first_layer"] = float(np.sum((span.T @ data.truth) ** 2) / np.sum(data.truth**2))
    details = {"penalty": fit.penalty, "eigenvalues": fit.stack.eigenvalues, "emergence": fit.stack.emergence}
    return Outcome(found, fit, details=details)


def _second(fit):
    return lambda inputs: fit.features(inputs, 2)
