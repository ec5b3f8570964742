"""A Boltzmann machine with one binary hidden unit on samples with a spike: its largest likelihood, and ascent to it.

On the left what it knows of the spike at alpha = 2, between principal components and Bayes-optimal learning. The theory
of its maximum is drawn where it is stable; nearer to the transition many maxima compete, and runs end below principal
components. On the right gradient ascent, dynamical mean-field theory against runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import in_processes, mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

METRIC = "squared_overlap"
ALPHA = 2.0
STRENGTHS = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0)
COURSES = {1.5: (0.2, 1.0), 1.0: (0.1, 0.2)}
"""The strength of the spike, and M and Q at the start of ascent."""
STEPS = (1, 3, 5, 10)
"""Those whose overlaps are quoted, up to the last one."""
LEARNERS = {"bayes-optimal": "Bayes-optimal", "rbm": "RBM", "spectral": "PCA"}
MACHINES = {"amp": "AMP", "rbm": "RBM", "spectral": "PCA"}


def gather(effort: Effort) -> Material:
    import solvable as sv

    model, shared = sv.SpikedCovariance(1.0), {"alpha": ALPHA, "progress": effort.progress}
    fine = np.unique(np.append(np.linspace(0.3, 3.2, effort.pick(30, 88)), STRENGTHS))
    d, seeds = effort.pick((100, 6), (400, 64))
    learners = [sv.BayesOptimal(), sv.RBM(), sv.Spectral()]
    curves = {
        "theory": sv.learning_curve(model, learners, snr=fine, **shared),
        "runs": sv.learning_curve(
            model,
            [sv.AMP(), sv.RBM(), sv.Spectral()],
            snr=STRENGTHS,
            d=d,
            seeds=seeds,
            executor=effort.executor,
            **shared,
        ),
    }
    long, many = effort.pick((200, 6), (1000, 64))
    values: dict[Any, Any] = {}
    for snr in COURSES:
        found = sv.predict(sv.SpikedCovariance(snr), ascent(snr), alpha=ALPHA).order_parameters
        values[snr, "theory"] = np.stack([found["M_path"][:, 0, 0], found["Q_path"][:, 0, 0]])
        values[snr, "runs"] = np.stack(in_processes(course, [(snr, long, seed) for seed in range(many)], effort))
    sizes = {"curves": {"d": [d], "seeds": [seeds]}, "ascent": {"d": [long], "seeds": [many]}}
    return Material(values, curves, sizes)


def ascent(snr: float) -> Any:
    """The learner of one course."""
    import solvable as sv

    M, Q = COURSES[snr]
    return sv.RBMAscent(steps=STEPS[-1], learning_rate=0.3, start=M, self_overlap=Q)


def course(snr: float, d: int, seed: int) -> np.ndarray:
    """M and Q (2, steps + 1) of one run of ascent."""
    import solvable as sv

    found = sv.simulate(sv.SpikedCovariance(snr), ascent(snr), alpha=ALPHA, d=d, seed=seed).details
    return np.stack([found["M_path"][:, 0, 0], found["Q_path"][:, 0, 0]])


def overlap(found: Material, learner: str, snr: float) -> float:
    """The squared cosine that theory gives."""
    return float(found.curves["theory"].theory(METRIC).sel(learner=learner).sel(snr=snr, method="nearest"))


def overlap_of_runs(found: Material, learner: str, snr: float) -> Estimate:
    """The mean squared cosine of the runs."""
    values = found.curves["runs"].simulation(METRIC).sel(learner=learner, snr=snr)
    return mean(values.values, found.sizes["curves"]["d"][0])


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        left, right = figure.subplots(1, 2)
        theory, status = found.curves["theory"].theory(METRIC), found.curves["theory"].dataset["status"]
        runs, d = found.curves["runs"].simulation(METRIC), found.sizes["curves"]["d"][0]
        for number, (learner, label) in enumerate(LEARNERS.items()):
            line = theory.where(status == 0).sel(learner=learner)
            draw_theory(left, line["snr"], line, number, f"{label}, theory")
        for number, (learner, label) in enumerate(MACHINES.items()):
            values = runs.sel(learner=learner).transpose("snr", "seed")
            draw_runs(left, values["snr"], values, number, f"{label}, runs at $d = {d}$")
        left.axvline(1 / np.sqrt(ALPHA), color="grey", linestyle=":", linewidth=0.9)
        left.set(
            xlabel=r"strength of the spike $\theta$", ylabel="squared cosine", title=r"largest likelihood, $\alpha = 2$"
        )
        for number, snr in enumerate(COURSES):
            _draw_course(right, found, number, snr)
        right.set(xlabel="steps of ascent", ylabel="overlaps $M$ and $Q$", title="gradient ascent")
        for ax in (left, right):
            ax.legend(loc="best", fontsize=6)
    return figure


def _draw_course(ax, found: Material, number: int, snr: float) -> None:
    d = found.sizes["ascent"]["d"][0]
    for which, name in enumerate("MQ"):
        path, runs = found.values[snr, "theory"][which], found.values[snr, "runs"][:, which]
        k = 2 * number + which
        draw_theory(ax, np.arange(len(path)), path, k, rf"${name}$, $\theta = {snr:g}$, DMFT")
        draw_runs(ax, np.arange(len(path)), runs.T, k, f"runs at $d = {d}$" if k == 0 else None)


def _maximum(name: str, learner: str, runs: str, snr: float) -> Claim:
    return Claim(
        f"{name}, squared cosine at snr {snr:g}",
        None,
        None,
        lambda found: overlap(found, learner, snr),
        lambda found: overlap_of_runs(found, runs, snr),
    )


def _step(snr: float, which: int, step: int) -> Claim:
    return Claim(
        f"ascent at snr {snr:g}, {'MQ'[which]} after {step} steps",
        None,
        None,
        lambda found: found.values[snr, "theory"][which, step],
        lambda found: mean(found.values[snr, "runs"][:, which, step], found.sizes["ascent"]["d"][0]),
    )


ENTRY = Entry(
    id="rbm",
    title="A Boltzmann machine with one hidden unit on samples with a spike",
    sources=(sources.XU_RBM,),
    shows="Left: the squared cosine with the direction of two clusters at two samples per dimension, of principal "
    "components, of the machine of largest likelihood (its theory where it is stable), of message passing, of Bayes. "
    "Right: the overlap M with the direction and the squared norm Q under gradient ascent.",
    claims=(
        _maximum("RBM", "rbm", "rbm", 1.5),
        _maximum("RBM", "rbm", "rbm", 2.5),
        _maximum("PCA", "spectral", "spectral", 1.5),
        _maximum("Bayes-optimal and AMP", "bayes-optimal", "amp", 1.5),
        *(_step(1.5, which, step) for step in STEPS for which in (0, 1)),
        *(_step(1.0, which, step) for step in (3, 10) for which in (0, 1)),
    ),
    gather=gather,
    draw=draw,
)
