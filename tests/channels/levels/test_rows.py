"""The posterior of z row by row, where V is narrower than the points of whole level sets are apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from solvable.channels.generic import GenericChannel
from solvable.channels.levels.near import NearPoints, breaks_in_reach, resolvable
from solvable.channels.levels.points import PointSets
from solvable.targets.target import Target


def drawn(text, noise, V, n, seed=0):
    """A channel with n rows: omega and z of the right law, and labels."""
    channel, rng = GenericChannel(Target(text), noise), np.random.default_rng(seed)
    omega = rng.multivariate_normal(np.zeros(len(V)), np.eye(len(V)) - V, n)
    z = omega + rng.multivariate_normal(np.zeros(len(V)), V, n)
    return channel, omega, channel.sample(z, rng)


def assert_moments(found, log_Z, mean, covariance, V, typical=2e-3, worst=0.02):
    """In units of the standard deviations of V: the median and the largest error of a row."""
    sigma = np.sqrt(np.diag(V))
    errors = (
        np.abs(found.log_Z - log_Z),
        np.abs((found.mean - mean) / sigma).max(1),
        np.abs((found.covariance - covariance) / np.outer(sigma, sigma)).max((1, 2)) / 2,
    )
    for error in errors:
        assert np.median(error) < typical and np.max(error) < worst


def two_branches(y, omega, V, noise=0.0):
    """y = z2 where z1 > 0 and z3 elsewhere: each branch is a Gaussian given its noisy z_j, cut at z1 = 0."""
    branches = []
    for j, side in ((1, 1), (2, -1)):
        gain = V[:, j] / (V[j, j] + noise)
        m, C = omega + np.outer(y - omega[:, j], gain), V - np.outer(V[:, j], gain)
        s = np.sqrt(C[0, 0])
        a = side * m[:, 0] / s
        hazard = np.exp(norm.logpdf(a) - norm.logcdf(a))
        along = C[:, 0] / C[0, 0]
        mean = m + np.outer(side * s * hazard, along)
        left = C[0, 0] * (1 - hazard * (hazard + a))
        covariance = C - np.outer(C[:, 0], along) + left[:, None, None] * np.outer(along, along)
        branches.append((norm.logpdf(y, omega[:, j], np.sqrt(V[j, j] + noise)) + norm.logcdf(a), mean, covariance))
    log_Z = np.logaddexp(branches[0][0], branches[1][0])
    shares = [np.exp(log_part - log_Z) for log_part, _, _ in branches]
    mean, second = np.zeros_like(omega), np.zeros((len(y), *V.shape))
    for p, (_, m, C) in zip(shares, branches, strict=True):
        mean += p[:, None] * m
        second += p[:, None, None] * (C + m[:, :, None] * m[:, None, :])
    return log_Z, mean, second - mean[:, :, None] * mean[:, None, :]


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.001])
@pytest.mark.parametrize(
    "V",
    [
        np.diag([0.37, 0.0905, 0.0987]),
        np.diag([0.25, 0.01, 1e-3]),
        np.array([[0.2, 0.02, 0.02], [0.02, 0.05, 0.01], [0.02, 0.01, 0.05]]),
        np.diag([0.1, 1e-5, 1e-5]),
        np.diag([1e-4, 1e-5, 1e-3]),
    ],
)
def test_a_posterior_next_to_a_jump_keeps_both_of_its_branches(V, noise):
    channel, omega, y = drawn("where(z1>0,z2,z3)", noise, V, 100)
    found = channel.posterior(channel.observe(y), omega, V)
    assert_moments(found, *two_branches(y, omega, V, noise), V)


@pytest.mark.parametrize("scale", [0.01, 1e-4])
def test_a_bent_level_set_is_not_taken_for_a_plane(scale):
    """y = z1 z2 + 0.3 z1^3 is the graph z2 = (y - 0.3 z1^3) / z1, with density 1 / |z1|."""
    V = scale * np.array([[1.0, 0.3], [0.3, 2.0]])
    channel, omega, y = drawn("z1*z2 + 0.3*z1**3", 0.0, V, 200)
    kept = np.abs(omega[:, 0]) > 0.2
    omega, y = omega[kept], y[kept]
    z1 = omega[:, :1] + np.sqrt(V[0, 0]) * np.linspace(-9, 9, 4001)
    z = np.stack([z1, (y[:, None] - 0.3 * z1**3) / z1], -1)
    away = z - omega[:, None]
    weight = np.exp(-0.5 * np.einsum("nki,ij,nkj->nk", away, np.linalg.inv(V), away)) / np.abs(z1)
    Z = weight.sum(1)
    mean = np.einsum("nk,nki->ni", weight, z) / Z[:, None]
    miss = z - mean[:, None]
    covariance = np.einsum("nk,nki,nkj->nij", weight, miss, miss) / Z[:, None, None]
    log_Z = np.log(Z * (z1[:, 1] - z1[:, 0]) / (2 * np.pi * np.sqrt(np.linalg.det(V))))
    # A level set that folds within reach of omega costs more.
    assert_moments(channel.posterior(channel.observe(y), omega, V), log_Z, mean, covariance, V, 1e-3, 0.15)


def on_dense_grid(text, noise, y, omega, V, nodes):
    """The posterior on midpoints of a grid of N(omega, V)."""
    t = np.stack(np.meshgrid(*[(np.arange(nodes) + 0.5) / nodes * 11 - 5.5] * len(V), indexing="ij"), -1)
    t = t.reshape(-1, len(V))
    z = omega + t @ np.linalg.cholesky(V).T
    g = Target(text).numpy(z)
    like = np.exp(-((y - g) ** 2) / (2 * noise)) / np.sqrt(2 * np.pi * noise)
    weight = np.exp(-np.sum(t**2, 1) / 2) * (11 / nodes) ** len(V) / (2 * np.pi) ** (len(V) / 2) * like
    mean = weight @ z / weight.sum()
    return np.log(weight.sum()), mean, (weight[:, None] * (z - mean)).T @ (z - mean) / weight.sum()


@pytest.mark.parametrize(
    "text, noise, V, accuracy",
    [
        ("relu(z1)+relu(z2)", 0.05, np.diag([0.3, 0.01]), (0.02, 0.05)),
        ("relu(z1)+relu(z2)", 1e-4, np.array([[0.02, 0.003], [0.003, 0.01]]), (2e-3, 0.02)),
        ("tanh(z1)*z2+0.3*z1**2", 0.02, 0.01 * np.eye(2), (0.01, 0.02)),
        # Where a fold is in reach, noise as wide as what g changes there is resolved to a tenth.
        ("tanh(z1)*z2+0.3*z1**2", 0.02, np.diag([0.2, 0.01]), (0.05, 0.15)),
    ],
)
def test_noise_of_any_width_beside_that_of_the_posterior(text, noise, V, accuracy):
    channel, omega, y = drawn(text, noise, V, 12, seed=1)
    found = channel.posterior(channel.observe(y), omega, V)
    exact = [on_dense_grid(text, noise, *row, V, 1001) for row in zip(y, omega, strict=True)]
    log_Z, mean, covariance = map(np.array, zip(*exact, strict=True))
    assert_moments(found, log_Z, mean, covariance, V, *accuracy)


def from_evidence(log_Z, omega, V):
    """log Z with the mean omega + V grad log Z and the covariance V + V hess log Z V, by central differences."""
    h = 1e-3 * np.sqrt(np.diag(V))
    steps = np.diag(h)
    g = np.stack([(log_Z(omega + s) - log_Z(omega - s)) / (2 * h[i]) for i, s in enumerate(steps)], -1)
    hessian = np.zeros((len(omega), len(V), len(V)))
    for (i, s), (j, t) in itertools.product(enumerate(steps), repeat=2):
        corners = log_Z(omega + s + t) - log_Z(omega + s - t) - log_Z(omega - s + t) + log_Z(omega - s - t)
        hessian[:, i, j] = corners / (4 * h[i] * h[j])
    return log_Z(omega), omega + g @ V, V + V @ hessian @ V


def test_flat_labels_and_those_between_them():
    """A corner that is flat, a sign that another chooses, a curved wall, and signs with noise: integrals in one z."""
    V = np.diag([0.3, 0.01])
    omega = np.random.default_rng(2).normal(-0.2, 0.3, (20, 2))
    channel = GenericChannel(Target("relu(z1)+relu(z2)"))
    found = channel.posterior(channel.observe(np.zeros(20)), omega, V)
    corner = from_evidence(lambda w: norm.logcdf(-w / np.sqrt(np.diag(V))).sum(-1), omega, V)
    assert_moments(found, *corner, V)

    V = np.diag([0.3, 0.05, 0.02])
    channel, omega, y = drawn("where(z1>0,sign(z2),sign(z3))", 0.0, V, 40)

    def chosen(w):
        first, second, third = (w / np.sqrt(np.diag(V))).T
        return np.log(norm.cdf(first) * norm.cdf(y * second) + norm.cdf(-first) * norm.cdf(y * third))

    assert_moments(channel.posterior(channel.observe(y), omega, V), *from_evidence(chosen, omega, V), V)

    V = 0.005 * np.array([[1.0, 0.2], [0.2, 2.0]])
    channel, omega, y = drawn("sign(z1+z2**2-1)", 0.0, V, 40)
    t = np.linspace(-8, 8, 2001)

    def wall(w):
        z2 = w[:, 1:] + np.sqrt(V[1, 1]) * t
        away = (w[:, :1] + V[0, 1] / V[1, 1] * (z2 - w[:, 1:]) + z2**2 - 1) / np.sqrt(V[0, 0] - V[0, 1] ** 2 / V[1, 1])
        return np.log(norm.cdf(y[:, None] * away) @ norm.pdf(t) * (t[1] - t[0]))

    likely = wall(omega) > -4
    log_Z, mean, covariance = (part[likely] for part in from_evidence(wall, omega, V))
    found = channel.posterior(channel.observe(y), omega, V)
    kept = type(found)(*(np.asarray(part)[likely] for part in found))
    assert_moments(kept, log_Z, mean, covariance, V)

    V = np.diag([0.05, 0.1, 0.02])
    channel, omega, y = drawn("sign(z1)+sign(z2)+sign(z3)", 0.3, V, 40)

    def signs(w):
        a, total = w / np.sqrt(np.diag(V)), 0.0
        for s in itertools.product((-1.0, 1.0), repeat=3):
            total = total + norm.cdf(a * s).prod(-1) * norm.pdf(y, np.sum(s), np.sqrt(0.3))
        return np.log(total)

    assert_moments(channel.posterior(channel.observe(y), omega, V), *from_evidence(signs, omega, V), V)


def test_points_are_looked_for_again_where_omega_left_them():
    looked = []

    def search(rows, box):
        looked.append(rows)
        return PointSets(box.centre, np.ones(len(rows)), np.zeros_like(box.centre), np.arange(len(rows) + 1))

    near, V, rows = NearPoints(search, 5, 2), 0.04 * np.eye(2), np.array([0, 2, 4])
    omega = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(near.points(rows, omega, V).z, omega)
    np.testing.assert_array_equal(near.points(rows, omega + 0.05, V).z, omega)
    moved = omega + np.array([[0.0, 0.0], [0.3, 0.0], [0.05, 0.05]])
    np.testing.assert_array_equal(near.points(rows, moved, V).z[:, 0], [0.0, 2.3, 4.0])
    np.testing.assert_array_equal(near.points(rows, moved, 0.8 * V).z[:, 0], [0.0, 2.3, 4.0])
    np.testing.assert_array_equal(near.points(rows, moved, 0.25 * V).z, moved)
    assert [list(rows) for rows in looked] == [[0, 2, 4], [2], [0, 2, 4]]


def test_what_is_in_reach_and_what_lines_resolve():
    surface = GenericChannel(Target("max(z1,z2)+z2**2")).surface
    omega = np.array([[1.0, 0.05], [1.0, -1.0]])
    assert list(breaks_in_reach(surface, omega, 1e-3 * np.eye(2))) == [True, False]
    V = np.array([[1.0, 1 - 1e-6], [1 - 1e-6, 1.0]])
    wide = resolvable(V)
    assert np.all(np.diag(wide) * np.diag(np.linalg.inv(wide)) <= 2.5**2 + 1e-9)
    assert np.linalg.eigvalsh(wide - V)[0] > -1e-12
    np.testing.assert_allclose(resolvable(np.diag([1.0, 1e-8])), np.diag([1.0, 1e-8]))
