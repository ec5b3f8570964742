"""A network of d/2 quadratic units learned from n = alpha d^2 noiseless samples: Bayes, message passing, descent.

Gradient descent from random weights ends like a sample of the posterior, with twice the Bayes error, and the average of
many such runs on the same data comes close to Bayes. That is a conjecture of the paper, from its runs at d = 200 and
less; no proof is known. The threshold of the runs is where the error of message passing, extrapolated from below,
reaches zero (see `estimators`).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, runs_of, vanishing
from solvable.lab.figures.drawing import PER_SQUARE, draw_runs, draw_theory, mark_estimates, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

RHO = 0.5
METRIC = "estimation_error"
RECOVERY = "perfect_recovery"


def gather(effort: Effort) -> Material:
    import solvable as sv

    ratios = effort.pick(
        (0.1, 0.2, 0.24, 0.28, 0.3, 0.32, 0.34, 0.36, 0.42),
        (0.05, 0.1, 0.15, *np.arange(0.2, 0.37, 0.02).round(3), 0.4, 0.44),
    )
    few = effort.pick((0.1, 0.2, 0.3), (0.1, 0.2, 0.25, 0.3, 0.35))
    averaged = effort.pick(6, 8)
    descent = [sv.GradientDescent(), sv.GradientDescent(runs=averaged)]
    runs = [
        Simulation("amp", [sv.AMP()], ratios, effort.pick((50,), (150,)), effort.pick((4,), (6,))),
        Simulation("descent", descent, few, effort.pick((24,), (60,)), effort.pick((3,), (4,))),
    ]
    alpha = np.linspace(0.01, 0.45, effort.pick(23, 89))
    found = gather_curves(sv.QuadraticNetwork(RHO), [sv.BayesOptimal()], alpha, runs, effort, [RECOVERY])
    return dataclasses.replace(found, values={**found.values, "averaged": averaged})


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        theory = found.curves["theory"].theory(METRIC).isel(learner=0)
        draw_theory(ax, theory["alpha"], theory, 0, "Bayes optimal")
        draw_theory(ax, theory["alpha"], 2 * theory, 1, "twice that: a sample of the posterior")
        amp, descent = largest(found, "amp"), largest(found, "descent")
        (size,) = descent.sizes
        for number, curve, learner, label in (
            (0, amp, 0, f"message passing, $d = {amp.sizes[0]}$"),
            (1, descent, 0, f"gradient descent, $d = {size}$"),
            (2, descent, 1, f"average of {found.values['averaged']} such runs"),
        ):
            values = curve.simulation(METRIC).isel(learner=learner).transpose("alpha", "seed")
            draw_runs(ax, values["alpha"], values, number, label)
        plots.mark_thresholds(ax, {"perfect recovery": found.values[RECOVERY]}, 0, 0.45)
        ax.set_xlabel(PER_SQUARE)
        ax.set_ylabel("estimation error")
        ax.legend()
        mark_estimates(ax, verdicts)
    return figure


ENTRY = Entry(
    id="quadratic-network",
    title="A network of d/2 quadratic units, without noise",
    sources=(sources.MAILLARD_TROIANI,),
    shows="The error of the learned matrix: Bayes-optimal, of message passing, and of gradient descent on a network of "
    "the same width, one run or the average of several on the same data.",
    claims=(
        Claim(
            "perfect recovery",
            "rho - rho^2/2",
            sources.MAILLARD_TROIANI,
            lambda found: found.values[RECOVERY],
            lambda found: vanishing(runs_of(found, "amp", METRIC)[-1], low=0.02, high=0.3),
            exact=RHO - RHO**2 / 2,
        ),
    ),
    gather=gather,
    draw=draw,
)
