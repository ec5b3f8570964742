"""What the snapshot holds: every pair of model and learner, their regimes and their edges, through the public API only.

A case is one call of a verb; `cases` lists them in the order in which they are recorded, families together, since what
one case compiles the next ones use. Ids are stable: they are the keys of `snapshot.json`.
"""

from __future__ import annotations

import dataclasses
from fnmatch import fnmatchcase

from snapshot import run_cases, theory_cases
from snapshot.case import Case

PARTS = (
    theory_cases.index_theory,
    theory_cases.several_theory,
    theory_cases.risk_theory,
    theory_cases.matrix_theory,
    theory_cases.thresholds,
    theory_cases.diagnoses,
    run_cases.index_runs,
    run_cases.matrix_runs,
    theory_cases.optima,
)

LOOSE = {
    # id: (relative tolerance, reason)
}
"""Runs, thresholds and optima that rounding changes by more than usual."""

SLOW = """
predict/he[34]/* predict/window/* predict/logit-flipped/*
predict/*-small-noise/* predict/*-large-noise/* predict/s*-noise/* predict/abs-outliers/*
predict/product*/* predict/norm/* predict/norm-3/* predict/reduced/* predict/staircase-3/bayes
predict/polynomial*/* predict/function-2/* predict/pieces/* predict/ellipse/* predict/*ty-3/* predict/generic-3/*
predict/committee-3/*
predict/erm-huber/outliers predict/erm-huber-* predict/erm-absolute/* predict/erm-tukey*/* predict/erm-cosine/*
predict/erm-logistic*/* predict/erm-hinge*/* predict/erm-function/* predict/erm-square-lasso*/*
predict/network*/nuclear-* predict/network-narrow/bayes
predict/discrete/[bn]* predict/three-atoms/[abn]* predict/semicircle/[bn]* predict/power-law/[bn]* predict/density/[bn]*
predict/sequence*
predict/function/* thresholds/z_rademacher thresholds/z1* thresholds/sequence* diagnose/max* optimize/*
simulate/product/amp simulate/staircase-3/amp simulate/polynomial/amp simulate/erm-logistic/direct
simulate/erm-hinge/direct simulate/sequence/amp
""".split()
"""Cases (with * for any text) of more than about 1.5 s of CPU time, or that use what only such a case computes."""


def cases() -> list[Case]:
    """All cases, in the order in which they are recorded."""
    found = [case for part in PARTS for case in part()]
    names = [case.id for case in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return [_marked(case) for case in found]


def _marked(case: Case) -> Case:
    fast = not any(fnmatchcase(case.id, pattern) for pattern in SLOW)
    tolerance, reason = LOOSE.get(case.id, (case.tolerance, ""))
    return dataclasses.replace(case, fast=fast, tolerance=tolerance, reason=reason)
