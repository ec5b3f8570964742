"""What the length of a sequence costs descent: weights that all tokens share, and weights of their own.

Labels are sums over T tokens of a linear or of a quadratic function. A neuron that adds up tokens before its one set of
weights needs as many samples as for a single token in the linear case, and sqrt(T) times more in the quadratic one;
with weights for every token T times more than that. An attention student that knows the sum needs no more for any
length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.paths import first_above, flow_above, median, paths

METRIC, START, LEVEL = "cosine", 0.2, 0.5
SQUARE = "he2(z)/sqrt(2)"
CASES = {
    "linear, tied": ("z", "tied", "relu", 0.1, 0.0),
    "linear, plain": ("z", "plain", "relu", 0.1, 1.0),
    "square, tied": (SQUARE, "tied", SQUARE, 0.01, 0.5),
    "square, plain": (SQUARE, "plain", SQUARE, 0.01, 1.5),
    "square, attention": (SQUARE, "attention", "relu", 0.01, 0.0),
}
"""Function of a token, student, activation, learning rate, and the power of T that its samples grow with."""


def _pair(case: str, T: int) -> tuple[Any, Any]:
    import solvable as sv

    function, student, activation, rate, _ = CASES[case]
    return sv.SequenceSingleIndex(function, T), sv.SequenceSGD(rate, student, activation=activation, start=START)


def gather(effort: Effort) -> Material:
    lengths = effort.pick((1, 4), (1, 2, 4, 8, 16))
    d, seeds = effort.pick((60, 4), (100, 48))
    values: dict[str, Any] = {"lengths": lengths, "d": d}
    for case, (_, _, _, rate, power) in CASES.items():
        flows, runs = [], []
        for T in lengths:
            scale = T**power / rate
            flow = flow_above(*_pair(case, T), METRIC, LEVEL, 0.1 * scale, 4 * scale)
            alpha = np.geomspace(0.3 * flow, 3 * flow, effort.pick(17, 24))
            found = paths(*_pair(case, T), alpha, d, seeds, [METRIC], effort)[METRIC]
            flows.append(flow)
            runs.append(first_above(alpha, found, LEVEL))
        values[case] = {"flow": np.array(flows), "runs": runs}
    return Material(values, sizes={"descent": {"d": [d], "seeds": [seeds]}})


def draw(found: Material, verdicts):
    import matplotlib

    lengths = np.array(found.values["lengths"])
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.15)
        panels = figure.subplots(1, 2)
        for number, case in enumerate(CASES):
            ax = panels[0 if case.startswith("linear") else 1]
            part = found.values[case]
            middle = [median(runs, 1.0) for runs in part["runs"]]
            value, error = (np.array([getattr(one, name) for one in middle]) for name in ("value", "error"))
            draw_theory(ax, lengths, part["flow"], number, None)
            draw_points(ax, lengths, value, error, number, case.partition(", ")[2], linestyle="none")
        for ax, title in zip(panels, ("sum of $z_t$", "sum of $He_2(z_t)$"), strict=True):
            ax.plot([], [], color="0.3", label="flow")
            ax.set(xscale="log", yscale="log", xlabel="tokens $T$", ylabel="samples/d to a cosine of 1/2", title=title)
            ax.set_xticks(lengths, [str(T) for T in lengths], minor=False)
            ax.set_xticks([], minor=True)
            ax.legend(loc="upper left")
    return figure


def _ratio(found: Material, case: str) -> float:
    flow = found.values[case]["flow"]
    return float(flow[-1] / flow[0])


def _run_ratio(found: Material, case: str) -> Estimate:
    first, last = (median(found.values[case]["runs"][k], 1.0) for k in (0, -1))
    value = last.value / first.value
    return Estimate(value, value * float(np.hypot(first.error / first.value, last.error / last.value)))


ENTRY = Entry(
    id="ssi-length",
    title="What the length of a sequence costs descent",
    sources=(sources.ARNABOLDI_SEQUENCE,),
    shows="Samples that one pass of descent takes from a cosine of 0.2 to one of 1/2, against the number of tokens, "
    "for neurons with weights that tokens share (tied) or that each has of its own (plain), and for an attention "
    "student: sums over tokens of a linear (left) and of a quadratic function (right).",
    claims=tuple(
        Claim(
            f"{case}: samples for the longest over one token",
            None,
            None,
            lambda found, case=case: _ratio(found, case),
            lambda found, case=case: _run_ratio(found, case),
        )
        for case in CASES
    ),
    gather=gather,
    draw=draw,
)
