"""Double descent of random features: the error peaks where the samples are as many as the units.

Regression on the left, classification by logistic regression on the right, each with little and with more penalty, and
in the limit of infinitely many units, which is a kernel. In classification no peak is left at these penalties; that the
samples cease to be separable shows in the training loss.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, mean_at
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

WIDTH, NOISE = 0.83, 0.1
PENALTIES = {"regression": (1e-3, 0.05), "classification": (1e-3, 0.05)}
ERRORS = {
    "regression": ("generalization_error", "training_error"),
    "classification": ("classification_error", "training_loss"),
}
POINT = 1.37
"""The alpha of the claims."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    models = {
        "regression": sv.TwoLayer("sin(z)", "tanh", WIDTH, NOISE),
        "classification": sv.TwoLayer("sign(z)", "tanh", WIDTH),
    }
    losses = {"regression": "square", "classification": "logistic"}
    alpha = np.linspace(0.05, 3.0, effort.pick(16, 60))
    ratios = effort.pick((0.4, POINT), (0.2, 0.5, 0.7, 0.83, 1.0, POINT, 2.0, 3.0))
    d, seeds = effort.pick((80,), (200,)), effort.pick((6,), (16,))
    values, curves, sizes = {}, {}, {}
    for name, model in models.items():
        learners = [sv.RandomFeatures(penalty, losses[name]) for penalty in PENALTIES[name]]
        found = gather_curves(model, learners, alpha, [Simulation(name, learners, ratios, d, seeds)], effort, [])
        curves |= {f"theory_{name}" if key == "theory" else key: curve for key, curve in found.curves.items()}
        sizes |= found.sizes
        kernel = sv.TwoLayer(model.target, model.activation, np.inf, model.noise)
        values[f"kernel_{name}"] = alpha, sv.predict(kernel, learners[1], alpha=alpha)[ERRORS[name][0]]
        point = sv.predict(model, learners[1], alpha=POINT)
        values[name] = {metric: float(point[metric]) for metric in ERRORS[name]}
    peak = sv.TwoLayer("sin(z)", "tanh", 1.0)
    heights = [sv.predict(peak, sv.RandomFeatures(p), alpha=1.0)["generalization_error"] for p in (1e-6, 1e-8)]
    values["growth"] = float(heights[1] / heights[0])
    return Material(values, curves, sizes)


def of_runs(found: Material, name: str, metric: str) -> Estimate:
    """The mean of runs at the point of the claims with the larger penalty."""
    return mean_at(found, name, metric, POINT, learner=1)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        for ax, name in zip(figure.subplots(1, 2), ERRORS, strict=True):
            _draw_task(ax, found, name)
    return figure


def _draw_task(ax, found: Material, name: str) -> None:
    (d,) = found.sizes[name]["d"]
    for metric, filled in zip(ERRORS[name], (True, False), strict=True):
        theory, runs = found.curves[f"theory_{name}"].theory(metric), largest(found, name).simulation(metric)
        for number, penalty in enumerate(PENALTIES[name]):
            line = theory.isel(learner=number)
            look = {"linestyle": "-" if filled else ":"}
            words = {True: "test", False: "training loss" if name == "classification" else "training"}[filled]
            draw_theory(ax, line["alpha"], line, number, rf"{words}, $\lambda = {penalty:g}$", **look)
            values = runs.isel(learner=number).transpose("alpha", "seed")
            label = f"runs at $d = {d}$" if number == 0 and filled else None
            draw_runs(ax, values["alpha"], values, number, label, fmt="o" if filled else "s")
    alpha, kernel = found.values[f"kernel_{name}"]
    ax.plot(alpha, kernel, color="0.4", linestyle="--", label=rf"kernel, $\lambda = {PENALTIES[name][1]:g}$")
    ax.axvline(WIDTH, color="0.45", linewidth=0.7, linestyle=(0, (1, 1.5)), zorder=0)
    what = "mean squared error" if name == "regression" else "error and loss"
    ax.set(yscale="log", xlabel=r"$\alpha = n/d$", ylabel=what, title=name)
    ax.set_ylim(bottom=3e-3)
    ax.legend(loc="lower right", fontsize=6)


ENTRY = Entry(
    id="rf-double-descent",
    title="Double descent of random features",
    sources=(sources.MEI, sources.GERACE),
    shows="Test and training errors of ridge and of logistic regression on random features with tanh units, p = "
    "0.83 d, for y = sin(z) with noise of variance 0.1 and for y = sign(z), and the limit of infinitely many units.",
    claims=(
        *(
            Claim(
                f"{name}, {metric.replace('_', ' ')} at alpha = {POINT:g}, penalty 0.05",
                None,
                None,
                lambda found, name=name, metric=metric: found.values[name][metric],
                lambda found, name=name, metric=metric: of_runs(found, name, metric),
            )
            for name, metrics in ERRORS.items()
            for metric in metrics
        ),
        Claim("growth of the peak as the penalty falls by 100", None, None, lambda found: found.values["growth"]),
    ),
    gather=gather,
    draw=draw,
)
