"""Double descent of networks of quadratic units that are trained on noisy labels with little or no weight decay.

Without penalty the error has its maximum at the interpolation threshold, up to which the labels can be fitted exactly;
a penalty takes the peak away. Ridge regression on the features, which does not know that the target is a positive
matrix, interpolates up to alpha = 1/2, where its error diverges.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest
from solvable.lab.figures.drawing import PER_SQUARE, draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

RHO, NOISE = 0.3, 0.5
PENALTIES = (0.0, 0.1, 1.0)
METRIC = "estimation_error"
INTERPOLATION = "interpolation"
HIGHEST = 6.0


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.QuadraticNetwork(RHO, NOISE)
    fitted = [*(sv.NuclearNorm(penalty) for penalty in PENALTIES), sv.Lazy()]
    ratios = effort.pick(
        (0.1, 0.2, 0.3, 0.4, 0.6, 0.8), (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8)
    )
    runs = Simulation("runs", fitted, ratios, effort.pick((36,), (60,)), effort.pick((3,), (4,)))
    alpha = np.linspace(0.01, 0.85, effort.pick(43, 169))
    found = gather_curves(model, [*fitted, sv.BayesOptimal()], alpha, [runs], effort, [INTERPOLATION])
    values = {**found.values, "peak": peak(model, sv.NuclearNorm(), 0.2, 0.4)}
    return dataclasses.replace(found, values=values)


def peak(model, learner, low: float, high: float) -> float:
    """Where the error of theory is largest: a grid between two points around it, narrowed four times."""
    from solvable.verbs.predict import predict

    for _ in range(6):
        alpha = np.linspace(low, high, 21)
        best = int(np.argmax(predict(model, learner, alpha=alpha)[METRIC]))
        low, high = alpha[max(best - 1, 0)], alpha[min(best + 1, 20)]
    return float((low + high) / 2)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        theory, runs = found.curves["theory"].theory(METRIC), largest(found, "runs").simulation(METRIC)
        labels = [*(rf"network, $\lambda = {penalty:g}$" for penalty in PENALTIES), "ridge on the features"]
        labels[0] = r"network, $\lambda \to 0$"
        for number, label in enumerate(labels):
            draw_theory(ax, theory["alpha"], theory.isel(learner=number), number, label)
            values = runs.isel(learner=number).transpose("alpha", "seed")
            runs_label = f"runs at $d = {found.sizes['runs']['d'][-1]}$" if number == 0 else None
            draw_runs(ax, values["alpha"], values, number, runs_label, fmt="o")
        draw_theory(ax, theory["alpha"], theory.isel(learner=-1), 6, "Bayes optimal", linestyle=(0, (3, 1, 1, 1, 1, 1)))
        ax.set_ylim(0, HIGHEST)
        plots.mark_thresholds(ax, {"interpolation": found.values[INTERPOLATION], "ridge interpolates": 0.5}, 0, 0.85)
        ax.set_xlabel(PER_SQUARE)
        ax.set_ylabel("estimation error")
        ax.legend(loc="upper right", borderaxespad=0.0)
    return figure


ENTRY = Entry(
    id="double-descent",
    title="Double descent of a wide quadratic network",
    sources=(sources.ERBA,),
    shows="The error of a network of at least d quadratic units trained on noisy labels, without and with penalty, "
    "for a target of 0.3 d units, with that of ridge regression on the features and the Bayes-optimal one.",
    claims=(
        Claim(
            "peak over interpolation threshold",
            None,
            None,
            lambda found: found.values["peak"] / found.values[INTERPOLATION],
        ),
        Claim("interpolation threshold", None, None, lambda found: found.values[INTERPOLATION]),
    ),
    gather=gather,
    draw=draw,
)
