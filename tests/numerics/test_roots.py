"""Bracketed roots, elementwise: accuracy, refusal, derivatives, and speed in evaluations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from solvable.numerics.roots import bracketed_root


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


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x, a: jnp.tanh(50 * (x - 0.3)) + (x - 0.3) ** 3, -10.0, 10.0),
        (lambda x, a: jnp.exp(x) - 1e10, 0.0, 700.0),
        (lambda x, a: jnp.log(x) + 5.0, 1e-12, 1.0),
        (lambda x, a: jnp.cos(x) - x, 0.0, 1.5),
        (lambda x, a: 1 / x - 1e-3, 1e-8, 1e8),
    ],
)
def test_agrees_with_scipy(function, low, high):
    reference = scipy.optimize.brentq(lambda x: float(function(x, None)), low, high, xtol=1e-15, rtol=1e-14)
    assert bracketed_root(function, low, high) == pytest.approx(reference, rel=1e-13)


def test_a_jump_is_located():
    assert bracketed_root(lambda x, a: jnp.where(x < 0.3, -1.0, 2.0), 0.0, 1.0) == pytest.approx(0.3, rel=1e-15)


def test_a_flat_root_is_found_within_the_step_limit():
    assert abs(bracketed_root(lambda x, a: x**9, -1.0, 2.0)) < 1e-15


def test_no_sign_change_gives_nan_and_leaves_the_others_alone():
    roots = bracketed_root(lambda x, a: x - a, 0.0, 1.0, jnp.array([0.0, 0.25, 1.0, 2.0, jnp.nan]))
    np.testing.assert_array_equal(roots, [0.0, 0.25, 1.0, np.nan, np.nan])
    assert np.isnan(bracketed_root(lambda x, a: x**2 + 1, -1.0, 1.0))
    assert np.isnan(bracketed_root(lambda x, a: jnp.where(x == 0.5, jnp.nan, x - 0.4), 0.0, 1.0))


def test_derivative_by_the_implicit_function_theorem():
    a = jnp.array([0.5, 2.0, 8.0])
    slopes = jax.vmap(jax.grad(lambda a: bracketed_root(cubic, 0.0, 3.0, a)))(a)
    np.testing.assert_allclose(slopes, np.cbrt(a) ** -2 / 3, rtol=1e-13)


def test_brackets_broadcast():
    high = jnp.array([[1.0], [2.0]])
    roots = bracketed_root(lambda x, a: x**2 - a, 0.0, high, jnp.array([0.25, 0.81, 2.25]))
    assert roots.shape == (2, 3)
    np.testing.assert_allclose(roots[1], [0.5, 0.9, 1.5], rtol=1e-15)
    assert np.isnan(roots[0]).tolist() == [False, False, True]
