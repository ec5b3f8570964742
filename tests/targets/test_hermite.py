"""Hermite coefficients of one projection and of several, against closed forms and adaptive quadrature; exponents."""

from __future__ import annotations

import math
from math import factorial

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import eval_hermitenorm
from scipy.stats import chi2, norm

from solvable.targets.hermite import (
    change_coordinates,
    hermite_coefficients,
    hermite_tensor,
    information_exponent,
    kernel_error,
)
from solvable.targets.target import Target


@pytest.mark.parametrize("k", range(2, 9))
def test_hermite_polynomials_are_their_own_coefficient(k):
    c = hermite_coefficients(Target(f"he({k}, z)"), 12)
    exact = np.zeros(13)
    exact[k] = np.sqrt(factorial(k))
    assert np.allclose(c, exact, atol=1e-9 * exact[k])


def test_exponential_has_a_closed_form():
    # exp(a z) = exp(a^2/2) sum a^k / sqrt(k!) h_k
    k = np.arange(13)
    exact = np.exp(0.5**2 / 2) * 0.5**k / np.sqrt([float(factorial(i)) for i in k])
    assert np.allclose(hermite_coefficients(Target("exp(z/2)"), 12), exact, atol=1e-11)


def test_sign_has_a_closed_form():
    # E[sign(z) h_k(z)] = 2 He_{k-1}(0) phi(0) / sqrt(k!) by parts.
    exact = [0.0] + [2 * eval_hermitenorm(k - 1, 0.0) * norm.pdf(0) / np.sqrt(factorial(k)) for k in range(1, 16)]
    assert np.allclose(hermite_coefficients(Target("sign(z)"), 15), exact, atol=1e-11)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        pytest.param("abs(z)", [0], marks=pytest.mark.slow),
        ("abs(z) < 1", [-1, 1]),
        pytest.param("relu(z - 0.5)", [0.5], marks=pytest.mark.slow),
        pytest.param("tanh(2*z)", [], marks=pytest.mark.slow),
        ("min(abs(z), 1)", [-1, 0, 1]),
        ("z**2*exp(-z**2)", []),
        ("sqrt(abs(z))", [0]),
        pytest.param("cos(2*z)", [], marks=pytest.mark.slow),
    ],
)
def test_coefficients_against_adaptive_quadrature(text, breaks):
    target = Target(text)
    c = hermite_coefficients(target, 8)
    for k in range(9):

        def integrand(z, k=k):
            return float(target.numpy(np.array([z]))) * eval_hermitenorm(k, z) / np.sqrt(factorial(k)) * norm.pdf(z)

        ends = [-11, *breaks, 11] if breaks else [-11, 0, 11]
        exact = sum(quad(integrand, a, b, epsabs=1e-11)[0] for a, b in zip(ends[:-1], ends[1:], strict=True))
        assert c[k] == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "second_moment"),
    [
        ("abs(z)", 1.0),
        ("sign(z)", 1.0),
        ("he3(z)", 6.0),
        ("abs(z) < 1", norm.cdf(1) - norm.cdf(-1)),
        ("cos(2*z)", (1 + np.exp(-8)) / 2),
    ],
)
def test_squares_sum_towards_the_second_moment(text, second_moment):
    total = np.cumsum(hermite_coefficients(Target(text), 60) ** 2)
    assert np.all(np.diff(total) >= 0) and total[-1] <= second_moment * (1 + 1e-10)
    # Coefficients of a jump fall as k^(-3/4), of a kink as k^(-5/4).
    assert total[-1] >= 0.9 * second_moment


@pytest.mark.parametrize(
    ("text", "exponent"),
    [
        ("z", 1), ("abs(z)", 2), ("z**2", 2), ("z**3", 1), ("he3(z)", 3), ("he4(z)", 4), ("he8(z)", 8), ("sign(z)", 1),
        ("he3(z) + 0.001*z", 1), ("abs(z) < 1", 2), ("cos(z)", 2), ("z**2*exp(-z**2)", 4), ("sign(he3(z))", 1),
    ],
)  # fmt: skip
def test_information_exponent(text, exponent):
    assert information_exponent(hermite_coefficients(Target(text), 24)) == exponent


def test_information_exponent_of_nothing_is_infinite():
    assert information_exponent(np.array([3.0, 0.0, 0.0])) == np.inf
    assert information_exponent(np.array([0.0, 1.0, 1e-9])) == 1


# Several projections


def lowest_degree(tensor):
    return min((sum(k) for k in tensor.nonzero), default=math.inf)


def sign_coefficient(k):
    """c_k of sign(z): sqrt(2/pi) (-1)^m (2m - 1)!! / sqrt(k!) for k = 2m + 1."""
    if k % 2 == 0:
        return 0.0
    m = (k - 1) // 2
    return math.sqrt(2 / math.pi) * (-1) ** m * math.prod(range(1, 2 * m, 2)) / math.sqrt(math.factorial(k))


@pytest.mark.parametrize(("r", "degree"), [(2, 11), (3, 9), (4, 8)])
def test_parity_is_a_product(r, degree):
    tensor = hermite_tensor(Target("sign(" + "*".join(f"z{i + 1}" for i in range(r)) + ")"), degree)
    assert len(tensor.coefficients) == math.comb(degree + r, r)
    for k, c in tensor.coefficients.items():
        assert c == pytest.approx(math.prod(map(sign_coefficient, k)), abs=1e-12)
    assert tensor.variance == pytest.approx(1, abs=1e-12)
    assert tensor.error < 1e-12
    assert lowest_degree(tensor) == r


def test_values_of_three_signs():
    tensor = hermite_tensor(Target("sign(z1*z2*z3)"), 6)
    assert tensor.coefficients[1, 1, 1] == pytest.approx((2 / math.pi) ** 1.5, rel=1e-12)
    assert tensor.coefficients[1, 1, 3] == pytest.approx(-0.20737, abs=5e-6)


@pytest.mark.parametrize("text", ["tanh(5*z)", "log(abs(z))", "exp(z)", "abs(z - 0.5)", "where(abs(z) < 1, 1, 0)"])
def test_one_factor_among_several(text):
    """g(z2) h_1(z1) h_2(z3) has the coefficients of g, whether the other factors are there or not."""
    single = hermite_coefficients(Target(text), 6)
    factor = text.replace("z", "z2")
    for whole, place in ((f"z1*({factor})", (1, None)), (f"z1*({factor})*he2(z3)", (1, None, 2))):
        tensor = hermite_tensor(Target(whole), 9)
        size = math.sqrt(math.factorial(2)) if len(place) == 3 else 1.0
        for degree in range(7):
            k = tuple(degree if p is None else p for p in place)
            # The fixed rule for one projection is exact to 3e-9 for a logarithm.
            assert tensor.coefficients[k] == pytest.approx(size * single[degree], abs=5e-9)
        assert tensor.error < 1e-8


def test_logarithm():
    """E log|z| = -(Euler's constant + log 2)/2."""
    coefficient = hermite_tensor(Target("z1*log(abs(z2))"), 4).coefficients[1, 0]
    assert coefficient == pytest.approx(-(np.euler_gamma + math.log(2)) / 2, abs=1e-10)


def test_oblique_planes_are_exact():
    """sign(z1 + z2) is the sign of one direction, whose tensors are powers of (1, 1)/sqrt(2)."""
    tensor = hermite_tensor(Target("sign(z1 + z2)"), 7)
    for (a, b), c in tensor.coefficients.items():
        expected = sign_coefficient(a + b) * math.sqrt(math.comb(a + b, a) / 2 ** (a + b))
        assert c == pytest.approx(expected, abs=1e-12)
    product = hermite_tensor(Target("sign(z1 + z2)*sign(z1 - z2)"), 4)
    assert product.coefficients[2, 0] == pytest.approx(math.sqrt(2) / math.pi, abs=1e-12)
    assert product.coefficients[1, 1] == pytest.approx(0, abs=1e-12)


def test_curved_breaks_have_an_honest_error():
    tensor = hermite_tensor(Target("sign(z1**2 + z2**2 + z3**2 - 3)"), 4)
    exact = math.sqrt(2) * (chi2.sf(3, 5) - chi2.sf(3, 3))
    assert 0 < abs(tensor.coefficients[2, 0, 0] - exact) < tensor.error < 0.02
    assert lowest_degree(tensor) == 2
    lines = hermite_tensor(Target("sign(z1) + sign(z2) + sign(z1 + z2)"), 5)
    exact = math.sqrt(2 / math.pi) * (1 + math.sqrt(0.5))
    assert 0 < abs(lines.coefficients[1, 0] - exact) < lines.error < 1e-3


def test_a_function_has_the_coefficients_of_its_formula():
    typed = Target("relu(z1)*z2 + sign(z2)")
    expected, found = hermite_tensor(typed, 5), hermite_tensor(Target(lambda z: typed(z), 2), 5)
    for k, c in expected.coefficients.items():
        assert found.coefficients[k] == pytest.approx(c, abs=1e-9)


def test_change_of_coordinates():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
    typed = Target("z1 + z1*z2 + he3(z2)")
    turned = hermite_tensor(Target(lambda v: typed(jnp.asarray(turn).T @ v), 2), 5)
    expected = change_coordinates(hermite_tensor(typed, 5).coefficients, turn, 5)
    for k, c in turned.coefficients.items():
        assert c == pytest.approx(expected[k], abs=1e-10)


def test_directions_that_do_not_matter_have_no_coefficients():
    tensor = hermite_tensor(Target("z2**2 + 0*z1 + 0*z3"), 3)
    assert tensor.coefficients[0, 2, 0] == pytest.approx(math.sqrt(2), abs=1e-12)
    assert set(tensor.nonzero) == {(0, 2, 0)}
    constant = hermite_tensor(Target("2 + 0*z1 + 0*z2"), 2)
    assert constant.coefficients[0, 0] == 2
    assert lowest_degree(constant) == math.inf


def test_kernel_error():
    tensor = hermite_tensor(Target("sign(z1*z2)"), 5)
    assert kernel_error(tensor, 1.5) == pytest.approx(1, abs=1e-12)
    assert kernel_error(tensor, 2.5) == kernel_error(tensor, 3.5) == pytest.approx(1 - 4 / math.pi**2, abs=1e-12)
    assert kernel_error(hermite_tensor(Target("z1 + he2(z2)/sqrt(2)"), 4), 2.5) == pytest.approx(0, abs=1e-12)
    with pytest.raises(ValueError, match="kappa = 6.5 is not allowed: kappa must be at least 0 and below 6"):
        kernel_error(tensor, 6.5)
