"""Rectangular matrices with noise: against the quartic of the product law, moments, and matrices."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.spectra import Discrete, ProductWishart
from solvable.spectra.rectangular import RectangularSum, rectangular_sums
from solvable.spectra.rectangular_denoising import (
    optimal_singular_values_of,
    rectangular_mmse,
    rectangular_mmse_forms,
    rectangular_mmse_of,
)

VALUES = json.loads((Path(__file__).parents[1] / "reference" / "quadratic_values.json").read_text())
DENOISING = [pytest.param(entry, id=entry["id"]) for entry in VALUES if entry["id"].startswith("bsr_mmse")]


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def noisy(law, beta, kappa) -> RectangularSum:
    """The law of Y on numpy arrays."""
    return RectangularSum(*(np.asarray(part)[0] for part in rectangular_sums(law, beta, np.array([kappa]))))


@jax.jit
def transforms(law, z):
    g, derivative = jax.jvp(law.stieltjes, (z,), (jnp.ones_like(z),))
    return g, derivative, law.stieltjes_slope(z)


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "beta"), [(0.5, 2.0), (2.0, 1.5), (1.0, 1.0), (0.02, 1.0), (3.0, 1.0), (0.3, 50.0)])
def test_the_law_of_a_product(rho, beta):
    """tau = z g - 1 solves its cubic, is like 1/z far away, and g' is the derivative of g."""
    law = ProductWishart(rho, beta)
    high = float(law.ends[1])
    z = np.array([0.3 + 1e-6j, 1 + 0.1j, 0.5 * high + 1e-3j, 1.2 * high + 0j, -3 + 0j, 1e4 * high + 0j])
    g, derivative, slope = (np.asarray(part) for part in transforms(law, z))
    tau = z * g - 1
    cubic = (1 + tau) * (rho + tau) * (beta + tau) / (rho * beta * z * tau)
    assert np.allclose(cubic[:5], 1, rtol=1e-9)
    assert np.isclose(tau[-1] * z[-1], 1, atol=1e-3)
    assert np.allclose(slope, derivative, rtol=1e-8)
    assert np.all(g.imag[:3] < 0)
    assert np.isclose(np.mean(law.eigenvalues(2000)), 1, atol=2e-4)


@pytest.mark.parametrize("kappa", [1e-4, 0.05, 0.5, 20.0])
@pytest.mark.parametrize(("rho", "beta"), [(0.5, 2.0), (2.0, 1.5), (0.02, 1.0), (0.3, 50.0)])
def test_mass_moments_and_both_forms_of_the_error(rho, beta, kappa):
    found = noisy(ProductWishart(rho, beta), beta, kappa)
    assert np.isclose(found.weight.sum(), 1, atol=1e-9)
    assert np.isclose(np.sum(found.weight * found.x**2), 1 + kappa, rtol=1e-9)
    by_score, by_square = rectangular_mmse_forms(1.0, found)
    assert np.isclose(by_score, by_square, atol=1e-9 * max(1, kappa))
    assert 0 < by_score < min(1, kappa)
    assert np.all(np.diff(found.x) > 0)


@pytest.mark.parametrize(("rho", "beta", "kappa"), [(0.5, 2.0, 0.5), (2.0, 1.5, 1.3), (0.3, 50.0, 0.5)])
def test_the_transform_solves_the_quartic(rho, beta, kappa):
    """The algebraic equation of M = -g_Y at z = x^2 that eliminating omega leaves for the product law."""
    found = noisy(ProductWishart(rho, beta), beta, kappa)
    b, k, z = beta, kappa, found.x**2
    real = (found.score - (1 - 1 / b) / found.x) * b / (2 * found.x)
    M = -real + 1j * np.pi * found.density / (2 * found.x)
    terms = np.stack(
        [
            k * z**2 * M**4,
            z * (b * z - 2 * b * k + 2 * k) * M**3,
            (k * (b - 1) ** 2 - b**2 * z - b * k * rho * z - b * rho * z + 2 * b * z) * M**2,
            -b * (b * rho * z - b * k * rho - b * rho + b + k * rho + rho - 1) * M,
            -(b**2) * rho + 0 * M,
        ]
    )
    assert np.max(np.abs(terms.sum(0)) / np.abs(terms).max(0)) < 1e-9


def test_little_noise_and_much():
    """As kappa falls mmse/kappa tends to the number of unknowns of the rank, and as it grows mmse to the mean."""
    law = ProductWishart(0.3, 2.0)
    small = rectangular_mmse_forms(1.0, noisy(law, 2.0, 1e-7))[0] / 1e-7
    assert np.isclose(small, 0.3 * (1 + 2 - 0.3) / 2, rtol=1e-4)
    assert np.isclose(rectangular_mmse_forms(1.0, noisy(law, 2.0, 1e6))[1], 1, rtol=1e-4)


@pytest.mark.slow
def test_singular_values_outside_the_bulk():
    """Inside the two bulks they are shrunk as at the nodes; below, between and above g_Y is an integral over these."""
    rho, beta, kappa = 0.3, 3.0, 0.2
    law = ProductWishart(rho, beta)
    found = noisy(law, beta, kappa)
    outside = np.array([0.05, (found.x[99] + found.x[100]) / 2, 4.0, 9.0])
    x = np.concatenate([outside, found.x[2:182:3]])
    shrunk = np.asarray(optimal_singular_values_of(law, beta, found, x))
    assert np.allclose(shrunk[4:], (found.x - kappa * found.score)[2:182:3], atol=1e-9)
    g_Y = np.sum(found.weight / (outside[:, None] ** 2 - found.x**2), -1)
    expected = outside - kappa * ((1 - 1 / beta) / outside + 2 / beta * outside * g_Y)
    assert np.allclose(shrunk[:4], expected, rtol=1e-9)


@pytest.mark.slow
def test_derivatives_and_arrays():
    """The derivative along a direction in (rho, beta, kappa), for several points at once."""

    def error(point):
        rho, beta, kappa = point
        return rectangular_mmse(ProductWishart(rho, beta), beta, kappa)

    direction, step = jnp.array([0.3, 0.5, -0.2]), 1e-4
    derivative = jax.jit(jax.vmap(lambda point: jax.jvp(error, (point,), (direction,))))
    points = jnp.array([[0.5, 2.0, 0.5], [1.7, 1.2, 0.1]])
    _, slopes = derivative(points)
    above, below = derivative(points + step * direction)[0], derivative(points - step * direction)[0]
    assert np.allclose(slopes, (above - below) / (2 * step), rtol=1e-5)


@pytest.mark.slow
def test_denoising_a_matrix_of_any_singular_values():
    """A matrix with singular values of three kinds in a random basis: the error of the shrunk ones is as predicted."""
    law, beta, kappa, d = Discrete([0.0, 1.0, 4.0], [0.5, 0.3, 0.2]), 1.5, 0.3, 200
    L = int(beta * d)
    found = noisy(law, beta, kappa)
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        left = np.linalg.qr(rng.standard_normal((d, d)))[0]
        right = np.linalg.qr(rng.standard_normal((L, d)))[0]
        S = (left * np.sqrt(L * law.eigenvalues(d))) @ right.T
        u, x, vt = np.linalg.svd(S + np.sqrt(kappa) * rng.standard_normal((d, L)), full_matrices=False)
        shrunk = np.asarray(optimal_singular_values_of(law, beta, found, x / np.sqrt(L))) * np.sqrt(L)
        errors.append(np.mean(((u * shrunk) @ vt - S) ** 2))
    expected = rectangular_mmse_forms(float(law.mean), found)[0]
    assert abs(np.mean(errors) / expected - 1) < 0.02


def test_bad_products_are_refused():
    with pytest.raises(ValueError, match="rho = 0"):
        ProductWishart(0)
    with pytest.raises(ValueError, match="beta = 0.5"):
        ProductWishart(1.0, 0.5)


@pytest.mark.parametrize("entry", DENOISING)
def test_reference_values(entry):
    rho, beta, kappa = (entry["params"][name] for name in ("rho", "beta", "kappa"))
    law = ProductWishart(rho, beta)
    found = rectangular_mmse_of(law, noisy(law, beta, kappa))
    assert float(found) == pytest.approx(entry["value"], abs=entry["tol"])
