"""Compressed sensing, y = z with one weight in five not zero: possible from as many samples as such weights.

Message passing needs more; its threshold is the alpha where half of the runs end at a squared overlap above 0.99,
extrapolated in the dimension (see `estimators`).
"""

from __future__ import annotations

import numpy as np

from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, runs_of
from solvable.lab.figures.drawing import learning_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import jump

METRIC = "squared_overlap"


def gather(effort: Effort) -> Material:
    import solvable as sv

    ratios = (0.1, 0.2, *np.arange(0.28, 0.45, 0.02).round(3))
    amp = Simulation("amp", [sv.AMP()], ratios, effort.pick((250, 1000), (500, 2000)), effort.pick((10, 6), (32, 16)))
    model = sv.MultiIndex("z", prior="gauss-bernoulli:0.2")
    alpha = np.linspace(0.01, 0.5, effort.pick(50, 197))
    return gather_curves(model, [sv.BayesOptimal(), sv.AMP()], alpha, [amp], effort)


ENTRY = Entry(
    id="compressed-sensing",
    title="Compressed sensing, y = z, a fifth of the weights not zero",
    sources=(sources.WU_VERDU,),
    shows="The squared overlap with weights of which 80 % are zero, from samples without noise.",
    claims=(
        Claim(
            "information theoretic",
            "1/5",
            sources.WU_VERDU,
            lambda found: found.values["information_theoretic"],
            exact=0.2,
            second_hand=True,
        ),
        Claim(
            "algorithmic",
            None,
            None,
            lambda found: found.values["algorithmic"],
            lambda found: jump(runs_of(found, "amp", METRIC), above=0.99),
        ),
    ),
    gather=gather,
    draw=lambda found, verdicts: learning_figure(found.curves["theory"], [largest(found, "amp")], METRIC, verdicts),
)
