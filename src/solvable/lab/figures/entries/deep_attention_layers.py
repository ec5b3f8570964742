"""Two layers of attention, learned last layer first; and two published thresholds that are not right.

On the branch on which only the last layer is known, q = M_22, there are alpha = q / ((1 - q) E|g_2|^2) samples a
dimension, and the first layer is seen from where alpha times the growth of its small overlaps is one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_runs, largest, mean_at
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Runs, growth_onset

COMPARED = (0.25, 0.4, 0.5, 0.6, 0.85, 1.0)
"""Where message passing is run."""
LAST, FIRST = "0.144", "0.794"
"""The published thresholds at residual strength one."""


def thresholds(residual: float, known: tuple[float, ...]) -> tuple[float, float]:
    """Where the last and the first layer begin to be learned; the second from the branch at overlaps `known`."""
    import solvable as sv

    channel = sv.DeepAttention(2, 2, residual).channel
    last = channel.linearisation(np.zeros((2, 2)), np.eye(2)).growing_overlap()[0]
    if not known:
        return 1 / last, np.nan
    alpha, excess = [], []
    for q in known:
        information = channel.average(np.diag([1.0, 1 - q]), 1.0).information[1, 1]
        alpha.append(q / (1 - q) / information)
        excess.append(alpha[-1] * channel.linearisation(np.diag([0.0, q]), np.eye(2)[:, :1]).easy[0, 0] - 1)
    slope, value = np.polyfit(alpha, excess, 1)
    return 1 / last, -value / slope


def _grid(effort: Effort, values: dict[str, Any]) -> np.ndarray:
    """Where theory is computed: at both thresholds, so that lines bend there, and where runs are."""
    if effort.quick:
        return np.array([0.1, 0.3, 0.5])
    between = (0.1, 0.22, 0.3, 0.35, 0.45, 0.55, 0.65, 0.75, 0.8, 0.9, 0.95)
    return np.unique([*between, *COMPARED, values["last"], values["first"]])


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.lab.grid.curves import learning_curve
    from solvable.models.attention.sequence.growth import measured_growth

    model = sv.DeepAttention(2, 2)
    around = effort.pick((0.965, 0.977), (0.96, 0.968, 0.975, 0.98))
    values: dict[str, Any] = {}
    values["last"], values["first"] = thresholds(1.0, around)
    residuals = effort.pick((0.5, 1.0, 2.0), (0.1, 0.25, 0.5, 1.0, 2.0, 4.0))
    values["residuals"] = np.array(residuals)
    values["lasts"] = np.array([thresholds(c, ())[0] for c in residuals])
    some = effort.pick((), (0.5, 2.0))
    values["some"] = np.array([1.0, *some])
    at = {0.5: (0.91, 0.94, 0.96), 2.0: (0.985, 0.99, 0.994)}
    values["firsts"] = np.array([values["first"], *(thresholds(c, at[c])[1] for c in some)])
    d, seeds = effort.pick((150, 2), (800, 6))
    grid = np.array([0.5, 0.65, 0.8])
    grown = [[measured_growth(model, a, d, seeds * k + s) for s in range(seeds)] for k, a in enumerate(grid)]
    values["grown"] = growth_onset(Runs(d, grid, np.array(grown)))
    theory = learning_curve(model, [sv.AMP()], alpha=_grid(effort, values), progress=effort.progress)
    where, size, count = effort.pick(((0.5,), (100,), (4,)), (COMPARED, (200,), (8,)))
    runs = Simulation("amp", [sv.AMP(max_steps=effort.pick(80, 150))], where, size, count)
    curves = gather_runs(model, runs, effort, {})
    sizes = {"amp": {"d": list(size), "seeds": list(count)}, "linearised": {"d": [d], "seeds": [seeds]}}
    return dataclasses.replace(Material(values), curves={"theory": theory, **curves}, sizes=sizes)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.7, 1.2)
        overlaps, errors, thresholds = figure.subplots(1, 3)
        theory, runs = found.curves["theory"], largest(found, "amp")
        for ax, metrics in (
            (overlaps, ("overlap_2", "overlap_1")),
            (errors, ("generalization_error", "plug_in_error")),
        ):
            for number, metric in enumerate(metrics):
                line = theory.theory(metric).isel(learner=0)
                draw_theory(ax, line["alpha"], line, number, _NAMES[metric])
                points = runs.simulation(metric).isel(learner=0).transpose("alpha", "seed")
                draw_runs(ax, points["alpha"], points, number, f"runs, $d = {runs.sizes[0]}$", linestyle="none")
            ax.set_xlabel(r"$\alpha = n/d$")
            ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        overlaps.set_ylabel("overlap")
        errors.set_ylabel("error of the attention matrix")
        for mark in (found.values["last"], found.values["first"]):
            overlaps.axvline(mark, color="black", linestyle=":", linewidth=0.8)
        draw_theory(thresholds, found.values["residuals"], found.values["lasts"], 0, "last layer")
        thresholds.plot(found.values["some"], found.values["firsts"], "s-", color=plots.COLORS[1], label="first layer")
        thresholds.plot([1.0], [float(LAST)], "x", color=plots.COLORS[0], label="published, last layer")
        thresholds.plot([1.0], [float(FIRST)], "+", color=plots.COLORS[1], label="published, first layer")
        thresholds.axhline(1 / 6, color="black", linestyle=":", linewidth=0.8)
        thresholds.annotate(
            "bound 1/6", (0.98, 1 / 6), (0, -8), thresholds.get_yaxis_transform(), "offset points", ha="right"
        )
        thresholds.set_xscale("log")
        thresholds.set_ylim(0.0, 0.9)
        thresholds.set_xlabel("residual strength $c$")
        thresholds.set_ylabel(r"threshold, $\alpha = n/d$")
        thresholds.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _half_way(name: str, metric: str) -> Claim:
    """What theory and runs have in the middle of the branch on which the last layer alone is known."""
    return Claim(
        f"{name} at alpha = 0.5",
        None,
        None,
        lambda found: float(found.curves["theory"].theory(metric).isel(learner=0).sel(alpha=0.5)),
        lambda found: mean_at(found, "amp", metric, 0.5),
    )


_NAMES = {
    "overlap_1": "first layer",
    "overlap_2": "last layer",
    "generalization_error": "posterior mean",
    "plug_in_error": "label of the estimate",
}

ENTRY = Entry(
    id="deep-attention-layers",
    title="Two layers of attention, learned last layer first",
    sources=(sources.TROIANI_SEQUENCE,),
    shows="Overlaps with the directions of the two layers, errors of the predicted attention matrix, and the "
    "thresholds of both layers against the strength of the residual connection; two tokens.",
    claims=(
        Claim(
            "last layer, c = 1",
            LAST,
            sources.TROIANI_SEQUENCE,
            lambda found: found.values["last"],
            lambda found: found.values["grown"],
            known_wrong="no layer of any depth can be seen below 1/(T(T+1)) = 1/6, since "
            "E|E[z z^T|y] - I|^2 is at most T(T+1); message passing linearised on data agrees with the value here.",
            second_hand=True,
        ),
        Claim(
            "first layer, c = 1",
            FIRST,
            sources.TROIANI_SEQUENCE,
            lambda found: found.values["first"],
            known_wrong="the value here is where small overlaps grow, and no iteration has to be stopped. The cause "
            "may be that the published iteration adds 0.001 to V and stops while the first layer grows: a conjecture.",
            second_hand=True,
        ),
        _half_way("overlap with the last layer", "overlap_2"),
        _half_way("error of the posterior mean", "generalization_error"),
        _half_way("error of the label of the estimate", "plug_in_error"),
    ),
    gather=gather,
    draw=draw,
)
