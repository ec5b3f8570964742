"""What repetition cannot do: a parity is as slow with a sample seen twice as with one pass.

The square of a label sign(z1 z2 z3) is one, so that no transform of it tells more than the label does: the force after
any look ahead is linear in it, and its pull on one direction is still of the order of the product of the overlaps with
the two others. A neuron he3(z)/sqrt(6) on the sphere, correlation loss, overlaps 1/sqrt(d) with each direction at the
start and learning rate 0.3/sqrt(d), has half of its length in their span after order d^2 samples either way. The first
overlap is as small as the noise, at any dimension, so the flow is not exact for runs. The rate is about half of what
noise allows: 0.6/sqrt(d), near the best for one pass, is the critical rate of the look ahead, whose force is noisier.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.paths import first_above, flow_above, median, paths, slope

TARGET, NEURON, DIRECTIONS = "sign(z1*z2*z3)", "he3(z)/sqrt(6)", 3
METRIC, LEVEL = "squared_overlap", 0.5 / DIRECTIONS
"""The metric is the mean over the directions: |m|^2 = 1/2."""
RATE = 0.3
AHEAD = (0.0, 0.1)
EARLIEST, LATEST = 0.4, 20.0
"""When runs are looked at, alpha in units of d."""


def pair(d: int, ahead: float) -> tuple[Any, Any]:
    """The model and the learner at dimension d."""
    import solvable as sv

    given: dict[str, Any] = {"activation": NEURON, "loss": "correlation", "start": 1 / math.sqrt(d)}
    rate = RATE / math.sqrt(d)
    learner = sv.Extragradient(rate, **given, extrapolation=ahead) if ahead else sv.OnlineSGD(rate, **given)
    return sv.MultiIndex(TARGET), learner


def gather(effort: Effort) -> Material:
    dimensions, seeds = effort.pick(((20, 40), 16), ((25, 50, 100), 64))
    values: dict[str, Any] = {"d": np.array(dimensions), "flow": {}, "runs": {}}
    for ahead in AHEAD:
        flows, exits = [], []
        for d in dimensions:
            flows.append(flow_above(*pair(d, ahead), METRIC, LEVEL, EARLIEST * d, LATEST * d) / d)
            alpha = np.geomspace(EARLIEST * d, LATEST * d, effort.pick(13, 20))
            runs = paths(*pair(d, ahead), alpha, d, seeds, [METRIC], effort)[METRIC]
            exits.append(first_above(alpha, runs, LEVEL) / d)
        values["flow"][ahead], values["runs"][ahead] = np.array(flows), exits
    size = {"d": list(dimensions), "seeds": [seeds] * len(dimensions)}
    return Material(values, sizes={"one pass": size, "look ahead": size})


def medians(found: Material, ahead: float) -> list[Estimate]:
    """The median of samples over d^2 at each dimension."""
    return [median(runs) for runs in found.values["runs"][ahead]]


def power(found: Material, ahead: float) -> Estimate:
    """The exponent of d in the median number of samples."""
    d = found.values["d"]
    return slope(d, [one**2 * runs for one, runs in zip(d, found.values["runs"][ahead], strict=True)])


def flow_power(found: Material, ahead: float) -> float:
    """The exponent of d in the number of samples that the flow takes."""
    d = found.values["d"]
    return float(np.polyfit(np.log(d), np.log(d**2 * found.values["flow"][ahead]), 1)[0])


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        d, shown = found.values["d"], found.sizes["one pass"]["seeds"][0]
        for number, ahead in enumerate(AHEAD):
            label = rf"look ahead, $\rho_0 = {ahead:g}$" if ahead else "one pass"
            middle = medians(found, ahead)
            flow = found.values["flow"][ahead]
            if np.isfinite(flow).any():
                draw_theory(ax, d, flow, number, f"{label}, flow")
            value, error = [one.value for one in middle], [one.error for one in middle]
            shift = d * (1 + 0.03 * (number - 0.5))  # so that the bars do not hide each other
            draw_points(ax, shift, value, error, number, f"{label}, median of {shown} runs")
        ax.set(xscale="log", xlabel="$d$", ylabel=r"samples to $|m|^2 = 1/2$, over $d^2$", ylim=(0, None))
        ax.set_ylim(top=1.45 * ax.get_ylim()[1])
        ax.set_xticks(d, [f"{one:g}" for one in d])
        ax.minorticks_off()
        ax.legend(loc="upper right")
    return figure


def _claims(ahead: float, word: str) -> list[Claim]:
    found = [
        Claim(
            f"{word}, exponent of d",
            None,
            None,
            lambda found: flow_power(found, ahead),
            lambda found: power(found, ahead),
        )
    ]
    for which, size in ((0, "smallest"), (-1, "largest")):
        found += [
            Claim(
                f"{word}, samples/d^2 of the flow, {size} d",
                None,
                None,
                lambda found, which=which: float(found.values["flow"][ahead][which]),
            ),
            Claim(
                f"{word}, samples/d^2, median of the runs, {size} d",
                None,
                None,
                None,
                lambda found, which=which: medians(found, ahead)[which],
            ),
        ]
    return found


ENTRY = Entry(
    id="parity-repetition",
    title="A parity is as slow with repetition as without",
    sources=(sources.ARNABOLDI,),
    shows="The median number of samples, over d^2, after which half of a neuron lies in the span of the three "
    "directions of a parity, in one pass and with a look ahead on the same sample: of the same order.",
    claims=tuple(
        claim for ahead, word in zip(AHEAD, ("one pass", "look ahead"), strict=True) for claim in _claims(ahead, word)
    ),
    gather=gather,
    draw=draw,
)
