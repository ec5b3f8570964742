"""Outliers of spiked matrices: the general formulas against closed forms and against matrices."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from solvable.spectra import Density, Discrete, MarchenkoPastur, Semicircle, bbp


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("theta", [0.5, 1.42, 3.0])
def test_a_spike_in_symmetric_noise(theta):
    found, exact = bbp.added_spike(Semicircle(2.0), theta), bbp.added_spike_in_noise(theta, 2.0)
    assert np.allclose(found, exact, rtol=1e-9, atol=1e-12)
    assert np.allclose(exact, [theta + 2 / theta, 1 - 2 / theta**2, np.sqrt(2)] if theta > 1.5 else exact)
    mirrored = bbp.added_spike(Semicircle(2.0), -theta)
    assert np.allclose(mirrored, [-found.location, found.overlap, found.threshold], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("ell", [1.2, 1.7, 3.0])
def test_a_spiked_sample_covariance(ell):
    """The law of W^T W / p, p samples in dimension d = ratio p, is that of W^T W / sqrt(p d) times sqrt(ratio)."""
    ratio = 0.4
    found, exact = bbp.covariance_spike(MarchenkoPastur(1 / ratio), ell), bbp.sample_covariance_spike(ell, ratio)
    scaled = [found.location * np.sqrt(ratio), found.overlap, found.threshold]
    assert np.allclose(scaled, exact, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("theta", [0.5, 0.9, 2.0])
def test_a_spiked_rectangular_matrix(theta):
    ratio = 0.4
    unit = ratio**0.25
    found = bbp.rectangular_spike(MarchenkoPastur(1 / ratio), ratio, theta / unit)
    exact = bbp.rectangular_spike_in_noise(theta, ratio)
    assert np.allclose([found.location * unit, found.left, found.right, found.threshold * unit], exact, rtol=1e-8)


@pytest.mark.slow
def test_thresholds_of_other_edges():
    """g diverges at a point mass."""
    found = bbp.added_spike(Discrete([-1.0, 1.0]), 0.1)
    assert found.threshold == 0
    assert np.isclose(found.location, (0.1 + np.sqrt(4.01)) / 2)


@pytest.mark.slow
def test_thresholds_of_densities():
    """g diverges at a jump of the density, and is 3/2 at the end of (1 - x^2) 3/4."""
    assert np.isclose(bbp.added_spike(Density(lambda x: 1 - x**2, -1, 1), 0.2).threshold, 2 / 3, rtol=1e-8)
    assert bbp.added_spike(Density(lambda x: 1.0, 0, 1), 0.2).threshold == 0


@pytest.mark.slow
def test_derivatives_and_arrays():
    """Values and slopes along directions in (theta, D), for several at once."""
    theta, D = np.array([0.0, 1.0, 2.0, 2.0, 5.0]), np.full(5, 1.5)
    direction = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 2)
    spike = lambda theta, D: bbp.added_spike(Semicircle(D), theta)  # noqa: E731
    slope = jax.jit(jax.vmap(lambda theta, D, along: jax.jvp(spike, (theta, D), (along[0], along[1]))))
    found, slopes = slope(theta, D, direction)
    assert np.allclose(found.overlap, np.maximum(1 - 1.5 / np.maximum(theta, 1e-9) ** 2, 0))
    assert np.allclose(slopes.location[2:4], [1 - 1.5 / 4, 1 / 2])
    assert np.allclose(slopes.overlap[2:4], [2 * 1.5 / 8, -1 / 4])


@pytest.mark.slow
def test_derivatives_backwards():
    slopes = jax.grad(lambda theta, D: bbp.added_spike(Semicircle(D), theta).location, (0, 1))(2.0, 1.5)
    assert np.allclose(slopes, [1 - 1.5 / 4, 1 / 2])


@pytest.mark.slow
def test_matrices_have_these_outliers():
    """A spike in a Wishart matrix and one in a rectangular Gaussian matrix."""
    d, L, theta = 700, 1000, 1.8
    rng = np.random.default_rng(1)
    u, v = (np.full(size, 1 / np.sqrt(size)) for size in (d, L))
    X = rng.standard_normal((d, L)) / np.sqrt(L)
    left, values, right = np.linalg.svd(X + theta * np.outer(u, v), full_matrices=False)
    exact = bbp.rectangular_spike_in_noise(theta, d / L)
    assert np.isclose(values[0], exact.location, rtol=0.02)
    assert np.allclose([(left[:, 0] @ u) ** 2, (right[0] @ v) ** 2], [exact.left, exact.right], atol=0.04)
    values, vectors = np.linalg.eigh(X @ X.T * np.sqrt(L / d) + 5.0 * np.outer(u, u))
    exact = bbp.added_spike(MarchenkoPastur(L / d), 5.0)
    assert np.isclose(values[-1], exact.location, rtol=0.02)
    assert np.isclose((vectors[:, -1] @ u) ** 2, exact.overlap, atol=0.04)
