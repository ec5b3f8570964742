"""Labels with noise from level sets: their law, and what they say at any noise, against evidences written down anew."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm, qmc

from solvable.channels import GenericChannel
from solvable.channels.levels.averages import sums
from solvable.numerics.gaussian_many import frame
from solvable.targets.target import Target

Array = np.ndarray


@functools.cache
def channel_of(text: str, noise: float) -> GenericChannel:
    return GenericChannel(Target(text), noise)


def law(text: str, noise: float) -> tuple[Array, Array, Array]:
    """The labels that are seen, their weights and their densities under z ~ N(0, I)."""
    (part,) = channel_of(text, noise).parts(1.0)
    mu, moments = sums(part.seen, frame(np.zeros((2, 2))), [(0, 0)])
    y = np.concatenate([share.y for block in part.seen.blocks for share in block.shares])
    return y, mu, moments[:, 0, 0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("noise", [1e-8, 1e-4, 1e-2, 1.0, 10.0])
@pytest.mark.parametrize("text", ["z1*z2", "relu(z1)+relu(z2)", "sign(z1*z2)", "tanh(z1)*z2+0.3*z1**2"])
def test_noisy_labels_have_mass_one_and_the_right_variance(text, noise):
    def moments(noise: float) -> tuple[float, float]:
        y, mu, density = law(text, noise)
        weight = mu * density
        mean = weight @ y / weight.sum()
        return weight.sum(), weight @ (y - mean) ** 2 / weight.sum()

    mass, variance = moments(noise)
    assert mass == pytest.approx(1, abs=1e-3)
    assert variance == pytest.approx(moments(0.0)[1] + noise, rel=5e-3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("noise", [1e-3, 0.1, 2.0])
def test_noisy_density_of_a_chi_squared_label(noise):
    """y = z1^2 + z2^2 + sqrt(D) xi: exp(-y/2 + D/8) Phi(y/sqrt D - sqrt D/2) / 2."""
    y, _, found = law("z1**2+z2**2", noise)
    width = np.sqrt(noise)
    exact = np.exp(-y / 2 + noise / 8) * ndtr(y / width - width / 2) / 2
    np.testing.assert_allclose(found, exact, atol=2e-3 * exact.max())


# Evidences Z(y, omega) and their gradients in omega, from the definition, for a diagonal V.


def gaussian(x: Array, variance: Array | float) -> Array:
    return np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def signs_and_line(y: Array, omega: Array, v: Array, noise: float) -> tuple[Array, Array]:
    """y = sign(z1 z2) + z1 / 2 + noise: Gaussian in z1 on each quadrant."""
    Z, slope = np.zeros(len(y)), np.zeros((len(y), 2))
    s = v[0] / 4 + noise
    for s1, s2 in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        residual = y - s1 * s2 - omega[:, 0] / 2
        fit = gaussian(residual, s)
        spread = np.sqrt(v[0] * noise / s)
        inside = s1 * (omega[:, 0] + v[0] * residual / (2 * s)) / spread
        beside = s2 * omega[:, 1] / np.sqrt(v[1])
        Z += fit * ndtr(inside) * ndtr(beside)
        d_inside = s1 * gaussian(inside, 1.0) / spread * noise / s
        slope[:, 0] += (fit * residual / (2 * s) * ndtr(inside) + fit * d_inside) * ndtr(beside)
        slope[:, 1] += fit * ndtr(inside) * s2 * gaussian(beside, 1.0) / np.sqrt(v[1])
    return Z, slope


def linear_in_the_first(f: Callable[[Array], Array]) -> Callable[..., tuple[Array, Array]]:
    """y = z1 f(z2) + noise: Gaussian in z1 at every z2, with nodes that are close where f is zero and noise matters."""

    def evidence(y: Array, omega: Array, v: Array, noise: float) -> tuple[Array, Array]:
        t = np.linspace(-14, 14, 4001)
        z2, step = 1e-5 * np.sinh(t), 1e-5 * np.cosh(t) * (t[1] - t[0])
        b = f(z2)
        rows = []
        for y_i, o in zip(y, omega, strict=True):
            x = (z2 - o[1]) / np.sqrt(v[1])
            w = step * gaussian(x, 1.0) / np.sqrt(v[1])
            s, residual = b**2 * v[0] + noise, y_i - b * o[0]
            fit = gaussian(residual, s) * w
            rows.append((fit.sum(), np.sum(fit * residual * b / s), np.sum(fit * x) / np.sqrt(v[1])))
        table = np.array(rows)
        return table[:, 0], table[:, 1:]

    return evidence


def larger(y: Array, omega: Array, v: Array, noise: float) -> tuple[Array, Array]:
    """y = max(z1, z2) + noise: either is the larger one, Gaussian given y, and above the other."""
    x = np.linspace(-7, 7, 401)
    w = gaussian(x, 1.0) / np.sum(gaussian(x, 1.0))
    Z, slope = np.zeros(len(y)), np.zeros((len(y), 2))
    for i, j in ((0, 1), (1, 0)):
        s, residual = v[i] + noise, y - omega[:, i]
        fit = gaussian(residual, s)
        top = (omega[:, i] + v[i] * residual / s)[:, None] + np.sqrt(v[i] * noise / s) * x
        above = (top - omega[:, j : j + 1]) / np.sqrt(v[j])
        chance, density = ndtr(above) @ w, gaussian(above, 1.0) @ w / np.sqrt(v[j])
        Z += fit * chance
        slope[:, i] += fit * (residual / s * chance + density * noise / s)
        slope[:, j] -= fit * density
    return Z, slope


EVIDENCES = {
    "sign(z1*z2)+0.5*z1": signs_and_line,
    "max(z1,z2)": larger,
    "z1*z2": linear_in_the_first(lambda t: t),
    "z1*tanh(z2)": linear_in_the_first(np.tanh),
}


def from_the_definition(text: str, v: Array, noise: float, points: int) -> tuple[Array, Array]:
    """E[g g^T], a mean over quasi-random z, omega given z, and noise; and its standard error over eight such means."""
    means = []
    for seed in range(8):
        x = norm.ppf(np.clip(qmc.Sobol(5, seed=seed).random(points), 1e-15, 1 - 1e-15))
        z = x[:, :2]
        omega = (1 - v) * z + np.sqrt((1 - v) * v) * x[:, 2:4]
        Z, slope = EVIDENCES[text](Target(text).numpy(z) + np.sqrt(noise) * x[:, 4], omega, v, noise)
        g = slope / Z[:, None]
        means.append(g.T @ g / points)
    return np.mean(means, 0), np.std(means, 0) / np.sqrt(8)


def check_information(text: str, v: tuple[float, float], noise: float, points: int) -> None:
    found = channel_of(text, noise).information(np.diag(v)[None])
    exact, error = from_the_definition(text, np.array(v), noise, points)
    assert np.abs(found.information[0] - exact).max() < found.error[0] + 4 * error.max()
    assert found.error[0] + 4 * error.max() < 0.03 * np.abs(exact).max()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text, noise", [("sign(z1*z2)+0.5*z1", 1e-8), ("max(z1,z2)", 1e-4)])
def test_information_at_small_noise_against_the_definition(text, noise):
    check_information(text, (0.2, 0.5), noise, 2**10)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.3])
@pytest.mark.parametrize("v", [(0.5, 0.5), (0.2, 0.6), (0.03, 0.3), (0.02, 0.02)])
@pytest.mark.parametrize("text", EVIDENCES)
def test_information_at_any_noise_against_the_definition(text, v, noise):
    check_information(text, v, noise, 2**13)


def check_monotone(text: str, v: tuple[float, ...], noises: list[float]) -> None:
    """More noise never informs more: the eigenvalues of E[g g^T] fall with it, within the errors stated."""
    found = [channel_of(text, noise).information(np.diag(v)[None]) for noise in noises]
    for less, more in zip(found[:-1], found[1:], strict=True):
        slack = less.error[0] + more.error[0]
        assert np.all(np.linalg.eigvalsh(more.information[0]) <= np.linalg.eigvalsh(less.information[0]) + slack)
        assert slack < 0.1 * np.abs(less.information[0]).max()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", ["sign(z1*z2)+0.5*z1", "z1**2+sign(z1*z2)"])
@pytest.mark.slow
def test_more_noise_never_informs_more(text):
    check_monotone(text, (0.3, 0.5), [0.0, 1e-5, 1e-2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "text, v",
    [
        ("max(z1,z2)", (0.1, 0.4)),
        ("z1*z2", (0.02, 0.5)),
        ("tanh(z1)*z2", (0.1, 0.4)),
        ("relu(z1)+relu(z2)", (0.2, 0.2)),
        ("sign(z1)+sign(z2)", (0.2, 0.5)),
        ("z1*z2+z3", (0.3, 0.4, 0.5)),
        ("max(z1,z2)*z3", (0.3, 0.4, 0.5)),
        ("sign(z1*z2)+0.5*z3", (0.3, 0.4, 0.2)),
    ],
)
def test_more_noise_never_informs_more_for_any_target(text, v):
    check_monotone(text, v, [0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1])
