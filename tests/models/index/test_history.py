"""Predictions are pure functions: no bit of them depends on what the process has computed before."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import solvable as sv
from solvable.numerics.blas import single_thread

PARITY, NOISY_PARITY = ("sign(z1*z2)", 0.0, "gaussian"), ("sign(z1*z2)", 0.1, "gaussian")
STAIRCASE, GENERIC = ("z1**2 + sign(z1*z2*z3)", 0.0, "gaussian"), ("z1 + sign(z1)*sign(z2)", 0.0, "gaussian")
ABSOLUTE, SPARSE = ("abs(z)", 0.0, "gaussian"), ("abs(z)", 0.0, "gauss-bernoulli:0.3")
SIGN, SATURATING = ("sign(z)", 0.0, "gaussian"), ("tanh(z)", 0.1, "gaussian")

LEARNERS = [sv.BayesOptimal(), sv.AMP()]
# Asked in this order here and in the opposite one in a fresh process: there the last one of a model is asked first.
QUESTIONS = [
    *((PARITY, what) for what in (2.6, [2.6, 3.0, 4.0], 4.0, "thresholds", "steps", 3.0)),
    *((NOISY_PARITY, what) for what in (2.9, 3.5)),
    *((STAIRCASE, what) for what in (1.2, 1.45, [1.2, 3.0], "steps", 3.0)),
    *((SPARSE, what) for what in (0.4, 0.7)),
    *((ABSOLUTE, what) for what in (0.7, "thresholds", 1.1)),
]
MORE_QUESTIONS = [
    *((GENERIC, what) for what in (0.8, 3.0, 1.3)),
    *((SIGN, what) for what in (0.8, 2.0)),
    *((SATURATING, what) for what in (0.8, "thresholds", 2.0)),
]


def answer(model: tuple[str, float, str], what: object, learners: list) -> str:
    """A digest of all bits of the answer: a prediction at one alpha or a grid, thresholds, or the steps learned."""
    target, noise, prior = model
    asked = sv.MultiIndex(target, noise=noise, prior=prior)
    found: list = []
    if what == "thresholds":
        found = [np.array(list(sv.thresholds(asked).values()))]
    elif what == "steps":
        found = [value for step in asked.solver().steps for value in (step.directions, step.alpha, step.error)]
    else:
        points = {repr(learner): sv.predict(asked, learner, throw=False, alpha=np.array(what)) for learner in learners}
        for name in sorted(points):
            point = points[name]
            found += [point.status, point.residual, point.iterations]
            for group in (point.metrics, point.order_parameters, point.uncertainty):
                found += [group[name] for name in sorted(group)]
    return hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in found)).hexdigest()


def answers(questions: list, learners: list) -> dict[str, str]:
    """The answers to these questions, asked in this order."""
    with single_thread():
        return {json.dumps([model, what]): answer(model, what, learners) for model, what in questions}


def elsewhere(questions: list) -> dict[str, str]:
    """The answers of a fresh process, which asks the learners in the opposite order too."""
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(questions)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},  # which may choose the kernels of linear algebra
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "questions", [pytest.param(QUESTIONS, marks=pytest.mark.slow), pytest.param(MORE_QUESTIONS, marks=pytest.mark.slow)]
)
def test_no_bit_depends_on_what_was_asked_before(questions):
    here, there = answers(questions, LEARNERS), elsewhere(questions[::-1])
    assert here.keys() == there.keys()
    assert [question for question in here if here[question] != there[question]] == []


if __name__ == "__main__":
    print(json.dumps(answers(json.loads(sys.argv[1]), LEARNERS[::-1])))
