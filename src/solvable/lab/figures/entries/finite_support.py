"""Second layers of several values: each gives the features a function of its own along the target's direction.

The more values, the closer the span of these functions is to the target. A Gaussian second layer is treated by the
values and weights of a Gauss-Hermite rule; its runs have the quantiles of a Gaussian. Means that are nearly parallel
make the limit of infinitely many units slow: theory is shown at the number of units of the runs.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

STEP, BATCH, PENALTY = 2.0, 20.0, 0.1
LAYERS = {"1": {1: 1.0}, "1, 2": {1: 0.5, 2: 0.5}, "1/2, 1, 2": {0.5: 0.3, 1: 0.4, 2: 0.3}, "Gaussian": "gaussian:8"}
SUPPORTS = {"{1}": (1.0,), "{1, 2}": (1.0, 2.0), "{1/2, 1, 2}": (0.5, 1.0, 2.0)}
METRIC = "generalization_error"
POINT = 1.0
"""The alpha of the claims."""


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.models.features.one_step.bounds import span_bounds

    model = sv.TwoLayer("sin(z)", "erf(z)", 1.0)
    d, seeds = effort.pick((80, 4), (200, 40))
    alpha = np.linspace(0.2, 3.0, effort.pick(4, 12))
    ratios = effort.pick((POINT,), (0.3, POINT, 3.0))
    lines, points, runs = {}, {}, {}
    for name, layer in LAYERS.items():
        for units in (d, None):
            learner = sv.OneStep(PENALTY, STEP, BATCH, layer, bulk="isotropic", units=units)
            lines[name, units] = sv.predict(model, learner, alpha=alpha)[METRIC]
        learner = sv.OneStep(PENALTY, STEP, BATCH, layer, bulk="isotropic", units=d)
        points[name] = float(sv.predict(model, learner, alpha=POINT)[METRIC])
        drawn = sv.OneStep(PENALTY, STEP, BATCH, quantiles(d) if name == "Gaussian" else layer, bulk="isotropic")
        tasks = [(model, drawn, ratio, d, seed) for ratio in ratios for seed in range(seeds)]
        runs[name] = np.reshape(in_processes(error_of_run, tasks, effort), (len(ratios), seeds))
    spans = {name: span_bounds(model.target, model.activation, u) for name, u in SUPPORTS.items()}
    values = {"alpha": alpha, "lines": lines, "points": points, "ratios": ratios, "runs": runs, "spans": spans}
    return Material(values, sizes={"runs": {"d": [d], "seeds": [seeds]}})


def error_of_run(model, learner, alpha: float, d: int, seed: int) -> float:
    """The error of one run."""
    from solvable.numerics.blas import single_thread
    from solvable.verbs.simulate import simulate

    with single_thread():
        return float(simulate(model, learner, alpha=alpha, d=d, seed=seed)[METRIC])


def quantiles(count: int) -> dict[float, float]:
    """As many equally likely values, spaced as those of a Gaussian."""
    from scipy.special import ndtri

    return {float(u): 1 / count for u in ndtri((np.arange(count) + 0.5) / count)}


def of_runs(found: Material, name: str) -> Estimate:
    """The mean error of runs at the point of the claims."""
    (d,) = found.sizes["runs"]["d"]
    return mean(found.values["runs"][name][found.values["ratios"].index(POINT)], d)


def bound(found: Material, name: str, side: str) -> float:
    """The lower or upper bound that the values of a support leave at spike 1."""
    return getattr(found.values["spans"][name], side)


def draw(found: Material, verdicts):
    import matplotlib

    values, (d,) = found.values, found.sizes["runs"]["d"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(1.5, 1.25)
        ax = figure.add_subplot()
        for number, name in enumerate(LAYERS):
            draw_theory(ax, values["alpha"], values["lines"][name, d], number, f"u = {name}", linestyle="-")
            label = "infinitely many units" if number == 0 else None
            draw_theory(ax, values["alpha"], values["lines"][name, None], number, label, linestyle=":")
            label = f"runs at $d = {d}$" if number == 0 else None
            draw_runs(ax, values["ratios"], values["runs"][name], number, label)
        ax.set(yscale="log", xlabel=r"$\alpha = n/d$", ylabel="generalization error")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


ENTRY = Entry(
    id="finite-support",
    title="Second layers of several values",
    sources=(sources.DANDI_FEATURES,),
    shows="The error after one giant step with rate 2 on 20 d samples of y = sin(z) (erf units, p = d, penalty 0.1) "
    "for second layers of one, two and three values and for a Gaussian one; and the squared distances of sin to "
    "what one, two and three values span at spike 1.",
    claims=(
        *(
            Claim(
                f"error at alpha = {POINT:g}, u = {name}",
                None,
                None,
                lambda found, name=name: found.values["points"][name],
                lambda found, name=name: of_runs(found, name),
            )
            for name in LAYERS
        ),
        *(
            Claim(
                f"{side} bound, support {name}",
                None,
                None,
                lambda found, key=(name, side): bound(found, *key),
            )
            for name in SUPPORTS
            for side in ("upper", "lower")
        ),
    ),
    gather=gather,
    draw=draw,
)
