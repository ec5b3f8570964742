"""Robust regression: losses that grow slower than the square, on labels of which some have nothing to do with z.

Of the labels 30 % are noise of variance 5, the others z with noise 0.1. At every alpha the penalty, and the scale of
Huber's and of Tukey's loss, are those of the lowest predicted error. Tukey's loss is not convex, and its prediction
holds where the replicon is below 1: where that excludes all scales and penalties there is no line, and at small alpha
the best allowed ones are close to that border. The Bayes-optimal error is also the one of message passing that knows
how labels are made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean, metric_of_run
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

FRACTION, SLOPE, OUTLYING, NOISE = 0.3, 0.0, 5.0, 0.1
METRIC = "estimation_error"
AT = 10.0
"""The alpha of the claims."""
BORDER = 0.95
"""The replicon above which numbers are near the border of the theory."""
BAYES = "bayes"
NAMES = {"square": "square loss", "huber": "Huber", "tukey": "Tukey", BAYES: "Bayes optimal"}
LOOKS = {
    "square": (3, "square, best ridge"),
    "huber": (1, "Huber, best scale and ridge"),
    "tukey": (0, "Tukey, best scale and ridge"),
    BAYES: (6, "Bayes optimal"),
}
"""The number of the colour and the marker, and the label."""


def gather(effort: Effort) -> Material:
    ratios = effort.pick((2.0, AT, 50.0), (1.5, 4.0, AT, 30.0, 100.0))
    alpha = np.union1d(effort.pick((0.5, 4.0, 100.0), np.geomspace(0.5, 100.0, 20)), ratios)
    # A task for each loss, so that a process compiles the equations of one; the longest first.
    names = ["tukey", "huber", "square"]
    table = dict(zip(names, in_processes(best, [(name, alpha) for name in names], effort), strict=True))
    values: dict[str, Any] = {"alpha": alpha, "ratios": np.array(ratios), BAYES: bayes_optimal(alpha)}
    values |= {name: part[:, 1].astype(float) for name, part in table.items()}
    values["replicon"] = table["tukey"][:, 2].astype(float)
    d, seeds = effort.pick((150, 6), (400, 12))
    values["runs"] = runs(table, alpha, ratios, d, seeds, effort)
    return Material(values, sizes={"runs": {"d": [d], "seeds": [seeds]}})


def model():
    """Labels of which some are outliers."""
    import solvable as sv

    return sv.MultiIndex("z", noise=NOISE, contamination=sv.Contamination(FRACTION, SLOPE, OUTLYING))


def best(name: str, alpha: np.ndarray) -> np.ndarray:
    """At each alpha the learner of a loss with the best numbers, its error and its replicon.

    They are None and NaN where the prediction is valid for no numbers.
    """
    import solvable as sv

    losses = {"square": sv.losses.Square(), "huber": sv.losses.Huber(1.0), "tukey": sv.losses.Tukey(3.0)}
    learner = sv.ERM(losses[name], sv.Ridge(0.1))
    over = ("penalty",) if name == "square" else ("scale", "penalty")
    table = np.empty((len(alpha), 3), dtype=object)
    table[:] = None, np.nan, np.nan
    for i, ratio in enumerate(alpha):
        try:
            found = sv.optimize(model(), learner, over=over, metric=METRIC, alpha=float(ratio))
        except sv.ConvergenceError:
            continue
        table[i] = found.learner, float(found.prediction[METRIC]), float(found.prediction["replicon"])
    return table


def bayes_optimal(alpha: np.ndarray) -> np.ndarray:
    """The Bayes-optimal error."""
    import solvable as sv

    return np.asarray(sv.predict(model(), sv.BayesOptimal(), alpha=alpha)[METRIC])


def runs(table: dict[str, np.ndarray], alpha: np.ndarray, ratios, d: int, seeds: int, effort: Effort):
    """The errors of runs by learner, at each of the ratios and for each seed; NaN where there is no learner."""
    import solvable as sv

    learners = {name: [part[int(np.searchsorted(alpha, ratio)), 0] for ratio in ratios] for name, part in table.items()}
    learners[BAYES] = [sv.AMP()] * len(ratios)
    known = [(name, i, seed) for name, row in learners.items() for i, x in enumerate(row) if x for seed in range(seeds)]
    tasks = [(model(), learners[name][i], ratios[i], d, seed, METRIC) for name, i, seed in known]
    found = {name: np.full((len(ratios), seeds), np.nan) for name in learners}
    for (name, i, seed), value in zip(known, in_processes(metric_of_run, tasks, effort), strict=True):
        found[name][i, seed] = value
    return found


def error_at(found: Material, name: str) -> float:
    """The error of theory at the alpha of the claims."""
    return float(found.values[name][np.searchsorted(found.values["alpha"], AT)])


def error_of_runs(found: Material, name: str) -> Estimate:
    """The mean error of the runs there."""
    (d,) = found.sizes["runs"]["d"]
    return mean(found.values["runs"][name][np.searchsorted(found.values["ratios"], AT)], d)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        errors, excess = figure.subplots(1, 2)
        alpha, ratios = found.values["alpha"], found.values["ratios"]
        bound, bound_of_runs = found.values[BAYES], found.values[BAYES][np.searchsorted(alpha, ratios), None]
        (d,) = found.sizes["runs"]["d"]
        for name, (number, label) in LOOKS.items():
            dashes = {"linestyle": (0, (3, 1, 1, 1, 1, 1))} if name == BAYES else {}
            values = found.values["runs"][name]
            draw_theory(errors, alpha, found.values[name], number, label, **dashes)
            if name != BAYES:
                draw_runs(errors, ratios, values, number, f"runs at $d = {d}$" if name == "tukey" else None)
            if name != "square":
                draw_theory(excess, alpha, found.values[name] / bound, number, None, **dashes)
                # Runs at one alpha have the same data: markers beside each other, not over each other.
                shifted = ratios * {"huber": 1.0, "tukey": 0.93, BAYES: 1.07}[name]
                label = f"message passing, $d = {d}$" if name == BAYES else None
                draw_runs(excess, shifted, values / bound_of_runs, number, label)
        _shade_border(excess, alpha, found.values["replicon"])
        excess.axhline(1.0, color="0.6", linewidth=0.6, zorder=0)
        errors.set(xscale="log", yscale="log", xlabel=r"$\alpha = n/d$", ylabel="estimation error")
        excess.set(xscale="log", xlabel=r"$\alpha = n/d$", ylabel="estimation error over the Bayes-optimal one")
        errors.legend(loc="lower left")
        excess.set_ylim(0.7, 1.9)
        excess.legend(loc="lower right")
    return figure


def _shade_border(ax, alpha: np.ndarray, replicon: np.ndarray) -> None:
    """Where the best numbers of Tukey's loss are near the border of its theory."""
    near = alpha[replicon > BORDER]
    if near.size:
        ax.axvspan(near[0], near[-1], color="0.92", linewidth=0, zorder=-1, label="Tukey near a replicon of 1")


ENTRY = Entry(
    id="robust-regression",
    title="Robust regression with outliers",
    sources=(sources.VILUCCHIO,),
    shows="The error of regression on labels of which 30 % are noise of variance 5 and the others z with noise 0.1, "
    "for three losses, each with the best scale and ridge at every number of samples, beside the Bayes-optimal error, "
    "and its ratio to that.",
    claims=tuple(
        Claim(
            f"{word}, alpha = {AT:g}",
            None,
            None,
            lambda found, name=name: error_at(found, name),
            lambda found, name=name: error_of_runs(found, name),
        )
        for name, word in NAMES.items()
    ),
    gather=gather,
    draw=draw,
)
