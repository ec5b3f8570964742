"""A +-1 spike in a symmetric matrix of noise: message passing is optimal, the leading eigenvector knows less."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

METRIC = "squared_overlap"
STRENGTHS = (0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0)
QUOTED = (1.2, 1.7)


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.SpikedMatrix(1.0, "rademacher")
    shared: dict[str, Any] = {"progress": effort.progress}
    fine = np.unique(np.append(np.linspace(0.4, 2.2, effort.pick(37, 91)), [1.0, *QUOTED]))
    curves = {"theory": sv.learning_curve(model, [sv.BayesOptimal(), sv.Spectral()], snr=fine, **shared)}
    sizes = effort.pick({200: 8, 800: 4}, {400: 64, 2000: 64})
    for d, seeds in sizes.items():
        curves[f"runs_d{d}"] = sv.learning_curve(
            model, [sv.AMP(), sv.Spectral()], snr=STRENGTHS, d=d, seeds=seeds, executor=effort.executor, **shared
        )
    known = {name: float(value) for name, value in sv.thresholds(model).items()}
    return Material(known, curves, {"amp and spectral": {"d": list(sizes), "seeds": list(sizes.values())}})


def overlap(found: Material, learner: str, snr: float) -> float:
    """The squared overlap that theory gives."""
    return float(found.curves["theory"].theory(METRIC).sel(learner=learner).sel(snr=snr, method="nearest"))


def overlap_of_runs(found: Material, learner: str, snr: float) -> Estimate:
    """The mean of the largest runs."""
    d = found.sizes["amp and spectral"]["d"][-1]
    return mean(found.curves[f"runs_d{d}"].simulation(METRIC).sel(learner=learner, snr=snr).values, d)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        theory = found.curves["theory"].theory(METRIC)
        for number, (learner, label) in enumerate(
            {"bayes-optimal": "Bayes-optimal, theory", "spectral": "PCA, theory"}.items()
        ):
            draw_theory(ax, theory["snr"], theory.sel(learner=learner), number, label)
        for size, d in enumerate(found.sizes["amp and spectral"]["d"]):
            runs = found.curves[f"runs_d{d}"].simulation(METRIC)
            for number, (learner, label) in enumerate({"amp": "AMP", "spectral": "PCA"}.items()):
                values = runs.sel(learner=learner).transpose("snr", "seed")
                look = {"fmt": plots.MARKERS[number + 2 * size]}
                draw_runs(ax, values["snr"], values, number, f"{label}, runs at $d = {d}$", **look)
        ax.axvline(found.values["weak_recovery"], color="grey", linestyle=":", linewidth=0.9)
        ax.set(xlabel=r"strength of the spike $\lambda$", ylabel="squared overlap")
        ax.legend(loc="upper left")
    return figure


def _claim(name: str, learner: str, runs: str, snr: float) -> Claim:
    return Claim(
        f"{name}, squared overlap at snr {snr:g}",
        None,
        None,
        lambda found: overlap(found, learner, snr),
        lambda found: overlap_of_runs(found, runs, snr),
    )


ENTRY = Entry(
    id="spiked-matrix",
    title="A spike of signs in a symmetric matrix of noise",
    sources=(sources.BAIK,),
    shows="The squared overlap with a vector of signs hidden in a matrix: of message passing, which is Bayes-optimal, "
    "and of the leading eigenvector. Both begin at a strength of one.",
    claims=(
        Claim(
            "weak recovery",
            "1",
            sources.BAIK,
            lambda found: found.values["weak_recovery"],
            exact=1.0,
            second_hand=True,
        ),
        *(_claim("Bayes-optimal and AMP", "bayes-optimal", "amp", snr) for snr in QUOTED),
        _claim("PCA", "spectral", "spectral", 1.7),
    ),
    gather=gather,
    draw=draw,
)
