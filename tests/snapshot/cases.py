"""What the snapshot holds: every pair of model and learner, their regimes and their edges, through the public API only.

A case is one call of a verb; `cases` lists them in the order in which they are recorded, families together, since what
one case compiles the next ones use. Ids are stable: they are the keys of `snapshot.json`.
"""

from __future__ import annotations

import dataclasses
import functools

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


@functools.cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order in which they are recorded."""
    found = [case for part in PARTS for case in part()]
    names = [case.id for case in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return tuple(_marked(case) for case in found)


def _marked(case: Case) -> Case:
    tolerance, reason = LOOSE.get(case.id, (case.tolerance, ""))
    return dataclasses.replace(case, tolerance=tolerance, reason=reason)
