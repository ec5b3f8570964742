"""The part of a study's report that compares theory with simulation: verdicts, a table, and what they rest on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from solvable.lab.curve import Agreement
from solvable.lab.curve.entries import entry_groups, group_mean
from solvable.lab.study.document import Block, Heading, Paragraph, Table
from solvable.lab.study.places import AWAY, distance, visible
from solvable.lab.verdict import AGREES, DIFFERS, LEVEL, TOO_FEW, WRONG, read

if TYPE_CHECKING:
    from solvable.lab.curve import Curve
    from solvable.lab.study.findings import Study

_RULE = (
    f"Agreement is said only where a theory that is wrong by {100 * WRONG:.0f} % would differ, at a level of "
    f"{100 * LEVEL:.0f} % for all points together."
)


def comparison(study: Study) -> list[Block]:
    """What the runs say of theory, in words and point by point."""
    heading = Heading(["Theory against simulation"])
    verdict = [judged(found) for found in study.agreement]
    if not verdict:
        verdict = ["Two runs at a point are needed to judge the agreement."]
    notes = " ".join(filter(None, [_RULE, _places(study), _aside(study)]))
    return [heading, *(Paragraph([one]) for one in verdict), _table(study.simulated), Paragraph([notes])]


def judged(found: Agreement) -> str:
    """The verdict on a metric in a sentence or two."""
    metric, _, entry = found.metric.rpartition("_")
    metric, entry = (metric, entry) if entry.isdigit() else (found.metric, "")
    metric = metric.replace("_", " ")
    at = ", ".join([f"alpha = {found.at['alpha']:g}", *([f"direction {entry}"] if entry else [])])
    where, points = f"{at}: {found.numbers}", f"{found.points} points compared"
    agrees, few = found.words[AGREES], found.words[TOO_FEW]
    if found.word == AGREES:
        allowed = f"whatever the runs leave possible is within {100 * found.within:.1f} % of it"
        everywhere = f"all {points}" if found.points > 1 else "the one point compared"
        return f"The {metric} agrees with theory at {everywhere}: {allowed}. They leave most room at {where}."
    if found.word == DIFFERS:
        return f"The {metric} DIFFERS from theory at {found.words[DIFFERS]} of {points}, most at {where}."
    if agrees:
        said = f"agrees with theory at {agrees} of {points} and differs at none; there are {TOO_FEW} at {few}"
    else:
        said = f"differs from theory at none of {points}, but there are {TOO_FEW} that it agrees"
    return f"The {metric} {said}, as at {where}; {found.reason}."


def _places(study: Study) -> str:
    """How near to thresholds the runs were made."""
    assert study.simulated is not None
    near = distance(study.simulated.dataset["alpha"].values, visible(study.thresholds))
    if math.isinf(near):
        return ""
    if near >= 0.95 * AWAY:
        return f"Points are at least {100 * near:.0f} % away from AMP's thresholds, where a finite dimension blurs all."
    return f"Some points are within {100 * near:.0f} % of a threshold: a finite dimension blurs every transition."


def _aside(study: Study) -> str:
    """What became of the runs that did not settle, and of those that were not made."""
    assert study.simulated is not None
    runs = study.simulated.simulation("generalization_error")
    made, settled = int(runs.notnull().sum()), int((runs.notnull() & study.simulated.settled).sum())
    if made == settled:
        return f"All {made} runs settled."
    return (
        f"{made - settled} of {made} runs did not settle: they did not stop moving, or their own estimates disagree. "
        "They are set aside and drawn as crosses; where they change a mean, that of all runs is in parentheses."
    )


def _table(curve: Curve) -> Table:
    """Theory and simulation of AMP, point by point."""
    columns, cells = ["alpha"], [[f"{alpha:g}" for alpha in curve.dataset["alpha"].values]]
    groups = entry_groups(curve, "overlap") if curve.has_entries("overlap") else [()]
    parts = [("error", curve.theory("generalization_error"), curve.simulation("generalization_error"))]
    for group in reversed(groups):
        theory, runs = (
            group_mean(part, group) if group else part
            for part in (curve.theory("overlap"), curve.simulation("overlap"))
        )
        parts.insert(0, (f"overlap {', '.join(map(str, group))}".strip(), theory, runs))
    settled = curve.settled.isel(learner=0).transpose("alpha", "seed").values
    for name, theory, runs in parts:
        values = runs.isel(learner=0).transpose("alpha", "seed").values
        columns += [f"{name}, theory", f"{name}, simulation"]
        cells.append([f"{value:.4f}" for value in theory.isel(learner=0).values])
        cells.append([_measured(row, kept) for row, kept in zip(values, settled, strict=True)])
    made = np.isfinite(curve.simulation("generalization_error").isel(learner=0).transpose("alpha", "seed").values)
    columns.append("runs settled")
    cells.append([f"{int((row & kept).sum())} of {int(row.sum())}" for row, kept in zip(made, settled, strict=True)])
    return Table(columns, list(zip(*cells, strict=True)))


def _measured(runs: np.ndarray, settled: np.ndarray) -> str:
    """What the settled runs of a point say, and in parentheses all of them if that is something else."""
    found = read(runs, settled)
    if math.isnan(found.value):
        return f"({found.every:.4f})" if math.isfinite(found.every) else ""
    text = f"{found.value:.4f}" if math.isnan(found.error) else f"{found.value:.4f} ± {found.error:.4f}"
    return f"{text} ({found.every:.4f})" if found.aside and f"{found.every:.4f}" != f"{found.value:.4f}" else text
