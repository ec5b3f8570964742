"""From how many noiseless samples, n = alpha d^2, a target of rho d quadratic units is recovered exactly.

Bayes-optimal learning needs as many as the target has unknowns. A wide network with a vanishing weight decay finds the
positive matrix of least trace. For a few samples more no other positive matrix fits the labels at all; the paper's
slides call that curve the one of kernels, while ridge regression, which looks for any symmetric matrix, needs
alpha = 1/2 whatever the target is. The threshold of the runs is where half of them recover the target up to rounding
(see `estimators`). They have Gaussian features, with the same limit of infinite dimension and less of a shift at finite
dimension.
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

NAMES = {"perfect_recovery": "Bayes optimal", "nuclear_recovery": "least trace", "psd_recovery": "any positive matrix"}
SIMULATED = {0.2: 0.25, 0.5: 0.42}
"""The width of the target in the runs, and around which alpha they are made."""
NARROW = 1e-8
"""A width so small that thresholds are those of the limit, up to 0.3 %."""
RECOVERED = 1e-6
"""The error below which the target is recovered up to rounding."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    rho = np.linspace(0.002, 1.2, effort.pick(61, 241))
    known = [recovery(width) for width in rho]
    values: dict[str, Any] = {"rho": rho, **{name: np.array([one[name] for one in known]) for name in NAMES}}
    values["at"] = {width: recovery(width) for width in (*SIMULATED, NARROW)}
    curves, sizes = {}, {}
    d, seeds = effort.pick(((10, 15), (6, 6)), ((14, 28), (12, 8)))
    around = effort.pick(np.arange(-0.03, 0.091, 0.03), np.arange(-0.03, 0.076, 0.015))
    for width, middle in SIMULATED.items():
        model = sv.QuadraticNetwork(width, features="gaussian")
        runs = Simulation(_name(width), [sv.NuclearNorm()], (middle + around).round(3), d, seeds)
        curves |= gather_runs(model, runs, effort, {})
        sizes[runs.name] = {"d": list(d), "seeds": list(seeds)}
    return Material(values, curves, sizes)


def recovery(rho: float) -> dict[str, float]:
    """The thresholds of theory."""
    import solvable as sv

    return {name: float(value) for name, value in sv.thresholds(sv.QuadraticNetwork(rho)).items()}


def boundary(rho: float, found: Material) -> Estimate:
    """The threshold of the runs."""
    return matrix_jump(runs_of(found, _name(rho), "estimation_error", lambda error: -error), above=-RECOVERED)


def _name(rho: float) -> str:
    return f"rho_{rho:g}"


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        rho = found.values["rho"]
        for number, (name, label) in enumerate(NAMES.items()):
            draw_theory(ax, rho, found.values[name], number, label)
        draw_theory(ax, rho, np.full(rho.shape, 0.5), 3, "ridge on the features")
        boundaries = [verdict.simulated for verdict in verdicts if verdict.simulated is not None]
        sizes = " and ".join(map(str, found.sizes[_name(0.5)]["d"]))
        values, bars = [one.value for one in boundaries], [3 * one.error for one in boundaries]
        draw_points(ax, list(SIMULATED), values, bars, 1, f"least trace, runs at $d =$ {sizes}, 3 s.e.")
        ax.set_xlim(0, rho[-1])
        ax.set_ylim(0, 0.55)
        ax.set_xlabel(r"width of the target over the dimension, $\rho$")
        ax.set_ylabel(f"exact recovery from {PER_SQUARE}")
        ax.legend()
    return figure


ENTRY = Entry(
    id="nuclear-recovery",
    title="Exact recovery of a quadratic network without noise",
    sources=(sources.MAILLARD_TROIANI, sources.ERBA),
    shows="The number of samples from which the target is recovered exactly, against its width: by Bayes-optimal "
    "learning, by a wide network with vanishing weight decay (the positive matrix of least trace that fits), by any "
    "positive matrix that fits, and by ridge regression on the features.",
    claims=(
        Claim(
            "Bayes optimal, rho = 1/2",
            "rho - rho^2/2",
            sources.MAILLARD_TROIANI,
            lambda found: found.values["at"][0.5]["perfect_recovery"],
            exact=0.375,
        ),
        Claim(
            "least trace, alpha/rho as rho falls",
            "3",
            sources.ERBA,
            lambda found: found.values["at"][NARROW]["nuclear_recovery"] / NARROW,
            exact=3.0,
            tolerance=0.01,
        ),
        Claim(
            "any positive matrix, as rho falls",
            "1/4",
            sources.ERBA,
            lambda found: found.values["at"][NARROW]["psd_recovery"],
            exact=0.25,
        ),
        *(
            Claim(
                f"least trace, rho = {rho:g}",
                None,
                None,
                lambda found, rho=rho: found.values["at"][rho]["nuclear_recovery"],
                partial(boundary, rho),
            )
            for rho in SIMULATED
        ),
    ),
    gather=gather,
    draw=draw,
)
