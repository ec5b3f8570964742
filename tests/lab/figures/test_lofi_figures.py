"""The figures of hierarchical targets and of selected features: they are there, and their quick mode holds."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.lab.figures.digits import digits, kernel_features, ridge_error, split
from solvable.lab.figures.registry import all_entries
from solvable.lab.figures.run import reproduce
from solvable.lab.figures.verdict import AGREES, COMPUTED, SIMULATED
from solvable.lab.verdict import TOO_FEW

WANTED = ("hierarchical-scaling", "lofi-digits", "lofi-filters")


def test_the_entries_are_found():
    assert set(WANTED) <= set(all_entries())


def test_kernel_features_have_the_products_of_the_kernel():
    """Of many random neurons, in one layer and in two."""
    X, y = digits("odd or even")
    train, test = split(len(y), 60, 0)
    rng = np.random.default_rng(0)
    one, two = kernel_features(X[train], X[test], 1), kernel_features(X[train], X[test], 2)
    W = rng.standard_normal((64, 100_000)) / np.sqrt(np.mean(np.sum(X[train] ** 2, axis=1)))
    Z = np.maximum(X[train] @ W, 0) / np.sqrt(100_000)
    np.testing.assert_allclose(one[0] @ one[0].T, Z @ Z.T, atol=0.02)
    assert ridge_error(*(part for part in (two[0], y[train], two[1], y[test]))) < ridge_error(
        X[train], y[train], X[test], y[test]
    )


@pytest.mark.slow
@pytest.mark.parametrize("id", WANTED)
def test_the_quick_mode_makes_figures_and_verdicts(id, tmp_path):
    found = reproduce(id, tmp_path, quick=True, progress=False)
    assert (tmp_path / f"{id}.png").stat().st_size > 10_000
    assert {verdict.word for verdict in found.verdicts} <= {AGREES, COMPUTED, SIMULATED, TOO_FEW}
