"""The figures of low-rank inference: found, and their numbers from theory alone."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.lab.figures.entries import rbm, tensor_phase_diagram
from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.run import reproduce

NAMES = ("rbm", "spiked-matrix", "tensor-phase-diagram")


def test_the_entries_of_low_rank_inference_are_found():
    assert set(all_entries()) >= set(NAMES)


def test_an_informed_run_ends_on_the_informative_branch():
    found = [tensor_phase_diagram.informed_overlap("rademacher", 0.05, 40, seed) for seed in range(3)]
    assert np.mean(found) > 0.95


def test_a_course_begins_at_its_overlaps():
    M, Q = rbm.course(1.5, 60, 0)
    assert M[0] == pytest.approx(0.2) and Q[0] == pytest.approx(1.0) and len(M) == rbm.STEPS[-1] + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_figures_hold(name, tmp_path):
    found = reproduce(all_entries()[name], tmp_path, quick=True, progress=False)
    assert all(verdict.expected for verdict in found.verdicts)
    assert not any("differs" in verdict.word for verdict in found.verdicts)
