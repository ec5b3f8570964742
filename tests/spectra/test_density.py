"""Laws from text and from densities: read, written, and as accurate as the closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.lab.grid.points import dumped, identity
from solvable.spectra import Density, Discrete, MarchenkoPastur, PowerLaw, ProductWishart, Semicircle
from solvable.spectra.convolution import free_sum
from solvable.spectra.denoising import mmse, mmse_forms
from solvable.spectra.named import as_law, law_text

TEXTS = [
    "marchenko-pastur:0.5",
    "marchenko-pastur:2",
    "semicircle",
    "semicircle:2",
    "semicircle:2,0.5",
    "power-law:1.25,40",
    "power-law:1.2,40",
    "discrete:-1,1",
    "discrete:-1,0,1@0.1,0.8,0.1",
    "discrete:-1,0,1",
]


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def wishart_shaped(rho: float) -> Density:
    low, high = ((1 + s * np.sqrt(rho)) ** 2 / np.sqrt(rho) for s in (-1, 1))
    return Density(lambda x: jnp.sqrt((x - low) * (high - x)) / x, low, high, atoms={0.0: 1 - rho} if rho < 1 else None)


transform = jax.jit(lambda law, z: law.stieltjes(z))


def test_texts_are_read_and_written():
    for text in TEXTS:
        assert str(as_law(text)) == text
    assert as_law("power-law:1.25").gamma == 1.25
    assert isinstance(as_law(" Marchenko_Pastur:0.5 "), MarchenkoPastur)
    assert np.array_equal(as_law([2, 1.0]).values, [1, 2])
    law = PowerLaw(1.2, 5)
    assert as_law(law) is law
    assert "400 eigenvalues" in law_text(Discrete(np.arange(400)))
    assert "Density" in str(Density(lambda x: 1.0, 0, 1))


def test_different_laws_are_filed_apart():
    laws = [as_law(text) for text in TEXTS] + [Density(lambda x: 1.0, 0, 1), Density(lambda x: 1 + x, 0, 1)]
    laws += [Density(lambda x: 1.0, 0, 2), Density(lambda x: 1.0, 0, 1, {0.5: 0.1}), ProductWishart(0.5, 2.0)]
    assert len({dumped(identity(law, "spectrum")) for law in laws}) == len(laws)


@pytest.mark.parametrize(
    "value",
    ["cauchy", "semicircle:0", "semicircle:1,2,3", "marchenko-pastur", "marchenko-pastur:x", "discrete:", 3, None]
    + ["discrete:1,2@1", "power-law:0.4", "power-law:1,2.5", "semicircle:1,nan", ["a"], "print(1)", []],
)
def test_what_is_no_law_is_refused(value):
    with pytest.raises(ValueError, match="^spectrum = .*marchenko-pastur:RHO"):
        as_law(value)


@pytest.mark.parametrize(
    ("density", "law"),
    [
        pytest.param(lambda: wishart_shaped(0.5), MarchenkoPastur(0.5), id="wishart", marks=pytest.mark.slow),
        pytest.param(lambda: wishart_shaped(1.0), MarchenkoPastur(1.0), id="hard edge"),
        pytest.param(
            lambda: Density(lambda x: jnp.sqrt(8 - x**2), -np.sqrt(8), np.sqrt(8)),
            Semicircle(2.0),
            id="semicircle",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_transforms_of_known_laws(density, law):
    """Also at 1e-6 from the support, where no quadrature with fixed nodes would do."""
    density = density()
    z = jnp.array([0.3 + 1e-6j, 1 + 0.1j, 2 + 1e-3j, 5 + 0j, -3 + 0j])

    @jax.jit
    def transforms(law):
        return law.stieltjes(z), law.stieltjes_slope(z), law.spread_slope(z[3:].real)

    for found, exact, accuracy in zip(transforms(density), transforms(law), (1e-12, 1e-9, 1e-9), strict=True):
        assert np.allclose(found, exact, rtol=accuracy)
    assert np.isclose(density.mean, law.mean, atol=1e-13)
    assert np.isclose(density.second_moment, law.second_moment, rtol=1e-13)
    assert np.allclose(density.ends, law.ends, atol=1e-13)
    assert np.allclose(density.eigenvalues(50), law.eigenvalues(50), atol=1e-4)


@pytest.mark.slow
def test_denoising_with_a_wishart_shaped_density():
    """The value is that of an independent solution of the cubic for the transform."""
    assert np.isclose(mmse(wishart_shaped(0.2), 0.1), 0.035391634449502066, rtol=1e-9)


def two_bands() -> Density:
    return Density(lambda x: jnp.where(jnp.abs(x) > 0.5, 1.0, 0.0), -1, 1)


@pytest.mark.slow
def test_the_gap_between_two_bands_is_found():
    assert np.allclose(two_bands().gaps, [[-0.5, 0.5]])


@pytest.mark.slow
def test_a_uniform_density_on_two_bands():
    """g is a logarithm."""
    law = two_bands()
    z = np.array([0.7 + 1e-7j, 0.2 + 0j, 3 + 0j])
    exact = np.log((z + 1) / (z + 0.5)) + np.log((z - 0.5) / (z - 1))
    assert np.allclose(transform(law, z), exact, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("D", [1e-3, 0.3])
def test_denoising_with_two_bands(D):
    """Both formulas of the error agree."""
    law = two_bands()
    found = free_sum(law, D)
    assert np.isclose(found.weight.sum(), 1, atol=1e-10)
    assert np.isclose(*mmse_forms(law, found), atol=1e-10)


@pytest.mark.slow
def test_kinks_tables_and_point_masses_inside():
    """1 - |x| has g = (z+1) log(z+1) + (z-1) log(z-1) - 2 z log z."""
    x = np.linspace(-1, 1, 201)
    z = np.array([0.2 + 1e-4j, 1.5 + 0j])
    exact = (z + 1) * np.log(z + 1) + (z - 1) * np.log(z - 1) - 2 * z * np.log(z)
    assert np.allclose(transform(Density((x, 1 - np.abs(x))), z), exact, atol=1e-4)
    law = Density(lambda x: 1 - jnp.abs(x), -1, 1, atoms={0.3: 0.2, 2.0: 0.1})
    assert np.allclose(transform(law, z), 0.7 * exact + 0.2 / (z - 0.3) + 0.1 / (z - 2), atol=1e-12)
    assert np.allclose(law.gaps, [[0.3, 0.3], [1.0, 2.0]])
    assert np.isclose(np.mean(law.eigenvalues(4000)), law.mean, atol=1e-3)
    assert np.sum(law.eigenvalues(1000) == 0.3) == 200


def test_what_is_no_density_is_refused():
    for build, name in [
        (lambda: Density(lambda x: x, -1, 1), "function.*negative at x"),
        (lambda: Density(lambda x: 1 / x, 0, 1), "function.*integral is finite"),
        (lambda: Density(lambda x: jnp.where(x > 0, jnp.nan, 1.0), -1, 1), "function.*finite values"),
        (lambda: Density(lambda x: 0 * x, 0, 1), "function.*positive and finite integral"),
        (lambda: Density(lambda x: 1.0, 1, 0), "high"),
        (lambda: Density(lambda x: 1.0, 0), "high"),
        (lambda: Density(([0, 1], [1, -1])), "function.*negative"),
        (lambda: Density(([1, 0], [1, 1])), "function.*x increasing"),
        (lambda: Density(([0, 1], [1, 1]), low=2), "low"),
        (lambda: Density(lambda x: 1.0, 0, 1, atoms={0.5: 1.0}), "atoms"),
    ]:
        with pytest.raises(ValueError, match=f"^{name}"):
            build()
