"""Hermite analysis: coefficients against closed forms and adaptive quadrature, exponents, and refused variances."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import eval_hermitenorm
from scipy.stats import norm

from solvable.core.errors import TargetError
from solvable.targets.hermite import hermite_coefficients, information_exponent, refuse_infinite_variance
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


@pytest.mark.parametrize(
    ("text", "breaks"),
    [
        ("abs(z)", [0]),
        ("abs(z) < 1", [-1, 1]),
        ("relu(z - 0.5)", [0.5]),
        ("tanh(2*z)", []),
        ("min(abs(z), 1)", [-1, 0, 1]),
        ("z**2*exp(-z**2)", []),
        ("sqrt(abs(z))", [0]),
        ("cos(2*z)", []),
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


@pytest.mark.parametrize("text", ["abs(z)**(-0.4)", "log(abs(z))", "tan(z/6)", "exp(z**2/8)", "exp(2*z)", "z**6"])
def test_finite_variance_is_accepted(text):
    target = Target(text)
    refuse_infinite_variance(target, target.breaks)
    assert np.isfinite(hermite_coefficients(target, 4)).all()


@pytest.mark.parametrize(
    ("text", "place"),
    [("1/z", "0"), ("abs(z)**(-0.5)", "0"), ("1/(z - 0.5)", "0.5"), ("tan(z)", "-7.85398"), ("z**(-2)", "0")],
)
def test_poles_of_infinite_variance_are_refused(text, place):
    target = Target(text)
    with pytest.raises(TargetError) as error:
        refuse_infinite_variance(target, target.breaks)
    assert str(error.value) == f"the target {text!r} has infinite variance: it diverges too fast at z = {place}"


@pytest.mark.parametrize("text", ["exp(z**2/4)", "exp(z**2)", "exp(z**2/4.1)"])
def test_tails_of_infinite_variance_are_refused(text):
    target = Target(text)
    with pytest.raises(TargetError) as error:
        refuse_infinite_variance(target, target.breaks)
    assert str(error.value) == (
        f"the target {text!r} grows too fast: its variance is infinite, or comes from |z| > 12, which no sample ever "
        "reaches"
    )
