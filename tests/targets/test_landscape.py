"""Landscapes: pieces, flats, critical values and preimages of many targets, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import norm

from solvable.core.errors import TargetError
from solvable.numerics.gaussian import RADIUS
from solvable.targets.hermite import hermite_coefficients
from solvable.targets.landscape import landscape, refuse_infinite_variance
from solvable.targets.target import Target

ROOT3 = np.sqrt(3)
HALF_PI = np.arange(-5, 6) * np.pi / 2
# z^2 exp(-z^2) turns at 0 and +-1.
FUNCTIONS = {
    "he4(z)": lambda z: z**4 - 6 * z**2 + 3,
    "cos(2*z)": lambda z: np.cos(2 * z),
    "relu(z)": lambda z: np.maximum(z, 0),
    "abs(z) < 1": lambda z: (np.abs(z) < 1) * 1.0,
    "erf(20*z)": lambda z: erf(20 * z),
    "z**3": lambda z: z**3,
    "tan(z/6)": lambda z: np.tan(z / 6),
    "min(abs(z), 1)": lambda z: np.minimum(np.abs(z), 1),
    "z**2*exp(-z**2)": lambda z: z**2 * np.exp(-(z**2)),
    "sign(z) + sin(3*z)": lambda z: np.sign(z) + np.sin(3 * z),
    "abs(z**2 - 2) + z/3": lambda z: np.abs(z**2 - 2) + z / 3,
    "tanh(5*z)*z": lambda z: np.tanh(5 * z) * z,
    "log(abs(z))": lambda z: np.log(np.abs(z)),
    "z - 2*step(z)": lambda z: z - 2 * (z > 0),
}
EDGES = {
    "he4(z)": [-ROOT3, 0, ROOT3],
    "cos(2*z)": HALF_PI,
    "relu(z)": [0],
    "-1 < z < 1": [-1, 1],
    "abs(z) < 1": [-1, 0, 1],  # the kink of abs(z) cuts a flat in two, which does no harm
    "z**3": [0],
    "tan(z/6)": [],
    "min(abs(z), 1)": [-1, 0, 1],
    "log(abs(z))": [0],
    "z - 2*step(z)": [0],
}


def shape(text):
    return landscape(Target(text))


@pytest.mark.parametrize("text", EDGES)
def test_edges(text):
    assert np.allclose(shape(text).edges, EDGES[text], atol=1e-9)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("text", FUNCTIONS)
def test_pieces_cover_the_line_and_are_monotone_or_flat(text):
    found, g = shape(text), FUNCTIONS[text]
    assert found.lower[0] == -RADIUS and found.upper[-1] == RADIUS
    assert np.array_equal(found.lower[1:], found.upper[:-1])
    for i in range(len(found.lower)):
        inner = found.lower[i] + (found.upper[i] - found.lower[i]) * np.linspace(1e-6, 1 - 1e-6, 4001)
        steps = np.diff(g(inner))
        scale = 1 + np.abs(g(inner)).max()
        if found.flat[i]:
            assert np.abs(steps).max() <= 1e-13 * scale
        else:
            rising = found.value_upper[i] > found.value_lower[i]
            assert np.all(steps * (1 if rising else -1) >= -1e-14 * scale)


@pytest.mark.parametrize(
    ("text", "atoms", "continuous"),
    [
        ("he4(z)", [], 1.0),
        ("relu(z)", [0], 0.5),
        ("abs(z) < 1", [0, 1], 0.0),
        ("min(abs(z), 1)", [1], norm.cdf(1) - norm.cdf(-1)),
        ("sign(z)*(abs(z) > 1)", [-1, 0, 1], 0.0),
        ("sign(sin(5*z))", [-1, 1], 0.0),
        ("where(abs(z) < 0.5, 2, z)", [2], 1 - (norm.cdf(0.5) - norm.cdf(-0.5))),
    ],
)
def test_atoms_and_continuous_mass(text, atoms, continuous):
    found = shape(text)
    assert np.allclose(found.atoms, atoms, atol=1e-14) and len(found.atoms) == len(atoms)
    assert found.continuous_mass == pytest.approx(continuous, abs=1e-12)
    assert bool(found.flat.all()) == (continuous == 0)


def test_saturation_makes_flats_without_a_break():
    """erf(20 z) equals one to the last digit from about 0.3 on: an atom in double precision."""
    found = shape("erf(20*z)")
    assert found.atoms.tolist() == [-1, 1]
    assert found.flat.tolist() == [True, False, True]
    end = found.edges[1]
    assert 0.28 < end < 0.31 and found.edges[0] == pytest.approx(-end, abs=1e-6)
    assert erf(20 * (end - 1e-3)) < 1 == erf(20 * (end + 1e-3))
    assert found.continuous_mass == pytest.approx(norm.cdf(end) - norm.cdf(-end), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("he4(z)", [-6, 3]),
        ("cos(2*z)", [-1, 1]),
        ("relu(z)", [0]),
        ("abs(z) < 1", []),
        ("min(abs(z), 1)", [0, 1]),
        ("z - 2*step(z)", [-2, 0]),
        ("z**3", [0]),
        ("z**2*exp(-z**2)", [0, np.exp(-1)]),
        ("log(abs(z))", None),
    ],
)
def test_critical_values(text, values):
    found = shape(text).critical_values
    if values is None:
        assert np.all(np.isfinite(found))
    else:
        assert np.allclose(found, values, atol=1e-9) and len(found) == len(values)


def crossings(g, edges, y):
    """All z with g(z) = y by a dense search for sign changes between jumps, refined by bisection."""
    grid = np.unique(np.concatenate([np.linspace(-RADIUS, RADIUS, 40_001), np.asarray(edges, float)]))
    found = []
    nudged_low, nudged_high = grid[:-1] + 1e-13, grid[1:] - 1e-13
    change = (g(nudged_low) - y) * (g(nudged_high) - y) < 0
    for low, high in zip(nudged_low[change], nudged_high[change], strict=True):
        sign = np.sign(g(low) - y)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.sign(g(middle) - y) == sign else (low, middle)
        found.append((low + high) / 2)
    return np.array(found)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("text", FUNCTIONS)
def test_all_preimages_are_found_and_solve_the_equation(text):
    found, g = shape(text), FUNCTIONS[text]
    y = g(np.random.default_rng(1).standard_normal(24))
    y = y[found.atom_of(y) < 0]
    roots, has_root = found.preimages(y)
    assert roots.shape == has_root.shape == (len(y), np.sum(~found.flat))
    for i, label in enumerate(y):
        mine = np.sort(roots[i][has_root[i]])
        slope = np.abs((g(mine + 1e-7) - g(mine - 1e-7)) / 2e-7)
        assert np.all(np.abs(g(mine) - label) <= 1e-12 * (1 + abs(label)) + 1e-14 * slope * (1 + np.abs(mine)))
        reference = crossings(g, found.edges, label)
        assert len(mine) == len(reference) and np.allclose(mine, reference, atol=1e-7)


def test_labels_out_of_range_have_no_preimage():
    roots, has_root = shape("he4(z)").preimages(np.array([-6.1, -1e9, np.inf, np.nan]))
    assert not has_root.any() and np.all(np.isfinite(roots))
    assert not shape("abs(z)").preimages(np.array([-1.0]))[1].any()
    assert shape("abs(z) < 1").preimages(np.array([0.3]))[0].shape == (1, 0)


def test_preimages_of_many_labels_at_once_and_of_none():
    y = np.random.default_rng(0).normal(size=5000)
    roots, has_root = shape("z**3").preimages(y)
    assert has_root.sum() == 5000
    assert np.allclose(roots[has_root], np.cbrt(y), atol=1e-12)
    roots, has_root = shape("z**3").preimages(np.zeros(0))
    assert roots.shape[0] == has_root.shape[0] == 0


def test_inverse_is_the_root_or_the_nearest_end():
    found = shape("abs(z)")
    assert np.allclose(found.inverse(np.array([0.7, -2.0, 50.0])), [[-0.7, 0.7], [0, 0], [-RADIUS, RADIUS]], atol=1e-9)


def test_atom_of_labels_to_rounding():
    found = shape("min(abs(z), 1)")
    assert found.atom_of(np.array([1.0, 1 - 1e-15, 0.99, 0.0])).tolist() == [0, 0, -1, -1]
    assert shape("he4(z)").atom_of(np.array([1.0, 2.0])).tolist() == [-1, -1]


def test_values_beside_jumps_are_one_sided():
    found = shape("sign(z)")
    assert found.value_lower.tolist() == [-1, 1] and found.atoms.tolist() == [-1, 1]
    mixed = shape("z - 2*step(z)")
    assert np.allclose(mixed.value_upper[0], 0, atol=1e-12) and np.allclose(mixed.value_lower[1], -2, atol=1e-12)


def test_a_landscape_is_made_once():
    assert shape("cos(2*z)") is shape("cos(2 * z)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("z - z", "the target 'z - z' is constant: there is nothing to learn"),
        ("sign(z)**2", "the target 'sign(z)**2' is constant: there is nothing to learn"),
        ("1/z", "the target '1/z' has infinite variance: it diverges too fast at z = 0"),
        (
            "exp(z**2/4)",
            "the target 'exp(z**2/4)' grows too fast: its variance is infinite, or comes from |z| > 12, which no "
            "sample ever reaches",
        ),
    ],
)
def test_refused_targets(text, message):
    with pytest.raises(TargetError) as error:
        shape(text)
    assert str(error.value) == message


def test_a_target_undefined_in_the_tail_is_refused():
    # Typical z are all below 3.5, so that the text itself passes.
    with pytest.raises(TargetError) as error:
        shape("sqrt(3.5 - z)")
    assert str(error.value) == (
        "the target 'sqrt(3.5 - z)' is undefined (NaN) on a set of positive probability (near z = 3.5)"
    )


@pytest.mark.slow
def test_too_many_pieces_are_refused():
    with pytest.raises(TargetError) as error:
        shape("sin(500*z)")
    text = str(error.value)
    assert text.startswith("the target 'sin(500*z)' has ")
    assert text.endswith(" monotone pieces on [-9, 9]; at most 512 are handled: make it oscillate less")


@pytest.mark.parametrize("text", ["abs(z)**(-0.4)", "log(abs(z))", "tan(z/6)", "exp(z**2/8)", "exp(2*z)", "z**6"])
def test_finite_variance_is_accepted(text):
    target = Target(text)
    refuse_infinite_variance(target, target.breaks)
    assert np.isfinite(hermite_coefficients(target, 4)).all()


@pytest.mark.parametrize(
    ("text", "place"),
    [("1/z", "0"), ("abs(z)**(-0.5)", "0"), ("1/(z - 0.5)", "0.5"), ("tan(z)", "-7.85398"), ("z**(-2)", "0")],
)
def test_poles_of_infinite_variance_are_refused(text, place):
    target = Target(text)
    with pytest.raises(TargetError) as error:
        refuse_infinite_variance(target, target.breaks)
    assert str(error.value) == f"the target {text!r} has infinite variance: it diverges too fast at z = {place}"


@pytest.mark.parametrize("text", ["exp(z**2/4)", "exp(z**2)", "exp(z**2/4.1)"])
def test_tails_of_infinite_variance_are_refused(text):
    target = Target(text)
    with pytest.raises(TargetError) as error:
        refuse_infinite_variance(target, target.breaks)
    assert str(error.value) == (
        f"the target {text!r} grows too fast: its variance is infinite, or comes from |z| > 12, which no sample ever "
        "reaches"
    )
