"""Between which errors the best penalty keeps a network after one giant step, and which step makes them least.

The bounds are those of infinitely many units. From few samples the best penalty is large, and the fit of the mean of
the features, free in the limit, is not free with the 200 units of the runs: their error is then above the upper bound.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_runs, mean
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

STEP, BATCH = 3.0, 20.0
WIDTHS = (1.0, 10.0, 1e4)
METRIC = "generalization_error"
SPIKE = 0.9


def gather(effort: Effort) -> Material:
    import solvable as sv
    from solvable.models.features.one_step.bounds import span_bounds

    alpha = np.geomspace(0.1, 1e3, effort.pick(7, 33))
    penalties = np.geomspace(1e-3, 1e3, effort.pick(7, 25))
    best, chosen = {}, {}
    for width in WIDTHS:
        model = sv.TwoLayer("sin(z)", "tanh", width)
        errors = np.array(
            [sv.predict(model, sv.OneStep(p, STEP, BATCH, bulk="isotropic"), alpha=alpha)[METRIC] for p in penalties]
        )
        best[width], chosen[width] = errors.min(axis=0), penalties[errors.argmin(axis=0)]
    model = sv.TwoLayer("sin(z)", "tanh", 1.0)
    d, seeds = effort.pick((80, 4), (200, 48))
    ratios = alpha[(alpha > 0.15) & (alpha < 6)][:: effort.pick(1, 3)]
    points = []
    for ratio in ratios:
        penalty = chosen[1.0][np.searchsorted(alpha, ratio)]
        learner = sv.OneStep(float(penalty), STEP, BATCH)
        found = gather_runs(model, Simulation("runs", [learner], [ratio], (d,), (seeds,)), effort, {})
        theory = float(sv.predict(model, learner, alpha=float(ratio))[METRIC])
        points.append((float(ratio), theory, mean(found[f"runs_d{d}"].simulation(METRIC).values.ravel(), d)))
    steps = np.geomspace(0.1, 30, effort.pick(15, 60))
    learners = [sv.OneStep(1.0, float(step), np.inf) for step in steps]
    values = {
        "alpha": alpha,
        "best": best,
        "bounds": sv.risk_bounds(model, sv.OneStep(1.0, STEP, BATCH)),
        "points": points,
        "steps": steps,
        "over step": np.array([sv.risk_bounds(model, learner) for learner in learners]),
        "best step": sv.best_step_bounds(model, learners[0]),
        "spike": span_bounds(model.target, model.activation, [SPIKE]),
    }
    return Material(values, sizes={"runs": {"d": [d], "seeds": [seeds]}})


def middle(found: Material) -> tuple[float, float, Estimate]:
    """Alpha, theory and runs in the middle of what was run."""
    return found.values["points"][len(found.values["points"]) // 2]


def draw(found: Material, verdicts):
    import matplotlib

    values, (d,) = found.values, found.sizes["runs"]["d"]
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        left, right = figure.subplots(1, 2)
        for number, width in enumerate(WIDTHS):
            draw_theory(left, values["alpha"], values["best"][width], number, f"$p = {width:g}\\,d$", linestyle="-")
        alpha, _, runs = zip(*values["points"], strict=True)
        means, errors = [run.value for run in runs], [run.error for run in runs]
        draw_points(left, alpha, means, errors, 0, f"runs at $d = {d}$")
        for bound, dashes, name in zip(values["bounds"], ("-.", "--"), ("lower bound", "upper bound"), strict=True):
            left.axhline(bound, color="0.4", linestyle=dashes, label=name)
        left.set(xscale="log", yscale="log", xlabel=r"$\alpha = n/d$", ylabel="generalization error")
        left.set_title(r"best penalty, $\eta = 3$, $\alpha_0 = 20$")
        left.legend(loc="lower left", bbox_to_anchor=(0, 0.08), fontsize=6.5)
        best = values["best step"]
        for number, (name, least, at) in enumerate(
            (("lower", best.lower, best.lower_step), ("upper", best.upper, best.upper_step))
        ):
            draw_theory(right, values["steps"], values["over step"][:, number], number, f"{name} bound", linestyle="-")
            right.plot(at, least, "k*", label="best step" if number == 0 else None)
        right.set(xscale="log", yscale="log", xlabel=r"step $\eta$", ylabel="bound on the error")
        right.set_title(r"$\alpha_0 = \infty$")
        right.legend(loc="best")
    return figure


ENTRY = Entry(
    id="risk-bounds",
    title="Bounds on the error after one giant step",
    sources=(sources.DANDI_FEATURES,),
    shows="The error after one giant step with the best penalty (tanh units, y = sin(z)) at several widths, between "
    "the error of a fit by the mean of the features alone and the distance of the target to all that they span; and "
    "these bounds at an infinite batch against the step.",
    claims=(
        Claim(f"upper bound at spike {SPIKE:g}", None, None, lambda found: found.values["spike"].upper),
        Claim(f"lower bound at spike {SPIKE:g}", None, None, lambda found: found.values["spike"].lower),
        Claim("least upper bound over the step", None, None, lambda found: found.values["best step"].upper),
        Claim("least lower bound over the step", None, None, lambda found: found.values["best step"].lower),
        Claim(
            "error of the best penalty, p = d, middle alpha",
            None,
            None,
            lambda found: middle(found)[1],
            lambda found: middle(found)[2],
        ),
    ),
    gather=gather,
    draw=draw,
)
