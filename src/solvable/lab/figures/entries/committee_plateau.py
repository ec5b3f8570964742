"""Committees of erf neurons trained on one pass of samples: how the risk falls, and a plateau where neurons are alike.

On the left three neurons learn a committee of two from overlaps of order one. On the right two neurons learn a
committee of two: both first learn what the directions have in common, and the risk stays where it is until a difference
between the neurons, which grows exponentially, is of order one. The smaller it was at the start, the longer the
plateau. The risk is half the generalization error. Runs follow the overlaps alone, at any dimension; we have seen no
number of these settings in print.
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
END, ON_PLATEAU = 5.0, 10.0
"""The alpha at which risks are quoted: of three neurons, and of two on their plateau."""
DIFFERENCES = (0.1, 0.01)
"""How much nearer each of the two neurons is to its own direction than to the other, at the start."""


def three_neurons() -> tuple[Any, Any]:
    """A committee of two, and three neurons with overlaps of order one."""
    import solvable as sv

    learner = sv.OnlineSGD(
        0.7,
        "erf",
        width=3,
        second_layer=(1.0, -0.5, 0.8),
        spherical=False,
        start=((0.2, 0.1), (-0.1, 0.15), (0.05, -0.2)),
        self_overlap=((0.6, 0.1, 0.0), (0.1, 0.5, 0.05), (0.0, 0.05, 0.7)),
    )
    return sv.MultiIndex("erf(z1/sqrt(2)) + 0.7*erf(z2/sqrt(2))", noise=0.01), learner


def two_neurons(difference: float) -> tuple[Any, Any]:
    """A committee of two, and two neurons that differ little at the start."""
    import solvable as sv

    learner = sv.OnlineSGD(
        1.5,
        "erf",
        width=2,
        second_layer=(1.0, 1.0),
        spherical=False,
        start=((difference, 0.0), (0.0, difference)),
        self_overlap=((0.3, 0.0), (0.0, 0.2)),
    )
    return sv.MultiIndex("erf(z1/sqrt(2)) + erf(z2/sqrt(2))", noise=1e-4), learner


def gather(effort: Effort) -> Material:
    import solvable as sv

    d, seeds = effort.pick((1000, 8), (4000, 16))
    shared: dict[str, Any] = {"progress": effort.progress, "marks": {}}
    runs = shared | {"d": d, "seeds": seeds, "executor": effort.executor}
    fine = np.linspace(0.0, END, effort.pick(11, 41))
    long = np.linspace(0.0, 80.0, effort.pick(33, 161))
    few = (0.5, 1.0, 2.0, 3.0, 4.0, END)
    far = effort.pick((2.0, 5.0, ON_PLATEAU, 20.0, 30.0), (2.0, 5.0, ON_PLATEAU, 15.0, 20.0, 25.0, 30.0, 40.0, 60.0))
    curves = {
        "three_theory": sv.learning_curve(*three_neurons(), alpha=fine, **shared),
        "three_runs": sv.learning_curve(*three_neurons(), alpha=few, **runs),
        "two_runs": sv.learning_curve(*two_neurons(DIFFERENCES[0]), alpha=far, **runs),
    }
    for number, difference in enumerate(DIFFERENCES):
        curves[f"two_theory_{number}"] = sv.learning_curve(*two_neurons(difference), alpha=long, **shared)
    sizes = {"d": [d], "seeds": [seeds]}
    return Material({}, curves, {"three": sizes, "two": sizes})


def risk(found: Material, curve: str, alpha: float) -> float:
    """The risk that theory gives."""
    error = found.curves[curve].theory(METRIC).isel(learner=0)
    return float(error.sel(alpha=alpha, method="nearest")) / 2


def risk_of_runs(found: Material, name: str, alpha: float) -> Estimate:
    """The mean risk of the runs."""
    error = found.curves[f"{name}_runs"].simulation(METRIC).isel(learner=0)
    return mean(error.sel(alpha=alpha, method="nearest").values / 2, found.sizes[name]["d"][0])


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.0, 1.0)
        three, two = figure.subplots(1, 2)
        _draw_curve(three, found, "three_theory", 0, "theory")
        _draw_points(three, found, "three")
        three.set(title="three neurons, two directions", ylabel="risk")
        for number, difference in enumerate(DIFFERENCES):
            _draw_curve(two, found, f"two_theory_{number}", number, f"theory, neurons differ by {difference:g}")
        _draw_points(two, found, "two")
        two.set(title="two neurons, two directions", yscale="log")
        for ax in (three, two):
            ax.set_xlabel(r"$\alpha = n/d$")
            ax.legend()
    return figure


def _draw_curve(ax, found: Material, curve: str, number: int, label: str) -> None:
    error = found.curves[curve].theory(METRIC).isel(learner=0)
    draw_theory(ax, error["alpha"], error / 2, number, label)


def _draw_points(ax, found: Material, name: str) -> None:
    error = found.curves[f"{name}_runs"].simulation(METRIC).isel(learner=0).transpose("alpha", "seed")
    draw_runs(ax, error["alpha"], error / 2, 0, f"runs at $d = {found.sizes[name]['d'][0]}$")


ENTRY = Entry(
    id="committee-plateau",
    title="Committees of erf neurons, trained on one pass of samples",
    sources=(sources.SAAD_SOLLA, sources.GOLDT),
    shows="The risk, half the generalization error, of committees under stochastic gradient descent. Two neurons that "
    "start alike stay so on a plateau, and leave it once they differ.",
    claims=(
        Claim("three neurons, risk at the start", None, None, lambda found: risk(found, "three_theory", 0.0)),
        Claim(
            "three neurons, risk at alpha = 5",
            None,
            None,
            lambda found: risk(found, "three_theory", END),
            lambda found: risk_of_runs(found, "three", END),
        ),
        Claim(
            "two neurons, risk on the plateau, alpha = 10",
            None,
            None,
            lambda found: risk(found, "two_theory_0", ON_PLATEAU),
            lambda found: risk_of_runs(found, "two", ON_PLATEAU),
        ),
    ),
    gather=gather,
    draw=draw,
)
