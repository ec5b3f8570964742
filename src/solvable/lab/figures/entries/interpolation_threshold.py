"""Up to how many noisy samples, n = alpha d^2, a network of at least d quadratic units can fit all labels.

Runs minimise the sum of squares in the limit of a vanishing penalty. The threshold of the runs is where half of them
fit all labels up to rounding (see `estimators`), at three strengths of the noise. They have Gaussian features, with the
same limit of infinite dimension and less of a shift at finite dimension.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_runs, matrix_jump, runs_of
from solvable.lab.figures.drawing import PER_SQUARE, draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

RHO = 0.5
LOW_NOISE, HIGH_NOISE = (1 + 2 * RHO - RHO**2) / 4, 1 / 4
SIMULATED = {0.1: 0.34, 1.0: 0.28, 10.0: 0.25}
"""The noise of the runs, and around which alpha they are made."""
VANISHING, DIVERGING = 1e-16, 1e8
"""Noise so small and so large that the threshold is that of the limit."""
FITTED = 1e-6
"""The mean squared residual, over the noise, below which all labels are fitted up to rounding."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    noise = np.logspace(-4, 3, effort.pick(15, 57))
    values: dict[str, Any] = {"noise": noise, "threshold": np.array([interpolation(level) for level in noise])}
    values["at"] = {level: interpolation(level) for level in (*SIMULATED, VANISHING, DIVERGING)}
    curves, sizes = {}, {}
    d, seeds = effort.pick(((10, 16), (6, 6)), ((14, 28), (12, 8)))
    around = effort.pick(np.arange(-0.03, 0.091, 0.03), np.arange(-0.03, 0.076, 0.015))
    for level, middle in SIMULATED.items():
        model = sv.QuadraticNetwork(RHO, level, features="gaussian")
        runs = Simulation(_name(level), [sv.NuclearNorm()], (middle + around).round(3), d, seeds)
        curves |= gather_runs(model, runs, effort, {})
        sizes[runs.name] = {"d": list(d), "seeds": list(seeds)}
    return Material(values, curves, sizes)


def interpolation(noise: float) -> float:
    """The threshold of theory."""
    import solvable as sv

    return float(sv.thresholds(sv.QuadraticNetwork(RHO, noise))["interpolation"])


def onset(noise: float, found: Material) -> Estimate:
    """The threshold of the runs."""
    residuals = runs_of(found, _name(noise), "training_error", lambda error: -error / noise)
    return matrix_jump(residuals, above=-FITTED)


def _name(noise: float) -> str:
    return f"noise_{noise:g}"


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        noise, threshold = found.values["noise"], found.values["threshold"]
        draw_theory(ax, noise, threshold, 0, "theory")
        ax.fill_between(noise, 0.2, threshold, color=plots.COLORS[0], alpha=0.08, linewidth=0)
        onsets = [verdict.simulated for verdict in verdicts if verdict.simulated is not None]
        sizes = " and ".join(map(str, found.sizes[_name(1.0)]["d"]))
        values, bars = [one.value for one in onsets], [3 * one.error for one in onsets]
        draw_points(ax, list(SIMULATED), values, bars, 1, f"runs at $d =$ {sizes}, 3 s.e.")
        for limit, text, place in ((LOW_NOISE, r"$(1 + 2\rho - \rho^2)/4$", 0.98), (HIGH_NOISE, "$1/4$", 0.02)):
            ax.axhline(limit, color="0.45", linewidth=0.7, linestyle=(0, (1, 1.5)), zorder=0)
            side = "right" if place > 0.5 else "left"
            ax.text(place, limit, text, transform=ax.get_yaxis_transform(), ha=side, va="bottom", color="0.35")
        ax.text(0.03, 0.12, "all labels can be fitted", transform=ax.transAxes)
        ax.text(0.97, 0.62, "they cannot", transform=ax.transAxes, ha="right")
        ax.set_xscale("log")
        ax.set_xlim(noise[0], noise[-1])
        ax.set_ylim(0.2, 0.46)
        ax.set_xlabel(r"variance of the noise $\Delta$")
        ax.set_ylabel(f"interpolation threshold {PER_SQUARE}")
        ax.legend(loc="upper right", bbox_to_anchor=(1.0, 0.9))
    return figure


ENTRY = Entry(
    id="interpolation-threshold",
    title="How many noisy labels a wide quadratic network can fit",
    sources=(sources.ERBA,),
    shows="The largest number of samples whose labels a network of at least d quadratic units can fit exactly, against "
    "the noise of the labels, for a target of d/2 units.",
    claims=(
        Claim(
            "noise to 0",
            "(1 + 2 rho - rho^2)/4",
            sources.ERBA,
            lambda found: found.values["at"][VANISHING],
            exact=LOW_NOISE,
        ),
        Claim("noise to infinity", "1/4", sources.ERBA, lambda found: found.values["at"][DIVERGING], exact=HIGH_NOISE),
        *(
            Claim(
                f"noise {noise:g}",
                None,
                None,
                lambda found, noise=noise: found.values["at"][noise],
                partial(onset, noise),
            )
            for noise in SIMULATED
        ),
    ),
    gather=gather,
    draw=draw,
)
