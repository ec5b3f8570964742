"""Break locations: exact for formulas, found from values for callables, and the two agree."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.core.errors import TargetError
from solvable.targets.breaks import find_breaks
from solvable.targets.target import Target

MULTIPLES = np.arange(-14, 15) * np.pi / 5
HALF_TURNS = (np.arange(-3, 3) + 0.5) * np.pi
HE4_ROOTS = [-np.sqrt(3 + np.sqrt(6)), -np.sqrt(3 - np.sqrt(6)), np.sqrt(3 - np.sqrt(6)), np.sqrt(3 + np.sqrt(6))]

BOTH = [
    ("abs(z)", [0]),
    ("-1 < z < 1", [-1, 1]),
    pytest.param("relu(z - 0.5)", [0.5], marks=pytest.mark.slow),
    ("sqrt(abs(z))", [0]),
    pytest.param("abs(z)**1.5", [0], marks=pytest.mark.slow),
    ("z*abs(z)", [0]),
    ("step(z) + step(z - 1) + 2*step(z - 1.5)", [0, 1, 1.5]),
    ("sign(sin(5*z))", MULTIPLES),
    pytest.param("abs(z**2 - 2)", [-np.sqrt(2), np.sqrt(2)], marks=pytest.mark.slow),
    pytest.param("abs(abs(z) - 1)", [-1, 0, 1], marks=pytest.mark.slow),
    ("abs(he4(z))", HE4_ROOTS),
    pytest.param("sign(z - pi)", [np.pi], marks=pytest.mark.slow),
    ("sign(exp(z) - 2)", [np.log(2)]),
    ("min(z, z**2)", [0, 1]),
    ("log(abs(z))", [0]),
    pytest.param("1/(1 - z**2)", [-1, 1], marks=pytest.mark.slow),
    ("z**(-2)", [0]),
    ("tan(z)", HALF_TURNS),
    ("where(relu(z - 1), 1, 0)", [1]),
    ("where(z > 0, log(z), 0)", [0]),
    ("abs(z**2 + sign(z)/2)", [-np.sqrt(0.5), 0]),
    ("1000 + abs(z - 1/3)", [1 / 3]),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("text", "expected"), BOTH)
def test_formula_and_callable(text, expected):
    typed = Target(text)
    found = find_breaks(typed)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=4e-16, atol=1e-300)
    numeric = find_breaks(Target(lambda z: typed(z), projections=1))
    assert numeric.shape == found.shape
    np.testing.assert_allclose(numeric, found, atol=1e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", ["tanh(z)", "z**3", "sin(3*z)", "exp(-z**2)", "he4(z)", "z**2*exp(-z**2)", "erf(9*z)"])
def test_smooth_targets_have_none(text):
    typed = Target(text)
    assert find_breaks(typed).size == 0
    assert find_breaks(Target(lambda z: typed(z), projections=1)).size == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abs(z) < 1", [-1, 0, 1]),
        ("max(z, 0.3, -z)", [-0.3, 0.3]),
        ("1/(z**2 - 2*z + 1)", [1]),
        ("1/((z - 1)**2 + 1e-4)", []),
        ("1/(sin(z) - 1)", [-1.5 * np.pi, 0.5 * np.pi, 2.5 * np.pi]),
        ("1/sqrt((z - 0.3)**2)", [0.3]),
        ("abs(z**2)", [0]),
        ("sign(sqrt(abs(z)) - 0.001)", [-1e-6, 0, 1e-6]),
        ("sign((z - 1)**2 - 1e-9)", [1 - np.sqrt(1e-9), 1 + np.sqrt(1e-9)]),
        ("sign(relu(z - 1)*relu(3 - z))", [1, 3]),
        ("where(abs(z) - 1, z, 2)", [-1, 0, 1]),
    ],
)
def test_hard_zeros_of_formulas(text, expected):
    np.testing.assert_allclose(find_breaks(Target(text)), expected, rtol=1e-11, atol=1e-300)


def test_many_breaks():
    found = find_breaks(Target("sign(sin(1000*z))"))
    np.testing.assert_allclose(found, np.arange(-2864, 2865) * np.pi / 1000, rtol=1e-14, atol=1e-300)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (jnp.floor, np.arange(-8, 9)),
        (lambda z: jnp.mod(z, 1.0), np.arange(-8, 9)),
        (lambda z: jnp.clip(z, -1, 1), [-1, 1]),
        (jax.nn.leaky_relu, [0]),
        (jax.nn.elu, [0]),
        (lambda z: 1 + jax.nn.relu(z - 0.5) ** 2, [0.5]),
        (lambda z: jnp.where(jnp.abs(z) < 1e-3, 1.0, 0.0), [-1e-3, 1e-3]),
        (lambda z: jnp.abs(jnp.abs(z - 1) - 1e-2), [0.99, 1, 1.01]),
        (lambda z: jnp.sign(z * (z**2 - 3)), [-np.sqrt(3), 0, np.sqrt(3)]),
        (lambda z: jnp.where(z > 8.5, jnp.inf, z), [8.5]),
    ],
)
def test_callables(function, expected):
    found = find_breaks(Target(function, projections=1))
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_weak_kink_of_a_callable():
    found = find_breaks(Target(lambda z: jnp.sin(z) + 1e-5 * jnp.abs(z - 1 / 3), projections=1))
    np.testing.assert_allclose(found, [1 / 3], atol=1e-8)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "function",
    [
        jnp.exp,
        *(
            pytest.param(function, marks=pytest.mark.slow)
            for function in (
                jnp.cosh,
                jnp.sinc,
                lambda z: jnp.log1p(z**2),
                jax.nn.softplus,
                jax.scipy.stats.norm.cdf,
                jax.scipy.stats.norm.logcdf,
            )
        ),
        lambda z: jax.nn.sigmoid(50 * z),
        lambda z: jnp.tanh(1000 * z),
        lambda z: jnp.sin(1000 * z),
        lambda z: jnp.sqrt(z**2 + 1e-4),
        lambda z: 1 / (z**2 - 2 * z + 1.0001),
        lambda z: z**8 - 28 * z**6 + 210 * z**4 - 420 * z**2 + 105,
        lambda z: 0 * z + 3,
    ],
)
def test_smooth_callables_have_none(function):
    assert find_breaks(Target(function, projections=1)).size == 0


def test_infinitely_many_breaks_are_refused():
    with pytest.raises(TargetError, match=r"cos\(tan\(z\)\) may have more than 10000 zeros"):
        find_breaks(Target("tan(tan(z))"))
    with pytest.raises(TargetError, match="too many"):
        find_breaks(Target("sign(sin(he8(z)))"))


def test_constant_pieces_and_infinite_values_are_not_breaks():
    assert find_breaks(Target("where(sign(sin(5*z)) + 2, z, 1)")).size == 29
    assert find_breaks(Target("where(z/(1 > 2) > z, 1, 2)")).tolist() == [0.0]


def test_radius():
    assert find_breaks(Target("sign(sin(5*z))"), radius=1.0).size == 3
    assert find_breaks(Target("step(z - 1)"), radius=1.0).size == 0
    with pytest.raises(ValueError, match="radius"):
        find_breaks(Target("z"), radius=-1.0)
    with pytest.raises(ValueError, match="one projection"):
        find_breaks(Target("z1*z2"))
