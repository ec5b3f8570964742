"""Double descent of least squares: without a penalty the error diverges where the samples are as many as the weights.

Below alpha = 1 the solution is the interpolating one of least norm. A part of the target that is not linear acts as
noise, so that the peak of such a target is there without any noise of the labels. The best ridge is the same at every
alpha, the variance of noise and non-linear part over the square of the linear coefficient, and takes the peak away.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest, mean_at
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

NOISE = 0.25
TARGETS = {"linear": ("z", "$y = z$"), "curved": ("sin(1.5*z)", r"$y = \sin(3z/2)$")}
METRIC = "generalization_error"
SMALL = 0.1
BELOW, ABOVE = 0.5, 2.0
"""The alpha of the claims."""
WIDEST = 4.0


def gather(effort: Effort) -> Material:
    import solvable as sv

    ratios = effort.pick(
        (0.2, BELOW, 0.8, 1.25, ABOVE), (0.1, 0.3, BELOW, 0.7, 0.85, 0.93, 1.08, 1.2, 1.5, ABOVE, 3.0, WIDEST)
    )
    # Points close to alpha = 1 on both sides and none at it, where the error is infinite: the peak leaves the figure.
    near = np.geomspace(0.004, 0.9, 60)
    alpha = np.concatenate([1 - near[::-1], 1 + near[near < 0.5], np.linspace(1.5, WIDEST, 26)])
    d, seeds = effort.pick((150,), (400,)), effort.pick((6,), (20,))
    values, curves, sizes = {}, {}, {}
    for name, (target, _) in TARGETS.items():
        model = sv.MultiIndex(target, noise=NOISE)
        optimum = sv.optimize(model, ridge(1.0), over="penalty", metric=METRIC, alpha=1.0)
        learners = [ridge(0.0), ridge(SMALL), optimum.learner]
        simulation = Simulation(f"runs_{name}", learners, ratios, d, seeds)
        found = gather_curves(model, learners, alpha, [simulation], effort, [])
        curves |= {f"theory_{name}" if key == "theory" else key: curve for key, curve in found.curves.items()}
        sizes |= found.sizes
        values[f"best_{name}"] = float(np.squeeze(optimum.value))
        exact = sv.predict(model, ridge(0.0), alpha=np.array([BELOW, ABOVE]))[METRIC]
        values[f"error_{name}"] = {ratio: float(error) for ratio, error in zip((BELOW, ABOVE), exact, strict=True)}
    return Material(values, curves, sizes)


def ridge(strength: float):
    """Least squares with a ridge."""
    import solvable as sv

    return sv.ERM(sv.losses.Square(), sv.Ridge(strength))


def error_of_runs(found: Material, name: str, alpha: float) -> Estimate:
    """The mean error of runs without penalty."""
    return mean_at(found, f"runs_{name}", METRIC, alpha)


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.05)
        for ax, (name, (_, title)) in zip(figure.subplots(1, 2), TARGETS.items(), strict=True):
            _draw_target(ax, found, name)
            ax.set_title(title)
    return figure


def _draw_target(ax, found: Material, name: str) -> None:
    """The error of one target at the three strengths."""
    theory = found.curves[f"theory_{name}"].theory(METRIC)
    runs = largest(found, f"runs_{name}").simulation(METRIC)
    (d,) = found.sizes[f"runs_{name}"]["d"]
    best = found.values[f"best_{name}"]
    labels = [r"$\lambda \to 0$", rf"$\lambda = {SMALL:g}$", rf"$\lambda = {best:.3g}$, the best"]
    for number, label in enumerate(labels):
        line = theory.isel(learner=number)
        draw_theory(ax, line["alpha"], line, number, label)
        values = runs.isel(learner=number).transpose("alpha", "seed")
        draw_runs(ax, values["alpha"], values, number, f"runs at $d = {d}$" if number == 0 else None)
    ax.axvline(1.0, color="0.45", linewidth=0.7, linestyle=(0, (1, 1.5)), zorder=0)
    highest = 10 * float(runs.max())
    ax.set(yscale="log", xlabel=r"$\alpha = n/d$", ylabel="generalization error", xlim=(0, WIDEST + 0.1))
    ax.set_ylim(top=min(highest, float(theory.max())))
    ax.legend(loc="upper right")


ENTRY = Entry(
    id="ridgeless-double-descent",
    title="Double descent of least squares",
    sources=(sources.HASTIE,),
    shows="The error of least squares without penalty, with a small one and with the best one, against the number of "
    "samples, for labels with noise of variance 0.25 of a linear target and of one that is not.",
    claims=(
        Claim(
            "y = z, alpha = 1/2",
            "1 - alpha + sigma^2 alpha/(1 - alpha)",
            sources.HASTIE,
            lambda found: found.values["error_linear"][BELOW],
            lambda found: error_of_runs(found, "linear", BELOW),
            exact=1 - BELOW + NOISE * BELOW / (1 - BELOW),
            second_hand=True,
        ),
        Claim(
            "y = z, alpha = 2",
            "sigma^2/(alpha - 1)",
            sources.HASTIE,
            lambda found: found.values["error_linear"][ABOVE],
            lambda found: error_of_runs(found, "linear", ABOVE),
            exact=NOISE / (ABOVE - 1),
            second_hand=True,
        ),
        *(
            Claim(
                f"y = sin(3z/2), alpha = {text}",
                None,
                None,
                lambda found, alpha=alpha: found.values["error_curved"][alpha],
                lambda found, alpha=alpha: error_of_runs(found, "curved", alpha),
            )
            for alpha, text in ((BELOW, "1/2"), (ABOVE, "2"))
        ),
    ),
    gather=gather,
    draw=draw,
)
