"""How many samples one-pass descent needs to leave its start, against the dimension, for information exponents 1, 2, 3.

Target and neuron are the same normalised Hermite polynomial, the loss is the correlation, the first overlap 1/sqrt(d),
and a run has left once its absolute cosine is 1/2: after order d, d log d and d^2 samples [arous2021online]. Lines are
the flow from the same start. At that start the noise of the first samples is as large as the overlap, at any dimension,
so the flow is not exact for runs: medians over runs are compared with it in the picture, and judged by their slopes.
Some runs at exponent 3 turn to the wrong side and stay there; they count as runs that take forever.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.paths import first_above, flow_above, median, paths, slope

METRIC, LEVEL = "cosine", 0.5
EARLIEST, LATEST = 0.3, 3.0
"""When runs are looked at, in units of the time that the flow takes."""


@dataclasses.dataclass(frozen=True)
class Exponent:
    """A Hermite polynomial, the learning rate `rate` d^`power`, and dimensions and numbers of the runs."""

    order: int
    rate: float
    power: float
    quick: tuple[tuple[int, ...], tuple[int, ...]]
    full: tuple[tuple[int, ...], tuple[int, ...]]

    def pair(self, d: int | None = None) -> tuple[Any, Any]:
        """The model and the learner at dimension d; without one, its rate is that in units of d^`power`."""
        import solvable as sv

        polynomial = f"he{self.order}(z)/sqrt({math.factorial(self.order)})"
        rate, start = (self.rate, 0.0) if d is None else (self.rate * d**self.power, 1 / math.sqrt(d))
        return sv.MultiIndex(polynomial), sv.OnlineSGD(rate, activation=polynomial, loss="correlation", start=start)

    def scale(self, d: Any) -> Any:
        """What the number of samples is of the order of."""
        d = np.asarray(d, dtype=float)
        return {1: d, 2: d * np.log(d)}.get(self.order, d ** (self.order - 1))

    @property
    def unit(self) -> str:
        """The scale in words."""
        return {1: "d", 2: "(d log d)"}.get(self.order, f"d^{self.order - 1}")


EXPONENTS = (
    Exponent(1, 0.2, 0.0, ((100, 400), (12, 12)), ((100, 200, 400, 800, 1600), (40, 40, 40, 40, 40))),
    Exponent(2, 0.2, 0.0, ((100, 400), (16, 16)), ((100, 200, 400, 800, 1600), (40, 40, 40, 40, 40))),
    Exponent(3, 0.5, -0.5, ((50, 150), (24, 24)), ((50, 100, 200, 400, 800), (40, 40, 40, 40, 16))),
)
FORMULAS = {1: "$d$", 2: r"$d\,\log d$", 3: "$d^2$"}


def gather(effort: Effort) -> Material:
    import solvable as sv

    values: dict[Any, Any] = {}
    sizes: dict[str, Any] = {}
    for exponent in EXPONENTS:
        dimensions, seeds = effort.pick(exponent.quick, exponent.full)
        told = sv.thresholds(*exponent.pair())
        flows, exits = [], []
        for d, count in zip(dimensions, seeds, strict=True):
            expected = told["exit_constant"] * float(exponent.scale(d)) / d
            flow = flow_above(*exponent.pair(d), METRIC, LEVEL, expected / 3, 2 * expected)
            alpha = np.geomspace(EARLIEST * flow, LATEST * flow, effort.pick(17, 24))
            runs = paths(*exponent.pair(d), alpha, d, count, [METRIC], effort)[METRIC]
            flows.append(flow * d)
            exits.append(first_above(alpha, np.abs(runs) if exponent.order % 2 == 0 else runs, LEVEL) * d)
        sizes[f"exponent_{exponent.order}"] = {"d": list(dimensions), "seeds": list(seeds)}
        constant = float(told["exit_constant"])
        values[exponent.order] = {"d": dimensions, "flow": np.array(flows), "runs": exits, "constant": constant}
    return Material(values, sizes=sizes)


def without_log(found: Material, exponent: Exponent) -> tuple[Any, np.ndarray]:
    """Dimensions, and what samples are divided by so that a power of the dimension is left."""
    d = np.array(found.values[exponent.order]["d"], dtype=float)
    return d, np.log(d) if exponent.order == 2 else np.ones(len(d))


def flow_slope(found: Material, exponent: Exponent) -> float:
    """The slope of log samples against log d that the flow has."""
    d, log = without_log(found, exponent)
    return float(np.polyfit(np.log(d), np.log(found.values[exponent.order]["flow"] / log), 1)[0])


def runs_slope(found: Material, exponent: Exponent) -> Estimate:
    """That of the medians of the runs."""
    d, log = without_log(found, exponent)
    return slope(d, [part / one for part, one in zip(found.values[exponent.order]["runs"], log, strict=True)])


def medians(found: Material, exponent: Exponent) -> list[Estimate]:
    """The medians in units of the scale, at each dimension."""
    part = found.values[exponent.order]
    return [median(runs, 1 / float(exponent.scale(d))) for d, runs in zip(part["d"], part["runs"], strict=True)]


def left_behind(found: Material, exponent: Exponent) -> Estimate:
    """The part of the runs, at all dimensions, that has not left by three times what the flow takes."""
    runs = np.concatenate(found.values[exponent.order]["runs"])
    count, stuck = len(runs), int(np.sum(~np.isfinite(runs)))
    return Estimate(stuck / count, math.sqrt((stuck + 1) * (count - stuck + 1) / (count + 3)) / (count + 2))


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        samples, scaled = figure.subplots(1, 2)
        for number, exponent in enumerate(EXPONENTS):
            part = found.values[exponent.order]
            d, scale = np.array(part["d"]), exponent.scale(part["d"])
            middle = medians(found, exponent)
            value, error = (np.array([getattr(one, name) for one in middle]) for name in ("value", "error"))
            for ax, unit in ((samples, scale), (scaled, np.ones(len(d)))):
                draw_theory(ax, d, part["flow"] / scale * unit, number, None, linestyle="-")
                limit = part["constant"] * unit
                draw_theory(ax, d, limit, number, None, linestyle=":", linewidth=0.9)
                label = rf"$\ell = {exponent.order}$, {FORMULAS[exponent.order]}"
                draw_points(ax, d, value * unit, error * unit, number, label, linestyle="none")
        samples.plot([], [], color="0.3", label="flow from $1/\\sqrt{d}$")
        samples.plot([], [], color="0.3", linestyle=":", linewidth=0.9, label="large $d$")
        samples.set(xscale="log", yscale="log", xlabel="$d$", ylabel="median of samples to leave")
        scaled.set(xscale="log", xlabel="$d$", ylabel="the same, over its scale", ylim=(0, None))
        samples.legend(loc="upper left")
        lowest = min(float(np.min(found.values[exponent.order]["flow"])) for exponent in EXPONENTS)
        highest = max(float(np.max(found.values[exponent.order]["flow"])) for exponent in EXPONENTS)
        samples.set_ylim(lowest / 2, 30 * highest)
    return figure


def _claims(exponent: Exponent) -> list[Claim]:
    name, power = f"l = {exponent.order}", max(exponent.order - 1, 1)
    found = [
        Claim(
            f"{name}, exponent of d{' beside log d' if exponent.order == 2 else ''}",
            str(power),
            sources.BEN_AROUS,
            lambda found: flow_slope(found, exponent),
            lambda found: runs_slope(found, exponent),
            exact=float(power),
            tolerance=0.1,
            second_hand=True,
        ),
        Claim(f"{name}, samples/{exponent.unit}, limit", None, None, lambda m: m.values[exponent.order]["constant"]),
    ]
    for which, word in ((0, "smallest"), (-1, "largest")):
        found += [
            Claim(
                f"{name}, samples/{exponent.unit} of the flow, {word} d",
                None,
                None,
                lambda found, which=which: float(
                    found.values[exponent.order]["flow"][which]
                    / exponent.scale(found.values[exponent.order]["d"][which])
                ),
            ),
            Claim(
                f"{name}, samples/{exponent.unit}, median of the runs, {word} d",
                None,
                None,
                None,
                lambda found, which=which: medians(found, exponent)[which],
            ),
        ]
    stuck = Claim(f"{name}, part of the runs left behind", None, None, None, lambda found: left_behind(found, exponent))
    return [*found, stuck]


ENTRY = Entry(
    id="sgd-exit",
    title="Samples that one-pass descent takes to leave its start",
    sources=(sources.BEN_AROUS,),
    shows="The median number of samples after which a neuron that starts with an overlap of 1/sqrt(d) has one of 1/2, "
    "for normalised Hermite polynomials of degree 1, 2 and 3 as target and neuron, with that of the flow from the same "
    "start and its limit for large d.",
    claims=tuple(claim for exponent in EXPONENTS for claim in _claims(exponent)),
    gather=gather,
    draw=draw,
)
