"""How fast random-feature ridge regression learns: the plane of exponents of penalty and number of features.

With p = n^q features and the penalty n^(1 - l) the error falls like n^-gamma(l, q). The best l at each q is a path, on
which gamma stops to grow at q*: as many features are enough. Older bounds asked for p ~ n, or p ~ sqrt(n) for a target
in the space of the kernel. Slopes of the theory at finite n are measured on that path; they approach the exponents as
slowly as the next power of n is near.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material

CAPACITY, SOURCE, NOISE = 2.0, 0.8, 0.1
WIDEST, MOST = 1.6, 1.2
BOUNDS = {0.5: r"$p \sim \sqrt{n}$", 1.0: r"$p \sim n$"}
"""The older bounds."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    model = sv.PowerLawFeatures(CAPACITY, SOURCE, NOISE)
    best = sv.optimal_exponents(model)
    ell = np.union1d(np.linspace(0, WIDEST, 161), best.ell)
    q = np.union1d(np.linspace(0, MOST, 121), best.q)
    plane = np.asarray(sv.scaling_exponents(model, ell[:, None], q).generalization_error)
    path = ell[np.argmax(plane >= plane.max(axis=0) - 1e-9, axis=0)]
    sizes = effort.pick((1e4, 1e8), (1e4, 1e8, 1e14))
    places = np.array([0.1, 0.2, 0.3, 0.4, best.q, 0.65, 0.8, 0.9, 1.1])
    on_path = np.interp(places, q, path)
    slopes = {n: np.asarray(sv.scaling_exponents(model, on_path, places, n).generalization_error) for n in sizes}
    values: dict[str, Any] = {"ell": ell, "q": q, "plane": plane, "path": path, "best": best, "places": places}
    values |= {"slopes": slopes, "on_path": on_path, "optimum": int(np.argmax(places == best.q))}
    return Material(values)


def draw(found: Material, verdicts):
    import matplotlib

    values = found.values
    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.1)
        left, right = figure.subplots(1, 2)
        best = values["best"]
        mesh = left.contourf(
            values["ell"], values["q"], values["plane"].T, levels=np.linspace(0, 0.8, 17), cmap="cividis"
        )
        figure.colorbar(mesh, ax=left, label=r"$\gamma(l, q)$", ticks=(0, 0.2, 0.4, 0.6, 0.8))
        left.plot(values["path"], values["q"], color="white", label="best penalty")
        left.plot(best.ell, best.q, "*", color="white", mec="black", ms=8, label=r"$\gamma^*$ with fewest features")
        left.set(xlabel=r"$l$, penalty $n^{1-l}$", ylabel=r"$q$, features $p = n^q$")
        legend = left.legend(loc="lower right", fontsize=6)
        legend.get_frame().set(facecolor="0.45", alpha=0.9)
        for text in legend.get_texts():
            text.set_color("white")
        draw_theory(right, values["q"], values["plane"].max(axis=0), 0, "closed form")
        for number, (n, slopes) in enumerate(values["slopes"].items(), 1):
            label = f"slope of the theory at $n = 10^{{{round(np.log10(n))}}}$"
            draw_points(right, values["places"], slopes, np.zeros(len(slopes)), number, label)
        for place, name in BOUNDS.items():
            left.axhline(place, color="white", linewidth=0.8, linestyle=":")
            left.text(0.03, place + 0.02, name, color="white", fontsize=7)
            right.axvline(place, color="0.5", linewidth=0.8, linestyle=":")
            right.text(place - 0.015, 0.02, name, fontsize=7, ha="right")
        right.axvline(best.q, color="0.2", linewidth=0.8, linestyle="--")
        right.text(best.q + 0.015, 0.12, rf"$q^* = {best.q:.3f}$", fontsize=7)
        right.set(xlabel=r"$q$", ylabel=r"$\gamma$ at the best penalty", ylim=(0, 0.85), xlim=(0, MOST))
        right.legend(
            loc="lower right", fontsize=6, bbox_to_anchor=(1.0, 0.2), frameon=True, framealpha=1, edgecolor="none"
        )
    return figure


SMOOTH = 2 * CAPACITY * SOURCE

ENTRY = Entry(
    id="rfrr-plane",
    title="Scaling laws of random-feature ridge regression",
    sources=(sources.DEFILIPPIS,),
    shows="The exponent of the error of ridge regression on random features, for eigenvalues k^-2, source 0.8 and "
    "noise, against those of penalty and number of features. Hardly more than the square root of n features are enough "
    "for the best rate; older bounds asked for p ~ n, or have sqrt(n) for smoother targets.",
    claims=(
        Claim(
            "best exponent",
            "2 alpha r/(2 alpha r + 1)",
            sources.DEFILIPPIS,
            lambda found: found.values["best"].rate,
            exact=SMOOTH / (SMOOTH + 1),
            second_hand=True,
        ),
        Claim(
            "exponent q* of the features",
            "1 - alpha/(2 alpha r + 1)",
            sources.DEFILIPPIS,
            lambda found: found.values["best"].q,
            exact=1 - CAPACITY / (SMOOTH + 1),
            second_hand=True,
        ),
        Claim("largest on the grid", None, None, lambda found: float(found.values["plane"].max())),
        Claim(
            "slope at the optimum, n = 1e8",
            None,
            None,
            lambda found: float(found.values["slopes"][1e8][found.values["optimum"]]),
        ),
    ),
    gather=gather,
    draw=draw,
)
