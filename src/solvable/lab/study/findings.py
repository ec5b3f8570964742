"""What a study found out about a target."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from solvable.core.digits import rounded
from solvable.lab.curve import Agreement, Curve
from solvable.models.index import MultiIndex
from solvable.models.index.diagnosis import Diagnosis

JUDGED = ("overlap", "generalization_error")


@dataclasses.dataclass(frozen=True)
class Study:
    """What is known about one target, and the files it was written to.

    `exact` holds the theory of Bayes-optimal learning and AMP on a fine grid, `simulated` AMP at dimension `d` on a
    coarse one, `kernel_errors` what a kernel method leaves unlearned at n = d^kappa for kappa between k and k + 1,
    `remarks` what was left out because it takes too long.
    """

    model: MultiIndex
    diagnosis: Diagnosis
    thresholds: dict[str, float]
    exact: Curve
    simulated: Curve
    kernel_errors: np.ndarray
    d: int
    seeds: int
    remarks: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def agreement(self) -> list[Agreement]:
        """Whether the runs agree with theory, for each metric judged (see `Curve.agreement`)."""
        found = []
        for metric in JUDGED:
            try:
                found.append(self.simulated.agreement(metric))
            except ValueError:  # fewer than two runs at every point
                continue
        return found

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain values for JSON."""
        return {
            "diagnosis": self.diagnosis.to_dict(),
            "thresholds": dict(self.thresholds),
            "d": self.d,
            "seeds": self.seeds,
            "agreement": [dataclasses.asdict(found) for found in self.agreement],
            "kernel_errors": self.kernel_errors,
            "remarks": list(self.remarks),
            "files": [str(path) for path in self.files],
        }

    def threshold_in_words(self, value: float) -> str:
        """A threshold to the digits that are known: those of the staircase have an error."""
        error = next((step.error for step in self.diagnosis.staircase if step.alpha == value), 0.0)
        return rounded(value, error)

    def __str__(self) -> str:
        marks = [
            f"  {name.replace('_', ' '):24s}{self.threshold_in_words(value)}" for name, value in self.thresholds.items()
        ]
        compared = [f"AMP at d = {self.d}, {self.seeds} runs at each point", *(f"  {one}" for one in self.agreement)]
        written = [f"written: {path}" for path in self.files]
        return "\n".join([str(self.diagnosis), "thresholds in alpha = n/d", *marks, *compared, *self.remarks, *written])
