"""Logistic labels: the posterior and the information against SciPy, and the limits of small and large gain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit, log_ndtr
from scipy.stats import norm

import solvable as sv
from solvable.channels import Logit, Probit, Sign

V = np.array([1.0, 0.6, 0.1, 1e-3])


def moments(gain, y, omega, v):
    """log Z, mean and variance of z by adaptive quadrature around the mode of the posterior."""
    s = np.sqrt(v)
    low, high = 0.0, gain * s
    for _ in range(60):
        mode = (low + high) / 2
        low, high = (low, mode) if mode > gain * s * expit(-gain * (y * omega + s * mode)) else (mode, high)
    top = -(mode**2) / 2 + log_expit(gain * (y * omega + s * mode))
    turn = -y * omega / s
    breaks = [mode + k for k in (-9, -4, -2, -1, 0, 1, 2, 4, 9)]
    breaks += [turn + sign * 3.0**k / (gain * s) for k in range(-1, 7) for sign in (-1, 1)] + [turn]
    ends = np.unique([b for b in breaks if abs(b - mode) <= 9])

    def integral(power, centre=0.0):
        def f(u):
            return (u - centre) ** power * np.exp(-(u**2) / 2 + log_expit(gain * (y * omega + s * u)) - top)

        return sum(quad(f, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in zip(ends[:-1], ends[1:], strict=True))

    total = integral(0)
    mean = integral(1) / total
    return np.log(total) + top - np.log(2 * np.pi) / 2, omega + y * s * mean, v * integral(2, mean) / total


@pytest.mark.parametrize("gain", [0.2, 1.0, 6.0, 300.0])
@pytest.mark.parametrize("v", [1.0, 0.05, 1e-4])
def test_posterior_against_scipy(gain, v):
    channel = Logit(gain)
    y, omega = np.array([1.0, 1.0, -1.0, 1.0]), np.array([-5.0, -0.4, -0.01, 2.0])
    found = channel.scalar_posterior(channel.observe(y), omega, v)
    for i in range(len(y)):
        log_Z, mean, variance = moments(gain, y[i], omega[i], v)
        assert found.log_Z[i] == pytest.approx(log_Z, abs=1e-9, rel=1e-12)
        assert found.mean[i] == pytest.approx(mean, abs=1e-9 * np.sqrt(v))
        assert found.variance[i] == pytest.approx(variance, rel=1e-8)


@pytest.mark.parametrize("gain", [0.5, 2.0])
@pytest.mark.parametrize("q", [0.3, 0.9])
def test_information_against_scipy(gain, q):
    """I = E_omega[Z'^2 / (Z (1 - Z))] with Z = E sigma(gain z), Z' = gain E[sigma (1 - sigma)], z ~ N(omega, V)."""

    u, step = np.linspace(-9, 9, 721, retstep=True)  # the trapezoidal rule is exact to rounding here

    def over_z(f, omega):
        return step * np.sum(norm.pdf(u) * f(gain * (omega + np.sqrt(1 - q) * u)))

    def fisher(x):
        omega = np.sqrt(q) * x
        Z = over_z(expit, omega)
        slope = gain * over_z(lambda t: expit(t) * expit(-t), omega)
        return norm.pdf(x) * slope**2 / (Z * (1 - Z))

    expected = quad(fisher, -9, 9, epsabs=1e-11, epsrel=1e-9)[0]
    assert Logit(gain).scalar_information(np.array([1 - q])).information[0] == pytest.approx(expected, rel=1e-8)


def test_information_is_the_slope_of_the_entropy():
    q, h, channel = np.array([0.2, 0.7, 0.99]), 1e-5, Logit(1.7)
    slope = (channel.scalar_information(1 - q - h).entropy - channel.scalar_information(1 - q + h).entropy) / (2 * h)
    assert np.allclose(slope, channel.scalar_information(1 - q).information / 2, rtol=1e-6)


def test_random_labels_say_nothing():
    found = Logit(0.0).scalar_information(V)
    assert np.all(found.information == 0) and np.allclose(found.entropy, -np.log(2), atol=1e-12)


@pytest.mark.slow
def test_nothing_is_learned_from_random_labels():
    model = sv.MultiIndex(Logit(0.0))
    assert sv.predict(model, sv.BayesOptimal(), alpha=10.0)["overlap"] == 0
    assert np.isinf(sv.thresholds(model)["weak_recovery"])


def test_a_steep_step_is_a_sign_and_a_flat_one_like_wide_probit():
    steep, sign = (channel.scalar_information(V).information for channel in (Logit(1e5), Sign()))
    assert np.allclose(steep[:3], sign[:3], rtol=1e-3)
    # sigma(g z) - 1/2 = g z / 4 and Phi(z / s) - 1/2 = z / (s sqrt(2 pi)) to first order.
    gain = 0.01
    wide = Probit((4 / (gain * np.sqrt(2 * np.pi))) ** 2)
    assert np.allclose(Logit(gain).scalar_information(V).information, wide.scalar_information(V).information, rtol=1e-3)


def test_labels_are_drawn_with_the_right_odds():
    z = np.full(40_000, 0.6)
    y = Logit(2.0).sample(z[:, None], np.random.default_rng(0))
    assert set(np.unique(y)) == {-1.0, 1.0}
    p = expit(1.2)
    assert abs(np.mean(y == 1) - p) < 4 * np.sqrt(p * (1 - p) / len(z))


@pytest.mark.slow
def test_predictions_are_those_of_the_clean_label():
    found = sv.predict(sv.MultiIndex(Logit(2.0)), sv.BayesOptimal(), alpha=3.0)
    q = float(found["overlap"])
    assert found["classification_error"] == pytest.approx(np.arccos(np.sqrt(q)) / np.pi, abs=1e-8)
    assert sv.thresholds(sv.MultiIndex(Logit(2.0)))["weak_recovery"] == 0


def test_the_rule_over_z_and_y():
    rows = Logit(2.0).rows()
    assert rows.weight.sum() == pytest.approx(1, abs=1e-12)
    expected = quad(lambda z: norm.pdf(z) * z * np.tanh(z), -9, 9)[0]
    assert np.sum(rows.weight * rows.z * rows.observation) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), 1e7, "a", True])
def test_gains_that_are_refused(bad):
    with pytest.raises(
        ValueError, match=r"gain must be a number from 0 \(random labels\) to 1e\+06; use channels.Sign"
    ):
        Logit(bad)


def test_it_says_what_it_is():
    assert repr(Logit(2.5)) == "Logit(gain=2.5)"
    assert log_ndtr(0.0) == pytest.approx(float(Logit(3.0).scalar_posterior(np.ones(1), np.zeros(1), 0.5).log_Z[0]))
