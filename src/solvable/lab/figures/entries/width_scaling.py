"""How the error of a quadratic network falls with its width and with the samples, for power-law eigenvalues.

The target has eigenvalues k^(-5/4). Penalties follow the noise, 4 sqrt(alpha noise), but for the effective rank, the
number of learned eigenvalues, which is also fitted at a fixed penalty. Below the effective rank the theory of a limited
width is an ansatz, which runs at small dimension test. The exponents are those of the theory at d = 400, where they
still drift; the text of the paper is not known to us, and the effective rank is that of its authors' code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

GAMMA, NOISE, SIZE = 1.25, 0.1, 400
CUTS = (0.3, 3.0)
"""The alpha of the runs."""


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.core.precision import float64
    from solvable.models.matrix.nuclear.scaling import fitted_exponents, width_phases

    law = sv.spectra.PowerLaw(GAMMA, SIZE)
    alpha = np.geomspace(0.03, 30.0, effort.pick(7, 16))
    widths = np.unique(np.round(np.geomspace(1, SIZE, effort.pick(8, 18))).astype(int))
    values = {
        "alpha": alpha,
        "widths": widths,
        "phases": float64(width_phases)(law, NOISE, penalty, widths, alpha),
        "exponents": float64(fitted_exponents)(law, NOISE, np.geomspace(0.1, 100.0, effort.pick(7, 13))),
    }
    d, seeds = effort.pick((40, 4), (100, 4))
    units = np.array(effort.pick((1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16, 32, 64)))
    fine = np.unique(np.round(np.geomspace(1, d, 16)).astype(int))
    curves = {}
    for cut in CUTS:
        model = sv.MatrixSensing(sv.spectra.PowerLaw(GAMMA, d), NOISE)
        learner = sv.NuclearNorm(penalty(cut), width=1, solver="network")
        shared: dict[str, Any] = {"alpha": cut, "progress": effort.progress, "marks": {}}
        curves[f"theory_alpha{cut:g}"] = sv.learning_curve(model, learner, width=fine, **shared)
        shared |= {"d": d, "seeds": seeds, "executor": effort.executor}
        curves[f"runs_alpha{cut:g}"] = sv.learning_curve(model, learner, width=units, **shared)
    return Material(values, curves, {"descent": {"d": [d], "seeds": [seeds]}})


def penalty(alpha: float) -> float:
    """The penalty whose threshold is about the edge of the noise's eigenvalues."""
    return float(4 * np.sqrt(alpha * NOISE))


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.3, 1.0)
        phases, samples, width = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
        _draw_phases(phases, found)
        _draw_samples(samples, found)
        _draw_width(width, found)
    return figure


def _draw_phases(ax, found: Material) -> None:
    """The error over samples and width, with the effective rank of an unlimited network."""
    from matplotlib.colors import LogNorm

    alpha, widths, phases = (found.values[name] for name in ("alpha", "widths", "phases"))
    n = alpha * SIZE
    mesh = ax.pcolormesh(
        _edges(n), _edges(widths), phases["estimation_error"], norm=LogNorm(), cmap="cividis", rasterized=True
    )
    ax.figure.colorbar(mesh, ax=ax, label="estimation error")
    ax.plot(n, phases["effective_rank"][-1], color="white", linewidth=1.2)
    place = (n[-3], phases["effective_rank"][-1][-3])
    ax.annotate("effective rank", place, xytext=(-6, 12), textcoords="offset points", color="w", ha="right")
    ax.set(xscale="log", yscale="log", xlabel="$n/d$", ylabel="width", title=f"theory, $d = {SIZE}$")


def _draw_samples(ax, found: Material) -> None:
    """The error of an unlimited network against the samples, with the predicted slope."""
    n, error = found.values["alpha"] * SIZE, found.values["phases"]["estimation_error"][-1]
    slope = found.values["exponents"]["estimation_error"].predicted
    draw_theory(ax, n, error, 0, "theory")
    middle = len(n) // 2
    draw_theory(ax, n, 0.8 * error[middle] * (n / n[middle]) ** slope, 1, f"slope ${slope:g}$")
    ax.set(xscale="log", yscale="log", xlabel="$n/d$", title=f"unlimited width, $d = {SIZE}$")
    ax.legend()


def _draw_width(ax, found: Material) -> None:
    """The error against the width at two numbers of samples, with runs."""
    (d,) = found.sizes["descent"]["d"]
    for number, cut in enumerate(CUTS):
        theory = found.curves[f"theory_alpha{cut:g}"].theory("estimation_error").isel(learner=0)
        runs = found.curves[f"runs_alpha{cut:g}"].simulation("estimation_error").isel(learner=0)
        draw_theory(ax, theory["width"], theory, number, rf"$n = {cut:g}\,d^2$")
        draw_runs(ax, runs["width"], runs.transpose("width", "seed"), number, None if number else "runs", fmt="o")
    slope = found.values["exponents"]["error_of_width"].predicted
    widths = np.array([1.5, d / 5])
    draw_theory(ax, widths, 0.23 * widths**slope, 6, f"slope ${slope:g}$", linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel="width", title=f"$d = {d}$")
    ax.set_ylim(top=0.9)
    ax.legend(loc="upper right", ncols=2, columnspacing=1.0, handlelength=1.5)


def _edges(values: np.ndarray) -> np.ndarray:
    """The borders of cells on a logarithmic axis: half way between neighbours."""
    logs = np.log(values)
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp(np.concatenate([[2 * logs[0] - middle[0]], middle, [2 * logs[-1] - middle[-1]]]))


ENTRY = Entry(
    id="width-scaling",
    title="Scaling with width and samples, for a target of power-law eigenvalues",
    sources=(sources.GIRARDIN,),
    shows="The error of a quadratic network against its width and the number of samples, with penalties matched to the "
    "noise. Networks wider than the effective rank of the unlimited one gain nothing.",
    claims=(
        Claim(
            "exponent of the effective rank in n, fixed penalty",
            "1/gamma",
            sources.GIRARDIN,
            lambda found: found.values["exponents"]["effective_rank_fixed_penalty"].fitted,
            exact=1 / GAMMA,
            tolerance=0.02,
            second_hand=True,
        ),
        Claim(
            "exponent of the error in n, -0.6 expected for large d",
            None,
            None,
            lambda found: found.values["exponents"]["estimation_error"].fitted,
        ),
        Claim(
            "exponent of the error in the width, -1.5 expected for large d",
            None,
            None,
            lambda found: found.values["exponents"]["error_of_width"].fitted,
        ),
    ),
    gather=gather,
    draw=draw,
)
