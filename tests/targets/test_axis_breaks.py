"""Planes of kinks and jumps: exact for formulas, found from values for callables, and the two agree."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.targets.axis_breaks import axis_breaks
from solvable.targets.target import Target

PLANES = [
    ("sign(z1*z2)", [[0], [0]]),
    ("where(abs(z1) < 1, z2, -z2)", [[-1, 1], []]),
    ("z1*z2", [[], []]),
    pytest.param("sign(z1 + z2)", [[], []], marks=pytest.mark.slow),
    ("sign(z1 + z2**2 - 1)", [[], []]),
    ("z1**2 + sign(z1*z2*z3)", [[0], [0], [0]]),
    pytest.param("relu(z1 - 0.5) + relu(z2)", [[0.5], [0]], marks=pytest.mark.slow),
    ("abs(z1 - 1/3)*z2 + 1000", [[1 / 3], []]),
    ("tanh(5*z1)*z2", [[], []]),
    pytest.param("sign(z1*z2 - z1*z3)", [[0], [], []], marks=pytest.mark.slow),
    ("sign(z2**2 - 2)*z1", [[], [-np.sqrt(2), np.sqrt(2)]]),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("text", "expected"), PLANES)
def test_formula_and_callable(text, expected):
    typed = Target(text)
    numeric = axis_breaks(Target(lambda z: typed(z), typed.projections))
    for axis, locations in enumerate(axis_breaks(typed)):
        assert locations.shape == np.shape(expected[axis])
        np.testing.assert_allclose(locations, expected[axis], rtol=4e-16, atol=1e-300)
        assert numeric[axis].shape == locations.shape
        np.testing.assert_allclose(numeric[axis], locations, atol=1e-9)


def test_planes_that_are_broken_in_part():
    for axis in axis_breaks(Target("sign(max(z1, z2, z3))")):
        np.testing.assert_array_equal(axis, [0])
    first, second = axis_breaks(Target("where(z2 > 1, abs(z1), z1)"))
    np.testing.assert_array_equal(first, [0])
    np.testing.assert_array_equal(second, [1])


@pytest.mark.parametrize(
    "text", ["abs(z1**2)*z2", "sign(z1)**2*z2", "sqrt(z1**2 + z2**2)", "abs(abs(z1)*exp(z2)) - abs(z1)*exp(z2)"]
)
def test_smooth_planes_are_left_out(text):
    assert all(locations.size == 0 for locations in axis_breaks(Target(text)))


def test_poles_and_logarithms():
    assert [list(c) for c in axis_breaks(Target("1/(z1 - 2) + log(abs(z2))"))] == [[2], [0]]
    assert [list(c) for c in axis_breaks(Target("where(z1 > 0, log(z1), 0)*z2"))] == [[0], []]


def test_result_is_kept_and_read_only():
    target = Target("sign(z1*z2)")
    assert axis_breaks(target) is axis_breaks(Target("sign(z1*z2)"))
    with pytest.raises(ValueError, match="read-only"):
        axis_breaks(target)[0][0] = 1.0
