"""The noisy channel: against closed forms, an independent dense grid, and its limits of no noise and much noise."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.stats import norm

from solvable.channels import Linear, generic_channel
from solvable.targets.hermite import hermite_coefficients
from solvable.targets.target import Target

Q = np.array([0.05, 0.3, 0.7, 0.95])


@functools.cache
def channel(text, noise):
    return generic_channel(Target(text), noise)


@functools.cache
def information(text, noise, fineness=1.0):
    return channel(text, noise).scalar_information(1 - Q, fineness)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, pytest.param(1.0, marks=pytest.mark.slow)])
def test_identity_is_the_conjugate_gaussian(noise):
    found, exact = information("z", noise), Linear(noise).scalar_information(1 - Q)
    assert np.allclose(found.information, exact.information, rtol=5e-6)
    assert np.allclose(found.entropy, exact.entropy, rtol=0, atol=5e-6)
    y, omega = np.array([0.3, -2.0, 1.0]), np.array([1.0, 0.5, -1.0])
    one = channel("z", noise).scalar_posterior(channel("z", noise).observe(y), omega, 0.4)
    other = Linear(noise).scalar_posterior(Linear(noise).observe(y), omega, 0.4)
    for a, b in zip(one, other, strict=True):
        assert np.allclose(a, b, atol=1e-7)


def absolute_mixture(y, omega, V, noise):
    """The posterior of z given y = |z| + noise: a Gaussian cut to z > 0 (y = z) beside one cut to z < 0 (y = -z)."""
    v, total = V * noise / (V + noise), V + noise
    s = np.sqrt(v)
    parts = []
    for side in (1.0, -1.0):
        m = (noise * omega + V * side * y) / total
        t = side * m / s
        log_mass = norm.logpdf(side * y, omega, np.sqrt(total)) + norm.logcdf(t)
        ratio = np.exp(norm.logpdf(t) - norm.logcdf(t))
        mean = m + side * s * ratio
        parts.append((log_mass, mean, v * (1 - ratio * (t + ratio)) + mean**2))
    log_Z = np.logaddexp(parts[0][0], parts[1][0])
    mean = sum(np.exp(p[0] - log_Z) * p[1] for p in parts)
    second = sum(np.exp(p[0] - log_Z) * p[2] for p in parts)
    return log_Z, mean, second - mean**2


@pytest.mark.parametrize("noise", [1e-4, 0.1, 2.0])
def test_posterior_of_absolute_is_two_cut_gaussians(noise):
    rng = np.random.default_rng(2)
    z, x, xi = rng.standard_normal((3, 100))
    y = np.abs(z) + np.sqrt(noise) * xi
    for V in (0.9, 0.1, 1e-3):
        omega = (1 - V) * z + np.sqrt(V * (1 - V)) * x
        found = channel("abs(z)", noise).scalar_posterior(channel("abs(z)", noise).observe(y), omega, V)
        log_Z, mean, variance = absolute_mixture(y, omega, V, noise)
        assert np.allclose(found.log_Z, log_Z, rtol=0, atol=1e-5)
        assert np.allclose(found.mean, mean, rtol=0, atol=1e-5)
        assert np.allclose(found.variance, variance, rtol=0, atol=1e-5)


@pytest.mark.parametrize("noise", [0.1, pytest.param(2.0, marks=pytest.mark.slow)])
def test_information_of_absolute_against_a_dense_grid(noise):
    for i, q in enumerate(Q):
        V = 1 - q
        omega = np.sqrt(q) * np.linspace(-7, 7, 141)[:, None]
        y = np.linspace(-6 * np.sqrt(noise), 8 + 6 * np.sqrt(noise), 1501)
        log_Z, mean, _ = absolute_mixture(y, omega, V, noise)
        weight = norm.pdf(omega, 0, np.sqrt(q)) * (omega[1] - omega[0]) * np.exp(log_Z) * (y[1] - y[0])
        exact = np.sum(weight * ((mean - omega) / V) ** 2)
        assert information("abs(z)", noise).information[i] == pytest.approx(exact, rel=2e-5)
        assert information("abs(z)", noise).entropy[i] == pytest.approx(np.sum(weight * log_Z), abs=2e-5)


@pytest.mark.slow
def test_saturating_target_with_little_noise():
    """tanh(2 z) with noise 0.01: a sharp edge in a wide posterior. Values of an independent dense-grid computation."""
    reference = [0.8946421355, 1.1618389108, 2.3485458980, 9.9387964608]
    assert np.allclose(information("tanh(2*z)", 0.01).information, reference, rtol=1e-5)


@pytest.mark.parametrize("text", ["sign(z)", "min(abs(z), 1)"])
def test_flats_and_noise_against_a_dense_grid(text):
    """Z = integral of N(z; omega, V) N(y; g(z), noise) with an edge of the grid of z on every break."""
    noise, q = 0.2, 0.7
    V = 1 - q
    breaks = {"sign(z)": [0], "min(abs(z), 1)": [-1, 0, 1]}[text]
    g = {"sign(z)": np.sign, "min(abs(z), 1)": lambda z: np.minimum(np.abs(z), 1)}[text]
    ends = [-7.5, *breaks, 7.5]
    t, w = np.polynomial.legendre.leggauss(160)
    z = np.concatenate([(a + b) / 2 + (b - a) / 2 * t for a, b in zip(ends[:-1], ends[1:], strict=True)])
    dz = np.concatenate([(b - a) / 2 * w for a, b in zip(ends[:-1], ends[1:], strict=True)])
    y = np.linspace(-1 - 8 * np.sqrt(noise), 1 + 8 * np.sqrt(noise), 401)[:, None]
    likelihood = norm.pdf(y, g(z), np.sqrt(noise)) * dz
    total = 0.0
    for u in np.linspace(-7, 7, 141):
        omega = np.sqrt(q) * u
        prior = norm.pdf(z, omega, np.sqrt(V))
        Z = likelihood @ prior
        first = likelihood @ (prior * (z - omega)) / V
        total += np.sum(first**2 / np.maximum(Z, 1e-300)) * (y[1, 0] - y[0, 0]) * norm.pdf(u) * 0.1
    assert information(text, noise).information[2] == pytest.approx(total, rel=2e-5)


@pytest.mark.parametrize(("text", "noise"), [("abs(z)", 0.1), ("min(abs(z), 1)", 0.2)])
def test_entropy_has_slope_half_the_information(text, noise):
    h = 1e-3
    entropy = channel(text, noise).scalar_information(1 - np.concatenate([Q + h, Q - h])).entropy
    assert np.allclose((entropy[:4] - entropy[4:]) / (2 * h), information(text, noise).information / 2, rtol=1e-3)


@pytest.mark.slow
def test_nishimori_by_sampling():
    """E[mean^2] = E[mean z], E[(z - mean)^2] = E[variance], and I is the mean square of g: labels from the model."""
    rng, q, size = np.random.default_rng(4), 0.7, 20_000
    one = channel("min(abs(z), 1)", 0.2)
    omega = np.sqrt(q) * rng.standard_normal(size)
    z = omega + np.sqrt(1 - q) * rng.standard_normal(size)
    posterior = one.scalar_posterior(one.observe(one.sample(z[:, None], rng)), omega, 1 - q)
    square = ((posterior.mean - omega) / (1 - q)) ** 2
    differences = {
        "overlap": posterior.mean * (z - posterior.mean),
        "variance": (z - posterior.mean) ** 2 - posterior.variance,
        "information": square - information("min(abs(z), 1)", 0.2).information[2],
        "nishimori": square - 1 / (1 - q) + posterior.variance / (1 - q) ** 2,
    }
    for what, difference in differences.items():
        assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(size), what


@pytest.mark.slow
@pytest.mark.parametrize("text", ["abs(z)", pytest.param("he4(z)", marks=pytest.mark.slow)])
def test_without_noise_it_tends_to_the_level_sets(text):
    noiseless = generic_channel(Target(text), 0.0).scalar_information(1 - Q).information
    gap = {noise: np.abs(information(text, noise).information / noiseless - 1).max() for noise in (1e-2, 1e-6)}
    assert gap[1e-6] < 2e-3 and gap[1e-6] < gap[1e-2] / 20
    assert np.all(information(text, 1e-2).information < noiseless)


@pytest.mark.parametrize("text", ["abs(z)", "sign(z)"])
def test_much_noise_leaves_the_linear_response(text):
    """I noise -> E[(d E[g|omega] / d omega)^2] = sum k c_k^2 q^(k-1), up to corrections in 1/noise."""
    noise, order = 400.0, 60
    k = np.arange(1, order + 1)
    c = hermite_coefficients(Target(text), order)[1:]
    leading = np.sum(k * c**2 * Q[:3, None] ** (k - 1), 1)
    assert np.allclose(noise * information(text, noise).information[:3], leading, rtol=0.01)


@pytest.mark.parametrize(
    "text", ["abs(z)", *(pytest.param(text, marks=pytest.mark.slow) for text in ("tanh(2*z)", "min(abs(z), 1)"))]
)
@pytest.mark.parametrize("noise", [1e-8, 1e4])
@pytest.mark.slow
def test_extreme_noise_is_finite(text, noise):
    found = channel(text, noise).scalar_information(np.array([1 - 1e-6, 0.5, 1e-3, 1e-6]))
    assert np.all(np.isfinite(found.information)) and np.all(np.isfinite(found.entropy))
    assert np.all(found.information > 0)
    z = np.array([-2.3, -1.0, -0.4, 1e-9, 0.7, 1.9])
    y = channel(text, noise).sample(z[:, None], np.random.default_rng(0))
    observation = channel(text, noise).observe(y)
    for omega in (-40.0, 0.0, 7.0):
        for V in (1e-8, 1e-2, 1.0):
            posterior = channel(text, noise).scalar_posterior(observation, np.full(6, omega), V)
            assert all(np.all(np.isfinite(values)) for values in posterior)
            assert np.all(posterior.variance >= 0)


def test_labels_that_no_z_explains_stay_finite():
    one = channel("min(abs(z), 1)", 0.2)
    posterior = one.scalar_posterior(one.observe(np.array([-50.0, 3.0, 50.0])), np.array([0.0, -5.0, 1e3]), 0.3)
    assert all(np.all(np.isfinite(values)) for values in posterior)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("abs(z)", 0.1),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("tanh(2*z)", 0.01), ("abs(z)", 2.0))),
    ],
)
def test_the_error_estimate_is_honest(text, noise):
    coarse, here, fine = (information(text, noise, f).information for f in (0.7, 1.0, 1.6))
    assert np.all(np.abs(here - fine) <= 3 * np.abs(here - coarse) + 1e-6 * here)


@pytest.mark.slow
def test_noise_never_helps():
    values = np.array([information("abs(z)", noise).information for noise in (1e-6, 1e-2, 0.1, 2.0, 400.0)])
    assert np.all(np.diff(values, axis=0) < 0)


def test_samples_scatter_with_the_noise():
    z = np.random.default_rng(0).standard_normal(40_000)
    residual = channel("abs(z)", 0.1).sample(z[:, None], np.random.default_rng(1)) - np.abs(z)
    assert np.mean(residual) == pytest.approx(0, abs=4 * np.sqrt(0.1 / 40_000))
    assert np.var(residual) == pytest.approx(0.1, rel=4 * np.sqrt(2 / 40_000))
    assert not channel("abs(z)", 0.1).deterministic and channel("abs(z)", 0.1).continuous_mass == 0


@pytest.mark.slow
@pytest.mark.parametrize(("text", "noise"), [("z + 0.3*z**3", 0.3), ("z**2", 0.03)])
def test_the_law_of_labels_of_steep_targets_keeps_its_tails(text, noise):
    """Averages cut tails of mass 1e-8, which add more than that to moments of G: E[G] = 0 tells."""
    here = channel(text, noise)
    assert here._dense(1.0) is None  # another rule, with all tails, serves targets that are less steep
    for fineness, error in ((0.7, 1e-7), (1.0, 1e-9), (1.6, 1e-10)):
        weight, _, G = here.label_law(fineness)
        assert abs(weight.sum() - 1) < 1e-12
        assert abs(weight @ G[:, 0, 0]) < error
