"""What layers buy: tree targets learned without features, with one learned layer, with two, and by descent on all.

The lines are the limit of infinite dimension, in which errors fall in steps; at the sizes of the runs the steps are
wide. Every penalty, width and epoch is chosen on samples set aside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

METRIC = "generalization_error"
INNER = "he2(z)/2 + he3(z)/6"
AT = 2.0
"""The kappa of the claims: n = d^2."""


def _learners() -> dict[str, Any]:
    import solvable as sv

    return {
        "kernel (I)": sv.Kernel(2),
        "one layer (II)": sv.Layerwise(1),
        "two layers (III)": sv.Layerwise(2),
        "two layers, descent": sv.Layerwise(2, training="gradient"),
        "all at once, 2 layers": sv.JointTraining(2, width=None),
        "all at once, 3 layers": sv.JointTraining(3),
    }


def gather(effort: Effort) -> Material:
    import solvable as sv

    one, two = sv.TreeTarget(1, inner=INNER), sv.TreeTarget(2, inner=INNER)
    every = list(_learners())
    few, spectral = every[:3], every[1:3]
    small, large = effort.pick((25, 36), (64, 144))
    grid = effort.pick((1.6, AT), (1.3, 1.5, 1.65, 1.8, AT, 2.2))
    seeds = effort.pick(2, 4)
    plan = {
        "small": (one, small, every, grid, seeds),
        "large": (one, large, few, effort.pick((1.6,), (1.3, 1.5, 1.7)), effort.pick(2, 3)),
        "larger n": (one, large, spectral, effort.pick((AT,), (1.85, AT, 2.15)), effort.pick(2, 3)),
        "branches": (two, small, [*few, every[-1]], grid, effort.pick(2, 3)),
    }
    curves = {
        name.replace(" ", "_"): sv.learning_curve(
            model,
            [_learners()[key] for key in names],
            kappa=np.array(kappa),
            d=d,
            seeds=count,
            executor=effort.executor,
            progress=effort.progress,
            marks=False,
        )
        for name, (model, d, names, kappa, count) in plan.items()
    }
    fine = np.linspace(1.201, 2.299, 400)
    limits = {}
    for branches, model in ((1, one), (2, two)):
        for name in few:
            limits[branches, name] = sv.predict(model, _learners()[name], kappa=fine)[METRIC]
    values = {
        "kappa": fine,
        "limits": limits,
        "learners": {name.replace(" ", "_"): names for name, (_, _, names, _, _) in plan.items()},
        "thresholds": sv.thresholds(one),
        "sizes": (small, large),
    }
    sizes = {
        "one branch": {"d": [small, large], "seeds": [plan["small"][-1], plan["large"][-1]]},
        "two branches": {"d": [small], "seeds": [plan["branches"][-1]]},
    }
    return Material(values, curves, sizes)


def runs_of(found: Material, names: tuple[str, ...], learner: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """kappa, and what the runs gave there (kappa, seed), of those of the named curves that have the learner."""
    kappa, values = [], []
    for name in names:
        learners = found.values["learners"][name]
        if learner in learners:
            runs = found.curves[name].simulation(metric).isel(learner=learners.index(learner))
            kappa.append(found.curves[name].dataset["kappa"].values)
            values.append(runs.transpose("kappa", "seed").values)
    return np.concatenate(kappa), np.concatenate(values)


def draw(found: Material, verdicts):
    import matplotlib

    small, large = found.values["sizes"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 2.1)
        panels = figure.subplots(2, 2)
        _errors(panels[0, 0], found, 1, ("small",), f"one branch, $d = {small}$")
        _errors(panels[0, 1], found, 1, ("large", "larger_n"), f"one branch, $d = {large}$")
        _errors(panels[1, 0], found, 2, ("branches",), f"two branches, $d = {small}$")
        _layers(panels[1, 1], found)
        panels[0, 0].plot([], [], color="0.3", label=r"limit $d \to \infty$")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _errors(ax, found: Material, branches: int, curves: tuple[str, ...], title: str) -> None:
    for number, name in enumerate(_learners()):
        if (branches, name) in found.values["limits"]:
            draw_theory(ax, found.values["kappa"], found.values["limits"][branches, name], number, None)
        if any(name in found.values["learners"][curve] for curve in curves):
            draw_runs(ax, *runs_of(found, curves, name, METRIC), number, name, linestyle=":", linewidth=0.6)
    _marks(ax, found)
    ax.set(title=title, xlabel=r"$\kappa = \log n / \log d$", ylabel="generalization error", xlim=(1.2, 2.3))
    ax.set_ylim(bottom=-0.02)


def _layers(ax, found: Material) -> None:
    small, large = found.values["sizes"]
    for place, (metric, words) in enumerate((("first_layer", "first layer"), ("second_layer", "hidden feature"))):
        for k, (d, curves) in enumerate(((small, ("small",)), (large, ("large", "larger_n")))):
            runs = runs_of(found, curves, "two layers (III)", metric)
            draw_runs(ax, *runs, 2 * place + k, f"{words}, $d = {d}$", linestyle="-", linewidth=0.6)
    _marks(ax, found)
    ax.set(title="what two layers find", xlabel=r"$\kappa = \log n / \log d$", ylabel="squared overlap")
    ax.set(xlim=(1.2, 2.3), ylim=(-0.02, 1.02))
    ax.legend(loc="lower right")


def _marks(ax, found: Material) -> None:
    for place in sorted(set(found.values["thresholds"].values())):
        ax.axvline(place, color="0.6", linestyle=":", linewidth=0.8, zorder=0)


def _measured(found: Material, learner: str, metric: str = METRIC, less: str | None = None) -> Estimate:
    kappa, values = runs_of(found, ("small",), learner, metric)
    values = values[np.argmin(np.abs(kappa - AT))]
    if less is not None:
        values = runs_of(found, ("small",), less, metric)[1][np.argmin(np.abs(kappa - AT))] - values
    return mean(values, found.values["sizes"][0])


ENTRY = Entry(
    id="depth-scenarios",
    title="Tree targets learned with no layer, one layer or two layers of features",
    sources=(sources.DANDI_DEPTH,),
    shows="The error on tree targets, tanh(3h) of sums h of (He_2/2 + He_3/6) of d^(1/2) projections, from n = d^kappa "
    "samples: a quadratic kernel (I), one learned layer (II), two (III; spectral, and by descent layer by layer), and "
    "networks of two layers (the better of two widths) and three trained as a whole. Lines: infinite dimension; "
    "dotted: where a first layer finds the directions, 3/2, and a kernel learns the quadratic part, 2. Last panel: how "
    "much of the directions and of the hidden feature is found.",
    claims=(
        Claim(
            "kappa of the first layer",
            "1 + eps",
            sources.DANDI_DEPTH,
            lambda found: found.values["thresholds"]["first_layer"],
            exact=1.5,
            second_hand=True,
        ),
        Claim(
            "kappa of the second layer",
            "k eps",
            sources.DANDI_DEPTH,
            lambda found: found.values["thresholds"]["second_layer"],
            exact=1.5,
            second_hand=True,
        ),
        *(
            Claim(f"error at kappa = 2, {name}", None, None, None, lambda found, name=name: _measured(found, name))
            for name in (
                "kernel (I)",
                "one layer (II)",
                "two layers (III)",
                "two layers, descent",
                "all at once, 2 layers",
                "all at once, 3 layers",
            )
        ),
        Claim(
            "kernel less one layer, same data",
            None,
            None,
            None,
            lambda found: _measured(found, "one layer (II)", less="kernel (I)"),
        ),
        Claim(
            "one layer less two, same data",
            None,
            None,
            None,
            lambda found: _measured(found, "two layers (III)", less="one layer (II)"),
        ),
        Claim(
            "share of the directions found at kappa = 2",
            None,
            None,
            None,
            lambda found: _measured(found, "two layers (III)", "first_layer"),
        ),
        Claim(
            "share of the hidden feature found at kappa = 2",
            None,
            None,
            None,
            lambda found: _measured(found, "two layers (III)", "second_layer"),
        ),
    ),
    gather=gather,
    draw=draw,
)
