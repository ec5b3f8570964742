"""Gaussian expectations: exact across kinks, jumps and end singularities, where plain Gauss-Hermite is not."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import roots_hermitenorm
from scipy.stats import norm

from solvable.numerics.gaussian import (
    RADIUS,
    expectation,
    gauss_legendre,
    gaussian_panels,
    graded_legendre,
    hermite_functions,
    ladder_edges,
    normal_density,
    normal_trapezoid,
    panels,
    standard_edges,
)

KINKED = [
    ("mean of |z|", np.abs, [0], np.sqrt(2 / np.pi)),
    ("sign(z) z", lambda z: np.sign(z) * z, [0], np.sqrt(2 / np.pi)),
    ("mass of (-1, 1)", lambda z: (np.abs(z) < 1) * 1.0, [-1, 1], norm.cdf(1) - norm.cdf(-1)),
    ("mass above an irrational", lambda z: (z > np.pi / 7) * 1.0, [np.pi / 7], norm.sf(np.pi / 7)),
    ("relu(z - 3)", lambda z: np.maximum(z - 3, 0), [3], norm.pdf(3) - 3 * norm.sf(3)),
    ("no break at all", lambda z: z**6, [], 15.0),
]

# E|z|^p = 2^(p/2) Gamma((p + 1)/2) / sqrt(pi), and its derivative in p at 0.
SINGULAR = [
    ("sqrt|z|", lambda z: np.sqrt(np.abs(z)), float(2**0.25 * mpmath.gamma(0.75) / mpmath.sqrt(mpmath.pi)), 1e-12),
    ("log|z|", lambda z: np.log(np.abs(z)), float(-(mpmath.euler + mpmath.log(2)) / 2), 3e-8),
    ("1/sqrt|z|", lambda z: np.abs(z) ** -0.5, float(2**-0.25 * mpmath.gamma(0.25) / mpmath.sqrt(mpmath.pi)), 1e-5),
]


@pytest.mark.parametrize(("function", "breaks", "exact"), [case[1:] for case in KINKED], ids=[c[0] for c in KINKED])
def test_kinks_and_jumps_are_integrated_to_rounding(function, breaks, exact):
    assert expectation(function, breaks) == pytest.approx(exact, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(("function", "exact", "tolerance"), [c[1:] for c in SINGULAR], ids=[c[0] for c in SINGULAR])
def test_end_singularities_converge(function, exact, tolerance):
    assert expectation(function, [0]) == pytest.approx(exact, rel=tolerance)
    finer = abs(expectation(function, [0], nodes=96) - exact)
    assert finer <= max(abs(expectation(function, [0]) - exact) / 4, 1e-13)


def test_a_square_root_end_at_the_edge_of_the_domain():
    # 1/sqrt(1 - z^2) on (-1, 1) diverges at both ends, as the density of cos(z) does at its turning points.
    def density(z):
        inside = np.abs(z) < 1
        return np.where(inside, 1 / np.sqrt(np.where(inside, 1 - z**2, 1.0)), 0.0)

    # With z = sin(t) the integral is that of a smooth function, exp(-sin^2(t)/2).
    exact = float(mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(-0.25) * mpmath.besseli(0, 0.25))
    assert expectation(density, [-1, 1]) == pytest.approx(exact, rel=1e-5)


def test_plain_gauss_hermite_is_wrong_on_the_sign():
    """The reason for panels: 64 Gauss-Hermite nodes miss E[sign(z) z] by 1e-2 and E[sign(z - 0.3)] by far more."""
    z, weight = roots_hermitenorm(64)
    weight = weight / weight.sum()
    exact = np.sqrt(2 / np.pi)
    assert abs(weight @ (np.sign(z) * z) - exact) > 2e-3
    assert abs(weight @ np.sign(z - 0.3) - (1 - 2 * norm.cdf(0.3))) > 1e-2
    assert abs(expectation(lambda z: np.sign(z) * z, [0]) - exact) < 1e-14
    assert abs(expectation(lambda z: np.sign(z - 0.3), [0.3]) - (1 - 2 * norm.cdf(0.3))) < 1e-14


def test_an_unmarked_break_is_what_makes_the_error():
    exact = norm.sf(0.3)
    marked = expectation(lambda z: (z > 0.3) * 1.0, [0.3])
    unmarked = expectation(lambda z: (z > 0.3) * 1.0)
    assert abs(marked - exact) < 1e-14 < 1e-4 < abs(unmarked - exact)


def test_panels_agree_with_adaptive_quadrature():
    def function(z):
        return np.cos(3 * z) * np.abs(z - 0.4) + np.where(z > 1.7, np.exp(z / 2), 0.0)

    reference = sum(
        quad(lambda z: function(z) * norm.pdf(z), a, b, epsabs=1e-13, epsrel=1e-12)[0]
        for a, b in ((-9, 0.4), (0.4, 1.7), (1.7, 9))
    )
    assert expectation(function, [0.4, 1.7]) == pytest.approx(reference, abs=1e-11)


@pytest.mark.parametrize("rule", [gauss_legendre, graded_legendre])
@pytest.mark.parametrize("nodes", [8, 24, 64])
def test_rules_on_the_unit_interval(rule, nodes):
    t, weight = rule(nodes)
    assert np.all((t > 0) & (t < 1)) and np.all(np.diff(t) > 0) and np.all(weight > 0)
    # A cubic becomes of degree 15 under the graded substitution, times its slope of degree 4.
    for power in range(4 if rule is graded_legendre and nodes >= 24 else 2):
        assert weight @ t**power == pytest.approx(1 / (power + 1), rel=1e-13)


def test_trapezoid_resolves_steep_sigmoids():
    x, weight = normal_trapezoid(0.2, 6.0)
    assert weight.sum() == pytest.approx(1, abs=1e-15)
    for power, moment in ((2, 1.0), (4, 3.0), (6, 15.0)):
        assert weight @ x**power == pytest.approx(moment, rel=2e-5)  # the cut at 6 takes that much of x^6
    exact = quad(lambda x: np.tanh(4 * x) ** 2 * norm.pdf(x), -9, 9, epsabs=1e-13, limit=200)[0]
    z, hermite_weight = roots_hermitenorm(len(x))
    hermite = hermite_weight @ np.tanh(4 * z) ** 2 / hermite_weight.sum()
    assert abs(weight @ np.tanh(4 * x) ** 2 - exact) < 1e-3 < abs(hermite - exact) * 20


def test_panels_skip_empty_ones_and_keep_the_length():
    x, weight = panels([-1, 0, 0, 1e-13, 2])
    assert weight.sum() == pytest.approx(3, rel=1e-12)
    assert np.all(np.diff(x) > 0)
    assert len(x) == 2 * 24


def test_standard_edges_keep_breaks_inside_and_drop_those_outside():
    edges = standard_edges([0.123, -100, 100, RADIUS])
    assert edges[0] == -RADIUS and edges[-1] == RADIUS and 0.123 in edges
    assert np.all(np.diff(edges) > 0) and np.all(np.abs(edges) <= RADIUS)


def test_total_mass_is_one():
    for breaks in ((), (0.0,), (-1e-9, 1e-9), np.linspace(-8, 8, 77)):
        assert gaussian_panels(breaks)[1].sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("scale", [1e-6, 1e-4, 1e-2, 1.0])
def test_ladder_resolves_every_scale_near_a_break(scale):
    """E exp(-|z - b|/scale) near two close breaks, against a substitution by hand."""
    breaks = [0.5, 0.501]
    z, weight = panels(ladder_edges(breaks), 10, graded=False)
    for b in breaks:
        value = np.sum(weight * normal_density(z) * np.exp(-np.abs(z - b) / scale))
        exact = (
            scale * quad(lambda t, b=b: np.exp(-abs(t)) * norm.pdf(b + scale * t), -40, 40, points=[0], limit=200)[0]
        )
        assert value == pytest.approx(exact, rel=1e-6)


def test_ladder_without_breaks_is_the_standard_rule():
    assert np.array_equal(ladder_edges([]), standard_edges())


def test_hermite_functions_are_orthonormal():
    z, weight = gaussian_panels((), 48, 14.0)
    h = hermite_functions(z, 20)
    assert np.allclose((h * weight) @ h.T, np.eye(21), atol=1e-11)


def test_hermite_functions_against_mpmath():
    points = np.array([-3.3, -0.2, 0.0, 1.7])
    h = hermite_functions(points, 12)
    for k in (0, 1, 2, 5, 12):
        for i, z in enumerate(points):
            # He_k(z) = 2^(-k/2) H_k(z / sqrt 2)
            exact = mpmath.hermite(k, mpmath.mpf(z) / mpmath.sqrt(2)) / mpmath.sqrt(2**k * mpmath.factorial(k))
            assert h[k, i] == pytest.approx(float(exact), rel=1e-12, abs=1e-14)


def test_hermite_functions_keep_the_shape():
    assert hermite_functions(np.zeros((2, 3)), 0).shape == (1, 2, 3)
    assert hermite_functions(np.zeros((2, 3)), 4).shape == (5, 2, 3)
