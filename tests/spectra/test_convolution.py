"""Free convolution with a semicircle and optimal denoising, against moments, closed forms, the cubic and matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.spectra import Discrete, MarchenkoPastur, PowerLaw, Semicircle
from solvable.spectra.convolution import FreeSum, bulk_intervals, free_sum
from solvable.spectra.denoising import mmse, mmse_forms, mmse_of
from solvable.spectra.law import Law
from solvable.spectra.shrinkage import shrink, subordinate

LAWS = {
    "narrow": MarchenkoPastur(0.2),
    "wide": MarchenkoPastur(2.3),
    "semicircle": Semicircle(2.0, 0.5),
    "signs": Discrete([-1.0, 1.0]),
    "power": PowerLaw(1.2, 6),
}
# The semicircle has a test of its own, and a list of values those of the learned matrices.
QUICK = ["narrow", "wide"]
ALL = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LAWS if name not in QUICK)]
transform = jax.jit(lambda law, z: law.stieltjes(z))


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def on_numpy(law, D) -> FreeSum:
    """The law of Y on numpy arrays."""
    return FreeSum(*(np.asarray(part) for part in free_sum(law, D)))


@pytest.mark.parametrize("D", [0.03, 0.4, 5.0])
@pytest.mark.parametrize("name", ALL)
def test_mass_and_moments(name, D):
    law = LAWS[name]
    found = on_numpy(law, D)
    assert np.isclose(found.weight.sum(), 1, atol=1e-10)
    assert np.isclose(np.sum(found.weight * found.x), law.mean, atol=1e-10)
    assert np.isclose(np.sum(found.weight * found.x**2), law.second_moment + D, rtol=1e-10)
    assert np.all(np.diff(found.x) > 0)


@pytest.mark.parametrize("D", [0.03, 0.4, 5.0])
@pytest.mark.parametrize("name", ALL)
def test_the_two_forms_of_the_mmse_agree(name, D):
    law = LAWS[name]
    found = on_numpy(law, D)
    by_cube = D - 4 * np.pi**2 / 3 * D**2 * np.sum(found.weight * found.density**2)
    by_square = law.second_moment - np.sum(found.weight * (2 * found.u - found.x) ** 2)
    assert np.isclose(by_cube, by_square, atol=1e-10)
    assert 0 < mmse_of(law, found) < min(D, float(law.variance))


@pytest.mark.parametrize(("rho", "D"), [(0.2, 0.1), (0.5, 0.6), (1.0, 0.3), (2.3, 1.0)])
def test_the_density_solves_the_cubic(rho, D):
    """D g^3 - (x + D r) g^2 + (x r + 1 - rho) g - r = 0 with r = sqrt(rho), for g = h - i pi mu."""
    found = on_numpy(MarchenkoPastur(rho), D)
    g, r = found.hilbert - 1j * np.pi * found.density, np.sqrt(rho)
    terms = np.stack([D * g**3, -(found.x + D * r) * g**2, (found.x * r + 1 - rho) * g, np.full_like(g, -r)])
    assert np.max(np.abs(terms.sum(0)) / np.abs(terms).max(0)) < 1e-10


@pytest.mark.slow
def test_the_edges_of_two_bulks():
    """The real roots of D g^2 (r-g)^2 + rho g^2 - (r-g)^2 mapped by x = 1/g + D g + rho/(r-g)."""
    rho, D = 0.137, 0.01
    r = np.sqrt(rho)
    square = np.polymul([1, -r], [1, -r])
    quartic = np.polysub(np.polyadd(np.polymul([D, 0, 0], square), [rho, 0, 0]), square)
    g = np.sort(np.roots(quartic).real)
    expected = np.sort(1 / g + D * g + rho / (r - g))
    law = MarchenkoPastur(rho)
    u = np.ravel(bulk_intervals(law, D))
    assert np.allclose(u + D * np.real(transform(law, u + 0j)), expected, atol=1e-10)


@pytest.mark.slow
def test_a_semicircle_stays_one():
    s, D = 2.0, 0.7
    found = on_numpy(Semicircle(s), D)
    assert np.allclose(found.density, np.sqrt(4 * (s + D) - found.x**2) / (2 * np.pi * (s + D)), atol=1e-12)
    assert np.isclose(mmse_of(Semicircle(s), found), s * D / (s + D), rtol=1e-12)
    assert np.isclose(mmse(Semicircle(s), D), s * D / (s + D), rtol=1e-12)


@pytest.mark.slow
def test_a_semicircle_is_shrunk_linearly():
    s, D, y = 2.0, 0.7, np.array([-1.0, 0.3])
    assert np.allclose(shrink(Semicircle(s), D, y, 1e-11).values, y * s / (s + D), rtol=1e-10)


@pytest.mark.parametrize(("name", "weights"), [("signs", [0.5, 0.5]), ("narrow", [0.8])])
def test_little_noise_leaves_the_overlap_of_atoms(name, weights):
    """mmse / D -> 1 - sum of squared weights as D -> 0."""
    law = LAWS[name]
    for D in (1e-5, 1e-13):
        assert np.isclose(mmse_of(law, on_numpy(law, D)) / D, 1 - np.sum(np.square(weights)), atol=1e-3)


def test_much_noise_leaves_the_variance():
    for name in QUICK:
        law = LAWS[name]
        assert np.isclose(mmse_of(law, on_numpy(law, 1e5)), law.variance, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["narrow", pytest.param("signs", marks=pytest.mark.slow)])
def test_the_subordinate_of_any_eigenvalue(name):
    """In the bulks, just above the axis, it is Biane's u + iv; between and beyond them it is real, w + D g(w) = y."""
    law, D = LAWS[name], 0.03
    found = on_numpy(law, D)
    y = np.array([-5.0, np.mean(law.gaps[0]), 9.0])
    w, outside = np.split(np.asarray(jax.jit(subordinate)(law, D, np.append(found.x, y) + 1e-13j)), [len(found.x)])
    assert np.allclose(w, found.u + 1j * found.v, atol=1e-6)  # next to an edge the root of the height counts
    assert np.median(np.abs(w - found.u - 1j * found.v)) < 1e-11
    assert np.allclose(outside.imag, 0, atol=1e-12)
    assert np.allclose(outside.real + D * np.real(transform(law, outside.real + 0j)), y, atol=1e-12)


@pytest.mark.slow
def test_whole_arrays_of_noise_and_of_laws_with_their_derivatives():
    """The slopes by rho and by D at the first two points, which are one, are measured between the next four."""
    step = 1e-4
    rho = np.append(0.5 + step * np.array([0, 0, 1, -1, 0, 0]), [0.2, 1.0, 1.7, 0.5])
    D = np.append(0.6 + step * np.array([0, 0, 0, 0, 1, -1]), [0.1, 0.6, 2.0, 0.0])
    along = np.eye(2)[[0, 1] + [0] * 8]
    error = lambda r, D: mmse(MarchenkoPastur(r), D)  # noqa: E731
    values, slopes = jax.jit(jax.vmap(lambda r, D, a: jax.jvp(error, (r, D), (a[0], a[1]))))(rho, D, along)
    measured = [(values[2] - values[3]) / (2 * step), (values[4] - values[5]) / (2 * step)]
    assert np.allclose(slopes[:2], measured, rtol=1e-6)
    laws = [(MarchenkoPastur(float(r)), float(v)) for r, v in zip(rho[:-1], D, strict=False)]
    assert np.allclose(values, [*(mmse_of(law, on_numpy(law, v)) for law, v in laws), 0])


@pytest.mark.slow
def test_derivatives_backwards():
    step, error = 1e-4, lambda r, D: mmse(MarchenkoPastur(r), D)
    slopes = jax.jit(jax.grad(error, (0, 1)))(0.5, 0.6)
    measured = [(error(0.5 + a, 0.6 + b) - error(0.5 - a, 0.6 - b)) / (2 * step) for a, b in step * np.eye(2)]
    assert np.allclose(slopes, measured, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("law", [MarchenkoPastur(0.5), Discrete([-1.0, 0.5, 2.0])], ids=["wishart", "three values"])
def test_denoising_a_matrix(law):
    """A matrix of that spectrum with Gaussian noise: the error of the shrunk eigenvalues is the predicted one."""
    d, D = 300, 0.4
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
        A = (basis * law.eigenvalues(d)) @ basis.T
        Z = rng.standard_normal((d, d))
        values, vectors = np.linalg.eigh(A + np.sqrt(D) * (Z + Z.T) / np.sqrt(2 * d))
        shrunk = np.asarray(shrink(law, D, values, 1e-6).values)
        errors.append(np.sum(((vectors * shrunk) @ vectors.T - A) ** 2) / d)
    assert abs(np.mean(errors) / float(mmse(law, D)) - 1) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("D", [1e-4, 0.05, 1.0])
def test_many_values(D):
    """Hundreds of atoms, some isolated and some merged into one bulk: moments, both forms of the error, its slope."""
    law = PowerLaw(1.25)
    found = free_sum(law, D)
    assert np.isclose(found.weight.sum(), 1, atol=1e-7)
    assert np.isclose(jnp.sum(found.weight * found.x), law.mean, atol=1e-7)
    by_cube, by_square = mmse_forms(law, found)
    assert np.isclose(by_cube, by_square, atol=1e-8)
    up, down = (mmse_of(law, free_sum(law, D * (1 + step))) for step in (1e-4, -1e-4))
    assert 0 < (up - down) / (2e-4 * D) < by_cube / D  # mmse(D) rises and mmse(D)/D falls


def test_sums_over_values_are_those_of_the_definition():
    values, weights = np.array([-1.0, 0.2, 0.5, 1.3, 2.0, 2.1]), np.array([1, 2, 3, 1, 2, 1]) / 10
    law, u, v = Discrete(values, weights), np.array([0.3, -2.0, 1.9]), np.array([0.2, 0.0, 1e-3])
    z = u + 1j * v
    away = z[:, None] - values

    @jax.jit
    def sums(law, z, s):
        u = jnp.real(z)
        by_transform = Law.smoothed(law, u[::2], s[::2])
        return law.stieltjes(z), law.stieltjes_slope(z), *law.smoothed(u, s), by_transform, law.spread(3.0)

    g, slope, P, Q, by_transform, spread = sums(law, z, v**2)
    assert np.allclose(g, (weights / away).sum(1), rtol=1e-13)
    assert np.allclose(slope, -(weights / away**2).sum(1), rtol=1e-13)
    assert np.allclose(P, (weights / np.abs(away) ** 2).sum(1), rtol=1e-13)
    assert np.allclose(Q, (weights / np.abs(away) ** 4).sum(1), rtol=1e-13)
    assert np.allclose(by_transform, [P[::2], Q[::2]], rtol=1e-8)
    assert np.allclose(spread, (weights / (3 - values) ** 2).sum())
    assert np.allclose(jax.jit(Discrete.spread_slope)(law, 3.0), -2 * (weights / (3 - values) ** 3).sum())


def test_a_power_law_has_its_size_built_in():
    law = PowerLaw(1.25)
    assert len(law.values) == 400 and np.isclose(law.second_moment, 1)
    assert np.allclose(law.eigenvalues(800)[::2], law.eigenvalues(400))
    with pytest.raises(ValueError, match="d = 500"):
        law.eigenvalues(500)
    with pytest.raises(ValueError, match=r"size = 2\.5"):
        PowerLaw(1.25, 2.5)  # type: ignore[arg-type]


def test_bad_laws_are_refused():
    with pytest.raises(ValueError, match="rho = -1"):
        MarchenkoPastur(-1)
    with pytest.raises(ValueError, match="scale = 0"):
        Semicircle(0)
    with pytest.raises(ValueError, match="gamma = 0.5"):
        PowerLaw(0.5, 10)
    with pytest.raises(ValueError, match="weights"):
        Discrete([0.0, 1.0], [1.0])
