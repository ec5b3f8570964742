"""A sample seen twice teaches what one pass does not: a neuron with a look ahead on the same sample, and without.

With targets of information exponent 3 and 4 one pass has no force, or next to none, on a neuron that knows nothing.
Looking ahead makes the force non-linear in the label, and a transform of the label has a linear or quadratic part.
On the left an unbiased ReLU never feels a third Hermite polynomial; in the middle an erf neuron does, but late; on the
right, for an even target, the sign of the look ahead decides. There the neuron leaves a saddle: how far it is at a
given alpha depends on its random start and on the noise of the first samples, so that there are runs and no theory. We
have seen no number of these settings in print.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.curves import mean
from solvable.lab.figures.drawing import draw_runs, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate

METRIC = "cosine"


@dataclasses.dataclass(frozen=True)
class Panel:
    """A target and a neuron, seen up to an alpha, with the extrapolations that are compared; 0 is one pass."""

    target: str
    activation: str
    rate: float
    extrapolations: tuple[float, ...]
    start: Any
    last: float
    title: str

    def learner(self, extrapolation: float) -> Any:
        """One neuron on the sphere."""
        import solvable as sv

        given: dict[str, Any] = {"activation": self.activation, "loss": "correlation", "start": self.start}
        if extrapolation == 0:
            return sv.OnlineSGD(self.rate, **given)
        return sv.Extragradient(self.rate, **given, extrapolation=extrapolation)


PANELS = {
    "relu": Panel("he3(z)/sqrt(6)", "relu", 0.3, (0.5, 0.0), 0.0, 80.0, r"$y = He_3(z)/\sqrt{6}$, ReLU"),
    "erf": Panel("he3(z)/sqrt(6)", "erf", 0.5, (1.0, 0.0), 0.0, 80.0, r"$y = He_3(z)/\sqrt{6}$, erf"),
    "even": Panel("he4(z)/sqrt(24)", "erf", 0.3, (-1.0, 0.0, 1.0), "random", 240.0, r"$y = He_4(z)/\sqrt{24}$, erf"),
}
QUOTED = {"relu": (10.0, 20.0, 40.0, 60.0, 80.0), "erf": (10.0, 20.0, 40.0, 80.0), "even": (120.0, 240.0)}
"""The alpha of the claims."""


def gather(effort: Effort) -> Material:
    import solvable as sv

    d, seeds = effort.pick((500, 12), (500, 40))
    curves, sizes = {}, {}
    for name, panel in PANELS.items():
        curves[name] = sv.learning_curve(
            sv.MultiIndex(panel.target),
            [panel.learner(extrapolation) for extrapolation in panel.extrapolations],
            alpha=np.linspace(0, panel.last, 25),
            d=d,
            seeds=seeds,
            executor=effort.executor,
            progress=effort.progress,
            marks={},
        )
        sizes[name] = {"d": [d], "seeds": [seeds]}
    return Material({}, curves, sizes)


def cosine(found: Material, name: str, number: int, alpha: float) -> float:
    """The absolute cosine that theory gives."""
    return abs(float(found.curves[name].theory(METRIC).isel(learner=number).sel(alpha=alpha, method="nearest")))


def cosine_of_runs(found: Material, name: str, number: int, alpha: float) -> Estimate:
    """The mean absolute cosine of the runs."""
    runs = found.curves[name].simulation(METRIC).isel(learner=number).sel(alpha=alpha, method="nearest")
    return mean(np.abs(runs.values), found.sizes[name]["d"][0])


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.4, 0.95)
        axes = figure.subplots(1, len(PANELS), sharey=True)
        for ax, (name, panel) in zip(axes, PANELS.items(), strict=True):
            _draw_panel(ax, found, name, panel)
        axes[0].set(ylabel="absolute cosine", ylim=(-0.03, 1.03))
    return figure


def _draw_panel(ax, found: Material, name: str, panel: Panel) -> None:
    (d,) = found.sizes[name]["d"]
    theory, runs = found.curves[name].theory(METRIC), found.curves[name].simulation(METRIC)
    known = panel.start != "random"
    for number, extrapolation in enumerate(panel.extrapolations):
        label = rf"look ahead, $\rho_0 = {extrapolation:g}$" if extrapolation else "one pass"
        if known:
            line = np.abs(theory.isel(learner=number))
            draw_theory(ax, line["alpha"], line, number, label)
        values = np.abs(runs.isel(learner=number).transpose("alpha", "seed"))[2::2]
        of_runs = f"runs at $d = {d}$" if number == 0 else None
        look = {} if known else {"linestyle": ":", "linewidth": 0.8}
        draw_runs(ax, values["alpha"], values, number, of_runs if known else f"{label}, runs", markersize=3.5, **look)
    ax.set(xlabel=r"$\alpha = n/d$", title=panel.title)
    if known:
        ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.45))
    else:
        ax.legend(loc="upper left")


def _claims() -> list[Claim]:
    found = [
        Claim(
            f"{PANELS[name].activation}, He3, look ahead, cosine at alpha = {alpha:g}",
            None,
            None,
            lambda found, name=name, alpha=alpha: cosine(found, name, 0, alpha),
            lambda found, name=name, alpha=alpha: cosine_of_runs(found, name, 0, alpha),
        )
        for name in ("relu", "erf")
        for alpha in QUOTED[name]
    ]
    # Alone the start and the noise of one pass are seen, of size 1/sqrt(d): nothing for theory, zero, to agree with.
    found += [
        Claim(
            f"{PANELS[name].activation}, He3, one pass, cosine at alpha = {QUOTED[name][-1]:g}",
            None,
            None,
            None,
            lambda found, name=name: cosine_of_runs(found, name, 1, QUOTED[name][-1]),
        )
        for name in ("relu", "erf")
    ]
    words = ("look ahead by -1", "one pass", "look ahead by 1")
    return found + [
        Claim(
            f"erf, He4, {word}, cosine at alpha = {alpha:g}",
            None,
            None,
            None,
            lambda found, number=number, alpha=alpha: cosine_of_runs(found, "even", number, alpha),
        )
        for number, word in enumerate(words)
        for alpha in QUOTED["even"]
    ]


ENTRY = Entry(
    id="repetita-iuvant",
    title="A sample seen twice teaches what one pass does not",
    sources=(sources.ARNABOLDI,),
    shows="The overlap of a neuron with the direction of a target of information exponent 3 or 4, trained with single "
    "samples: in one pass it stays near zero, with a look ahead on the same sample it grows. For the even target "
    "looking back (sharpness-aware minimisation) helps an erf neuron, and looking ahead does not.",
    claims=tuple(_claims()),
    gather=gather,
    draw=draw,
)
