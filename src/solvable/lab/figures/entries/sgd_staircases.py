"""Staircases: descent learns one direction after the other, each with the help of those it knows already.

A network of eight biased ReLU neurons, square loss, single samples. In `he2(z1)/sqrt(2) + sign(z1*z2*z3)` the first
direction is found by its quadratic part, and makes the other two, of which one alone tells nothing, a quadratic part of
what is left. With `he4(z1)/sqrt(24)` in its place one pass is late at the first step already, and a look ahead on the
same sample takes it early. In a chain `z1 + he3(z1)*z2/sqrt(6) + he3(z2)*z3/sqrt(6)` each direction is linear once the
one before it is known. The share of a direction is the part of it that lies in the span of the neurons. All of this
leaves saddles from random starts, so there are runs and no theory; we have seen no number of these settings in print.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import mean
from solvable.lab.figures.drawing import draw_runs, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.paths import first_above, paths

WIDTH, ACTIVATION = 8, "relu(z+0.5)"
SHARES = ("share_1", "share_2", "share_3")
HALF = 0.5
"""A direction is learned once half of it lies in the span of the neurons."""


@dataclasses.dataclass(frozen=True)
class Staircase:
    """A target, the rate and look ahead, and the runs: dimension, number, and last alpha, quick and full."""

    target: str
    rate: float
    extrapolation: float
    quick: tuple[int, int, float]
    full: tuple[int, int, float]
    title: str

    def pair(self) -> tuple[Any, Any]:
        """The model and the learner."""
        import solvable as sv

        given: dict[str, Any] = {"activation": ACTIVATION, "width": WIDTH, "spherical": False}
        if self.extrapolation == 0:
            return sv.MultiIndex(self.target), sv.OnlineSGD(self.rate, **given)
        return sv.MultiIndex(self.target), sv.Extragradient(self.rate, **given, extrapolation=self.extrapolation)


GRAND = "he4(z1)/sqrt(24) + sign(z1*z2*z3)"
STAIRCASES = {
    "quadratic": Staircase(
        "he2(z1)/sqrt(2) + sign(z1*z2*z3)",
        0.3,
        0.0,
        (60, 4, 600.0),
        (200, 8, 1500.0),
        r"$He_2(z_1)/\sqrt{2} + \mathrm{sign}(z_1z_2z_3)$, one pass",
    ),
    "chain": Staircase(
        "z1 + he3(z1)*z2/sqrt(6) + he3(z2)*z3/sqrt(6)",
        0.3,
        0.0,
        (60, 4, 600.0),
        (100, 8, 2000.0),
        r"$z_1 + He_3(z_1)z_2/\sqrt{6} + He_3(z_2)z_3/\sqrt{6}$, one pass",
    ),
    "ahead": Staircase(
        GRAND,
        0.5,
        0.5,
        (60, 4, 600.0),
        (200, 8, 2900.0),
        r"$He_4(z_1)/\sqrt{24} + \mathrm{sign}(z_1z_2z_3)$, look ahead",
    ),
    "grand": Staircase(
        GRAND,
        0.5,
        0.0,
        (60, 4, 600.0),
        (200, 8, 2900.0),
        r"$He_4(z_1)/\sqrt{24} + \mathrm{sign}(z_1z_2z_3)$, one pass",
    ),
}
WORDS = {
    "quadratic": "He2 + sign, one pass",
    "chain": "chain, one pass",
    "ahead": "He4 + sign, look ahead",
    "grand": "He4 + sign, one pass",
}


def gather(effort: Effort) -> Material:
    values, sizes = {}, {}
    for name, staircase in STAIRCASES.items():
        d, seeds, last = effort.pick(staircase.quick, staircase.full)
        alpha = np.geomspace(last / 100, last, effort.pick(13, 25))
        found = paths(*staircase.pair(), alpha, d, seeds, SHARES, effort)
        values[name] = {"alpha": alpha, "last": last} | found
        sizes[name] = {"d": [d], "seeds": [seeds]}
    return Material(values, sizes=sizes)


def share(found: Material, name: str, direction: int) -> Estimate:
    """The mean share of a direction at the end of the runs."""
    return mean(found.values[name][SHARES[direction]][-1], found.sizes[name]["d"][0])


def in_order(found: Material, name: str, first: int, then: int) -> Estimate:
    """The part of the runs that learn one direction before another, or alone; its error that of a uniform prior."""
    path = found.values[name]
    one, other = (first_above(path["alpha"], path[SHARES[k]], HALF) for k in (first, then))
    runs, right = len(one), int(np.sum(one < other))
    error = math.sqrt((right + 1) * (runs - right + 1) / (runs + 3)) / (runs + 2)
    return Estimate(right / runs, error)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.0, 1.8)
        axes = figure.subplots(2, 2, sharey=True)
        for ax, (name, staircase) in zip(axes.flat, STAIRCASES.items(), strict=True):
            path, (d,) = found.values[name], found.sizes[name]["d"]
            for number, metric in enumerate(SHARES):
                label = f"$z_{number + 1}$, runs"
                look = {"linestyle": ":", "linewidth": 0.8, "markersize": 3.5}
                draw_runs(ax, path["alpha"], path[metric], number, label, **look)
            ax.set(xscale="log", xlabel=r"$\alpha = n/d$", ylim=(-0.03, 1.06))
            ax.set_title(f"{staircase.title}, $d = {d}$")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        for ax in axes[:, 0]:
            ax.set_ylabel("share of the direction learned")
    return figure


def _claims() -> list[Claim]:
    orders = (("quadratic", 0, 1), ("quadratic", 0, 2), ("chain", 0, 1), ("chain", 1, 2), ("ahead", 0, 1))
    found = [
        Claim(
            f"{WORDS[name]}, part of the runs that learn z{first + 1} before z{then + 1}",
            None,
            None,
            None,
            lambda found, name=name, first=first, then=then: in_order(found, name, first, then),
        )
        for name, first, then in orders
    ]
    return found + [
        Claim(
            f"{word}, share of z{direction + 1} at the end",
            None,
            None,
            None,
            lambda found, name=name, direction=direction: share(found, name, direction),
        )
        for name, word in WORDS.items()
        for direction in range(3)
    ]


ENTRY = Entry(
    id="sgd-staircases",
    title="Staircases: one direction after the other",
    sources=(sources.ABBE, sources.ARNABOLDI),
    shows="How much of each direction of a target lies in the span of eight neurons that are trained with single "
    "samples. A direction that alone tells nothing is learned once others are known. Where the first step is hard in "
    "one pass, a look ahead on the same sample takes it.",
    claims=tuple(_claims()),
    gather=gather,
    draw=draw,
)
