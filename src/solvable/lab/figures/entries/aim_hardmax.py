"""One attention layer of rank d/2 learned from the token of largest score, and what a published formula gives.

The published data have the density of the pair of differences in the place of the slope of its distribution function.
With that formula we find the published errors; with the slope, the errors that message passing has.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, mean, metric_of_run
from solvable.lab.figures.drawing import PER_SQUARE, draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

RHO = 0.5
METRIC = "estimation_error"
PLACE = 0.4582905
"""The alpha of a published error."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.AttentionIndexed(RHO, 2, "hardmax")
    alpha = np.geomspace(0.02, 2.0, effort.pick(12, 50))
    places = effort.pick((0.1, 0.4, 1.0), (0.1, 0.2, 0.4, 0.7, 1.0, 1.5))
    learner = sv.AMP(max_steps=100)
    runs = [Simulation("amp", [learner], places, effort.pick((30,), (60,)), effort.pick((3,), (4,)))]
    found = gather_curves(model, [sv.BayesOptimal()], alpha, runs, effort, [])
    at = float(sv.predict(model, sv.BayesOptimal(), alpha=PLACE)[METRIC])
    d = effort.pick(40, 80)
    checked = [metric_of_run(model, learner, PLACE, d, seed, METRIC) for seed in range(effort.pick(4, 16))]
    return dataclasses.replace(found, values={**found.values, "at": at, "checked": checked, "d": d})


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        theory = found.curves["theory"].theory(METRIC).isel(learner=0)
        draw_theory(ax, theory["alpha"], theory, 0, "Bayes optimal")
        amp = largest(found, "amp")
        values = amp.simulation(METRIC).isel(learner=0).transpose("alpha", "seed")
        draw_runs(ax, values["alpha"], values, 0, f"message passing, $d = {amp.sizes[0]}$")
        published = ENTRY.claims[0].value
        ax.plot(PLACE, published, "x", color="0.4", label="published")
        ax.set_xlabel(PER_SQUARE)
        ax.set_ylabel("estimation error")
        ax.set_xscale("log")
        ax.legend()
    return figure


ENTRY = Entry(
    id="aim-hardmax",
    title="An attention layer of rank d/2, learned from the token of largest score",
    sources=(sources.BONCORAGLIO,),
    shows="The error of the learned layer for hardmax labels of two tokens: Bayes-optimal, and of message passing.",
    claims=(
        Claim(
            "error at alpha = 0.458",
            "0.51223",
            sources.BONCORAGLIO,
            lambda found: found.values["at"],
            lambda found: mean(found.values["checked"], found.values["d"]),
            known_wrong="The published code has the density of two correlated Gaussians where the slope of their "
            "distribution function belongs: with that formula our equations give 0.51219, and message passing, which "
            "uses the slope, ends at the smaller error.",
            second_hand=True,
        ),
    ),
    gather=gather,
    draw=draw,
)
