"""Rules over omega ~ N(0, M) in a few dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.numerics.gaussian_many import frame, omega_rule, smooth_omega_rule


@pytest.mark.parametrize("small", [0.3, 1e-3, 1e-6])
@pytest.mark.parametrize("r", [2, 3])
def test_omega_rule_is_a_rule(r, small):
    """Second moments of N(0, M), rotated and nearly singular; nothing is out of sight while V is large."""
    one = np.ones((r, r)) / r
    for M in (small * np.eye(r) + 0.6 * one, 0.6 * np.eye(r) - (0.6 - small) * one):
        rule = omega_rule(M, np.eye(r))
        assert rule.weight.sum() == pytest.approx(1, abs=3e-4)
        assert abs(1 - rule.weight.sum()) == pytest.approx(rule.defect, abs=1e-9)
        assert np.allclose((rule.omega * rule.weight[:, None]).T @ rule.omega, M, atol=5e-4)


@pytest.mark.parametrize("M", [np.diag([0.6, 0.3]), np.array([[0.5, 0.2], [0.2, 0.4]]), np.diag([0.7, 0.0, 0.2])])
def test_tensor_grids_and_smooth_rules_have_the_moments_of_the_gaussian(M):
    grid = frame(M)
    omega = np.stack(np.meshgrid(*grid.omega, indexing="ij"), -1).reshape(-1, len(M)) @ grid.basis.T
    smooth = smooth_omega_rule(M)
    for nodes, weight in ((omega, grid.weights), (smooth.omega, smooth.weight)):
        assert weight.sum() == pytest.approx(1, abs=1e-6)
        np.testing.assert_allclose((nodes * weight[:, None]).T @ nodes, M, atol=2e-4)
    np.testing.assert_allclose(grid.basis @ np.diag(grid.v) @ grid.basis.T, np.eye(len(M)) - M, atol=1e-12)
