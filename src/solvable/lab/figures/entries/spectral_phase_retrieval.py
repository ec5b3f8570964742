"""Phase retrieval, y = |z|, by the leading eigenvector of a weighted covariance: it works from alpha = 1/2 on.

The threshold is computed by bisection on the predicted squared overlap, not from the formula for weak recovery. The
threshold of the runs extrapolates the squared overlap of the eigenvectors to zero (see `estimators`).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, onset, runs_of
from solvable.lab.figures.drawing import learning_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import continuous_onset

METRIC = "squared_overlap"


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.MultiIndex("abs(z)")
    kinds = [sv.Spectral("symmetric"), sv.Spectral("asymmetric")]
    ratios = (0.3, *np.arange(0.7, 1.61, effort.pick(0.15, 0.1)).round(3), 2.0)
    runs = Simulation("spectral", kinds, ratios, effort.pick((600,), (1200,)), effort.pick((12,), (24,)))
    alpha = np.linspace(0.02, 2.0, effort.pick(67, 199))
    found = gather_curves(model, kinds, alpha, [runs], effort, marked=["weak_recovery"])
    begins = onset(model, kinds[0], METRIC, 0.1, 2.0)
    return dataclasses.replace(found, values={**found.values, "onset": begins})


ENTRY = Entry(
    id="spectral-phase-retrieval",
    title="Phase retrieval by spectral methods",
    sources=(sources.MONDELLI_MONTANARI,),
    shows="The squared overlap of the leading eigenvector with the hidden direction, for the optimal weighted "
    "covariance of the inputs (symmetric) and for the linearisation of message passing (asymmetric).",
    claims=(
        Claim(
            "weak recovery",
            "1/2",
            sources.MONDELLI_MONTANARI,
            lambda found: found.values["onset"],
            lambda found: continuous_onset(runs_of(found, "spectral", METRIC)[-1]),
            exact=0.5,
        ),
    ),
    gather=gather,
    draw=lambda found, verdicts: learning_figure(
        found.curves["theory"], [largest(found, "spectral")], METRIC, verdicts
    ),
)
