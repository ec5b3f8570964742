"""How a computation ended: one enumerated sentence, with the usual cause and what to try."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """The end of a computation. `sentence` says what happened, `advice` its usual cause and what to try."""

    CONVERGED = 0
    MAX_STEPS = 1
    DIVERGED = 2
    NONFINITE = 3
    UNSTABLE = 4
    AMBIGUOUS_BRANCH = 5
    OUT_OF_DOMAIN = 6
    OUT_OF_RANGE = 7
    IMPRECISE = 8

    @property
    def sentence(self) -> str:
        return _SENTENCES[self][0]

    @property
    def advice(self) -> str:
        return _SENTENCES[self][1]

    def __str__(self) -> str:
        return self.sentence


_SENTENCES = {
    Status.CONVERGED: ("converged", ""),
    Status.MAX_STEPS: (
        "the step limit was reached before the tolerance",
        "this happens close to a threshold; move away from it, or allow more steps",
    ),
    Status.DIVERGED: (
        "the iteration diverged",
        "the damping is usually too weak; lower the step size, or start closer to the solution",
    ),
    Status.NONFINITE: (
        "a value that is not finite appeared",
        "check the target for overflow or division by zero, and the parameters for extreme values",
    ),
    Status.UNSTABLE: (
        "the fixed point found is not stable",
        "the prediction does not describe an algorithm's end; change the parameters or the start",
    ),
    Status.AMBIGUOUS_BRANCH: (
        "two branches are equally good within the numerical error",
        "this point lies on a first-order threshold; move alpha off it by more than the uncertainty",
    ),
    Status.OUT_OF_DOMAIN: (
        "the parameters lie outside the range where the theory holds",
        "the learner's documentation gives the range",
    ),
    Status.OUT_OF_RANGE: (
        "a metric lies outside the range of what it means",
        "the equations were not solved as they should be, and the number is wrong; parameters that are not extreme "
        "usually help",
    ),
    Status.IMPRECISE: (
        "the numerical error is a tenth of a metric or more",
        "this happens close to a threshold, or where labels have narrow peaks; move away from it",
    ),
}
