"""The step of Newton's method in the modes of the map."""

from __future__ import annotations

import numpy as np

from solvable.engine.solvers.newton import State, _in_modes, next_step
from solvable.numerics.symmetric import svec


def test_a_map_known_in_one_direction_up_to_rounding_has_a_newton_step():
    """Its other eigenvalues are zero, and rounding may leave fewer eigenvectors than dimensions."""
    one = svec(np.eye(3))
    for seed in range(200):
        rng, J = np.random.default_rng(seed), np.zeros((6, 6))
        for rounding in (0.0, 1e-16, 1e-16, 1e-16):
            dx, change = one * rng.random(), one * rng.random()
            dx, change = (part + rounding * rng.standard_normal(6) for part in (dx, change))
            J = J + np.outer(change - J @ dx, dx) / (dx @ dx)
        slope = float(one @ J @ one) / 3
        if slope < 0.9:
            step, newton = next_step(State(one, one, 0.0, 0.1 * one, np.eye(6), J, one), 1.0)
            np.testing.assert_allclose(step, 0.1 * one / (1 - slope), rtol=1e-6, atol=1e-9)
            assert newton


def test_what_is_outside_of_the_modes_is_kept():
    modes, R = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([0.3, -0.7])
    parts, rest = _in_modes(modes, R)
    np.testing.assert_allclose(modes @ parts + rest, R)
    np.testing.assert_allclose(rest, [0, -0.7], atol=1e-12)
