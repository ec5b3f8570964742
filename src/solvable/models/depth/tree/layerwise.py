"""Networks trained layer by layer on tree targets."""

from __future__ import annotations

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.depth.learners import Layerwise
from solvable.models.depth.tree import spectral
from solvable.models.depth.tree.model import TreeData, TreeTarget
from solvable.models.depth.tree.scores import scores

LEAST = 8
"""Samples that can be split into halves and parts of them."""


@simulation(TreeTarget, Layerwise, references=("dandi2025computational",))
def run_layerwise(model: TreeTarget, learner: Layerwise, data: TreeData, rng: np.random.Generator) -> Outcome:
    """One run, by linear algebra or by descent."""
    if len(data.y) < LEAST:
        raise bad_parameter(
            "kappa", np.log(len(data.y)) / np.log(data.X.shape[1]), f"larger: {LEAST} samples are needed"
        )
    found = spectral.learn(learner, data, rng)
    return Outcome(scores(model, data, rng, found.predict, found.directions, found.features))
