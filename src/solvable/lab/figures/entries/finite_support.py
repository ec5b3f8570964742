"""Second layers of several values: each gives the features a function of its own along the target's direction.

The more values, the closer the span of these functions is to the target. A Gaussian second layer is treated by the
values and weights of a Gauss-Hermite rule; its runs have the quantiles of a Gaussian. Means that are nearly parallel
make the limit of infinitely many units slow: theory is shown at the number of units of the runs.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_runs, largest, mean
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
    d, seeds = effort.pick((80, 4), (200, 24))
    alpha = np.linspace(0.2, 3.0, effort.pick(4, 12))
    ratios = effort.pick((POINT,), (0.3, POINT, 2.0, 3.0))
    lines, points, curves, floors, sizes = {}, {}, {}, {}, {}
    for number, (name, layer) in enumerate(LAYERS.items()):
        for units in (d, None):
            learner = sv.OneStep(PENALTY, STEP, BATCH, layer, bulk="isotropic", units=units)
            lines[name, units] = sv.predict(model, learner, alpha=alpha)[METRIC]
        learner = sv.OneStep(PENALTY, STEP, BATCH, layer, bulk="isotropic", units=d)
        points[name] = float(sv.predict(model, learner, alpha=POINT)[METRIC])
        floors[name] = sv.risk_bounds(model, learner).lower
        run = sv.OneStep(PENALTY, STEP, BATCH, quantiles(d) if name == "Gaussian" else layer, bulk="isotropic")
        curves |= gather_runs(model, Simulation(f"runs{number}", [run], ratios, (d,), (seeds,)), effort, {})
        sizes[f"runs{number}"] = {"d": [d], "seeds": [seeds]}
    spans = {name: span_bounds(model.target, model.activation, u) for name, u in SUPPORTS.items()}
    return Material({"alpha": alpha, "lines": lines, "points": points, "floors": floors, "spans": spans}, curves, sizes)


def quantiles(count: int) -> dict[float, float]:
    """As many equally likely values, spaced as those of a Gaussian."""
    from scipy.special import ndtri

    return {float(u): 1 / count for u in ndtri((np.arange(count) + 0.5) / count)}


def of_runs(found: Material, number: int) -> Estimate:
    """The mean error of runs at the point of the claims."""
    runs = largest(found, f"runs{number}")
    return mean(runs.simulation(METRIC).isel(learner=0).sel(alpha=POINT), runs.sizes[0])


def bound(found: Material, name: str, side: str) -> float:
    """The lower or upper bound that the values of a support leave at spike 1."""
    return getattr(found.values["spans"][name], side)


def draw(found: Material, verdicts):
    import matplotlib

    values, (d,) = found.values, found.sizes["runs0"]["d"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(1.5, 1.25)
        ax = figure.add_subplot()
        for number, name in enumerate(LAYERS):
            draw_theory(ax, values["alpha"], values["lines"][name, d], number, f"u = {name}", linestyle="-")
            label = "infinitely many units" if number == 0 else None
            draw_theory(ax, values["alpha"], values["lines"][name, None], number, label, linestyle=":")
            runs = largest(found, f"runs{number}").simulation(METRIC).isel(learner=0).transpose("alpha", "seed")
            draw_runs(ax, runs["alpha"], runs, number, f"runs at $d = {d}$" if number == 0 else None)
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
                lambda found, number=number: of_runs(found, number),
            )
            for number, name in enumerate(LAYERS)
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
