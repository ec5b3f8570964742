r"""Ridge regression where the best strength of the ridge is negative.

Of the labels 30 % carry no signal, so that least squares learns 0.7 w*, however many the samples: a negative strength
stretches the weights again. The square loss with strength lambda is bounded below down to the lower edge of the
spectrum of X^T X, -(sqrt(alpha) - 1)^2. For losses that grow slower the risk is unbounded below for any negative
strength; theory and runs, those by message passing, are of a local minimum. The best strength of the runs is where
their mean error, at a few strengths with the same data, is lowest (see `curves.lowest`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, lowest
from solvable.lab.figures.drawing import draw_points, draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

FRACTION, NOISE = 0.3, 0.1
METRIC = "estimation_error"
ALPHAS = (2.0, 5.0, 10.0, 20.0)
STRENGTHS = {
    2.0: (0.0, 0.09, 0.18, 0.27, 0.36, 0.45, 0.8, 1.5, 3.0),
    5.0: (-0.9, -0.68, -0.46, -0.24, -0.02, 0.2, 0.8, 2.0, 3.5),
    10.0: (-3.2, -2.6, -2.2, -1.8, -1.4, -1.0, 0.0, 1.5, 3.0),
    20.0: (-8.5, -6.5, -5.7, -4.9, -4.1, -3.3, -2.0, 0.5, 2.0),
}
"""The strengths of the runs of the square loss, dense around the best one: `lowest` errs by 1 % on such a grid."""
HIGHEST = 4.0
OUTLYING = 1.0
"""The noise of the labels without signal in the comparison of losses."""
LOSSES = {"square": "square", "huber": "Huber, scale 1", "tukey": "Tukey, scale 2"}
AT = 10.0
LOSS_RANGES = {"square": (-2.2, -0.7), "huber": (-1.6, -0.5), "tukey": (-0.45, 0.05)}
"""The strengths of the runs of each loss."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    d, seeds = effort.pick((150, 6), (400, 16))
    learner, labels = sv.ERM(sv.losses.Square(), sv.Ridge(1.0)), model(NOISE)
    curves, values = {}, {}
    for alpha in ALPHAS:
        # Points close to the edge, where the error diverges.
        edge = -((np.sqrt(alpha) - 1) ** 2)
        fine = np.union1d(edge * (1 - np.geomspace(1e-3, 0.5, 30)), np.linspace(edge / 2, HIGHEST, 60))
        shared: dict[str, Any] = {"alpha": alpha, "progress": effort.progress, "marks": {}}
        curves[f"theory_{alpha:g}"] = sv.learning_curve(labels, learner, penalty=fine, **shared)
        shared |= {"d": d, "seeds": seeds, "executor": effort.executor}
        curves[f"runs_{alpha:g}"] = sv.learning_curve(labels, learner, penalty=np.array(STRENGTHS[alpha]), **shared)
        found = sv.optimize(labels, learner, over="penalty", metric=METRIC, alpha=alpha)
        values[f"best_{alpha:g}"] = float(np.squeeze(found.value)), float(found.prediction[METRIC])
    ratios = np.union1d(np.geomspace(1.5, 30.0, effort.pick(3, 16)), [AT])
    found = in_processes(best, [(name, ratios) for name in reversed(LOSSES)], effort)
    values |= {"ratios": ratios, "best": dict(zip(reversed(LOSSES), found, strict=True))}
    loss_seeds = effort.pick(4, seeds)
    for name in LOSSES:
        shared = {"alpha": AT, "d": d, "seeds": loss_seeds, "progress": effort.progress, "marks": {}}
        grid = np.linspace(*LOSS_RANGES[name], 5)
        curves[f"runs_{name}"] = sv.learning_curve(
            model(OUTLYING), erm(name), penalty=grid, executor=effort.executor, **shared
        )
    sizes = {"runs": {"d": [d], "seeds": [seeds]}, "losses": {"d": [d], "seeds": [loss_seeds]}}
    return Material(values, curves, sizes)


def model(outlying: float):
    """Labels of which some carry no signal but noise of that variance."""
    import solvable as sv

    return sv.MultiIndex("z", noise=NOISE, contamination=sv.Contamination(FRACTION, 0.0, outlying))


def erm(name: str):
    """The learner of a loss."""
    import solvable as sv

    losses = {"square": sv.losses.Square(), "huber": sv.losses.Huber(1.0), "tukey": sv.losses.Tukey(2.0)}
    return sv.ERM(losses[name], sv.Ridge(0.1), solver="direct" if name == "square" else "gamp")


def best(name: str, ratios: np.ndarray) -> list[float]:
    """The best strength of a loss at each alpha, NaN where theory is valid for none."""
    import solvable as sv

    found = []
    for alpha in ratios:
        try:
            optimum = sv.optimize(model(OUTLYING), erm(name), over="penalty", metric=METRIC, alpha=float(alpha))
            found.append(float(np.squeeze(optimum.value)))
        except sv.ConvergenceError:
            found.append(np.nan)
    return found


def best_of_runs(found: Material, name: str) -> Estimate:
    """The best strength of the runs."""
    errors = _errors(found, name)
    return lowest(errors["penalty"].values, errors.values, found.curves[f"runs_{name}"].sizes[0])


def _errors(found: Material, name: str):
    """The errors of runs at each strength and seed, NaN where the risk has no minimum."""
    curve = found.curves[f"runs_{name}"]
    errors = curve.simulation(METRIC).where(curve.dataset["converged_simulation"])
    return errors.isel(learner=0).transpose("penalty", "seed")


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        errors, strengths = figure.subplots(1, 2)
        _draw_errors(errors, found)
        _draw_strengths(strengths, found)
    return figure


def _draw_errors(ax, found: Material) -> None:
    """The error against the strength, with the best one starred."""
    (d,) = found.sizes["runs"]["d"]
    for number, alpha in enumerate(ALPHAS):
        theory = found.curves[f"theory_{alpha:g}"].theory(METRIC).isel(learner=0)
        draw_theory(ax, theory["penalty"], theory, number, rf"$\alpha = {alpha:g}$")
        runs = _errors(found, f"{alpha:g}")
        draw_runs(ax, runs["penalty"], runs, number, None if number else f"runs at $d = {d}$", fmt="o")
    for number, alpha in enumerate(ALPHAS):
        look = {"color": plots.COLORS[number], "markeredgecolor": "black", "zorder": 1.5}
        label = "best strength" if number == 0 else None
        ax.plot(*found.values[f"best_{alpha:g}"], "*", markersize=11, mew=0.6, label=label, **look)
    ax.axvline(0.0, color="0.6", linewidth=0.6, zorder=0)
    ax.set(yscale="log", xlabel=r"strength of the ridge, $\lambda$", ylabel="estimation error")
    ax.set_ylim(0.03, 3.0)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _draw_strengths(ax, found: Material) -> None:
    """The best strength against the number of samples, for three losses."""
    from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

    (d,) = found.sizes["losses"]["d"]
    ratios = found.values["ratios"]
    for number, (name, label) in enumerate(LOSSES.items()):
        draw_theory(ax, ratios, found.values["best"][name], number, label)
        estimate = best_of_runs(found, name)
        draw_points(ax, [AT], [estimate.value], [estimate.error], number, None if number else f"runs at $d = {d}$")
    fine = np.geomspace(ratios[0], ratios[-1], 50)
    ax.plot(fine, -((np.sqrt(fine) - 1) ** 2), color="0.6", linewidth=0.8, label=r"$-(\sqrt{\alpha} - 1)^2$")
    ax.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
    ax.set(xscale="log", xlabel=r"$\alpha = n/d$", ylabel=r"best strength of the ridge, $\lambda^*$")
    ax.set_ylim(-8.0, 1.0)
    ax.xaxis.set_major_locator(FixedLocator((2, 5, 10, 20)))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


ENTRY = Entry(
    id="negative-ridge",
    title="Where the best ridge is negative",
    sources=(sources.VILUCCHIO,),
    shows="The error of least squares against the strength of the ridge, for labels of which 30 % are noise of "
    "variance 0.1 and the others z with the same noise; and the best strength for three losses, where the labels "
    "without signal have noise of variance 1.",
    claims=(
        *(
            Claim(
                f"square loss, best strength at alpha = {alpha:g}",
                None,
                None,
                lambda found, alpha=alpha: found.values[f"best_{alpha:g}"][0],
                lambda found, alpha=alpha: best_of_runs(found, f"{alpha:g}"),
            )
            for alpha in ALPHAS
        ),
        *(
            Claim(
                f"{label}, best strength at alpha = {AT:g}, noise 1",
                None,
                None,
                lambda found, name=name: found.values["best"][name][np.searchsorted(found.values["ratios"], AT)],
                lambda found, name=name: best_of_runs(found, name),
            )
            for name, label in LOSSES.items()
        ),
    ),
    gather=gather,
    draw=draw,
)
