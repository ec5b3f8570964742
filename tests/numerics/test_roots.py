"""Searches in one variable: accuracy, and speed in evaluations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.numerics.roots import (
    crossing,
    every_root,
    first_beyond,
    golden_section,
    halving,
    illinois,
    logarithmic,
    regula_falsi,
)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def counted(function):
    """The function, and a list that grows by the number of entries of each call."""
    sizes = []

    def wrapped(x, *args):
        sizes.append(np.size(x))
        return function(x, *args)

    return wrapped, sizes


def test_regula_falsi_finds_many_roots_and_asks_only_for_those_not_done():
    level = np.concatenate([np.linspace(0.1, 20.0, 50), [1e-3]])
    function, sizes = counted(lambda x, level: x**3 - level)
    found = regula_falsi(function, 0.0, np.full(51, 3.0), level)
    np.testing.assert_allclose(found.x, np.cbrt(level), rtol=1e-9)
    assert np.all(np.abs(found.value) < 1e-12)
    np.testing.assert_allclose(found.value, found.x**3 - level, atol=1e-15)
    assert np.all((found.low <= found.x) & (found.x <= found.high))
    assert sizes[:3] == [51, 51, 51] and sizes[-1] < 5 and len(sizes) < 40
    np.testing.assert_array_equal(illinois(function, 0.0, np.full(51, 3.0), level), found.x)
    # Without arguments the function sees all entries each time, and all are as good.
    np.testing.assert_allclose(illinois(lambda x: x**3 - level, 0 * level, 3 + 0 * level), found.x, rtol=1e-9)


def test_regula_falsi_needs_a_handful_of_calls_for_a_function_that_is_nearly_linear():
    function, sizes = counted(lambda x: np.expm1(0.01 * x) - 0.003)
    assert regula_falsi(function, np.zeros(1), np.ones(1)).x == pytest.approx(np.log(1.003) / 0.01, rel=1e-12)
    assert len(sizes) <= 6
    # Values at the ends that are known are not asked for.
    known, fewer = counted(lambda x: np.expm1(0.01 * x) - 0.003)
    regula_falsi(known, np.zeros(1), np.ones(1), ends=(function(np.zeros(1)), function(np.ones(1))))
    assert len(fewer) == len(sizes) - 4


def test_regula_falsi_keeps_the_tolerance_it_is_given():
    rough = regula_falsi(
        lambda x, a: x**3 - a, 0.0, np.full(2, 3.0), np.array([2.0, 5.0]), tolerance=np.array([1.0, 0.1])
    )
    assert 1e-6 < abs(rough.value[0]) < 1 and 1e-9 < abs(rough.value[1]) < 0.1
    by_function = regula_falsi(lambda x: x**3 - 2.0, 0.0, 3.0, tolerance=lambda x: 0.1 * x)
    assert 1e-9 < abs(by_function.value) < 0.1 * by_function.x


def test_halvings_close_in_on_a_jump_where_regula_falsi_creeps():
    function, sizes = counted(lambda x: np.where(x < 0.3, -1e-6, 1.0))
    assert regula_falsi(function, np.zeros(1), np.ones(1), halve_every=2).x == pytest.approx(0.3, abs=1e-12)
    assert len(sizes) < 100
    assert regula_falsi(function, np.zeros(0), np.zeros(0)).x.shape == (0,)


def test_crossing_is_a_root_or_the_end_nearest_to_it():
    function, sizes = counted(lambda x: x**3 - 2)
    assert crossing(function, 0.0, 2.0) == pytest.approx(np.cbrt(2), rel=1e-15)
    assert len(sizes) < 20
    assert crossing(lambda x: x + 5, 0.0, 1.0) == 0 and crossing(lambda x: x - 5, 0.0, 1.0) == 1
    assert abs(crossing(lambda x: x**3 - 2, 0.0, 2.0, tolerance=1e-3) - np.cbrt(2)) < 2e-3


def test_halving_finds_where_a_property_begins():
    found = halving(lambda x: x**2 > 2, 0.0, 2.0)
    assert isinstance(found.low, float) and found.low**2 <= 2 < found.high**2
    assert found.middle == pytest.approx(np.sqrt(2), rel=1e-15)
    a = np.array([[0.5, 2.0], [1e-3, 3.9]])
    for xp in (np, jnp):
        found = halving(lambda x, xp=xp: x**2 > xp.asarray(a), xp.zeros((2, 2)), xp.full((2, 2), 2.0), 50)
        np.testing.assert_allclose(found.middle, np.sqrt(a), atol=2e-15)
        np.testing.assert_allclose(found.high - found.low, 2.0**-49, rtol=0.5)
    unrolled = jax.jit(lambda high: halving(lambda x: x > 0.3, 0 * high, high, 4, unroll=True).low)(jnp.ones(1))
    np.testing.assert_array_equal(unrolled, [0.25])
    nothing = halving(lambda x: 1 / 0, np.zeros(0), np.zeros(0))
    assert nothing.middle.shape == (0,)


def test_halving_of_the_logarithm_keeps_relative_precision():
    a = np.array([1e-17, 3e-9, 0.7])
    for xp in (np, jnp):
        found = halving(lambda x, xp=xp: x > xp.asarray(a), xp.full(3, 1e-18), xp.ones(3), 50, middle=logarithmic)
        np.testing.assert_allclose(found.middle, a, rtol=1e-12)


def test_golden_section_finds_minima_with_one_call_a_step():
    a = np.array([0.1, 0.77])
    function, sizes = counted(lambda x: np.cosh(x - a))
    found = golden_section(function, np.zeros(2), np.ones(2), 36)
    np.testing.assert_allclose(found.middle, a, atol=1e-7)
    np.testing.assert_allclose(found.high - found.low, 0.6180339887498949**36, rtol=1e-6)
    assert len(sizes) == 38
    assert golden_section(lambda x: abs(x - 0.3), 0.0, 1.0, 80).middle == pytest.approx(0.3, abs=1e-15)
    assert golden_section(lambda x: 1 / 0, np.zeros(0), np.zeros(0)).middle.shape == (0,)


def test_walking_outwards_gives_a_bracket():
    assert first_beyond(lambda x: x > 5, (2.0**k for k in range(10))) == (4, 8)
    assert first_beyond(lambda x: x > 0, [1.0, 2.0]) == (1, 1)
    assert first_beyond(lambda x: x > 50, range(10)) is None


def test_every_root_and_whether_the_function_rises():
    roots, rises = every_root(np.sin, np.linspace(0.5, 10.0, 40))
    np.testing.assert_allclose(roots, np.pi * np.array([1, 2, 3]), atol=1e-13)
    assert rises.tolist() == [False, True, False]
    assert every_root(np.cosh, np.linspace(-1.0, 1.0, 11))[0].size == 0


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("gap", [1e-2, 1e-4])
def test_two_roots_between_neighbours_of_the_grid_are_found(side, gap):
    roots, rises = every_root(lambda x: side * ((x - 0.531) ** 2 - gap**2), np.linspace(0.0, 1.0, 11))
    np.testing.assert_allclose(roots, [0.531 - gap, 0.531 + gap], atol=1e-11 / gap)
    assert rises.tolist() == ([False, True] if side > 0 else [True, False])
