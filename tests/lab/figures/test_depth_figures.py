"""The figures of depth: that they are there, and that their quick mode holds."""

from __future__ import annotations

import pytest

from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.run import reproduce
from solvable.lab.figures.verdict import DIFFERS

WANTED = ("depth-scenarios", "kernel-plateaus")


def test_the_entries_of_depth_are_found():
    assert set(WANTED) <= set(all_entries())


@pytest.mark.slow
@pytest.mark.parametrize("id", WANTED)
def test_the_quick_mode_makes_figures_and_verdicts(id, tmp_path):
    """The thresholds are the published ones; plateaus are far from runs this small, which is said and not judged."""
    found = reproduce(id, tmp_path, quick=True, progress=False)
    assert (tmp_path / f"{id}.png").stat().st_size > 10_000
    assert all(DIFFERS not in verdict.computation for verdict in found.verdicts)
