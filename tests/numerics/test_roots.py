"""Searches in one variable: accuracy, refusal, derivatives, and speed in evaluations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from solvable.numerics.roots import (
    bracketed_root,
    crossing,
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


def cubic(x, a):
    return x**3 - a


def test_a_thousand_cube_roots():
    a = jnp.linspace(0.0, 20.0, 1000)
    roots = jax.jit(lambda a: bracketed_root(cubic, 0.0, 3.0, a))(a)
    np.testing.assert_allclose(roots, np.cbrt(a), rtol=2e-15, atol=1e-30)


SMOOTH = [
    (lambda x, xp: xp.tanh(50 * (x - 0.3)) + (x - 0.3) ** 3, -10.0, 10.0),
    (lambda x, xp: xp.exp(x) - 1e10, 0.0, 700.0),
    (lambda x, xp: xp.log(x) + 5.0, 1e-12, 1.0),
    (lambda x, xp: xp.cos(x) - x, 0.0, 1.5),
    (lambda x, xp: 1 / x - 1e-3, 1e-8, 1e8),
]
OTHERS = {
    "jump": (lambda x, xp: xp.where(x < 0.3, -1.0, 2.0), 0.0, 1.0),
    "flat": (lambda x, xp: x**9, -1.0, 2.0),
    "positive": (lambda x, xp: x**2 + 1, -1.0, 1.0),
    "hole": (lambda x, xp: xp.where(x == 0.5, xp.nan, x - 0.4), 0.0, 1.0),
}


@pytest.fixture(scope="module")
def roots_of_all():
    """The roots of all the functions above, each an entry of one array."""
    functions, low, high = zip(*SMOOTH, *OTHERS.values(), strict=True)

    def function(x, which):
        return jnp.select([which == k for k in range(len(functions))], [f(x, jnp) for f in functions])

    with jax.enable_x64(True):
        solve = jax.jit(lambda low, high, which: bracketed_root(function, low, high, which))
        found = np.asarray(solve(np.array(low), np.array(high), np.arange(len(functions))))
    return [*found[: len(SMOOTH)]], dict(zip(OTHERS, found[len(SMOOTH) :], strict=True))


@pytest.mark.parametrize("which", range(len(SMOOTH)))
def test_agrees_with_scipy(which, roots_of_all):
    function, low, high = SMOOTH[which]
    reference = scipy.optimize.brentq(lambda x: function(x, np), low, high, xtol=1e-15, rtol=1e-14)
    assert roots_of_all[0][which] == pytest.approx(reference, rel=1e-13)


def test_a_jump_is_located(roots_of_all):
    assert roots_of_all[1]["jump"] == pytest.approx(0.3, rel=1e-15)


def test_a_flat_root_is_found_within_the_step_limit(roots_of_all):
    assert abs(roots_of_all[1]["flat"]) < 1e-15


def test_no_sign_change_gives_nan_and_leaves_the_others_alone(roots_of_all):
    a = np.array([0.0, 0.25, 1.0, 2.0, np.nan])
    roots = jax.jit(lambda a: bracketed_root(lambda x, a: x - a, 0.0, 1.0, a))(a)
    np.testing.assert_array_equal(roots, [0.0, 0.25, 1.0, np.nan, np.nan])
    assert np.isnan(roots_of_all[1]["positive"]) and np.isnan(roots_of_all[1]["hole"])


def test_derivative_by_the_implicit_function_theorem():
    a = np.array([0.5, 2.0, 8.0])
    slopes = jax.jit(jax.vmap(jax.grad(lambda a: bracketed_root(cubic, 0.0, 3.0, a))))(a)
    np.testing.assert_allclose(slopes, np.cbrt(a) ** -2 / 3, rtol=1e-13)


def test_brackets_broadcast():
    solve = jax.jit(lambda high, a: bracketed_root(lambda x, a: x**2 - a, 0.0, high, a))
    roots = np.asarray(solve(np.array([[1.0], [2.0]]), np.array([0.25, 0.81, 2.25])))
    assert roots.shape == (2, 3)
    np.testing.assert_allclose(roots[1], [0.5, 0.9, 1.5], rtol=1e-15)
    assert np.isnan(roots[0]).tolist() == [False, False, True]


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
