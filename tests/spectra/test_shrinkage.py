"""The denoiser of eigenvalues at finite size: its divergence, its edges, and the root behind it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from solvable.spectra import Discrete, MarchenkoPastur, PowerLaw, Semicircle
from solvable.spectra.shrinkage import shrink, subordinate

SUBORDINATE = jax.jit(subordinate)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def test_the_divergence_is_that_of_the_matrix_function():
    law, D, width, d = MarchenkoPastur(0.5), 0.4, 0.05, 5
    rng = np.random.default_rng(0)
    S = rng.standard_normal((d, d))
    S = 0.7 * np.eye(d) + (S + S.T) / 4

    def denoised(M):
        values, vectors = np.linalg.eigh(M)
        return (vectors * np.asarray(shrink(law, D, values, width).values)) @ vectors.T

    total, h = 0.0, 1e-5
    for i in range(d):
        for j in range(i + 1):
            E = np.zeros((d, d))
            E[i, j] = E[j, i] = 1 / np.sqrt(2) if i != j else 1.0
            total += np.vdot(E, denoised(S + h * E) - denoised(S - h * E)) / (2 * h)
    assert float(shrink(law, D, np.linalg.eigvalsh(S), width).divergence) == pytest.approx(total, rel=1e-6)


def test_equal_eigenvalues_have_a_divergence():
    law, width = MarchenkoPastur(0.5), 0.05
    equal, apart = (
        float(shrink(law, 0.4, np.array([0.2, 0.5, 0.8, 0.8 + e, 1.0]), width).divergence) for e in (0, 1e-6)
    )
    assert equal == pytest.approx(apart, rel=1e-4)


def test_a_semicircle_is_shrunk_linearly():
    y = np.linspace(-1.5, 2.0, 40)
    found = np.asarray(shrink(Semicircle(1.0, 0.3), 0.5, y, 1e-9).values)
    assert found == pytest.approx(0.3 + (y - 0.3) / 1.5, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        MarchenkoPastur(0.05),
        MarchenkoPastur(3.0),
        Discrete([-1, 0, 1], [0.1, 0.8, 0.1]),
        PowerLaw(1.25, 50),
    ],
)
def test_the_subordinate_point_solves_its_equation_in_the_upper_half_plane(law):
    low, high = (float(end) for end in law.ends)
    for D in (1e-8, 1e-2, 1.0, 50.0):
        z = np.linspace(low - 4 * np.sqrt(D), high + 4 * np.sqrt(D), 301) + 1e-3j * np.sqrt(D)
        w = np.asarray(SUBORDINATE(law, D, z))
        excess = np.abs(w + D * np.asarray(law.stieltjes(w)) - z)
        assert np.all(w.imag > 0)
        assert np.max(excess) < 1e-10 * np.sqrt(D) + 1e-14 * np.max(np.abs(z))


def test_a_shrunk_eigenvalue_stays_in_the_support():
    law = MarchenkoPastur(0.5)
    found = shrink(law, 30.0, np.array([-40.0, -20.0, 0.0, 20.0, 60.0]), 0.1)
    assert float(found.values[0]) == 0.0
    assert float(found.values[4]) == pytest.approx(float(law.ends[1]))
