"""Relevant directions and adapted coordinates, for formulas and for functions known by their values."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from solvable.targets.adapted import adapted_basis, relevant_directions
from solvable.targets.axis_breaks import axis_breaks
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

HALF = np.sqrt(0.5)
DIAGONALS = np.array([[HALF, HALF], [HALF, -HALF]])
RELEVANT = [
    ("sign(z1 + z2)", [[HALF], [HALF]]),
    ("z1**2 + 2*z1*z2 + z2**2", [[HALF], [HALF]]),
    ("z1*z2", np.eye(2)),
    ("sign(z1)*sign(z1*z2)", [[0], [1]]),
    ("sign(z2) + z4**2", np.eye(4)[:, [1, 3]]),
    ("tanh(z1 + 2*z2) + sign(z3)", [[1 / np.sqrt(5), 0], [2 / np.sqrt(5), 0], [0, 1]]),
    ("10*z1**3 + 0.01*sign(z2)", np.eye(2)),
    ("where(z1 > 3, z2, z1)", np.eye(2)),
    ("sign(z1)**2 + 0*z2", np.zeros((2, 0))),
    ("z1 + 1e-4*z2", np.array([[1], [1e-4]]) / np.sqrt(1 + 1e-8)),
]
ADAPTED = [
    ("sign(z1 + z2)*sign(z1 - z2)", DIAGONALS),
    ("max(z1, z2)", DIAGONALS),
    ("relu(z1 + z2) + relu(z1 - z2) + relu(z1)", DIAGONALS),
    ("sign(z1*z2)", np.eye(2)),
    ("sign(max(z1, z2))", np.eye(2)),
    ("sign(z1 + z2**2 - 1)", np.eye(2)),
    ("sign(z1) + sign(z2) + sign(z1 + z2)", np.eye(2)),
    ("z1**2 + sign(z1*z2*z3)", np.eye(3)),
    ("sign(z1 - z2)*sign(z3 - z4)", HALF * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])),
]


def values_only(target):
    return Target(lambda z: target(z), target.projections)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("text", "expected"), RELEVANT)
def test_relevant_directions(text, expected):
    for target in (Target(text), values_only(Target(text))):
        np.testing.assert_allclose(relevant_directions(target), expected, atol=1e-12)


@pytest.mark.parametrize(("text", "expected"), ADAPTED)
def test_adapted_basis(text, expected):
    np.testing.assert_allclose(adapted_basis(Target(text)), expected, atol=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("text", "expected"),
    [*ADAPTED[2:4], *(pytest.param(*case, marks=pytest.mark.slow) for case in ADAPTED[:2])],
)
def test_adapted_basis_of_values(text, expected):
    np.testing.assert_allclose(adapted_basis(values_only(Target(text))), expected, atol=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "text", [pytest.param("sign(z1*z2)", marks=pytest.mark.slow), "tanh(z1)", "relu(z1) - relu(z2)"]
)
def test_a_rotated_function_is_turned_back(text):
    typed = Target(text)
    r = typed.projections
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0][:, :r]
    hidden = Target(lambda z: typed(jnp.asarray(turn).T @ z), 3)
    relevant, adapted = relevant_directions(hidden), adapted_basis(hidden)
    np.testing.assert_allclose(relevant @ relevant.T, turn @ turn.T, atol=1e-10)
    # Up to order and sign the columns are those of the rotation.
    np.testing.assert_allclose(
        np.sort(np.abs(turn.T @ adapted), axis=0), np.eye(r)[:, -1:] + np.zeros((r, r)), atol=1e-8
    )


@pytest.mark.parametrize("text", ["sign(z1 + z2)*sign(z1 - z2)", "z1*z2 - he3(2*(z1 - z2)/3 + 1)", "max(z1, z2)**2"])
def test_rotate_keeps_the_values(text):
    for target in (Target(text), values_only(Target(text))):
        u = np.random.default_rng(0).standard_normal((50, 2))
        np.testing.assert_allclose(rotate(target, DIAGONALS).numpy(u), target.numpy(u @ DIAGONALS.T), rtol=1e-12)


def test_rotated_planes_are_axis_breaks():
    rotated = rotate(Target("sign(z1 + z2)*sign(z1 - z2 - 1)"), DIAGONALS)
    first, second = axis_breaks(rotated)
    np.testing.assert_allclose(first, [0])
    np.testing.assert_allclose(second, [HALF], rtol=1e-14)
    assert rotate(Target("sign(z1 + z2)"), DIAGONALS[:, :1]).projections == 1
