"""How long descent on a sequence takes to leave a random start, against the dimension.

The first degree k in which student and target agree decides: about C d samples for k = 1, C d log d for 2, and d^(k-1)
for larger k, with a learning rate that falls like d^(1-k/2). Labels are sums over two tokens of a Hermite polynomial,
and the student knows the sum.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_points, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.paths import first_above, median, paths, slope

METRIC, LEVEL, TOKENS = "cosine", 0.5, 2
CASES = {1: ("z", 0.1), 2: ("he2(z)/sqrt(2)", 0.05), 3: ("he3(z)/sqrt(6)", 0.02)}
"""The target of a token, and the learning rate at d = 30."""
UNIT = 30


def pair(k: int, d: int) -> tuple[Any, Any]:
    import solvable as sv

    function, rate = CASES[k]
    rate *= (d / UNIT) ** min(0.0, 1 - k / 2)
    return sv.SequenceSingleIndex(function, TOKENS), sv.SequenceSGD(rate, "attention", start="random")


def gather(effort: Effort) -> Material:
    import solvable as sv

    sizes, seeds = effort.pick(((30, 60), 8), ((30, 60, 120, 240), 32))
    values: dict[Any, Any] = {"d": sizes}
    for k in CASES:
        runs = []
        for d in sizes:
            low, high = {1: (0.2, 60.0), 2: (1.0, 600.0), 3: (0.5 * d, 60.0 * d)}[k]
            alpha = np.geomspace(low, high, 60)
            runs.append(first_above(alpha, paths(*pair(k, d), alpha, d, seeds, [METRIC], effort)[METRIC], LEVEL))
        values[k] = runs
        values["exponent", k] = sv.thresholds(*pair(k, UNIT))["exponent"]
    return Material(values, sizes={"descent": {"d": list(sizes), "seeds": [seeds] * len(sizes)}})


def draw(found: Material, verdicts):
    import matplotlib

    sizes = np.array(found.values["d"])
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        words = {1: "$z_t$: $d$", 2: r"$He_2$: $d \log d$", 3: "$He_3$: $d^2$"}
        laws = {1: np.ones(len(sizes)), 2: np.log(sizes), 3: sizes}
        for number, k in enumerate(CASES):
            middle = [median(runs) for runs in found.values[k]]
            value, error = (np.array([getattr(one, name) for one in middle]) for name in ("value", "error"))
            draw_points(ax, sizes, value, error, number, f"sum of {words[k]}", linestyle="none")
            law = laws[k] * np.exp(np.mean(np.log(value / laws[k])))
            ax.plot(sizes, law, color=plots.COLORS[number], linestyle=plots.DASHES[number])
        ax.set(xscale="log", yscale="log", xlabel="$d$", ylabel="samples/d to a cosine of 1/2, from a random start")
        ax.set_xticks(sizes, [str(d) for d in sizes], minor=False)
        ax.set_xticks([], minor=True)
        ax.legend()
    return figure


def _slope(k: int) -> Claim:
    return Claim(
        f"power of d in the samples for the degree {k}" + (", less the logarithm" if k == 2 else ""),
        f"{max(k - 1, 1)}",
        sources.ARNABOLDI_SEQUENCE,
        lambda found: float(max(found.values["exponent", k] - 1, 1)),
        lambda found: _power(found, k),
        exact=float(max(k - 1, 1)),
        second_hand=True,
    )


def _power(found: Material, k: int) -> Estimate:
    """Of n: one more than of n/d; a factor log d is taken off first where there is one."""
    sizes = np.array(found.values["d"], float)
    times = [runs / np.log(d) ** (k == 2) for runs, d in zip(found.values[k], sizes, strict=True)]
    fitted = slope(sizes, times)
    return dataclasses.replace(fitted, value=fitted.value + 1)


ENTRY = Entry(
    id="ssi-escape",
    title="How descent on a sequence leaves a random start",
    sources=(sources.ARNABOLDI_SEQUENCE,),
    shows="Samples that one pass of descent takes to a cosine of 1/2 from a random start, against the dimension, for "
    "sums over two tokens of Hermite polynomials of degree one, two and three. Lines: the law of each, through the "
    "points.",
    claims=tuple(_slope(k) for k in CASES),
    gather=gather,
    draw=draw,
)
