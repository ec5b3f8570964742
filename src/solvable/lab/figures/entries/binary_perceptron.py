"""The perceptron y = sign(z) with weights +-1: a jump to perfect learning, possible from 1.245, found from 1.493 on.

The algorithmic threshold of the runs is the alpha where half of them end at a squared overlap above 0.99, extrapolated
in the dimension (see `estimators`). Nothing finite-size corresponds to the information-theoretic threshold, which no
known algorithm reaches.
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

    ratios = (0.4, 0.8, 1.1, *np.arange(1.3, 1.71, 0.05).round(3))
    amp = Simulation("amp", [sv.AMP()], ratios, effort.pick((200, 800), (500, 2000)), effort.pick((24, 16), (48, 24)))
    model = sv.MultiIndex("sign(z)", prior="rademacher")
    alpha = np.linspace(0.02, 1.8, effort.pick(90, 357))
    return gather_curves(model, [sv.BayesOptimal(), sv.AMP()], alpha, [amp], effort)


ENTRY = Entry(
    id="binary-perceptron",
    title="The perceptron with binary weights, y = sign(z)",
    sources=(sources.GYORGYI, sources.BARBIER),
    shows="The squared overlap with the hidden weights: of the Bayes-optimal estimate, and of message passing.",
    claims=(
        Claim(
            "information theoretic",
            "1.245",
            sources.GYORGYI,
            lambda found: found.values["information_theoretic"],
        ),
        Claim(
            "algorithmic",
            "1.493",
            sources.BARBIER,
            lambda found: found.values["algorithmic"],
            lambda found: jump(runs_of(found, "amp", METRIC), above=0.99),
            second_hand=True,
        ),
    ),
    gather=gather,
    draw=lambda found, verdicts: learning_figure(found.curves["theory"], [largest(found, "amp")], METRIC, verdicts),
)
