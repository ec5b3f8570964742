"""Exponents and weak recovery: closed forms, level sets by hand, and reference values."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from solvable.channels import GenericChannel, Logit, Probit, channel_of, exponents, generic_channel
from solvable.targets.target import Target


@functools.cache
def channel(text, noise=0.0):
    return generic_channel(Target(text), noise)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("text", "exponent"),
    [
        ("z", 1),
        ("abs(z)", 2),
        ("he2(z)", 2),
        ("he3(z)", 1),
        ("he4(z)", 2),
        ("abs(z) < 1", 2),
        ("relu(z)", 1),
        ("z**2*exp(-z**2)", 4),
        ("cos(2*z)", 2),
        ("sign(z*(z**2 - 3))", 1),
        ("min(abs(z), 1)", 2),
    ],
)
def test_generative_exponent(text, exponent):
    assert exponents.generative_exponent(channel(text)) == exponent


def test_hard_target_is_hard_however_it_is_written():
    """Labels that fix each other say the same: a monotone function of a label keeps the exponent."""
    for text in ("z**2*exp(-z**2)", "z**4*exp(-2*z**2)", "tanh(z**2*exp(-z**2))"):
        assert exponents.generative_exponent(channel(text)) == 4
        assert exponents.weak_recovery(channel(text)) == np.inf


def test_hard_interval_by_its_edge():
    # P-weighted flux k phi(k) equal at both ends, k e^(-k^2/2) the same, cancels E[z^2 - 1 | y].
    low = 0.5
    high = low
    for _ in range(200):  # the larger solution of x = sqrt(2 log(x / (low e^(-low^2/2))))
        high = np.sqrt(2 * np.log(max(high, 1.5) / (low * np.exp(-(low**2) / 2))))
    text = f"step(abs(z) - 0.5)*step({high:.17g} - abs(z))"
    spectrum = exponents.label_spectrum(channel(text))
    assert spectrum[2] < 1e-20 < 1e-3 < spectrum[4]
    assert exponents.weak_recovery(channel(text)) == np.inf


def test_spectrum_of_an_invertible_target_is_one_and_of_the_sign_its_coefficients():
    assert np.allclose(exponents.label_spectrum(channel("z**3"))[:9], 1, rtol=1e-6)
    spectrum = exponents.label_spectrum(channel("sign(z)"), 7)
    # E[h_k|y] = y c_k for odd k, E[sign(z) h_k] = 2 phi(0) He_{k-1}(0) / sqrt(k!).
    exact = [1, 2 / np.pi, 0, 2 / np.pi / 6, 0, 2 / np.pi * 9 / 120, 0, 2 / np.pi * 225 / 5040]
    assert np.allclose(spectrum, exact, atol=1e-9)


def test_spectrum_of_absolute_is_the_even_half():
    spectrum = exponents.label_spectrum(channel("abs(z)"), 8)
    assert np.allclose(spectrum, [1, 0, 1, 0, 1, 0, 1, 0, 1], atol=1e-6)


def test_an_oscillating_sign_is_trivial_with_a_tiny_mass():
    """The first coefficient of sign(sin(5 z)) is 2e-5, not zero: its square is all that one step sees."""
    k = np.arange(1, 40)
    c_1 = 2 * norm.pdf(0) * (1 + 2 * np.sum((-1.0) ** k * np.exp(-((k * np.pi / 5) ** 2) / 2)))
    assert c_1**2 == pytest.approx(5e-10, rel=0.3)
    spectrum = exponents.label_spectrum(channel("sign(sin(5*z))"))
    assert spectrum[1] == pytest.approx(c_1**2, rel=1e-4)
    assert exponents.generative_exponent(channel("sign(sin(5*z))")) == 1
    assert exponents.weak_recovery(channel("sign(sin(5*z))")) == 0


@pytest.mark.parametrize("text", ["z", "relu(z)", "he3(z)", "sign(z)", "z**2 + z/10"])
def test_trivial_targets_have_no_threshold(text):
    assert exponents.weak_recovery(channel(text)) == 0


@pytest.mark.parametrize("k", [0.5, 1.0, 2.0])
def test_interval_has_a_closed_form(k):
    """1{|z| < k}: E[G^2] = (2 k phi(k))^2 / (P (1 - P)), P = P(|z| < k)."""
    p = norm.cdf(k) - norm.cdf(-k)
    exact = p * (1 - p) / (2 * k * norm.pdf(k)) ** 2
    assert exponents.weak_recovery(channel(f"abs(z) < {k}")) == pytest.approx(exact, rel=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", ["abs(z)", "z**2", "exp(-z**2)", "log(abs(z))", "cosh(z)", "abs(z)**3"])
def test_every_one_to_one_function_of_absolute_is_phase_retrieval(text):
    text = text.replace("cosh(z)", "exp(z) + exp(-z)")
    assert exponents.weak_recovery(channel(text)) == pytest.approx(0.5, rel=1e-6)


def test_fourth_hermite_polynomial_by_its_roots():
    """he4(c) = he4(z) has the roots c = +-z, +-sqrt(6 - z^2), that weigh exp(-c^2/2)/|c|."""

    def integrand(z):
        own, other = z * z, 6 - z * z
        weight = np.exp(-own / 2) / z
        if other <= 0:
            return (own - 1) ** 2 * norm.pdf(z)
        partner = np.exp(-other / 2) / np.sqrt(other)
        return ((weight * (own - 1) + partner * (other - 1)) / (weight + partner)) ** 2 * norm.pdf(z)

    ends = [1e-12, np.sqrt(3), np.sqrt(6), 9]
    parts = zip(ends[:-1], ends[1:], strict=True)
    exact = 1 / (2 * sum(quad(integrand, a, b, epsrel=1e-10, limit=200)[0] for a, b in parts))
    found = exponents.weak_recovery(channel("he4(z)"))
    assert found == pytest.approx(exact, rel=1e-7)
    assert found == pytest.approx(0.6448505, abs=1e-7)


@pytest.mark.parametrize(
    ("text", "noise", "value", "tolerance"),
    [
        ("z**2", 0.25, 0.54165, 5e-5),
        ("abs(z)", 0.1, 0.6042876814, 4e-6),
        ("abs(z)", 0.25, 0.7740222985, 4e-6),
        ("abs(z)", 1.0, 1.7620599188, 4e-6),
    ],
)
def test_noisy_thresholds(text, noise, value, tolerance):
    """Values of an independent computation; noise only delays."""
    found = exponents.weak_recovery(channel(text, noise))
    assert found == pytest.approx(value, abs=tolerance)
    assert found > 0.5


def test_noise_does_not_change_the_class():
    assert exponents.weak_recovery(channel("z**2*exp(-z**2)", 0.1)) == np.inf
    assert exponents.weak_recovery(channel("he3(z)", 0.1)) == 0
    assert exponents.weak_recovery(Probit(0.5)) == 0


@pytest.mark.parametrize(
    "text",
    ["he4(z)", *(pytest.param(text, marks=pytest.mark.slow) for text in ("abs(z)", "abs(z) < 1", "min(abs(z), 1)"))],
)
def test_threshold_is_the_slope_of_the_information_at_nothing_known(text):
    """alpha_weak = 1 / E[G^2], and I(q) ~ q E[G^2] for an even target: two different computations."""
    q = 1e-4
    slope = channel(text).scalar_information(np.array([1 - q])).information[0] / q
    # The next term is of relative order q.
    assert 1 / slope == pytest.approx(exponents.weak_recovery(channel(text)), rel=1e-3)


def test_label_spectrum_of_parities():
    """For a fair coin y = g(z): lambda_k = sum of c_k^2 over the coefficients of degree k, c = (2/pi)^(r/2) first."""
    spectrum = exponents.label_spectrum(GenericChannel(Target("sign(z1*z2)")), 4)
    np.testing.assert_allclose(spectrum, [1, 0, 4 / np.pi**2, 0, 2 * 0.25989898**2], atol=1e-6)
    spectrum = exponents.label_spectrum(GenericChannel(Target("sign(z1*z2*z3)")), 3)
    np.testing.assert_allclose(spectrum, [1, 0, 0, (2 / np.pi) ** 3], atol=3e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text, expected", [("sign(z1*z2)", 2), ("sign(z1*z2*z3)", 3), ("z1+z1*z2", 1), ("z1*z2", 2), ("he4(z1)+z2**2", 2)]
)
def test_generative_exponent_of_several_projections(text, expected):
    this = generic_channel(Target(text))
    assert exponents.generative_exponent(this) == expected
    weak = exponents.weak_recovery(this)
    assert (weak == 0, weak == np.inf) == (expected == 1, expected > 2)


def test_no_clear_degree_means_no_exponent():
    assert exponents._lowest(np.array([1.0, 1e-9, 1e-3]), np.array([1.0, 0.0, 2e-3]), one=False) == np.inf


def test_weak_recovery_of_the_parity():
    """1 / lambda_max(E[G (x) G]) = pi^2 / 4."""
    assert exponents.weak_recovery(channel_of(Target("sign(z1*z2)"))) == pytest.approx(np.pi**2 / 4, rel=1e-9)


def test_closed_forms_know_their_exponent():
    for text in ("z", "abs(z)", "z**2", "sign(z)"):
        assert channel_of(Target(text)).exponent == exponents.generative_exponent(generic_channel(Target(text)))
    assert exponents.weak_recovery(Logit(0.0)) == np.inf and exponents.weak_recovery(Logit(1.0)) == 0
