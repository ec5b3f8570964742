"""What a kernel learns of two targets of two projections, degree by degree, as samples grow like powers of d.

The steps are the limit of infinite dimension; the solid lines are its close-up at n of the order of d, drawn at the
size of the runs. Runs cross from plateau to plateau smoothly, the more so the smaller d.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_runs, mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

METRIC = "generalization_error"
TARGETS = {"parity": "sign(z1*z2)", "sum": "z1 + he2(z2)"}
LAST = 2.7


def gather(effort: Effort) -> Material:
    import solvable as sv

    kappa = effort.pick((1.2, LAST), (0.6, 0.9, 1.2, 1.5, 1.8, 2.1, 2.4, LAST))
    plan = {
        "any degree": (math.inf, effort.pick((12,), (20,)), effort.pick(2, 4)),
        "degree two": (2, effort.pick((12,), (20, 40)), effort.pick(2, 4)),
    }
    values: dict[str, Any] = {"kappa": np.array(kappa), "runs": {}, "plateaus": {}, "curve": {}}
    for name, target in TARGETS.items():
        model = sv.MultiIndex(target)
        values["plateaus"][name] = list(sv.thresholds(model, sv.Kernel(3)).values())
        for words, (degree, sizes, seeds) in plan.items():
            for d in sizes:
                alpha = tuple(float(d ** (k - 1)) for k in kappa)
                part = Simulation("runs", [sv.Kernel(degree)], alpha, (d,), (seeds,))
                curve = gather_runs(model, part, effort, {})[f"runs_d{d}"]
                found = curve.simulation(METRIC).isel(learner=0).transpose("alpha", "seed").values
                values["runs"][name, words, d] = found
        d = max(plan["degree two"][1])
        near = np.linspace(0.2, 1.8, 60)
        values["curve"][name] = (d, near, sv.predict(model, sv.Kernel(2), alpha=d ** (near - 1))[METRIC])
    sizes = {words: {"d": list(sizes), "seeds": [seeds] * len(sizes)} for words, (_, sizes, seeds) in plan.items()}
    return Material(values, sizes=sizes)


def draw(found: Material, verdicts):
    import matplotlib

    values = found.values
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.15)
        panels = figure.subplots(1, 2)
        for ax, (name, target) in zip(panels, TARGETS.items(), strict=True):
            levels = values["plateaus"][name]
            ax.stairs(levels[:3], np.arange(4), baseline=None, color="0.3", linewidth=1.2, label="infinite dimension")
            d, near, curve = values["curve"][name]
            draw_theory(ax, near, curve, 1, f"$n = \\alpha d$ at $d = {d}$", linestyle="-", linewidth=0.9)
            cases = [key for key in values["runs"] if key[0] == name]
            for number, (_, words, d) in enumerate(cases):
                shown = {"linestyle": "none"}
                draw_runs(ax, values["kappa"], values["runs"][name, words, d], number, f"{words}, $d = {d}$", **shown)
            ax.set(title=f"$y$ = {target}", xlabel=r"$\kappa = \log n / \log d$", ylabel="generalization error")
            ax.set_xlim(0.3, 3)
            ax.set_ylim(bottom=-0.04 * levels[0])
            ax.legend(loc="lower left")
    return figure


def last(found: Material, name: str) -> Estimate:
    """The runs of degree two at the largest size and number of samples."""
    d = max(found.sizes["degree two"]["d"])
    return mean(found.values["runs"][name, "degree two", d][-1], d)


ENTRY = Entry(
    id="kernel-plateaus",
    title="Kernels learn degree by degree",
    sources=(sources.GHORBANI, sources.MEI),
    shows="The error of kernel ridge regression with n = d^kappa samples, its penalty chosen on samples set aside, on "
    "two targets of two directions: kernels of degree two and of any degree against the plateaus of infinite "
    "dimension, and the exact curve at n of the order of d.",
    claims=(
        Claim(
            "sign(z1*z2), plateau above kappa = 2",
            None,
            None,
            lambda found: found.values["plateaus"]["parity"][2],
            lambda found: last(found, "parity"),
        ),
        Claim(
            "z1 + he2(z2), plateau above kappa = 1",
            None,
            None,
            lambda found: found.values["plateaus"]["sum"][1],
        ),
        Claim(
            "z1 + he2(z2), plateau above kappa = 2",
            None,
            None,
            lambda found: found.values["plateaus"]["sum"][2],
        ),
        Claim(
            "z1 + he2(z2), largest runs",
            None,
            None,
            None,
            lambda found: last(found, "sum"),
        ),
    ),
    gather=gather,
    draw=draw,
)
