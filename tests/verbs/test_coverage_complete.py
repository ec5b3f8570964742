"""Every pair with a theory has its stated uncertainty held against its true error: no new pair is forgotten."""

from __future__ import annotations

import functools

import numpy as np
from pairs import PAIRS, POINTS
from verbs import (
    test_coverage,
    test_coverage_attention,
    test_coverage_depth,
    test_coverage_descent,
    test_coverage_families,
)

from solvable.core.registry import matrix

DRAWN = 12
"""Points of each row that are looked at: rows that choose among learners name them all in so many."""


def rows():
    """Every draw of the tests of coverage."""
    yield from test_coverage.DRAWS.values()
    for module in (test_coverage_families, test_coverage_descent, test_coverage_depth, test_coverage_attention):
        yield from (draw for draw, _ in module.DRAWS.values())


@functools.cache
def covered() -> set[tuple[type, type]]:
    found = set()
    for draw in rows():
        rng = np.random.default_rng(0)
        found |= {(type(model), type(learner)) for model, learner, *_ in (draw(rng) for _ in range(DRAWN))}
    return found


def test_every_pair_with_a_theory_has_its_uncertainty_judged():
    assert len(PAIRS) + len(POINTS) > 0  # importing them loads every model
    solved = {pair for pair, (theory, _) in matrix().items() if theory}
    ours = {pair for pair in solved if all(part.__module__.startswith("solvable.") for part in pair)}
    assert {f"{model.__name__} x {learner.__name__}" for model, learner in ours - covered()} == set()
