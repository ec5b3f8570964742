"""Steps of order 1/d, 1 and d of the first layer: too small to matter, giant, and so large that the units saturate.

A step of order 1/d leaves random features. One of order 1 gives every row a spike as long as the row. A step of order d
makes spike and noise of the batch alike longer than the rows were, and turns tanh into a sign. Theory is that of the
number of units of the runs (`units`): in the limit of infinitely many units the mean of the features is fitted for free
however small the step, as long as it is not zero.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, mean_at
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

BATCH, PENALTY, WIDTH = 4.0, 0.1, 1.0
METRIC = "generalization_error"
POINT = 1.3
"""The alpha of the claims."""


def steps(d: int) -> dict[str, float]:
    """The steps by name: of order 1/d, 1 and d."""
    return {"$1/d$": 1 / d, "$1$": 1.0, "$3$": 3.0, "$d$": float(d)}


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.TwoLayer("sin(z)", "tanh", WIDTH)
    d, seeds = effort.pick((80, 4), (200, 24))
    learners = [sv.OneStep(PENALTY, step, BATCH, units=d) for step in steps(d).values()]
    alpha = np.linspace(0.1, 3.0, effort.pick(4, 16))
    ratios = effort.pick((POINT,), (0.2, 0.6, POINT, 2.1, 3.0))
    found = gather_curves(model, learners, alpha, [Simulation("runs", learners, ratios, (d,), (seeds,))], effort, [])
    frozen = sv.predict(model, sv.RandomFeatures(PENALTY), alpha=alpha)[METRIC]
    still = sv.predict(model, sv.OneStep(PENALTY, 0.0, BATCH), alpha=alpha)[METRIC]
    points = [float(sv.predict(model, one, alpha=POINT)[METRIC]) for one in learners]
    values = {"alpha": alpha, "frozen": frozen, "ratio": float(np.max(np.abs(still / frozen))), "points": points}
    return Material(values, found.curves, found.sizes)


def draw(found: Material, verdicts):
    import matplotlib

    (d,) = found.sizes["runs"]["d"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(1.5, 1.2)
        ax = figure.add_subplot()
        theory, runs = found.curves["theory"].theory(METRIC), largest(found, "runs").simulation(METRIC)
        ax.plot(found.values["alpha"], found.values["frozen"], color="0.4", linestyle="--", label="random features")
        for number, name in enumerate(steps(d)):
            line = theory.isel(learner=number)
            draw_theory(ax, line["alpha"], line, number, rf"$\eta =$ {name}", linestyle=":" if number == 0 else "-")
            values = runs.isel(learner=number).transpose("alpha", "seed")
            draw_runs(ax, values["alpha"], values, number, f"runs at $d = {d}$" if number == 0 else None)
        ax.set(yscale="log", xlabel=r"$\alpha = n/d$", ylabel="generalization error")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


ENTRY = Entry(
    id="one-step-rates",
    title="Gradient steps of order 1/d, 1 and d",
    sources=(sources.BA, sources.CUI),
    shows="The error of ridge regression on the features after one step of different sizes on 4 d samples (tanh units, "
    "p = d, y = sin(z), penalty 0.1): a step of order 1/d leaves random features, one of order 1 learns the direction.",
    claims=(
        Claim("step 0 over random features", None, None, lambda found: found.values["ratio"]),
        *(
            Claim(
                f"step {name}, alpha = {POINT:g}",
                None,
                None,
                lambda found, number=number: found.values["points"][number],
                lambda found, number=number: mean_at(found, "runs", METRIC, POINT, number),
            )
            for number, name in enumerate(("1/d", "1", "3", "d"))
        ),
    ),
    gather=gather,
    draw=draw,
)
