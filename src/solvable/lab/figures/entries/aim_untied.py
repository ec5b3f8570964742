"""Attention layers of rank d/2 with tied and with untied keys and queries, learned from attention matrices.

Untied, a softmax label is T (T - 1) measurements of a matrix of d^2 unknowns; tied, T (T + 1)/2 - 1 of one of d^2/2. A
hardmax label names the largest score of each row.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, gather_runs, largest, mean, metric_of_run
from solvable.lab.figures.drawing import PER_SQUARE, draw_points, draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

RHO = 0.5
METRIC = "estimation_error"
RECOVERY = "strong_recovery"
CHECKED = (("softmax", 0.2), ("softmax", 0.3), ("hardmax", 0.4))
"""The labels of untied layers, and alpha, that are compared with theory at several dimensions."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    tied, untied = sv.AttentionIndexed(RHO, 2), sv.AttentionIndexed(RHO, 2, tied=False)
    size, seeds = effort.pick((24,), (60,)), effort.pick((3,), (16,))
    alpha = np.linspace(0.005, 0.42, effort.pick(15, 84))
    runs = [Simulation("untied", [sv.AMP()], effort.pick((0.1, 0.3), (0.1, 0.2, 0.25, 0.3, 0.35)), size, seeds)]
    found = gather_curves(untied, [sv.BayesOptimal()], alpha, runs, effort, [RECOVERY])
    more = gather_runs(
        tied, Simulation("tied", [sv.AMP()], effort.pick((0.1, 0.15), (0.05, 0.1, 0.13, 0.16)), size, seeds), effort, {}
    )
    hard = sv.AttentionIndexed(RHO, 2, "hardmax", tied=False)
    more |= gather_runs(
        hard, Simulation("hardmax", [sv.AMP()], effort.pick((0.4,), (0.2, 0.4)), size, seeds), effort, {}
    )
    models = {"softmax": untied, "hardmax": hard}
    at = {
        (output, place): float(sv.predict(models[output], sv.BayesOptimal(), alpha=place)[METRIC])
        for output, place in CHECKED
    }
    sizes_of_runs = effort.pick(((20, 3), (30, 4)), ((40, 24), (70, 20), (140, 20)))
    checked = {
        (output, place): {
            d: [metric_of_run(models[output], sv.AMP(), place, d, seed, METRIC) for seed in range(seeds)]
            for d, seeds in sizes_of_runs
        }
        for output, place in CHECKED
    }
    values = {**found.values, "at": at, "checked": checked}
    at_all = found.curves["theory"].dataset["alpha"].values
    values["tied"] = sv.predict(tied, sv.BayesOptimal(), alpha=at_all)[METRIC]
    values["hardmax"] = sv.predict(hard, sv.BayesOptimal(), alpha=at_all)[METRIC]
    sizes = {
        **found.sizes,
        **{name: {"d": list(size), "seeds": list(seeds)} for name in ("tied", "hardmax")},
        "checked": dict(zip(("d", "seeds"), map(list, zip(*sizes_of_runs, strict=True)), strict=True)),
    }
    return dataclasses.replace(found, curves={**found.curves, **more}, values=values, sizes=sizes)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.2, 1.5)
        ax, trend = figure.subplots(1, 2)
        theory = found.curves["theory"].theory(METRIC).isel(learner=0)
        draw_theory(ax, theory["alpha"], theory, 0, "untied, softmax")
        draw_theory(ax, theory["alpha"], found.values["tied"], 1, "tied, softmax")
        draw_theory(ax, theory["alpha"], found.values["hardmax"], 2, "untied, hardmax")
        for number, name in enumerate(("untied", "tied", "hardmax")):
            curve = largest(found, name)
            values = curve.simulation(METRIC).isel(learner=0).transpose("alpha", "seed")
            draw_runs(ax, values["alpha"], values, number, f"message passing, $d = {curve.sizes[0]}$")
        ax.set_xlabel(PER_SQUARE)
        ax.set_ylabel("estimation error")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        for number, (output, place) in zip((0, 3, 2), CHECKED, strict=True):
            runs = found.values["checked"][output, place]
            d = np.array(list(runs))
            best = found.values["at"][output, place]
            excess = [np.array(values) / best for values in runs.values()]
            means = [values.mean() for values in excess]
            errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in excess]
            draw_points(trend, 1 / d, means, errors, number, rf"untied, {output}, $\alpha = {place}$")
        trend.axhline(1.0, color="0.4", linewidth=0.8)
        trend.set_xlim(left=0.0)
        trend.set_xlabel("$1/d$")
        trend.set_ylabel("error over that of theory")
        trend.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _at(output: str, place: float) -> Claim:
    return Claim(
        f"untied, {output}, error at alpha = {place}",
        None,
        None,
        lambda found: found.values["at"][output, place],
        lambda found: at_largest(found, output, place),
    )


def at_largest(found: Material, output: str, place: float) -> Estimate:
    """The mean of the runs of the largest dimension."""
    runs = found.values["checked"][output, place]
    return mean(runs[max(runs)], max(runs))


ENTRY = Entry(
    id="aim-untied",
    title="Attention layers with tied and untied keys and queries",
    sources=(sources.BONCORAGLIO,),
    shows="The error of a layer of rank d/2 learned from attention matrices of two tokens, with one layer for keys and "
    "queries or two, and from the tokens of largest score: in theory, which has one error for the symmetric and the "
    "antisymmetric part of untied layers, an approximation, and of message passing. Right: what message passing loses, "
    "against the size.",
    claims=(
        Claim("exact recovery, untied", None, None, lambda found: found.values[RECOVERY]),
        *(_at(output, place) for output, place in CHECKED),
    ),
    gather=gather,
    draw=draw,
)
