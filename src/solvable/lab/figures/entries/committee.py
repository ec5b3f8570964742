"""A committee of two, y = sign(z1) + sign(z2): first only z1 + z2 is learned, then the two members come apart.

How far they are apart is measured by the overlap along z1 - z2, (M_11 + M_22 - M_12 - M_21) / 2 with M the overlap
matrix: zero as long as the two estimates are the same. No threshold is read off the runs: extrapolating this overlap
from d = 150 and 300 did not determine one.
"""

from __future__ import annotations

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import Simulation, gather_curves, largest
from solvable.lab.figures.drawing import new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material


def gather(effort: Effort) -> Material:
    import solvable as sv

    ratios = effort.pick((0.6, 1.4, 2.6, 3.3, 4.2), (0.6, 1.2, 1.8, *np.arange(2.4, 3.9, 0.2).round(2), 4.5))
    amp = Simulation("amp", [sv.AMP()], ratios, effort.pick((300,), (600,)), effort.pick((4,), (8,)))
    alpha = np.concatenate([np.linspace(0.1, 2.05, effort.pick(8, 20)), np.linspace(2.06, 5.0, effort.pick(16, 40))])
    return gather_curves(sv.MultiIndex("sign(z1) + sign(z2)"), [sv.AMP()], alpha, [amp], effort)


def apart(overlap):
    """How far the two members have come apart."""
    entry = {(i, j): overlap.sel(row=i, column=j, drop=True) for i in (1, 2) for j in (1, 2)}
    return (entry[1, 1] + entry[2, 2] - entry[1, 2] - entry[2, 1]) / 2


def together(overlap):
    """The overlap along z1 + z2."""
    entry = {(i, j): overlap.sel(row=i, column=j, drop=True) for i in (1, 2) for j in (1, 2)}
    return (entry[1, 1] + entry[2, 2] + entry[1, 2] + entry[2, 1]) / 2


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure()
        ax = figure.add_subplot()
        exact, runs = found.curves["theory"], largest(found, "amp")
        for number, (name, part) in enumerate({"z_1 + z_2": together, "z_1 - z_2": apart}.items()):
            line = part(exact.theory("overlap").isel(learner=0))
            color, dash, marker = plots.COLORS[number], plots.DASHES[number], plots.MARKERS[number]
            ax.plot(line["alpha"], line, dash, color=color, label=f"along ${name}$, theory")
            values = part(runs.simulation("overlap").isel(learner=0))
            error = values.std("seed", ddof=1) / np.sqrt(values.sizes["seed"])
            label = f"along ${name}$, $d = {max(found.sizes['amp']['d'])}$"
            look = {"fmt": marker, "color": color, "mfc": "white", "mew": 0.9, "elinewidth": 0.9}
            ax.errorbar(values["alpha"], values.mean("seed"), error, label=label, **look)
        low, high = float(exact.dataset["alpha"].min()), float(exact.dataset["alpha"].max())
        plots.mark_thresholds(ax, {"specialization": found.values["specialization"]}, low, high)
        ax.set_xlabel(r"$\alpha = n/d$")
        ax.set_ylabel("overlap")
        ax.legend()
    return figure


ENTRY = Entry(
    id="committee",
    title="Specialisation of a committee of two, y = sign(z1) + sign(z2)",
    sources=(sources.AUBIN,),
    shows="The overlap of message passing along z1 + z2, learned from any number of samples, and along z1 - z2, which "
    "is zero until the two members of the committee come apart.",
    claims=(
        Claim(
            "specialisation",
            "2.04",
            sources.AUBIN,
            lambda found: found.values["specialization"],
            second_hand=True,
            known_wrong="Two independent codes of ours agree on 2.0524: the stability of the state evolution, and the "
            "linearised equations around the unspecialised state by direct quadrature (2.05238, error 2e-5).",
        ),
    ),
    gather=gather,
    draw=draw,
)
