"""Meaning or places: what attention with positional encoding learns of labels that carry both.

Labels are (1 - omega) softmax(z z^T) plus omega times an attention matrix of the places of two tokens. The student sees
both the tokens and places of its own. Two ends compete, w = w* and w = p. Which one is lower changes at one share
omega, which one descent goes for from a random start at a smaller one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.lab import plots
from solvable.lab.figures import sources
from solvable.lab.figures.drawing import draw_points, draw_theory, new_figure
from solvable.lab.figures.entry import Claim, Effort, Entry, Material
from solvable.lab.figures.estimators import Estimate
from solvable.lab.figures.paths import paths

SHARES = (0.3, 0.7, 0.9)
RATE, START = 0.3, (0.1, 0.2)
TIMES = (20.0, 40.0, 80.0, 160.0, 320.0)


def _pair(omega: float) -> tuple[Any, Any]:
    import solvable as sv

    return sv.SequenceSingleIndex("softmax", 2, omega), sv.SequenceSGD(RATE, positions=True, start=START)


def gather(effort: Effort) -> Material:
    import solvable as sv

    places = np.linspace(0.75, 1.4, effort.pick(3, 17))
    lines = [sv.positional_transitions(sv.SequenceSingleIndex("softmax", 2, place=float(a))) for a in places]
    known = {a: sv.positional_transitions(sv.SequenceSingleIndex("softmax", 2, place=a)) for a in (1.0, 0.85)}
    d, seeds = effort.pick((100, 4), (1000, 12))
    alpha = np.array(TIMES)
    names = ["cosine", "positional_overlap"]
    fine = np.linspace(0.0, TIMES[-1], effort.pick(17, 129))
    flows = {omega: {name: sv.predict(*_pair(omega), alpha=fine)[name] for name in names} for omega in SHARES}
    ends = {omega: sv.predict(*_pair(omega), alpha=alpha) for omega in SHARES}
    runs = {omega: paths(*_pair(omega), alpha, d, seeds, names, effort) for omega in SHARES}
    values = {"places": places, "lines": lines, "known": known, "flows": flows, "ends": ends, "runs": runs, "d": d}
    return Material(values, sizes={"descent": {"d": [d], "seeds": [seeds]}})


def draw(found: Material, verdicts):
    import matplotlib

    with matplotlib.rc_context(plots.STYLE):
        figure = new_figure(2.1, 1.15)
        plane, shares = figure.subplots(1, 2)
        for number, omega in enumerate(SHARES):
            flow, runs = found.values["flows"][omega], found.values["runs"][omega]
            draw_theory(plane, flow["cosine"], flow["positional_overlap"], number, None, linestyle="-")
            m, e = (runs[name] for name in ("cosine", "positional_overlap"))
            error = [part.std(axis=1, ddof=1) / np.sqrt(part.shape[1]) for part in (m, e)]
            label = rf"$\omega = {omega:g}$, runs of $d = {found.values['d']}$"
            draw_points(plane, m.mean(1), e.mean(1), error[1], number, label, xerr=error[0], linestyle="none")
        plane.plot([], [], color="0.3", label="flow")
        arc = np.linspace(0, np.pi / 2, 60)
        plane.plot(np.cos(arc), np.sin(arc), color="0.8", linewidth=0.8)
        plane.set(xlabel="meaning, $w\\cdot w^*$", ylabel="places, $w\\cdot p$", xlim=(0, 1.05), ylim=(0, 1.05))
        plane.legend(loc="upper right")
        for number, (name, label) in enumerate(
            (("global_transition", "places are the lower end"), ("dynamical_transition", "descent goes for places"))
        ):
            draw_theory(shares, found.values["places"], [row[name] for row in found.values["lines"]], number, label)
        low, high = (
            [row[name] for row in found.values["lines"]] for name in ("dynamical_transition", "global_transition")
        )
        shares.fill_between(found.values["places"], low, high, color="0.9")
        shares.set(xlabel="place $a$ of the tokens of the label", ylabel=r"share $\omega$ of places in the label")
        shares.legend(loc="upper right")
    return figure


def _end(found: Material, omega: float, name: str) -> Estimate:
    values = found.values["runs"][omega][name][-1]
    return Estimate(
        float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), len(values) - 1, 1 / found.values["d"]
    )


def _tie(place: float, name: str, word: str) -> Claim:
    return Claim(f"{word}, a = {place:g}", None, None, lambda found: found.values["known"][place][name])


ENTRY = Entry(
    id="ssi-portrait",
    title="Meaning or places: what attention learns first",
    sources=(sources.ARNABOLDI_SEQUENCE,),
    shows="Overlaps with the meaning of tokens and with their places, under one pass of descent from the same start, "
    "for three shares of places in the label (left); and where the two are worth the same, as the end with the smaller "
    "loss and as what descent goes for from a start that knows neither (right).",
    claims=(
        _tie(1.0, "global_transition", "equal losses"),
        _tie(1.0, "dynamical_transition", "equal curvatures"),
        _tie(0.85, "global_transition", "equal losses"),
        _tie(0.85, "dynamical_transition", "equal curvatures"),
        *(
            Claim(
                f"{word} at n/d = {TIMES[-1]:g}, omega = {omega:g}",
                None,
                None,
                lambda found, omega=omega, name=name: float(found.values["ends"][omega][name][-1]),
                lambda found, omega=omega, name=name: _end(found, omega, name),
            )
            for omega, name, word in ((0.3, "cosine", "meaning"), (0.9, "positional_overlap", "places"))
        ),
    ),
    gather=gather,
    draw=draw,
)
