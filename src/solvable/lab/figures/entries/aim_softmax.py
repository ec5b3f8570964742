"""One attention layer of rank d/2 learned from its softmax attention matrices, for two and three tokens.

Drawn over alpha (T^2 + T - 2), the number of linear measurements of a label times samples over d^2/2, all numbers of
tokens share one curve. Descent from random weights ends about like a sample of the posterior, with twice the error,
and the average of several has less. That is so at beta = 1: what labels tell does not depend on the inverse temperature
of the softmax, but where descent ends does, on the same tokens and weights.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import (
    Simulation,
    gather_curves,
    gather_runs,
    largest,
    mean,
    mean_at,
    metric_of_run,
    vanishing,
)
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Runs

RHO = 0.5
METRIC = "estimation_error"
RECOVERY = "strong_recovery"
PUBLISHED = (0.1000047, "0.3922")
"""alpha and the error of two tokens, in the published data."""
AVERAGED, STEEP = 8, 3.0
"""How many descents are averaged, and another inverse temperature."""
CHECKED = 0.5 / 4
"""The alpha at which descents are compared with theory."""


def count(tokens: int) -> int:
    """Twice the measurements of a label."""
    return tokens**2 + tokens - 2


def gather(effort: Effort) -> Material:
    import solvable as sv

    two, three = sv.AttentionIndexed(RHO, 2), sv.AttentionIndexed(RHO, 3)
    ratios = np.array(effort.pick((0.3, 0.4, 0.5, 0.6, 0.7), (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)))
    # The zero of the error is read off the last of these.
    more_ratios = np.sort(np.append(ratios, effort.pick((), (0.55, 0.65))))
    steps = {"max_steps": effort.pick(500, 1500), "tolerance": 1e-9}
    one, several = sv.GradientDescent(**steps), sv.GradientDescent(runs=AVERAGED, **steps)
    size, seeds = effort.pick((24,), (60,)), effort.pick((3,), (24,))
    small, few = effort.pick((16,), (40,)), effort.pick((3,), (12,))
    places = np.array(effort.pick((0.3, 0.5), (0.3, 0.5))) / count(2)
    runs = [
        Simulation("amp", [sv.AMP()], more_ratios / count(2), size, seeds),
        Simulation("descent", [one, several], places, small, few),
    ]
    alpha = np.linspace(0.005, 0.2, effort.pick(14, 60))
    found = gather_curves(two, [sv.BayesOptimal()], alpha, runs, effort, [RECOVERY])
    more = gather_runs(three, Simulation("three", [sv.AMP()], ratios / count(3), size, seeds), effort, {})
    more |= gather_runs(
        sv.AttentionIndexed(RHO, 2, beta=STEEP), Simulation("steep", [one], places, small, few), effort, {}
    )
    at = float(sv.predict(two, sv.BayesOptimal(), alpha=PUBLISHED[0])[METRIC])
    best = float(sv.predict(two, sv.BayesOptimal(), alpha=CHECKED)[METRIC])
    d, many = effort.pick((30, 4), (150, 32))
    checked = [metric_of_run(two, sv.AMP(), PUBLISHED[0], d, seed, METRIC) for seed in range(many)]
    return dataclasses.replace(
        found,
        curves={**found.curves, **more},
        values={**found.values, "at": at, "checked": checked, "d": d, "best": best},
        sizes={
            **found.sizes,
            "three": {"d": list(size), "seeds": list(seeds)},
            "steep": {"d": list(small), "seeds": list(few)},
            "checked": {"d": [d], "seeds": [many]},
        },
    )


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(height=1.6)
        ax = figure.add_subplot()
        theory = found.curves["theory"].theory(METRIC).isel(learner=0)
        x = count(2) * theory["alpha"]
        draw_theory(ax, x, theory, 0, "Bayes optimal")
        draw_theory(ax, x, 2 * theory, 1, "twice that: a sample of the posterior")
        draw_theory(ax, x, (1 + 1 / AVERAGED) * theory, 2, f"{AVERAGED + 1}/{AVERAGED} of it: the mean of {AVERAGED}")
        for number, (name, learner, tokens, label) in enumerate(
            (
                ("amp", 0, 2, "message passing, $T = 2$"),
                ("descent", 0, 2, r"descent, $T = 2$, $\beta = 1$"),
                ("descent", 1, 2, f"average of {AVERAGED} descents"),
                ("three", 0, 3, "message passing, $T = 3$"),
                ("steep", 0, 2, rf"descent, $T = 2$, $\beta = {STEEP:g}$"),
            )
        ):
            curve = largest(found, name)
            values = curve.simulation(METRIC).isel(learner=learner).transpose("alpha", "seed")
            draw_runs(ax, count(tokens) * values["alpha"], values, number, f"{label}, $d = {curve.sizes[0]}$")
        plots.mark_thresholds(ax, {"exact recovery": count(2) * found.values[RECOVERY]}, 0, 0.8)
        ax.set_xlabel(r"$\alpha\,(T^2 + T - 2)$, with $\alpha = n/d^2$")
        ax.set_ylabel("estimation error")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return figure


def _ratio(name: str, learner: int):
    """The error of descents over the Bayes-optimal one."""

    def ratio(found: Material):
        runs = mean_at(found, name, METRIC, CHECKED, learner)
        best = found.values["best"]
        return dataclasses.replace(runs, value=runs.value / best, error=runs.error / best)

    return ratio


def _recovery(found: Material):
    curve = largest(found, "amp")
    values = curve.simulation(METRIC).isel(learner=0).transpose("alpha", "seed").values
    return vanishing(Runs(curve.sizes[0], curve.dataset["alpha"].values, values), low=0.02, high=0.3)


ENTRY = Entry(
    id="aim-softmax",
    title="An attention layer of rank d/2, learned from its attention matrices",
    sources=(sources.BONCORAGLIO,),
    shows="The error of the learned layer against the number of linear measurements that its softmax labels are: "
    "Bayes-optimal, message passing for two and three tokens, and descent on a layer of the same rank, alone and "
    "averaged, with two inverse temperatures.",
    claims=(
        Claim(
            "exact recovery",
            "(2 rho - rho^2)/4",
            sources.BONCORAGLIO,
            lambda found: found.values[RECOVERY],
            _recovery,
            exact=(2 * RHO - RHO**2) / count(2),
        ),
        Claim(
            "error at alpha = 0.1",
            PUBLISHED[1],
            sources.BONCORAGLIO,
            lambda found: found.values["at"],
            lambda found: mean(found.values["checked"], found.values["d"]),
            second_hand=True,
        ),
        *(
            Claim(f"{words} over the Bayes-optimal error at alpha = {CHECKED}", None, None, None, _ratio(name, learner))
            for words, name, learner in (
                ("descent", "descent", 0),
                (f"average of {AVERAGED} descents", "descent", 1),
                (f"descent with beta = {STEEP:g}", "steep", 0),
            )
        ),
    ),
    gather=gather,
    draw=draw,
)
