"""One attention layer whose keys and queries have directions of their own: from how many samples on they are seen.

The thresholds of runs are where the linearised message passing keeps a small overlap as large as it is.
"""

from __future__ import annotations

import functools

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate, Runs, growth_onset

TOKENS = (2, 3, 4, 5, 6)


def closed(tokens: int) -> float:
    """1 / ((T - 1)(T + sqrt(T^2 + 1)))."""
    return 1 / ((tokens - 1) * (tokens + np.sqrt(tokens**2 + 1)))


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.models.attention.sequence.growth import measured_growth

    values: dict = {}
    d, seeds = effort.pick(200, 1600), effort.pick(3, 32)
    for T in TOKENS:
        model = sv.DeepAttention(1, T, tied=False)
        values["untied", T] = sv.thresholds(model)["weak_recovery"]
        values["tied", T] = sv.thresholds(sv.DeepAttention(1, T))["weak_recovery"]
        alpha = np.array([3.0, 4.0, 5.0]) * closed(T)
        # A data set of its own for each run: those of one seed at two alpha would share samples.
        grown = [[measured_growth(model, a, d, seeds * k + s) for s in range(seeds)] for k, a in enumerate(alpha)]
        values["runs", T] = growth_onset(Runs(d, alpha, np.array(grown)))
    return Material(values, sizes={"linearised": {"d": [d], "seeds": [seeds]}})


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        T = np.linspace(2, 6, 81)
        draw_theory(ax, T, 1 / ((T - 1) * (T + np.sqrt(T**2 + 1))), 0, "untied keys and queries")
        draw_theory(ax, T, 1 / (T * (T + 1)), 1, "tied")
        runs = [found.values["runs", tokens] for tokens in TOKENS]
        d = found.sizes["linearised"]["d"][0]
        draw_points(ax, TOKENS, [run.value for run in runs], [run.error for run in runs], 0, f"untied, $d = {d}$")
        ax.set_yscale("log")
        ax.set_xticks(TOKENS)
        ax.set_xlabel("tokens $T$")
        ax.set_ylabel(r"weak recovery, $\alpha = n/d$")
        ax.legend()
    return figure


def _value(found: Material, tokens: int) -> float:
    return found.values["untied", tokens]


def _runs(found: Material, tokens: int) -> Estimate:
    return found.values["runs", tokens]


ENTRY = Entry(
    id="attention-untied-threshold",
    title="Attention of one direction with untied keys and queries: where it begins to be learned",
    sources=(sources.TROIANI_SEQUENCE,),
    shows="The number of samples a dimension from which on the directions of queries and keys of one attention layer "
    "are seen in its attention matrices, against the number of tokens; and that of a layer in which both are one.",
    claims=tuple(
        Claim(
            f"weak recovery of {tokens} tokens",
            None,
            None,
            functools.partial(_value, tokens=tokens),
            functools.partial(_runs, tokens=tokens),
            exact=closed(tokens),
        )
        for tokens in TOKENS
    ),
    gather=gather,
    draw=draw,
)
