"""The report on what is learned when: the steps of AMP and of gradient methods, and the samples they need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from solvable.lab.study.document import Block, Heading, Paragraph, Table
from solvable.lab.study.words import directions_in_words, exponent_in_words, ratio_in_words
from solvable.targets.leap import best_correlational_samples, leap, one_pass_samples
from solvable.targets.symmetry import symmetries

if TYPE_CHECKING:
    from solvable.lab.study.run import Study


def steps(study: Study) -> list[Block]:
    """Which directions are learned, in which order, from how many samples, and by whom."""
    rows = [
        [str(i), directions_in_words(step.directions), ratio_in_words(step.alpha), step.kind]
        for i, step in enumerate(study.diagnosis.staircase, start=1)
    ]
    blocks: list[Block] = [
        Heading(["What is learned when"]),
        Table(["step of AMP", "directions", "learned from alpha", "kind"], rows),
        Paragraph([_symmetries(study)]),
        Heading(["Who needs how many samples"]),
        Table(["learner", "samples", "because"], _learners(study)),
    ]
    return blocks


def _symmetries(study: Study) -> str:
    names = symmetries(study.model.target).names
    if study.model.target.projections == 1:
        names = [name.replace("z1", "z") for name in names]
    if not names:
        return "The target has no symmetry: every direction is determined with its sign."
    return f"The target does not change under {', '.join(names)}; overlaps are taken up to that."


def _learners(study: Study) -> list[list[str]]:
    found = study.diagnosis
    climb = leap(study.model.target)
    order = ", then ".join(f"{directions_in_words(new)} (degree {_number(cost)})" for new, cost in climb.steps)
    hard = [step for step in found.staircase if step.kind == "hard"]
    amp = exponent_in_words(found.generative_exponent) if hard else "d"
    return [
        ["one-pass SGD", one_pass_samples(climb.exponent), f"leap exponent {_number(climb.exponent)}: {order}"],
        ["best method linear in the label", best_correlational_samples(climb.exponent), "the same leap"],
        ["AMP", amp, f"generative exponent {_number(found.generative_exponent)}"],
    ]


def _number(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "beyond those searched"
