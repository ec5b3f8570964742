"""The expression tree: NumPy and JAX agree, gradients are right, text round-trips, breaks are listed."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvable.targets.expression import (
    Expression,
    Hermite,
    Number,
    Operation,
    Power,
    Variable,
    break_expressions,
    evaluate,
)
from solvable.targets.parser import parse

FORMULAS = [
    "abs(z)*tanh(z) + he4(z)",
    "z**5 - z**(-3) + abs(z)**1.5",
    "where(z > 0, sqrt(z), log(1 - z))",
    "erf(z)*exp(-z**2) + tan(z/5)",
    "relu(z - 0.5) + step(z) - sign(z)*(z != 2)",
    "min(z, z**2, 0.3) + max(z, -z)",
    "he(20, z/3)/he2(z + 5)",
    "(-1 < z < 1)*cos(3*z) + sin(2)",
    "where(1 < 2, z, 0) + he0(z) + z**0",
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", FORMULAS)
def test_numpy_and_jax_agree(text):
    expression = parse(text)
    z = np.linspace(-3, 3, 101) + 0.00123
    with jax.enable_x64(True):
        result = np.asarray(jax.jit(lambda z: evaluate(expression, [z], jnp))(z))
    np.testing.assert_allclose(evaluate(expression, [z], np), result, rtol=1e-12, atol=1e-13)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", FORMULAS)
def test_gradients_match_finite_differences(text):
    expression = parse(text)
    z, h = np.linspace(-3, 3, 41) + 0.0123, 1e-6
    difference = (evaluate(expression, [z + h], np) - evaluate(expression, [z - h], np)) / (2 * h)
    with jax.enable_x64(True):
        gradient = np.asarray(jax.jit(jax.vmap(jax.grad(lambda z: evaluate(expression, [z], jnp))))(z))
    np.testing.assert_allclose(gradient, difference, rtol=1e-6, atol=1e-7)


def test_gradient_of_an_unused_branch_does_not_leak():
    expression = parse("where(abs(z) < 1, exp(-1/(1 - z**2)), where(z > 0, sqrt(z), 0))")
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(lambda z: evaluate(expression, [z], jnp)))
        assert gradient(-1.0005) == 0.0
        assert gradient(4.0) == pytest.approx(0.25)


def test_integer_powers_at_zero():
    for k in range(1, 6):
        slope = jax.grad(lambda z, k=k: evaluate(parse(f"z**{k}"), [z], jnp))(0.0)
        assert slope == (1.0 if k == 1 else 0.0)


def test_single_precision_stays_single():
    z = jax.ShapeDtypeStruct((3,), jnp.float32)
    for text in FORMULAS:
        assert jax.eval_shape(lambda z, text=text: evaluate(parse(text), [z], jnp), z).dtype == jnp.float32


def test_numpy_is_double_and_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = evaluate(parse("1/z + log(z) + exp(1000*z)"), [np.array([0, -1, 1], dtype=np.int64)], np)
    assert values.dtype == np.float64
    assert evaluate(parse("z > 0"), [np.array(1.0)], np).dtype == np.float64


def test_hermite_polynomials_are_orthogonal():
    x, w = np.polynomial.hermite_e.hermegauss(40)
    w = w / w.sum()
    values = np.array([evaluate(parse(f"he({k}, z)"), [x], np) for k in range(9)])
    gram = (values * w) @ values.T
    factorial = np.cumprod([1.0, *range(1, 9)])
    np.testing.assert_allclose(gram / np.sqrt(np.outer(factorial, factorial)), np.eye(9), atol=1e-11)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("z1", "z"),
        ("z1 +z2", "z1 + z2"),
        ("((z))", "z"),
        ("-1<z<1", "(-1 < z)*(z < 1)"),
        ("z**(1/2)", "z**0.5"),
        ("z**-2.0", "z**(-2)"),
        ("z-(z-1)-2", "z - (z - 1) - 2"),
        ("z/(z*2)*3", "z/(z*2)*3"),
        ("(-z)**2", "(-z)**2"),
        ("-(z+1)", "-(z + 1)"),
        ("he(3,z)", "he3(z)"),
        ("he(12,z)", "he(12, z)"),
        ("3.141592653589793*z", "pi*z"),
        ("(z>0)>(z<1)", "(z > 0) > (z < 1)"),
    ],
)
def test_canonical_text(text, canonical):
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


LEAVES = st.one_of(st.integers(1, 4).map(Variable), st.floats(0, 1e6).map(lambda v: Number(abs(v))))
UNARY = st.sampled_from(["neg", "abs", "sin", "relu", "step"])
BINARY = st.sampled_from(["+", "-", "*", "<", ">=", "!=", "min", "max"])


def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda name, a: Operation(name, (a,)), UNARY, inner),
        st.builds(lambda name, a, b: Operation(name, (a, b)), BINARY, inner, inner),
        st.builds(lambda a: Operation("/", (a, Variable(2))), inner),
        st.builds(
            lambda a, p: Power(Operation("+", (a, Variable(1))), p), inner, st.sampled_from([2.0, -3.0, 0.5, 0.1])
        ),
        st.builds(lambda k: Hermite(k, Variable(3)), st.integers(0, 20)),
    )


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.recursive(LEAVES, grow, max_leaves=8))
def test_text_round_trips(tree):
    check_round_trip(tree)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.recursive(LEAVES, grow, max_leaves=8))
def test_more_texts_round_trip(tree):
    check_round_trip(tree)


def check_round_trip(tree):
    tree = Operation("*", (tree, Variable(2)))
    text = str(tree)
    assert parse(text) == tree
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("tanh(z) + z**3 + he4(z)/2", []),
        ("abs(z - 1)", [("z - 1", "kink")]),
        ("sign(abs(z) - 1)", [("z", "kink"), ("abs(z) - 1", "jump")]),
        ("-1 < z < 1", [("-1 - z", "jump"), ("z - 1", "jump")]),
        ("z > 0", [("z", "jump")]),
        ("max(z, 1, z**2)", [("z - 1", "kink"), ("max(z, 1) - z**2", "kink")]),
        ("where(z > 1, 2, 3)", [("z - 1", "jump")]),
        ("where(z - 1, 2, 3)", [("z - 1", "jump")]),
        ("1/(z - 2)", [("z - 2", "pole")]),
        ("(z - 2)**(-1)", [("z - 2", "pole")]),
        ("log(z) + sqrt(z + 1) + (z + 2)**1.5", [("z", "edge"), ("z + 1", "edge"), ("z + 2", "edge")]),
        ("tan(2*z)", [("cos(2*z)", "pole")]),
        ("relu(z1)*step(z2) + sign(z1*z2)", [("z", "kink"), ("z2", "jump"), ("z1*z2", "jump")]),
    ],
)
def test_break_expressions(text, breaks):
    assert [(str(u), kind) for u, kind in break_expressions(parse(text))] == breaks
