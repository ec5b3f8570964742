"""The report on what is learned when: the steps of AMP and of gradient methods, and the samples they need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from solvable.lab.study.document import Block, Heading, Paragraph, Table
from solvable.lab.study.words import error_in_words, ratio_in_words
from solvable.models.index.diagnosis.text import directions_text

if TYPE_CHECKING:
    from solvable.models.index.diagnosis import Diagnosis

_LEARNERS = {"online SGD": "one-pass SGD", "best CSQ": "best method linear in the label"}


def steps(found: Diagnosis) -> list[Block]:
    """Which directions are learned, in which order, from how many samples, and by whom."""
    rows = [
        [str(i), directions_text(step.directions), ratio_in_words(step.alpha), error_in_words(step.error), step.kind]
        for i, step in enumerate(found.staircase, start=1)
    ]
    return [
        Heading(["What is learned when"]),
        Table(["step of AMP", "directions", "learned from alpha", "numerical error", "kind"], rows),
        Paragraph([_symmetries(found)]),
        Heading(["Who needs how many samples"]),
        Table(["learner", "samples", "because"], _learners(found)),
    ]


def _symmetries(found: Diagnosis) -> str:
    if not found.symmetries:
        return "The target has no symmetry: every direction is determined with its sign."
    return f"The target does not change under {'; '.join(found.symmetries)}. Overlaps are taken up to that."


def _learners(found: Diagnosis) -> list[list[str]]:
    order = ", then ".join(f"{directions_text(s.directions)} (leap {_number(s.leap)})" for s in found.csq_staircase)
    reasons = {"online SGD": f"it learns {order}", "best CSQ": "the same leaps"}
    amp = f"generative exponent {_number(found.generative_exponent)}"
    return [
        [_LEARNERS.get(name, name), samples, reasons.get(name, amp)] for name, samples in found.sample_exponents.items()
    ]


def _number(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "beyond the degrees searched"
