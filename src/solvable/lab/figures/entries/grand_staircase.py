"""The grand staircase of y = z1^2 + sign(z1 z2 z3): z1 is learned first, and only then z2 and z3 can be.

Above alpha = 0.575 the square gives z1 away, at alpha = 1.400 it is recovered completely, and once it is known what
remains is the parity of z2 and z3, learned above alpha = pi^2/4. The first threshold of the runs extrapolates the
squared overlap of the leading eigenvector of the spectral method to zero (see `estimators`). That method does not take
the second step, and a few runs of message passing a point did not determine it. The paper averages 72 at d = 500.
"""

from __future__ import annotations

import math

import numpy as np

from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, runs_of
from solvable.lab.figures.drawing import learning_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate, continuous_onset

RISE = (0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.65)


def gather(effort: Effort) -> Material:
    import solvable as sv

    amp, spectral = sv.AMP(), sv.Spectral()
    ratios = effort.pick(
        (0.4, 0.8, 1.1, 1.8, 3.0, 3.6, 4.4),
        (0.3, 0.8, 1.0, 1.2, 1.6, 1.8, 2.2, 2.8, 3.1, 3.5, 4.0, 4.6, 5.4),
    )
    runs = [
        Simulation("amp", [amp], ratios, effort.pick((150,), (500,)), effort.pick((3,), (6,))),
        Simulation("spectral", [spectral], RISE, effort.pick((400,), (1000,)), effort.pick((8,), (20,))),
    ]
    steps = effort.pick(10, 24)
    alpha = np.concatenate(
        [
            np.linspace(0.1, 0.55, 4),
            np.linspace(0.576, 1.399, steps),
            np.linspace(1.402, 2.46, 4),
            np.linspace(2.47, 6.0, steps),
        ]
    )
    return gather_curves(sv.MultiIndex("z1**2 + sign(z1*z2*z3)"), [amp], alpha, runs, effort)


def first(found: Material) -> Estimate:
    return continuous_onset(runs_of(found, "spectral", "squared_overlap")[-1])


ENTRY = Entry(
    id="grand-staircase",
    title="The grand staircase, y = z1^2 + sign(z1 z2 z3)",
    sources=(sources.TROIANI,),
    shows="The overlap of message passing with z1, and with z2 and z3, which can only be learned once z1 is.",
    claims=(
        Claim("weak recovery of z1", "0.575", sources.TROIANI, lambda found: found.values["weak_recovery"], first),
        Claim(
            "weak recovery of z2 and z3",
            "pi^2/4",
            sources.TROIANI,
            lambda found: found.values["step_2"],
            exact=math.pi**2 / 4,
        ),
    ),
    gather=gather,
    draw=lambda found, verdicts: learning_figure(found.curves["theory"], [largest(found, "amp")], "overlap", verdicts),
)
