"""An attention layer of small rank: from how many samples over its rank it begins to be seen.

As rho falls, with alpha/rho held, the error of softmax labels tends to x (2 - x), x = (T^2 + T - 2) alpha/rho between 1
and 2: nothing is seen below, all above. Hardmax labels begin later, and never tell all.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

RHO = 0.002
METRIC = "estimation_error"
NARROW = "narrow_weak_recovery"
TOKENS = (2, 3, 4)
OUTPUTS = ("softmax", "hardmax")


def gather(effort: Effort) -> Material:
    import solvable as sv

    values = {}
    for output in OUTPUTS:
        for tokens in TOKENS:
            model = sv.AttentionIndexed(RHO, tokens, output)
            threshold = sv.thresholds(model)[NARROW] / RHO
            ratio = np.linspace(0.0, 3.0 if output == "hardmax" else 2.2, effort.pick(16, 67)) * threshold
            found = sv.predict(model, sv.BayesOptimal(), alpha=RHO * ratio)
            values[f"{output} {tokens}"] = {"threshold": threshold, "ratio": ratio, "error": found[METRIC]}
    middle = sv.predict(sv.AttentionIndexed(RHO, 2), sv.BayesOptimal(), alpha=RHO * 1.5 / 4)
    return Material(curves={}, values={**values, "middle": float(middle[METRIC])}, sizes={})


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        for number, tokens in enumerate(TOKENS):
            for output, line in zip(OUTPUTS, ("-", "--"), strict=True):
                curve = found.values[f"{output} {tokens}"]
                draw_theory(ax, curve["ratio"], curve["error"], number, f"{output}, $T = {tokens}$", linestyle=line)
                ax.plot(
                    curve["threshold"],
                    0.02,
                    "^",
                    color=plots.COLORS[number],
                    fillstyle="full" if line == "-" else "none",
                )
        ax.set_xscale("log")
        ax.set_xlim(0.02, 1.5)
        ax.set_xlabel(r"$\alpha/\rho$, with $\alpha = n/d^2$; triangles: thresholds as $\rho \to 0$")
        ax.set_ylabel(rf"estimation error, $\rho = {RHO}$")
        ax.legend()
    return figure


def _threshold(output: str, tokens: int):
    return lambda found: float(found.values[f"{output} {tokens}"]["threshold"])


ENTRY = Entry(
    id="aim-narrow",
    title="An attention layer of small rank",
    sources=(sources.BONCORAGLIO,),
    shows="The Bayes-optimal error against samples over the rank, for softmax and hardmax labels of two, three and "
    "four tokens, and where a layer of vanishing rank begins to be seen.",
    claims=(
        *(
            Claim(
                f"softmax, T = {tokens}",
                "1/(T^2 + T - 2)",
                sources.BONCORAGLIO,
                _threshold("softmax", tokens),
                exact=1 / (tokens**2 + tokens - 2),
                second_hand=True,
            )
            for tokens in TOKENS
        ),
        Claim(
            "hardmax, T = 2",
            "0.5635",
            sources.BONCORAGLIO,
            _threshold("hardmax", 2),
            known_wrong="The published code has the density of two correlated Gaussians where the slope of their "
            "distribution function belongs; with the slope the threshold is closed, 0.403411.",
            second_hand=True,
        ),
        *(Claim(f"hardmax, T = {tokens}", None, None, _threshold("hardmax", tokens)) for tokens in (3, 4)),
        Claim(
            "softmax error at alpha = 1.5 rho/4; 0.75 as rho falls to 0",
            None,
            None,
            lambda found: found.values["middle"],
        ),
    ),
    gather=gather,
    draw=draw,
)
