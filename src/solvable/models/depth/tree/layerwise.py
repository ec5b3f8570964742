"""Networks trained on tree targets, layer by layer or as a whole."""

from __future__ import annotations

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.depth.learners import SPECTRAL, JointTraining, Layerwise
from solvable.models.depth.tree import descent, joint, spectral
from solvable.models.depth.tree.model import TreeData, TreeTarget
from solvable.models.depth.tree.scores import scores

LEAST = 8
"""Samples that can be split into halves and parts of them."""


@simulation(TreeTarget, Layerwise, references=("dandi2025computational",))
def run_layerwise(model: TreeTarget, learner: Layerwise, data: TreeData, rng: np.random.Generator) -> Outcome:
    """One run, by linear algebra or by descent."""
    _check(data)
    learn = spectral.learn if learner.training == SPECTRAL else descent.learn
    found = learn(learner, data, rng)
    return Outcome(scores(model, data, rng, found.predict, found.directions, found.features))


@simulation(TreeTarget, JointTraining, references=("dandi2025computational", "kingma2015adam"))
def run_joint(model: TreeTarget, learner: JointTraining, data: TreeData, rng: np.random.Generator) -> Outcome:
    """One network, or of several widths that which the samples set aside are for."""
    _check(data)
    found = joint.learn(learner, data, rng)
    metrics = scores(model, data, rng, found.predict, found.directions, found.features)
    return Outcome(metrics, details={"validation_error": found.aside, "width": found.directions.shape[1]})


def _check(data: TreeData) -> None:
    n, d = data.X.shape
    if n < LEAST:
        raise bad_parameter("kappa", np.log(n) / np.log(d), f"larger: {LEAST} samples are needed")
