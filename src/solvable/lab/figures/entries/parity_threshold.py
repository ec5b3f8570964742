"""Two-bit parity, y = sign(z1 z2): nothing is learned below alpha = pi^2/4, both directions together above it.

The threshold of the runs is where small overlaps begin to grow, from the leading eigenvalues of the linearised message
passing on data (see `estimators`). Extrapolating overlaps instead gave 1.7(4) from eigenvectors at d = 400, which
finite dimension rounds near their onset, and 2.3(4) from message passing at d = 120 and 240. The paper averages 72 runs
of message passing at d = 500.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, growth, largest
from solvable.lab.figures.drawing import learning_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import growth_onset

GROWS = (5.0, 6.0, 7.0, 8.0)


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.MultiIndex("sign(z1*z2)")
    ratios = effort.pick((1.6, 2.9, 3.4, 4.0, 4.5, 5.2), (1.5, 2.0, *np.arange(2.8, 4.3, 0.2).round(2), 4.6, 5.2))
    amp = Simulation("amp", [sv.AMP()], ratios, effort.pick((200,), (500,)), effort.pick((4,), (12,)))
    alpha = np.concatenate([np.linspace(0.2, 2.4, 5), np.linspace(2.47, 6.0, effort.pick(20, 40))])
    found = gather_curves(model, [sv.BayesOptimal(), sv.AMP()], alpha, [amp], effort)
    d, seeds = effort.pick((300, 12), (600, 16))
    steps = growth(model, GROWS, d, seeds, effort)
    sizes = {**found.sizes, "growth": {"d": [d], "seeds": [seeds]}}
    return dataclasses.replace(found, values={**found.values, "growth": steps}, sizes=sizes)


ENTRY = Entry(
    id="parity-threshold",
    title="Two-bit parity, y = sign(z1 z2)",
    sources=(sources.TROIANI,),
    shows="The overlap with each of the two hidden directions, which are learned together.",
    claims=(
        Claim(
            "weak recovery",
            "pi^2/4",
            sources.TROIANI,
            lambda found: found.values["weak_recovery"],
            lambda found: growth_onset(found.values["growth"]),
            exact=math.pi**2 / 4,
        ),
    ),
    gather=gather,
    draw=lambda found, verdicts: learning_figure(found.curves["theory"], [largest(found, "amp")], "overlap", verdicts),
)
