"""Targets: shapes, precision, derivatives, equality and the checks at construction."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.core.errors import TargetError
from solvable.targets.target import CHUNK, Target


def two(z):
    return jnp.abs(z[0]) * z[1]


def test_formula():
    target = Target(" z1**2 +  sign(z1*z2*z3)")
    assert (target.projections, target.text, target.name) == (3, "z1**2 + sign(z1*z2*z3)", str(target))
    z = np.random.default_rng(0).standard_normal((4, 5, 3))
    expected = z[..., 0] ** 2 + np.sign(z.prod(-1))
    np.testing.assert_allclose(target.numpy(z), expected, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(target)(z.astype(np.float32)), expected, rtol=1e-5)
    assert target.numpy(z).dtype == np.float64
    assert target(jnp.ones(3)).shape == ()
    assert target(np.ones((2, 3), int)).dtype == jnp.float32


def test_callable_agrees_with_formula():
    typed, given = Target("abs(z1)*z2"), Target(two, projections=2)
    assert (given.text, given.name, given.projections) == (None, "two", 2)
    z = np.random.default_rng(1).standard_normal((7, 3, 2))
    np.testing.assert_allclose(given.numpy(z), typed.numpy(z), rtol=1e-15)
    np.testing.assert_allclose(given(z.astype(np.float32)), typed(z.astype(np.float32)), rtol=1e-6)
    assert given.numpy(z).dtype == np.float64
    assert jnp.ones(2).dtype == jnp.float32


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
def test_sizes_compile_once(size):
    traces = []

    def function(z):
        traces.append(1)
        return z[0] ** 2

    target = Target(function, projections=1)
    z = np.linspace(-3, 3, size)
    np.testing.assert_allclose(target.numpy(z[:, None]), z**2, rtol=1e-15)
    assert len(traces) == 1


def test_one_projection_may_be_written_elementwise():
    z = np.linspace(-2, 2, 9)
    np.testing.assert_array_equal(Target(jnp.abs, projections=1).numpy(z[:, None]), np.abs(z))
    np.testing.assert_array_equal(Target(lambda z: z > 0, projections=1).numpy(z[:, None]), z > 0)
    np.testing.assert_array_equal(Target(lambda z: 3, projections=1).numpy(z[:, None]), 3 + 0 * z)


@pytest.mark.parametrize(
    "target",
    [
        Target("abs(z)*tanh(z) + where(z > 0, sqrt(z), 0)"),
        Target(lambda z: jnp.abs(z[0]) * jnp.tanh(z[0]) + jnp.where(z[0] > 0, jnp.sqrt(z[0]), 0), projections=1),
    ],
)
def test_value_and_slope(target):
    z = np.linspace(-3, 3, 24).reshape(4, 6)
    value, slope = target.value_and_slope(z)
    np.testing.assert_allclose(value, target.numpy(z[..., None]), rtol=1e-14, atol=1e-15)
    root = np.where(z > 0, 0.5 / np.sqrt(np.abs(z)), 0)
    np.testing.assert_allclose(slope, np.sign(z) * np.tanh(z) + np.abs(z) / np.cosh(z) ** 2 + root, rtol=1e-12)
    assert value.dtype == slope.dtype == np.float64 and slope.shape == z.shape


def test_numbers_inside_a_trace():
    target = Target(jnp.abs, projections=1)

    @jax.jit
    def outer(x):
        return x + target.numpy(-np.ones((3, 1))).sum() + target.value_and_slope(np.ones(2))[1].sum()

    assert outer(1.0) == 6.0


@pytest.mark.parametrize(
    ("text", "even", "odd"),
    [
        ("abs(z)", True, False),
        ("he4(z)", True, False),
        ("cos(z)/z**2", True, False),
        ("sign(z)", False, True),
        ("he3(z)", False, True),
        ("1/z", False, True),
        ("z + 1e-9", False, False),
        ("relu(z)", False, False),
        ("step(z)", False, False),
        ("0*z", True, True),
        ("exp(z**4)", True, False),
    ],
)
def test_parity(text, even, odd):
    target = Target(text)
    assert (target.is_even(), target.is_odd()) == (even, odd)


def test_equality_and_hash():
    assert Target("abs(z)") == Target("abs( z1 )") and hash(Target("abs(z)")) == hash(Target("abs( z1 )"))
    assert Target("abs(z)") != Target("sign(z)")
    assert Target("abs(z)") != Target("abs(z)", projections=2)
    assert Target(two, projections=2) == Target(two, projections=2)
    assert Target(two, projections=2) != Target(two, projections=3)
    assert Target("z") != "z"
    assert len({Target("z"), Target("z1"), Target("z2")}) == 2


@pytest.mark.parametrize("target", [Target("abs(z)"), Target("z", projections=3), Target(two, projections=2)])
def test_pickle(target):
    target.numpy(np.ones((1, target.projections)))
    assert pickle.loads(pickle.dumps(target)) == target


def test_breaks_are_cached_and_read_only():
    target = Target("abs(z) + step(z - 1)")
    assert target.breaks.tolist() == [0.0, 1.0] and target.breaks is target.breaks
    with pytest.raises(ValueError, match="read-only"):
        target.breaks[0] = 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda z: z[0] + 1j, "complex"),
        (lambda z: jnp.ones(3), r"returns shape \(3,\)"),
        (lambda z: 1.0 if z[0] > 0 else 0.0, "cannot be evaluated .*jnp.where"),
        (lambda z: np.sign(z)[0], "cannot be evaluated .*jax.numpy"),
        (lambda: 1.0, "cannot be evaluated"),
        (lambda z: None, "cannot be evaluated"),
        (lambda z: "text", "cannot be evaluated"),
        (lambda z: jnp.sqrt(z[0]), "not a number at z"),
    ],
)
def test_bad_functions(function, message):
    with pytest.raises(TargetError, match=message):
        Target(function, projections=1)


def test_bad_arguments():
    with pytest.raises(TargetError, match="shape"):
        Target(lambda z: z, projections=2)
    with pytest.raises(TargetError, match=r"log\(z\) is not a number at z = "):
        Target("log(z)")
    with pytest.raises(TargetError, match="target = 3 is not allowed"):
        Target(3)  # pyright: ignore[reportArgumentType]
    for projections in (None, 0, 5, 1.5, True):
        with pytest.raises(ValueError, match="projections = "):
            Target(two, projections=projections)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="from 2 .*highest index"):
        Target("z2", projections=1)
    with pytest.raises(ValueError, match=r"z = .* of shape \(..., 2\)"):
        Target("z2").numpy(np.ones(3))
    for call in (lambda t: t.breaks, lambda t: t.is_even(), lambda t: t.value_and_slope(np.ones(2))):
        with pytest.raises(ValueError, match="one projection"):
            call(Target("z2"))
