"""Closed-form channels of several projections: against sampling, dense grids, identities and reference values."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from at_overlap import errors_at, information_at
from scipy.optimize import brentq
from scipy.special import erf, k0, k1, log_ndtr
from scipy.stats import multivariate_normal

from solvable.channels.closed import Majority, Norm2, Norm3, Parity, Product, SignSum2, SignSum3, Staircase

CHANNELS = {
    "parity": Parity,
    "noisy parity": lambda: Parity(0.3),
    "product": Product,
    "noisy product": lambda: Product(0.1),
    "circle": Norm2,
    "sphere": Norm3,
    "staircase": Staircase,
    "two signs": SignSum2,
    "three signs": SignSum3,
    "majority": Majority,
}
DISCRETE = ("parity", "noisy parity", "two signs", "three signs", "majority")


@functools.cache
def channel(name):
    return CHANNELS[name]()


def covariance(r, size=1.0):
    """A correlated covariance, the same every time."""
    return size * np.array([[0.5, 0.2, -0.1], [0.2, 0.7, 0.15], [-0.1, 0.15, 0.4]])[:r, :r]


def data(name, V, n, seed=0):
    """Labels of z ~ N(0, I), and what is known of z when V is left."""
    rng = np.random.default_rng(seed)
    r = channel(name).projections
    M = np.eye(r) - V
    z = rng.standard_normal((n, r))
    noise = rng.standard_normal((n, r)) @ np.linalg.cholesky(M @ V + 1e-12 * np.eye(r)).T if V[0, 0] > 0.1 else 0.0
    return channel(name).sample(z, rng), z @ M + noise


# Posteriors


@pytest.mark.parametrize("name", DISCRETE)
def test_posterior_of_discrete_labels_against_sampling(name):
    """Every sample z ~ N(omega, V) weighted by P(y|z): log Z, mean and covariance within the sampling error."""
    c = channel(name)
    r, n = c.projections, 200_000
    V = covariance(r)
    y, Omega = data(name, V, 4)
    x = np.random.default_rng(1).standard_normal((n, r)) @ np.linalg.cholesky(V).T
    found = c.posterior(c.observe(y), Omega, V)
    for i in range(len(y)):
        z = Omega[i] + x
        miss = y[i] - c.target.numpy(z)
        weight = np.exp(-(miss**2) / (2 * c.noise)) / np.sqrt(2 * np.pi * c.noise) if c.noise else 1.0 * (miss == 0)
        Z = weight.mean()
        assert abs(np.exp(found.log_Z[i]) - Z) < 5 * weight.std() / np.sqrt(n)
        mean = weight @ z / weight.sum()
        share = weight / weight.sum()
        spread = np.sqrt(share**2 @ (z - mean) ** 2)
        assert np.all(np.abs(found.mean[i] - mean) < 5 * spread)
        second = (share[:, None] * (z - mean)).T @ (z - mean)
        assert np.allclose(found.covariance[i], second, atol=8 * np.max(spread))


def test_posterior_of_the_product_against_a_dense_grid():
    """Z = int dc / |c| N((c, y/c); omega, V) on a dense grid of log|c|, and the convolution of it with noise."""
    V, Omega = covariance(2), np.array([[0.3, -1.1], [2.0, 0.1], [0.0, 0.0]])
    y = np.array([0.4, -2.0, 0.05])
    u = np.linspace(-18, 6, 60_001)
    c = np.concatenate([np.exp(u), -np.exp(u)])
    found = Product().posterior(y, Omega, V)
    for i in range(3):
        points = np.stack([c, y[i] / c], 1)
        weight = multivariate_normal(Omega[i], V).pdf(points) * (u[1] - u[0])
        assert found.log_Z[i] == pytest.approx(np.log(weight.sum()), abs=1e-6)
        mean = weight @ points / weight.sum()
        assert np.allclose(found.mean[i], mean, atol=1e-6)
        assert np.allclose(
            found.covariance[i], (weight[:, None] * points).T @ points / weight.sum() - np.outer(mean, mean)
        )
    x = np.linspace(-9, 9, 1501)
    z1 = Omega[1, 0] + np.sqrt(V[0, 0]) * x
    grid = np.stack(np.meshgrid(z1, Omega[1, 1] + np.sqrt(V[1, 1]) * x, indexing="ij"), -1).reshape(-1, 2)
    weight = multivariate_normal(Omega[1], V).pdf(grid) * np.sqrt(V[0, 0] * V[1, 1]) * (x[1] - x[0]) ** 2
    weight = weight * np.exp(-((-2.0 - grid.prod(1)) ** 2) / 0.2) / np.sqrt(0.2 * np.pi)
    noisy = Product(0.1).posterior(y[1:2], Omega[1:2], V)
    assert noisy.log_Z[0] == pytest.approx(np.log(weight.sum()), abs=1e-8)
    mean = weight @ grid / weight.sum()
    assert np.allclose(noisy.mean[0], mean, atol=1e-8)
    assert np.allclose(noisy.covariance[0], (weight[:, None] * grid).T @ grid / weight.sum() - np.outer(mean, mean))


def test_posterior_of_the_product_before_anything_is_known():
    """p(y) = K0(|y|) / pi, E[z1^2|y] = |y| K1 / K0, E[z1 z2|y] = y."""
    y = np.array([1e-3, 0.2, -1.5, 6.0])
    found = Product().posterior(y, np.zeros((4, 2)), np.eye(2))
    assert np.allclose(found.log_Z, np.log(k0(np.abs(y)) / np.pi), atol=1e-8)
    assert np.allclose(found.covariance[:, 0, 0], np.abs(y) * k1(np.abs(y)) / k0(np.abs(y)), rtol=1e-8)
    assert np.allclose(found.covariance[:, 0, 1], y, rtol=1e-8)


@pytest.mark.parametrize("name", ["circle", "sphere"])
def test_posterior_of_norms_against_sampled_directions(name):
    """Directions n on the unit sphere weighted by N(rho n; omega, V), and the isotropic formula as a limit."""
    c = channel(name)
    r, n = c.projections, 200_000
    V = covariance(r)
    y, Omega = data(name, V, 3)
    direction = np.random.default_rng(2).standard_normal((n, r))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    found = c.posterior(y, Omega, V)
    area = {2: 2 * np.pi, 3: 4 * np.pi}[r]
    for i in range(len(y)):
        z = np.sqrt(y[i]) * direction
        weight = multivariate_normal(Omega[i], V).pdf(z) * area * y[i] ** (r / 2 - 1) / 2
        assert abs(np.exp(found.log_Z[i]) - weight.mean()) < 5 * weight.std() / np.sqrt(n)
        share = weight / weight.sum()
        mean = share @ z
        assert np.all(np.abs(found.mean[i] - mean) < 5 * np.sqrt(share**2 @ (z - mean) ** 2))
    bent = 0.4 * np.eye(r)
    bent[0, 0] += 1e-8
    exact, near = c.posterior(y, Omega, 0.4 * np.eye(r)), c.posterior(y, Omega, bent)
    for a, b in zip(exact, near, strict=True):
        assert np.allclose(a, b, atol=1e-6)


def test_posterior_of_the_staircase_against_sampling():
    """z1 candidates weighted by hand, (z2, z3) given z1 sampled."""
    V, Omega, y = covariance(3), np.array([0.4, -0.6, 0.9]), 1.7
    rng = np.random.default_rng(3)
    slope, rest = V[1:, 0] / V[0, 0], V[1:, 1:] - np.outer(V[1:, 0], V[0, 1:]) / V[0, 0]
    x = rng.standard_normal((200_000, 2)) @ np.linalg.cholesky(rest).T
    total, first = 0.0, np.zeros(3)
    for s in (-1.0, 1.0):
        for sign in (-1.0, 1.0):
            z1 = sign * np.sqrt(y - s)
            pair = Omega[1:] + slope * (z1 - Omega[0]) + x
            density = np.exp(-((z1 - Omega[0]) ** 2) / (2 * V[0, 0])) / np.sqrt(2 * np.pi * V[0, 0]) / (2 * abs(z1))
            right = np.sign(z1 * pair[:, 0] * pair[:, 1]) == s
            total += density * right.mean()
            first += density * np.array([z1 * right.mean(), *(right[:, None] * pair).mean(0)])
    found = Staircase().posterior(Staircase().observe(np.array([y])), Omega[None], V)
    assert np.exp(found.log_Z[0]) == pytest.approx(total, rel=0.01)
    assert np.allclose(found.mean[0], first / total, atol=0.01)


@pytest.mark.parametrize("size", [1.0, pytest.param(1e-3, marks=pytest.mark.slow), 1e-6])
@pytest.mark.parametrize("name", CHANNELS)
def test_moments_are_derivatives_of_log_Z(name, size):
    """grad log Z = V^-1 (mean - omega) and d mean / d omega = Cov V^-1, for V large and small."""
    c = channel(name)
    r, V = c.projections, covariance(c.projections, size)
    rng = np.random.default_rng(4)
    z = rng.standard_normal((60, r))
    Omega = z + rng.standard_normal((60, r)) @ np.linalg.cholesky(V).T
    observation, inverse = c.observe(c.sample(z, rng)), np.linalg.inv(V)
    here = c.posterior(observation, Omega, V)
    g = (here.mean - Omega) @ inverse
    h = 3e-4 * np.sqrt(np.linalg.eigvalsh(V)[0])
    for j in range(r):
        step = h * np.eye(r)[j]
        up, down = (c.posterior(observation, Omega + d, V) for d in (step, -step))
        assert np.allclose((up.log_Z - down.log_Z) / (2 * h), g[:, j], atol=2e-5 * np.sqrt(inverse.max()))
        assert np.allclose((up.mean - down.mean) / (2 * h), (here.covariance @ inverse)[:, :, j], atol=2e-4)
    assert np.linalg.eigvalsh(here.covariance).min() > -1e-9 * size


@pytest.mark.parametrize("name", CHANNELS)
def test_labels_that_omega_excludes_keep_finite_posteriors(name):
    """Far in the tails, up to underflow of all probabilities: finite numbers, and moments that agree with log Z."""
    c = channel(name)
    r = c.projections
    rng = np.random.default_rng(5)
    y = c.sample(rng.standard_normal((40, r)), rng)
    Omega = 2 * rng.standard_normal((40, r))
    for V in (covariance(r, 1e-2), covariance(r, 1e-4)):
        found = c.posterior(c.observe(y), Omega, V)
        assert all(np.isfinite(part).all() for part in found)
        spread = np.linalg.eigvalsh(found.covariance)
        # With contradictory labels the posterior may be spread over points far apart, but never beyond the data.
        assert spread.min() > -1e-6 and spread.max() < 100
    assert found.log_Z.min() < -700 or name == "noisy parity"


# Averages


def overlap(r, kind):
    if kind == "full":
        return np.array([[0.4, 0.1, -0.05], [0.1, 0.3, 0.08], [-0.05, 0.08, 0.5]])[:r, :r]
    return np.diag([0.6, 0.35, 0.5])[:r, :r] if kind == "diagonal" else 0.4 * np.eye(r)


SLOW_AVERAGES = ("sphere", "three signs", "majority")
DEAR = ("noisy product", "three signs", "majority")
CASES = [
    *((name, "diagonal") for name in CHANNELS if name not in ("sphere", *DEAR)),
    *(pytest.param(name, "diagonal", marks=pytest.mark.slow) for name in DEAR),
    *((name, "full") for name in ("parity", "noisy parity", "two signs")),
    ("sphere", "isotropic"),
    *(pytest.param(name, "full", marks=pytest.mark.slow) for name in ("product", "noisy product", "circle")),
    *(pytest.param(name, "full", marks=pytest.mark.slow) for name in SLOW_AVERAGES),
]


SAMPLED = [
    pytest.param(*case, marks=pytest.mark.slow) if isinstance(case, tuple) and case[1] == "full" else case
    for case in CASES
]


@functools.cache
def information(name, kind):
    return information_at(channel(name), overlap(channel(name).projections, kind))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_information_is_twice_the_slope_of_the_entropy(name, kind):
    """dPsi/dM = E[g g^T] / 2, in one direction of M that no symmetry singles out."""
    c = channel(name)
    r = c.projections
    M, h = overlap(r, kind), 0.01
    direction = np.array([[1.0, 0.7, -0.3], [0.7, -0.6, 0.4], [-0.3, 0.4, 0.8]])[:r, :r]
    direction = {"full": direction, "diagonal": np.diag(np.diag(direction)), "isotropic": np.eye(r)}[kind]
    here, up, down = information(name, kind), information_at(c, M + h * direction), information_at(c, M - h * direction)
    slope = (up.entropy - down.entropy) / (2 * h)
    # The third derivative of Psi in a direction of norm ~1 is of order ten.
    slack = 10 * h**2 / 6 * np.linalg.norm(direction) ** 3 + (up.entropy_error + down.entropy_error) / (2 * h)
    assert abs(slope - np.sum(here.information * direction) / 2) < slack + 3 * here.error
    assert here.error < 3e-3 * np.abs(here.information).max()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "kind"), SAMPLED)
def test_averages_against_sampling(name, kind):
    """E[g g^T] and E[log Z] over sampled (omega, y); and Nishimori: E[g g^T] = E[V^-1 - V^-1 Cov V^-1]."""
    c = channel(name)
    r, n = c.projections, 4_000 if name == "sphere" else 20_000
    M = overlap(r, kind)
    V = np.eye(r) - M
    y, Omega = data(name, V, n, seed=6)
    found, inverse = c.posterior(c.observe(y), Omega, V), np.linalg.inv(V)
    g = (found.mean - Omega) @ inverse
    square = g[:, :, None] * g[:, None, :]
    expected = information(name, kind)
    sampling = square.std(0) / np.sqrt(n)
    assert np.all(np.abs(square.mean(0) - expected.information) < 5 * sampling + expected.error)
    sampling = found.log_Z.std() / np.sqrt(n)
    assert abs(found.log_Z.mean() - expected.entropy) < 5 * sampling + expected.entropy_error
    gap = square - (inverse - inverse @ found.covariance @ inverse)
    assert np.all(np.abs(gap.mean(0)) < 5 * gap.std(0) / np.sqrt(n))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CHANNELS if name not in SLOW_AVERAGES])
def test_information_error_is_honest(name):
    """Against a rule with half as many nodes again in every direction."""
    c = channel(name)
    for kind in ("diagonal",) if name == "staircase" else ("diagonal", "full"):
        M, found = overlap(c.projections, kind), information(name, kind)
        if name == "staircase":
            from solvable.channels.closed.staircase import block_averages

            fine = block_averages(M[0, 0], M[1:, 1:], 1.5)
            assert abs(fine.first - found.information[0, 0]) < found.error
            assert np.all(np.abs(fine.pair - found.information[1:, 1:]) < found.error)
        else:
            fine = c.moments(np.eye(len(M)) - M, np.zeros((2, 0)), 1.75 if name in DISCRETE else 1.9)
            assert np.all(np.abs(fine.information - found.information) < found.error)
        assert abs(fine.entropy - found.entropy) < found.entropy_error


@pytest.mark.parametrize(
    ("name", "chance"),
    [
        ("parity", 1.0),
        ("two signs", 1.0),
        pytest.param("three signs", 1.0, marks=pytest.mark.slow),
        pytest.param("majority", 0.5, marks=pytest.mark.slow),
    ],
)
def test_small_V(name, chance):
    """A jump on the planes z_i = 0 gives E[g_i^2] = c / sqrt(V), with c from the law of what flips across them.

    Across z_i = 0, a = omega_i / sqrt(V): E[g_i^2] = E over omega_i of phi(a)^2 / (V Phi(a) Phi(-a)) times the
    probability that the other signs let the label change, and the density of omega_i at 0 is 1 / sqrt(2 pi).
    """
    x = np.linspace(-12, 12, 4001)
    jump = np.sum(np.exp(-(x**2) - log_ndtr(x) - log_ndtr(-x))) * (x[1] - x[0]) / (2 * np.pi) / np.sqrt(2 * np.pi)
    c = channel(name)
    V = 1e-4
    found = information_at(c, (1 - V) * np.eye(c.projections))
    assert found.information[0, 0] * np.sqrt(V) == pytest.approx(chance * jump, rel=0.02)
    assert found.entropy_error < 1e-4 and found.error < 5e-3 * found.information[0, 0]


@pytest.mark.parametrize(("name", "pinned"), [("product", 2), ("circle", 2), ("sphere", 3), ("staircase", 1)])
def test_continuous_labels_pin_z_as_V_vanishes(name, pinned):
    """Without noise V Tr E[g g^T] tends to the number of labels' directions, one: alpha(q -> 1) = `pinned`."""
    c = channel(name)
    V = 1e-4
    M = (1 - V) * (np.eye(c.projections) if name != "staircase" else np.diag([1.0, 0.0, 0.0]))
    found = information_at(c, M)
    # Corrections are of order sqrt(V) or V log(1/V).
    assert V * np.trace(found.information) == pytest.approx(1.0, abs=0.02)
    assert c.pinned_mass(np.eye(c.projections)[:, :pinned]) == 1.0
    assert c.pinned_mass(np.eye(c.projections)[:, : pinned - 1]) == 0.0 or pinned == 1


# Reference values


def threshold(c, M, basis):
    found = c.linearisation(M, basis)
    assert np.abs(found.trivial).max() < 1e-9
    return 1 / np.linalg.eigvalsh(found.easy)[-1]


@pytest.mark.parametrize(
    ("name", "value", "tolerance"),
    [
        ("parity", np.pi**2 / 4, 1e-12),
        ("product", 0.593751099, 2e-7),
        ("circle", 1.0, 1e-9),
        ("sphere", 1.5, 1e-9),
        ("staircase", 0.575166352, 1e-8),
    ],
)
def test_weak_recovery_thresholds(name, value, tolerance):
    """1 / lambda_max E[G (x) G] at M = 0, also from the label law; its moments average to zero."""
    c = channel(name)
    r = c.projections
    assert threshold(c, np.zeros((r, r)), np.eye(r)) == pytest.approx(value, rel=tolerance)
    law = c.label_law()
    square = np.einsum("l,lac,lbd->abcd", law.weight, law.G, law.G).reshape(r * r, r * r)
    assert 1 / np.linalg.eigvalsh(square)[-1] == pytest.approx(value, rel=1e-6)
    assert law.weight.sum() == pytest.approx(1, abs=1e-9)
    assert np.allclose(law.weight @ law.mean, 0, atol=1e-9)
    assert np.allclose(np.einsum("l,lij->ij", law.weight, law.G), 0, atol=1e-6)


@pytest.mark.parametrize(("noise", "value"), [(0.1, 2.4733651621), (0.5, 3.2086600367), (1.3, 5.2558329357)])
def test_weak_recovery_of_noisy_parity(noise, value):
    assert threshold(Parity(noise), np.zeros((2, 2)), np.eye(2)) == pytest.approx(value, rel=1e-8)


def test_weak_recovery_of_the_noisy_product_approaches_the_noiseless_one():
    found = [threshold(Product(noise), np.zeros((2, 2)), np.eye(2)) for noise in (0.1, 1e-2, 1e-3, 1e-4)]
    assert np.all(np.diff(found) < 0) and found[-1] == pytest.approx(0.593751099, rel=1e-3)


def test_committees_are_trivial_along_their_mean():
    """E[z|y]: for sign(z1) + sign(z2), P(y = 2) = 1/4 and E[z1 | y = 2] = sqrt(2/pi)."""
    found = SignSum2().linearisation(np.zeros((2, 2)), np.eye(2))
    assert np.allclose(found.trivial, 1 / np.pi)
    found = SignSum3().linearisation(np.zeros((3, 3)), np.eye(3))
    assert np.allclose(np.linalg.eigvalsh(found.trivial), [0, 0, 2 / np.pi], atol=1e-9)
    found = Majority().linearisation(np.zeros((3, 3)), np.eye(3))
    # E[z1 y] = sqrt(2/pi) / 2: z1 decides when the others disagree.
    assert np.allclose(found.trivial, 1 / (2 * np.pi), atol=1e-9)


@pytest.mark.parametrize(("alpha", "q"), [(2.6, 0.0560535859), (5.0, 0.8235368011)])
def test_fixed_points_of_parity(alpha, q):
    c = channel("parity")
    found = brentq(lambda q: alpha * information_at(c, q * np.eye(2)).information[0, 0] - q / (1 - q), 0.9 * q, 1.1 * q)
    assert found == pytest.approx(q, abs=1e-6)


def test_information_of_parity_at_diagonal_overlap():
    """E[g_1^2] = 4 E[N(omega_1; 0, V)^2 e_2^2 / (1 - e_1^2 e_2^2)], e = erf(omega / sqrt(2 V)), on a dense grid."""
    q = np.array([0.5, 0.8])
    x = np.arange(-9, 9, 0.02)
    weight = np.exp(-(x**2) / 2) * 0.02 / np.sqrt(2 * np.pi)
    omega = np.sqrt(q)[:, None] * x
    e = erf(omega / np.sqrt(2 * (1 - q))[:, None])
    density = np.exp(-(omega[0] ** 2) / (2 * (1 - q[0]))) / np.sqrt(2 * np.pi * (1 - q[0]))
    left = 1 - (e[0][:, None] * e[1]) ** 2
    fraction = np.where(left > 1e-13, density[:, None] ** 2 * e[1] ** 2 / np.maximum(left, 1e-13), 0.0)
    found = information_at(Parity(), np.diag(q))
    assert found.information[0, 0] == pytest.approx(4 * weight @ fraction @ weight, rel=1e-6)
    assert abs(found.information[0, 1]) < 1e-12


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("q", "alpha", "tolerance"), [(0.41, 1.5034, 0.0020), (0.645, 2.0097, 0.0025), (0.787, 2.5154, 0.0032)]
)
def test_fixed_points_of_the_noisy_product(q, alpha, tolerance):
    """alpha(q) on M = q I, noise 0.1, from 1.8e6 samples; tolerance is three times their error bar."""
    found = information_at(channel("noisy product"), q * np.eye(2)).information[0, 0]
    assert q / (1 - q) / found == pytest.approx(alpha, abs=3 * tolerance)


def test_information_of_the_circle_against_the_bessel_formula_sampled():
    found = information_at(Norm2(), 0.3 * np.eye(2)).information
    assert found[0, 0] == pytest.approx(0.27787, abs=3 * 0.00037)
    assert np.allclose(found, found[0, 0] * np.eye(2))


@pytest.mark.parametrize(("alpha", "q"), [(0.7, 0.0568245), (1.3, 0.6291434), (1.39, 0.8002138)])
def test_fixed_points_of_the_staircase(alpha, q):
    c = channel("staircase")

    def miss(q):
        return alpha * information_at(c, np.diag([q, 0.0, 0.0])).information[0, 0] - q / (1 - q)

    assert brentq(miss, q - 0.01, q + 0.01) == pytest.approx(q, abs=2e-5)


def test_the_curve_of_the_staircase_bends_back():
    """The largest alpha(q) = q / ((1 - q) E[g_1^2]) is 1.400107, at q = 0.85234."""
    c = channel("staircase")
    q = np.array([0.84234, 0.85234, 0.86234])
    alpha = [p / (1 - p) / information_at(c, np.diag([p, 0, 0])).information[0, 0] for p in q]
    assert alpha[1] == pytest.approx(1.400107, abs=2e-6) and max(alpha) == alpha[1]


@pytest.mark.parametrize(("q", "value"), [(0.5, 12.3322737), (0.9, 3.9900808), (0.95, 3.2671475), (0.99, 2.69504)])
def test_second_threshold_of_the_staircase(q, value):
    basis = np.eye(3)[:, 1:]
    assert threshold(channel("staircase"), np.diag([q, 0, 0]), basis) == pytest.approx(value, rel=3e-6)


def test_the_staircase_with_its_first_step_known_is_parity():
    c = channel("staircase")
    known = c.known(np.eye(3)[:, :1])
    z = np.random.default_rng(7).standard_normal((50, 3))
    y = c.sample(z, np.random.default_rng(0))
    assert np.array_equal(known.observe(np.stack([y, z[:, 0]], 1)), np.sign(z[:, 1] * z[:, 2]))
    M = np.array([[0.5, 0.2], [0.2, 0.4]])
    block = np.zeros((3, 3))
    block[0, 0], block[1:, 1:] = 1 - 1e-9, M
    exact = information_at(known, M)
    assert np.allclose(information_at(c, block).information[1:, 1:], exact.information, atol=1e-4)


# Predictions


@pytest.mark.parametrize("name", CHANNELS)
def test_predictions_against_sampling(name):
    c = channel(name)
    r, n = c.projections, 100_000
    V = covariance(r)
    Omega = np.random.default_rng(8).standard_normal((4, r))
    x = np.random.default_rng(9).standard_normal((n, r)) @ np.linalg.cholesky(V).T
    found = c.predictor.predict(Omega, V)
    for i in range(4):
        g = c.target.numpy(Omega[i] + x)
        assert abs(found[i] - g.mean()) < 5 * g.std() / np.sqrt(n)
        if c.discrete:
            counts = np.array([np.mean(g == atom) for atom in c.atoms])
            assert c.predictor.classify(Omega[i : i + 1], V)[0] == c.atoms[counts.argmax()]
    if not c.discrete:
        with pytest.raises(ValueError, match="classify is defined for targets of finitely many values"):
            c.predictor.classify(Omega, V)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(*case, marks=pytest.mark.slow)
        if isinstance(case, tuple) and case[0] in ("staircase", "majority")
        else case
        for case in SAMPLED
    ],
)
def test_prediction_errors_against_sampling(name, kind):
    c = channel(name)
    r, n = c.projections, 20_000
    M = overlap(r, kind)
    rng = np.random.default_rng(10)
    z = rng.standard_normal((n, r))
    Omega = z @ M + rng.standard_normal((n, r)) @ np.linalg.cholesky(M - M @ M).T
    g, V = c.target.numpy(z), np.eye(r) - M
    found = errors_at(c, M)
    square = (g - c.predictor.predict(Omega, V)) ** 2
    value, error = found["generalization_error"]
    assert abs(square.mean() - value) < 5 * square.std() / np.sqrt(n) + error
    assert ("classification_error" in found) == c.discrete
    if c.discrete:
        wrong = c.predictor.classify(Omega, V) != g
        value, error = found["classification_error"]
        assert abs(wrong.mean() - value) < 5 * wrong.std() / np.sqrt(n) + error


def test_names_and_noise():
    assert repr(Parity()) == "Parity()" and repr(Parity(0.5)) == "Parity(noise=0.5)"
    with pytest.raises(ValueError, match="noise = -1 is not allowed"):
        Parity(-1)
