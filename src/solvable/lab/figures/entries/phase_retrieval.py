"""Phase retrieval, y = |z|: weak recovery at 1/2, message passing recovers everything above 1.128, possible from 1.

The algorithmic threshold of the runs is the alpha where half of them end at a squared overlap above 0.99, extrapolated
in the dimension (see `estimators`). Weak recovery is simulated by the entry `spectral-phase-retrieval`: extrapolating
the overlaps of message passing at these sizes did not determine it. Nothing finite-size corresponds to the
information-theoretic threshold, which no known algorithm reaches.
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

    ratios = (0.3, 0.6, 0.8, 0.9, 1.0, *np.arange(1.05, 1.301, effort.pick(0.025, 0.02)).round(3), 1.4)
    amp = Simulation("amp", [sv.AMP()], ratios, effort.pick((200, 600), (500, 1500)), effort.pick((8, 6), (24, 16)))
    alpha = np.linspace(0.02, 1.6, effort.pick(80, 317))
    return gather_curves(sv.MultiIndex("abs(z)"), [sv.BayesOptimal(), sv.AMP()], alpha, [amp], effort)


ENTRY = Entry(
    id="phase-retrieval",
    title="Phase retrieval, y = |z|",
    sources=(sources.BARBIER, sources.MONDELLI_MONTANARI, sources.MAILLARD),
    shows="The squared overlap with the hidden direction: of the Bayes-optimal estimate, and of message passing.",
    claims=(
        Claim(
            "weak recovery",
            "1/2",
            sources.MONDELLI_MONTANARI,
            lambda found: found.values["weak_recovery"],
            exact=0.5,
        ),
        Claim(
            "algorithmic",
            "1.128",
            sources.BARBIER,
            lambda found: found.values["algorithmic"],
            lambda found: jump(runs_of(found, "amp", METRIC), above=0.99),
            second_hand=True,
        ),
        Claim(
            "information theoretic",
            "1",
            sources.MAILLARD,
            lambda found: found.values["information_theoretic"],
            exact=1.0,
        ),
    ),
    gather=gather,
    draw=lambda found, verdicts: learning_figure(found.curves["theory"], [largest(found, "amp")], METRIC, verdicts),
)
