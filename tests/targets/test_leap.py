"""The correlational staircase: known leaps, and their independence of the coordinates."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

from solvable.targets.leap import best_correlational_samples, leap, one_pass_samples
from solvable.targets.target import Target

KNOWN = [
    ("z1 + z1*z2", [1, 1], [1, 1]),
    ("z1 + he3(z1)*z2 + he3(z2)*z3", [1, 1, 1], [1, 1, 1]),
    ("he4(z1) + sign(z1*z2*z3)", [3], [3]),
    ("z1**2 + sign(z1*z2*z3)", [2, 2], [1, 2]),
    ("sign(z1*z2)", [2], [2]),
    ("sign(z1*z2*z3)", [3], [3]),
    ("(z1 + z2)*(z1 - z2)/2", [2], [2]),
    ("sign(z1 + z2)", [1], [1]),
    ("relu(z1) + relu(z2)", [1, 2], [1, 1]),
    ("z1*z2*z3 + z1**2*z2**2", [2, 1], [2, 1]),
    ("z1**2*exp(-z1**2) + z2", [1, 4], [1, 1]),
    ("z1*z2*(z1**2 - z2**2)", [4], [2]),
    ("z1*z2 + z3*z4", [2], [4]),
]


@pytest.mark.parametrize(("text", "costs", "sizes"), KNOWN)
def test_known_staircases(text, costs, sizes):
    found = leap(Target(text))
    assert [cost for _, cost in found.steps] == costs
    assert [directions.shape[1] for directions, _ in found.steps] == sizes
    assert found.exponent == max(costs)
    assert found.information_exponent == costs[0]


def test_directions_of_the_steps():
    (first, _), (second, _) = leap(Target("z1**2 + sign(z1*z2*z3)")).steps
    np.testing.assert_allclose(first, [[1], [0], [0]], atol=1e-12)
    np.testing.assert_allclose(second, [[0, 0], [1, 0], [0, 1]], atol=1e-12)
    (first, _), (second, _) = leap(Target("relu(z1) + relu(z2)")).steps
    np.testing.assert_allclose(first, np.sqrt([[0.5], [0.5]]), atol=1e-12)
    np.testing.assert_allclose(second, np.sqrt(0.5) * np.array([[1], [-1]]), atol=1e-12)


@pytest.mark.parametrize(("text", "costs"), [("z1 + z1*z2", [1, 1]), ("z1**2 + he3(z1)*z2", [2, 1])])
def test_rotations_change_nothing(text, costs):
    typed = Target(text)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    found = leap(Target(lambda z: typed(jnp.asarray(turn).T @ z), 2))
    assert [cost for _, cost in found.steps] == costs
    np.testing.assert_allclose(np.abs(turn[:, 0] @ found.steps[0][0]), 1, atol=1e-9)


def test_content_beyond_the_degrees_looked_at():
    found = leap(Target("z1 + he(18, z2)/1e8"))
    assert [cost for _, cost in found.steps] == [1, math.inf]
    assert one_pass_samples(found.exponent) == best_correlational_samples(found.exponent) == "unknown"


def test_samples():
    assert [one_pass_samples(k) for k in (1, 2, 3, 4)] == ["d", "d log d", "d^2", "d^3"]
    assert [best_correlational_samples(k) for k in (1, 2, 3, 4)] == ["d", "d", "d^1.5", "d^2"]
