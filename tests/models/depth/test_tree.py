"""Targets that form a tree: how they are drawn, what they refuse, and how their variance spreads over degrees."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import solvable as sv

EXAMPLE = sv.TreeTarget(inner="he2(z)/2 + he3(z)/6")


def normal(function):
    """E f(z), by another integration than the model's."""
    return quad(lambda z: function(z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi), -12, 12, limit=200)[0]


def test_labels_are_those_of_the_definition():
    model = sv.TreeTarget(2, 0.4, outer="sign(z)")
    data = model.sample(np.random.default_rng(0), 30, kappa=1.5)
    m = round(30**0.4)
    assert data.X.shape == (round(30**1.5), 30) and data.truth.shape == (30, 2 * m)
    np.testing.assert_allclose(data.truth.T @ data.truth, 30 * np.eye(2 * m), atol=1e-10)
    for x, y in zip(data.X[:20], data.y[:20], strict=True):
        total = 0.0
        for i in range(2):
            z = [x @ data.truth[:, i * m + j] for j in range(m)]
            h = sum(a * (v**2 - 1 + v**3 - 3 * v) for a, v in zip(data.signs[i * m :], z, strict=False))
            total += np.sign(h)
        assert y == pytest.approx(total / math.sqrt(2), abs=1e-12)


def test_noise_has_its_variance():
    clean, noisy = (sv.TreeTarget(noise=noise).sample(np.random.default_rng(3), 40, kappa=2.2) for noise in (0.0, 0.3))
    added = noisy.y - clean.y
    assert np.var(added) == pytest.approx(0.3, abs=5 * 0.3 * math.sqrt(2 / len(added)))


def test_the_variance_over_degrees_is_that_of_independent_gaussians():
    """Degrees up to 3 by hand: E g(h) h_q/sigma_q for the quadratic and the cubic part of h."""
    degrees = EXAMPLE.degrees
    sigma = math.sqrt(1 / 2 + 1 / 6)
    assert degrees.sigma == pytest.approx(sigma, abs=1e-12)
    assert (degrees.lowest, degrees.highest) == (2, 3)
    slope = normal(lambda z: math.tanh(3 * sigma * z) * z)
    variance = normal(lambda z: math.tanh(3 * sigma * z) ** 2)
    assert degrees.variance == pytest.approx(variance, abs=1e-10)
    assert degrees.learned(1) == 0
    assert degrees.learned(2) == pytest.approx(slope**2 * 0.75, abs=1e-10)
    assert degrees.learned(3) == degrees.learned(5) == pytest.approx(slope**2, abs=1e-10)
    cube = normal(lambda z: math.tanh(3 * sigma * z) * (z**3 - 3 * z)) ** 2 / 6
    assert degrees.learned(6) == pytest.approx(slope**2 + cube * 0.75**3, abs=1e-10)


def test_what_the_sum_of_branches_tells_is_a_conditional_mean():
    """Two branches, by a sample of both hidden features: the error of E[y | h_1 + h_2] in narrow bins of the sum."""
    model = sv.TreeTarget(2, inner="he2(z)/2 + he3(z)/6")
    h = model.degrees.sigma * np.random.default_rng(1).standard_normal((400_000, 2))
    y, total = model.labels(h), h.sum(1)
    bins = np.digitize(total, np.quantile(total, np.linspace(0, 1, 400)[1:-1]))
    mean = np.bincount(bins, y) / np.bincount(bins)
    assert np.mean(mean[bins] ** 2) == pytest.approx(model.degrees.read(3, 2), abs=4e-3)


def test_shares_grow_with_the_degree_up_to_the_variance():
    for model in (EXAMPLE, sv.TreeTarget(inner="tanh(z)", outer="sign(z)"), sv.TreeTarget(outer="abs(z)")):
        learned = [model.degrees.learned(q) for q in range(21)]
        assert np.all(np.diff(learned) >= 0) and learned[-1] <= model.degrees.variance


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"inner": "z**2"}, "inner = 'of mean 1'"),
        ({"inner": "1 + 0*z"}, "inner = 'a constant'"),
        ({"outer": "3 + 0*z"}, "outer = 'a constant'"),
        ({"inner": "z1*z2"}, "inner = 'z1\\*z2'"),
        ({"exponent": 1.0}, "exponent = 1.0"),
        ({"branches": 0}, "branches = 0"),
    ],
)
def test_what_is_no_tree_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        sv.TreeTarget(**fields)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="branches = 4"):
        sv.TreeTarget(4).sample(np.random.default_rng(0), 9, kappa=1.5)
    with pytest.raises(ValueError, match="kappa = 15"):
        sv.TreeTarget().sample(np.random.default_rng(0), 64, kappa=15.0)
