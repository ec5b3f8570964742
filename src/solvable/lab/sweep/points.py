"""One point of a sweep: a prediction of theory, a run at finite size, or the thresholds of a model."""

from __future__ import annotations

import dataclasses
from typing import Any

from solvable.core.model import Learner, Model


@dataclasses.dataclass(frozen=True)
class Point:
    """A computation and the id under which its result is kept.

    Without `d` it is a prediction, without a learner the thresholds of the model. `group` numbers points that share
    what has to be compiled or tabulated, so that one worker takes them one after another. `about` describes the model
    and the learner in plain values, made once for all points that have them.
    """

    id: str
    model: Model
    learner: Learner | None
    axes: dict[str, float]
    d: int | None = None
    seed: int | None = None
    group: int = 0
    about: dict[str, Any] = dataclasses.field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """What is computed, in words and numbers, as kept beside the result."""
        found = dict(self.about)
        if self.learner is not None:
            found["axes"] = dict(self.axes)
        if self.d is not None:
            found |= {"d": self.d, "seed": self.seed}
        return found
