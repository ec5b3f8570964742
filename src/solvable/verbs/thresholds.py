"""`thresholds`: where what can be learned changes."""

from __future__ import annotations

from typing import Any

from solvable.core.checks import check_learner, check_model
from solvable.core.model import Learner, Model
from solvable.core.precision import float64
from solvable.core.programs import drop_programs
from solvable.core.registry import find_pair_thresholds, find_thresholds
from solvable.verbs.lookup import looked_up


def thresholds(model: Model, learner: Learner | None = None) -> dict[str, Any]:
    """The values of the model's axis at which what can be learned changes, by name; or those of one learner.

    Without a learner they are those of Bayes-optimal learning and message passing.
    """
    check_model(model)
    drop_programs()
    if learner is not None:
        return float64(looked_up(find_pair_thresholds, model, check_learner(learner)).function)(model, learner)
    return float64(looked_up(find_thresholds, model).function)(model)
