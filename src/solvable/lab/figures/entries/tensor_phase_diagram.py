"""A spike in a symmetric tensor of order three: what is possible, and the noise up to which it is, by prior.

Every fixed point is on an explicit curve, noise = q^2/gamma with q the overlap at precision gamma. Above the spinodal
there is nothing but q = 0, between the information-theoretic noise and the spinodal the informative branch is not
preferred, and below that it is, but message passing that starts from nothing never finds it at any noise that does not
fall with d: the phase is hard. Runs are message passing that starts close to the truth.
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

PRIORS = ("gaussian", "rademacher")
ORDER = 3
NOISES = (0.02, 0.06, 0.1, 0.14, 0.18, 0.22)
QUOTED = 0.1


def gather(effort: Effort) -> Material:
    import solvable as sv

    d, seeds = effort.pick((60, 6), (120, 12))
    values: dict[Any, Any] = {}
    for prior in PRIORS:
        model = sv.SpikedTensor(ORDER, QUOTED, prior)
        known = sv.thresholds(model)
        values |= {(prior, name): float(known[name]) for name in ("spinodal", "information_theoretic")}
        gamma = np.geomspace(0.02, 300.0, effort.pick(200, 800))
        q = model.prior.overlap(gamma)
        values[prior, "branches"] = q ** (ORDER - 1) / gamma, q
        values[prior, "theory"] = float(sv.predict(model, sv.BayesOptimal())["overlap"])
        tasks = [(prior, noise, d, seed) for noise in NOISES for seed in range(seeds)]
        values[prior, "runs"] = np.reshape(in_processes(informed_overlap, tasks, effort), (len(NOISES), seeds))
    return Material(values, {}, {"informed message passing": {"d": [d], "seeds": [seeds]}})


def informed_overlap(prior: str, noise: float, d: int, seed: int) -> float:
    """Where message passing from close to the truth ends, whichever end is preferred."""
    import solvable as sv
    from solvable.core.precision import float64
    from solvable.engine.informed import truthful_start

    model, rng = sv.SpikedTensor(ORDER, noise, prior), np.random.default_rng([d, seed])
    data = model.sample(rng, d)
    report = float64(model.instance(data).run)(truthful_start(rng, data.truth, 0.99), rng, sv.AMP())
    return abs(float(np.vdot(report.estimate, data.truth))) / d


def overlap_of_runs(found: Material, prior: str) -> Estimate:
    """The mean overlap of the runs at the noise that is quoted."""
    d = found.sizes["informed message passing"]["d"][0]
    return mean(found.values[prior, "runs"][NOISES.index(QUOTED)], d)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.0, 1.25)
        for ax, prior in zip(figure.subplots(1, 2, sharey=True), PRIORS, strict=True):
            _draw_prior(ax, found, prior)
            ax.set_title(f"{prior.capitalize()} prior", pad=12)
            ax.set(xlabel=r"noise $\Delta$", xlim=(0.0, 0.36), ylim=(-0.03, 1.05))
        figure.axes[0].set_ylabel("overlap $q$")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw_prior(ax, found: Material, prior: str) -> None:
    spinodal, information = (found.values[prior, name] for name in ("spinodal", "information_theoretic"))
    noise, q = found.values[prior, "branches"]
    top = int(np.argmax(noise))
    optimal = q[top:], noise[top:]
    preferred = optimal[1] <= information
    ax.axvspan(0.0, information, color=plots.COLORS[4], alpha=0.18, linewidth=0, label="hard phase")
    draw_theory(ax, optimal[1][preferred], optimal[0][preferred], 0, "Bayes-optimal")
    draw_theory(ax, [information, 0.36], [0.0, 0.0], 0, None)
    draw_theory(ax, optimal[1][~preferred], optimal[0][~preferred], 1, "metastable", linestyle="--")
    draw_theory(ax, noise[: top + 1], q[: top + 1], 2, "unstable", linestyle=":")
    draw_theory(ax, [0.0, information], [0.0, 0.0], 3, "AMP from nothing", linestyle="-.")
    for place, name, side in ((information, "information-theoretic", "right"), (spinodal, "spinodal", "left")):
        ax.axvline(place, color="grey", linestyle=":", linewidth=0.9)
        ax.text(place, 1.01, name, transform=ax.get_xaxis_transform(), fontsize=6, ha=side)
    d = found.sizes["informed message passing"]["d"][0]
    draw_runs(ax, NOISES, found.values[prior, "runs"], 0, f"informed AMP, $d = {d}$")


def _threshold(prior: str, name: str, words: str) -> Claim:
    return Claim(f"{prior}, {words}", None, None, lambda found: found.values[prior, name])


ENTRY = Entry(
    id="tensor-phase-diagram",
    title="A spike in a symmetric tensor of order three",
    sources=(sources.LESIEUR, sources.MONTANARI_RICHARD),
    shows="Overlaps of all fixed points against the noise, for a Gaussian spike and one of signs. In the shaded phase "
    "the spike can be known, but message passing that starts from nothing stays there; runs start close to the truth, "
    "and near the spinodal some of them lose it at this size.",
    claims=(
        *(_threshold(prior, "spinodal", "spinodal") for prior in PRIORS),
        *(_threshold(prior, "information_theoretic", "information-theoretic noise") for prior in PRIORS),
        *(
            Claim(
                f"{prior}, overlap at noise {QUOTED:g}",
                None,
                None,
                lambda found, prior=prior: found.values[prior, "theory"],
                lambda found, prior=prior: overlap_of_runs(found, prior),
            )
            for prior in PRIORS
        ),
    ),
    gather=gather,
    draw=draw,
)
