"""The figures of random features and of one giant step: that they are there, and that their quick mode holds."""

from __future__ import annotations

import pytest

from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.run import reproduce
from solvable.lab.figures.verdict import AGREES, COMPUTED
from solvable.lab.verdict import TOO_FEW

WANTED = (
    "feature-spectrum",
    "finite-support",
    "one-step-batch",
    "one-step-rates",
    "rf-double-descent",
    "risk-bounds",
    "two-step-outliers",
)


def test_the_entries_of_features_are_found():
    assert set(WANTED) <= set(all_entries())


@pytest.mark.slow
@pytest.mark.parametrize("id", WANTED)
def test_the_quick_mode_makes_figures_and_verdicts(id, tmp_path):
    """Small and few runs: none differs from theory, but for the isotropic bulk, which is known to."""
    found = reproduce(id, tmp_path, quick=True, progress=False)
    assert (tmp_path / f"{id}.png").stat().st_size > 10_000
    words = {verdict.word for verdict in found.verdicts if "isotropic" not in verdict.claim.name}
    assert words <= {AGREES, COMPUTED, TOO_FEW}
