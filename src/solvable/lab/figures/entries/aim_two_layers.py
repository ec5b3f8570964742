"""Two attention layers of extensive rank, where they are solved: at large, at finite and at small rank.

What is known of a layer is drawn for Gaussian layers (the limit of large rank), for layers of rank d/2, and for layers
of vanishing rank against samples over p d, where each layer has a threshold. The last layer is learned first.
"""

from __future__ import annotations

import math

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_runs, largest, mean_at
from solvable.lab.figures.drawing import PER_SQUARE, draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

RHO = 0.5
RANKS = {"wide": math.inf, "half": RHO}
LAYERS = ("overlap_1", "overlap_2")
NAMES = ("first layer", "last layer")
PLACE = 0.2
SIZES = {"wide": ((50, 80), (16, 16)), "half": ((30, 50), (16, 16))}
"""The dimensions of runs, and the seeds at each."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    values, curves, sizes = {}, {}, {}
    for name, rho in RANKS.items():
        model = sv.DeepAttentionIndexed(rho, 2, 2)
        most = 0.6 if math.isinf(rho) else 0.36
        alpha = np.unique(np.append(np.linspace(0.0, most, effort.pick(5, 13)), PLACE))
        found = sv.predict(model, sv.AMP(), alpha=alpha, throw=False)
        values[name] = {"alpha": alpha, **{layer: found[layer] for layer in LAYERS}}
        values[f"{name} at"] = {layer: float(found[layer][alpha == PLACE][0]) for layer in LAYERS}
        d, seeds = effort.pick(((24,), (2,)), SIZES[name])
        runs = Simulation(name, [sv.AMP(max_steps=100)], effort.pick((PLACE,), (0.1, PLACE)), d, seeds)
        curves |= gather_runs(model, runs, effort, {})
        sizes[name] = {"d": list(d), "seeds": list(seeds)}
        values[f"{name} recovery"] = sv.thresholds(model)["strong_recovery"]
    narrow = sv.DeepAttentionIndexed(0.0, 2, 2)
    ratio = np.linspace(0.1, 0.98, effort.pick(6, 19))
    found = sv.predict(narrow, sv.AMP(), alpha=ratio, throw=False)
    values["narrow"] = {"alpha": ratio, **{layer: found[layer] for layer in LAYERS}}
    values["thresholds"] = dict(sv.thresholds(narrow))
    return Material(values, curves, sizes)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.6)
        axes = figure.subplots(1, 3, sharey=True)
        titles = ("Gaussian layers", rf"rank $d/{1 / RHO:g}$", "small rank")
        for ax, name, title in zip(axes, (*RANKS, "narrow"), titles, strict=True):
            for number, (layer, words) in enumerate(zip(LAYERS, NAMES, strict=True)):
                draw_theory(ax, found.values[name]["alpha"], found.values[name][layer], number, words)
            if name != "narrow":
                curve = largest(found, name)
                for number, layer in enumerate(LAYERS):
                    runs = curve.simulation(layer).isel(learner=0).transpose("alpha", "seed")
                    draw_runs(ax, runs["alpha"], runs, number, f"message passing, $d = {curve.sizes[0]}$")
                ax.axvline(found.values[f"{name} recovery"], color="0.5", linestyle=":", linewidth=0.9)
            ax.set_title(title)
            ax.set_xlabel(PER_SQUARE)
        for number, layer in enumerate(("layer_1", "layer_2")):
            place = found.values["thresholds"][layer]
            axes[2].axvline(place, color=plots.COLORS[number], linestyle=":", linewidth=0.9)
        axes[2].set_xlabel(r"$\alpha/\rho = n/(p d)$")
        axes[0].set_ylabel("overlap with the layer")
        for ax in axes:
            ax.legend()
    return figure


def _at(name: str, layer: str, words: str) -> Claim:
    return Claim(
        f"{words}: overlap with the {NAMES[LAYERS.index(layer)]} at alpha = {PLACE}",
        None,
        None,
        lambda found: found.values[f"{name} at"][layer],
        lambda found: mean_at(found, name, layer, PLACE),
    )


ENTRY = Entry(
    id="aim-two-layers",
    title="Two attention layers of extensive rank, in their solvable limits",
    sources=(sources.BONCORAGLIO,),
    shows="What is learned of each of two layers from attention matrices of two tokens, for Gaussian layers, for "
    "layers of rank d/2 and in the limit of small rank: theory and message passing. Dotted lines: exact recovery, or "
    "where a layer of small rank begins to be seen.",
    claims=(
        *(_at("wide", layer, "Gaussian layers") for layer in LAYERS),
        *(_at("half", layer, "rank d/2") for layer in LAYERS),
        Claim("small rank: last layer, alpha/rho", None, None, lambda found: found.values["thresholds"]["layer_2"]),
        Claim("small rank: first layer, alpha/rho", None, None, lambda found: found.values["thresholds"]["layer_1"]),
        Claim("exact recovery, rank d/2", None, None, lambda found: found.values["half recovery"]),
    ),
    gather=gather,
    draw=draw,
)
