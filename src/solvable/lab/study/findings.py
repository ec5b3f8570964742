"""What a study found out about a target."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from solvable.lab.curve import Agreement, Curve
from solvable.models.index import MultiIndex
from solvable.models.index.diagnosis import Diagnosis

JUDGED = ("overlap", "generalization_error")


@dataclasses.dataclass(frozen=True)
class Study:
    """What is known about one target, and the files it was written to.

    `exact` holds the theory of Bayes-optimal learning and AMP on a fine grid, `simulated` AMP at dimension `d` on a
    coarse one (None if there was no time for a single run), `kernel_errors` what a kernel method leaves unlearned at
    n = d^kappa for kappa between k and k + 1, `remarks` what was left out because it takes too long.
    """

    model: MultiIndex
    diagnosis: Diagnosis
    thresholds: dict[str, float]
    exact: Curve
    simulated: Curve | None
    kernel_errors: np.ndarray
    d: int
    seeds: int
    remarks: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def agreement(self) -> list[Agreement]:
        """How far theory and simulation are apart, for each metric judged.

        Deviations are counted in standard errors; a dimension d shifts a metric by about 1/d of its size, which is
        added in quadrature.
        """
        found = []
        if self.simulated is None:
            return found
        for metric in JUDGED:
            scale = float(np.nanmax(np.abs(self.exact.theory(metric).values)))
            try:
                found.append(self.simulated.agreement(metric, resolution=scale / self.d))
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

    def __str__(self) -> str:
        marks = [f"  {name.replace('_', ' '):24s}{value:.6g}" for name, value in self.thresholds.items()]
        compared = [f"AMP at d = {self.d}, {self.seeds} runs at each point", *(f"  {one}" for one in self.agreement)]
        written = [f"written: {path}" for path in self.files]
        return "\n".join([str(self.diagnosis), "thresholds in alpha = n/d", *marks, *compared, *self.remarks, *written])
