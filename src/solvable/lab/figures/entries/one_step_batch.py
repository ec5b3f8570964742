"""One giant step on batches of different sizes, and what is left of the error whatever the samples.

The larger the batch, the closer the spike of the first layer is to the target. The published theory takes the rows
beside their spike to be isotropic; at small batches that is wrong by eight percent, and the exact bulk is right.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, mean_at
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

STEP, PENALTY = 3.0, 0.1
BATCHES = (0.5, 2.0, 20.0, np.inf)
METRIC = "generalization_error"
POINT = 0.6
"""The alpha of the claims."""
PUBLISHED = (0.2, 3.0)


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.TwoLayer("sin(z)", "tanh", 1.0)
    exact = [sv.OneStep(PENALTY, STEP, batch) for batch in BATCHES]
    alpha = np.linspace(0.1, 3.0, effort.pick(4, 16))
    ratios, d, seeds = effort.pick((POINT,), (0.2, POINT, 1.3, 2.1, 3.0)), *effort.pick(((80,), (4,)), ((200,), (32,)))
    runs = Simulation("runs", exact[:3], ratios, d, seeds)
    found = gather_curves(model, exact, alpha, [runs], effort, [])
    isotropic = {
        batch: sv.predict(model, sv.OneStep(PENALTY, STEP, batch, bulk="isotropic"), alpha=alpha)[METRIC]
        for batch in BATCHES[:2]
    }
    published = sv.OneStep(PENALTY, STEP, 20.0, bulk="isotropic")
    values = {
        "alpha": alpha,
        "isotropic": isotropic,
        "linear": sv.risk_bounds(model, sv.RandomFeatures(PENALTY)).lower,
        "span": sv.risk_bounds(model, exact[-1]).lower,
        "points": [float(sv.predict(model, one, alpha=POINT)[METRIC]) for one in exact[:3]],
        "isotropic point": float(
            sv.predict(model, sv.OneStep(PENALTY, STEP, 0.5, bulk="isotropic"), alpha=POINT)[METRIC]
        ),
        "published": [float(sv.predict(model, published, alpha=a)[METRIC]) for a in PUBLISHED],
    }
    return Material(values, found.curves, found.sizes)


def draw(found: Material, verdicts):
    import matplotlib

    (d,) = found.sizes["runs"]["d"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(1.5, 1.25)
        ax = figure.add_subplot()
        theory, runs = found.curves["theory"].theory(METRIC), largest(found, "runs").simulation(METRIC)
        for number, batch in enumerate(BATCHES):
            name = r"\infty" if np.isinf(batch) else f"{batch:g}"
            line = theory.isel(learner=number)
            draw_theory(ax, line["alpha"], line, number, rf"$\alpha_0 = {name}$", linestyle="-")
            if batch in found.values["isotropic"]:
                label = "isotropic bulk" if number == 0 else None
                isotropic = found.values["isotropic"][batch]
                draw_theory(ax, found.values["alpha"], isotropic, number, label, linestyle=":")
            if number < 3:
                values = runs.isel(learner=number).transpose("alpha", "seed")
                draw_runs(ax, values["alpha"], values, number, f"runs at $d = {d}$" if number == 0 else None)
        ax.axhline(found.values["linear"], color="0.4", linestyle="--", label="best linear function")
        ax.axhline(found.values["span"], color="0.4", linestyle="-.", label=r"span of $\mu_0, \kappa\mu_1$")
        ax.set(yscale="log", xlabel=r"$\alpha = n/d$", ylabel="generalization error")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


ENTRY = Entry(
    id="one-step-batch",
    title="One giant step on batches of different sizes",
    sources=(sources.CUI, sources.DANDI_FEATURES),
    shows="The error of ridge regression on the features after one giant step with rate 3 on a batch of alpha_0 d "
    "samples (tanh units, p = d, y = sin(z), penalty 0.1), by the exact theory, by that of isotropic rows, and in "
    "runs; with the error of the best linear function, and of the best one in the span that an infinite batch leaves.",
    claims=(
        *(
            Claim(
                f"alpha_0 = {batch:g}, alpha = {POINT:g}, exact bulk",
                None,
                None,
                lambda found, number=number: found.values["points"][number],
                lambda found, number=number: mean_at(found, "runs", METRIC, POINT, number),
            )
            for number, batch in enumerate(BATCHES[:3])
        ),
        Claim(
            f"alpha_0 = 0.5, alpha = {POINT:g}, isotropic bulk",
            None,
            None,
            lambda found: found.values["isotropic point"],
            lambda found: mean_at(found, "runs", METRIC, POINT, 0),
        ),
        *(
            Claim(
                f"alpha_0 = 20, alpha = {alpha:g}, isotropic bulk",
                None,
                None,
                lambda found, number=number: found.values["published"][number],
            )
            for number, alpha in enumerate(PUBLISHED)
        ),
    ),
    gather=gather,
    draw=draw,
)
