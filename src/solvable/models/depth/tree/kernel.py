"""Kernel ridge regression on tree targets: no layer learns a feature."""

from __future__ import annotations

import numpy as np

from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.kernel import Kernel
from solvable.engine.kernel.fit import fit_kernel
from solvable.models.depth.tree.model import TreeData, TreeTarget
from solvable.models.depth.tree.scores import scores


@simulation(TreeTarget, Kernel, references=("ghorbani2021linearized",))
def run_kernel(model: TreeTarget, learner: Kernel, data: TreeData, rng: np.random.Generator) -> Outcome:
    """One fit, its penalty chosen on samples set aside unless given."""
    fit = fit_kernel(learner, data.X, data.y)
    return Outcome(scores(model, data, rng, fit.predict), details={"penalty": fit.penalty})
