"""Closed-form channels: against the generic channel, against adaptive quadrature, and their own moments."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from solvable.channels import Absolute, Linear, Probit, Sign, Square, channel_of, generic_channel
from solvable.targets.target import Target

Q = np.array([1e-3, 0.1, 0.3, 0.6, 0.9, 0.99, 0.999, 0.9999])
PAIRS = {"abs(z)": Absolute, "z**2": Square, "sign(z)": Sign}


@functools.cache
def closed(text):
    return PAIRS[text]()


@functools.cache
def generic(text):
    return generic_channel(Target(text), 0.0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", PAIRS)
def test_generic_and_closed_forms_agree(text):
    one, other = closed(text).scalar_information(1 - Q), generic(text).scalar_information(1 - Q)
    assert np.allclose(one.information, other.information, rtol=2e-6)
    assert np.allclose(one.entropy, other.entropy, rtol=0, atol=2e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", PAIRS)
def test_generic_and_closed_posteriors_agree(text):
    rng = np.random.default_rng(0)
    z, omega = rng.standard_normal(200), rng.standard_normal(200)
    y = closed(text).sample(z[:, None], rng)
    for V in (1.0, 0.3, 1e-3):
        one = closed(text).scalar_posterior(closed(text).observe(y), omega, V)
        other = generic(text).scalar_posterior(generic(text).observe(y), omega, V)
        for a, b in zip(one, other, strict=True):
            assert np.allclose(a, b, rtol=1e-7, atol=1e-7 * np.sqrt(V))


@pytest.mark.parametrize("q", [0.3, 0.9])
def test_phase_retrieval_against_a_dense_grid(q):
    # E[g^2] = (E[y^2 tanh^2(y omega / V)] - q) / V^2; the integrand is analytic and the trapezoid exact.
    V = 1 - q
    z, x = np.linspace(-9, 9, 4001)[:, None], np.linspace(-8, 8, 401)
    weight = norm.pdf(z) * norm.pdf(x) * (18 / 4000) * (16 / 400)
    second = np.sum(weight * z**2 * np.tanh(z * (q * z + np.sqrt(q * V) * x) / V) ** 2)
    found = closed("abs(z)").scalar_information(1 - Q).information[list(Q).index(q)]
    assert found == pytest.approx((second - q) / V**2, rel=1e-6)


@pytest.mark.slow
def test_square_says_as_much_as_absolute_and_its_density_differs_by_the_jacobian():
    square, absolute = closed("z**2").scalar_information(1 - Q), closed("abs(z)").scalar_information(1 - Q)
    assert np.allclose(square.information, absolute.information, rtol=1e-7)
    # log Z differs by -E log(2 |z|), E log|z| = -(Euler gamma + log 2) / 2.
    shift = -np.log(2) + (np.euler_gamma + np.log(2)) / 2
    assert np.allclose(square.entropy - absolute.entropy, shift, atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5, 4.0])
def test_probit_against_adaptive_quadrature(noise):
    """I = E_omega[phi(a)^2 / (Phi(a) Phi(-a))] / (V + noise), a = omega / sqrt(V + noise), omega ~ N(0, q)."""
    found = Probit(noise).scalar_information(1 - Q)
    for i, q in enumerate(Q):
        total = 1 - q + noise

        def fisher(u, q=q, total=total):
            a = np.sqrt(q / total) * u
            log_fisher = -(a**2) - u**2 / 2 - log_ndtr(a) - log_ndtr(-a)
            return math.exp(log_fisher) / ((2 * math.pi) ** 1.5 * total)

        def entropy(u, q=q, total=total):
            a = np.sqrt(q / total) * u
            return 2 * ndtr(a) * log_ndtr(a) * math.exp(-u * u / 2) / math.sqrt(2 * math.pi)

        knots = np.array([-30, -5, -1, 0, 1, 5, 30]) * min(1.0, np.sqrt(total / q))
        knots = np.unique(np.clip(np.concatenate([knots, [-8, 8]]), -8, 8))
        ends = list(zip(knots[:-1], knots[1:], strict=True))
        assert found.information[i] == pytest.approx(sum(quad(fisher, a, b)[0] for a, b in ends), rel=1e-6)
        assert found.entropy[i] == pytest.approx(sum(quad(entropy, a, b)[0] for a, b in ends), abs=1e-7)


def test_linear_is_the_conjugate_gaussian():
    for noise in (0.0, 0.3):
        found = Linear(noise).scalar_information(1 - Q)
        assert np.allclose(found.information, 1 / (1 - Q + noise), rtol=1e-14)
        assert np.allclose(found.entropy, -np.log(2 * np.pi * np.e * (1 - Q + noise)) / 2, atol=1e-13)
    y, omega, V, noise = np.array([0.3, -2.0]), np.array([1.0, 0.5]), 0.4, 0.25
    posterior = Linear(noise).scalar_posterior(Linear(noise).observe(y), omega, V)
    precision = 1 / V + 1 / noise
    assert np.allclose(posterior.variance, 1 / precision)
    assert np.allclose(posterior.mean, (omega / V + y / noise) / precision)
    assert np.allclose(posterior.log_Z, norm.logpdf(y, omega, np.sqrt(V + noise)))


@pytest.mark.slow
def test_noiseless_linear_agrees_with_the_level_sets_of_z():
    found = generic("z").scalar_information(1 - Q)
    exact = Linear(0.0).scalar_information(1 - Q)
    assert np.allclose(found.information, exact.information, rtol=1e-6)
    assert np.allclose(found.entropy, exact.entropy, atol=1e-6)


@pytest.mark.parametrize("text", PAIRS)
def test_posterior_mean_and_variance_are_slopes_of_log_Z(text):
    """g = d log Z / d omega and Var = V + V^2 dg/d omega, by finite differences."""
    y = closed(text).sample(np.array([[-1.3], [0.2], [0.8]]), np.random.default_rng(0))
    observation = closed(text).observe(y)
    omega, V, h = np.array([0.4, -0.3, 0.9]), 0.6, 1e-4
    up, here, down = (closed(text).scalar_posterior(observation, omega + d, V) for d in (h, 0.0, -h))
    assert np.allclose((up.log_Z - down.log_Z) / (2 * h), (here.mean - omega) / V, atol=1e-7)
    assert np.allclose((up.mean - down.mean) / (2 * h), here.variance / V, atol=1e-7)


@pytest.mark.parametrize(
    ("kind", "noise"), [(Absolute, ()), (Square, ()), (Sign, ()), (Probit, (0.5,)), (Linear, (0.1,))]
)
def test_far_tails_stay_finite(kind, noise):
    channel = kind(*noise)
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.0])
    for omega in (-30.0, -7.0, 0.0, 7.0, 30.0):
        for V in (1e-2, 1.0):
            posterior = channel.scalar_posterior(channel.observe(y), np.full(5, omega), V)
            for values in posterior:
                assert np.all(np.isfinite(values))
            assert np.all(posterior.variance >= 0) and np.all(posterior.variance <= V * (1 + 1e-9) + 1.0)


def test_sign_extremely_far_on_the_wrong_side():
    # z ~ N(-1000, 1e-4) known to be positive: about exponential with mean V / 1000 beyond zero.
    posterior = closed("sign(z)").scalar_posterior(closed("sign(z)").observe(np.ones(1)), np.array([-1000.0]), 1e-4)
    assert posterior.variance[0] >= 0
    assert posterior.mean[0] == pytest.approx(1e-7, abs=1e-6)


def test_sign_far_on_the_wrong_side_has_its_variance():
    # z ~ N(-30, 1) known to be positive: about exponential with rate 30 beyond zero.
    posterior = closed("sign(z)").scalar_posterior(closed("sign(z)").observe(np.ones(1)), np.array([-30.0]), 1.0)
    assert posterior.mean[0] == pytest.approx(1 / 30, rel=5e-3)
    assert posterior.variance[0] == pytest.approx(1 / 30**2, rel=2e-2)


def test_probit_samples_follow_their_probability():
    rng = np.random.default_rng(1)
    y = Probit(0.5).sample(np.full((40_000, 1), 0.6), rng)
    p = norm.cdf(0.6 / np.sqrt(0.5))
    assert set(np.unique(y)) == {-1.0, 1.0}
    assert abs(np.mean(y == 1) - p) < 4 * np.sqrt(p * (1 - p) / 40_000)
    assert not Probit(0.5).deterministic and Sign().deterministic and Probit(0.5).discrete


def test_label_laws():
    """E over the label of E[z|y] and G: zero each; the first and second conditional moments of the linear channel."""
    for channel in (Absolute(), Square(), Sign(), Probit(0.5), Linear(0.3)):
        law = channel.label_law()
        assert law.weight.sum() == pytest.approx(1, abs=1e-9)
        assert law.weight @ law.mean[:, 0] == pytest.approx(0, abs=1e-9)
        assert law.weight @ law.G[:, 0, 0] == pytest.approx(0, abs=1e-8)
    law = Linear(0.3).label_law()
    assert law.weight @ law.mean[:, 0] ** 2 == pytest.approx(1 / 1.3, rel=1e-9)
    assert law.weight @ law.G[:, 0, 0] ** 2 == pytest.approx(2 / 1.3**2, rel=1e-8)


def test_closed_forms_are_chosen_where_they_exist():
    assert type(channel_of(Target("abs(z)"), 0.0)) is Absolute
    assert type(channel_of(Target("z1**2"), 0.0)) is Square
    assert type(channel_of(Target("sign(z)"), 0.0)) is Sign
    assert type(channel_of(Target("z"), 0.2)) is Linear
    assert type(channel_of(Target("abs(z)"), 0.2)).__name__ == "NoisyChannel"
    assert type(channel_of(Target("he4(z)"), 0.0)).__name__ == "LevelSetChannel"
    assert channel_of(Target("abs(z)"), 0.0) is channel_of(Target("abs( z )"), 0.0)


@pytest.mark.parametrize("noise", [-1.0, float("nan"), float("inf"), "a lot"])
@pytest.mark.parametrize("kind", [Linear, Probit])
def test_bad_noise_is_refused(kind, noise):
    with pytest.raises(ValueError) as error:
        kind(noise)
    assert (
        str(error.value)
        == f"noise = {noise!r} is not allowed: noise must be a variance: a finite number, zero or positive."
    )
