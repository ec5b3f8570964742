"""Features of matrix models: products against dense matrices, moments, and the memory they take."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from solvable.engine.operators import GaussianFeatures, QuadraticFeatures

KINDS = pytest.mark.parametrize("draw", [QuadraticFeatures.draw, GaussianFeatures.draw])


def symmetric(rng, d):
    S = rng.standard_normal((d, d))
    return S + S.T


def dense(operator):
    """Every G as a matrix, n x d x d, from the adjoint on unit vectors."""
    return np.stack([operator.adjoint(e) for e in np.eye(operator.samples)])


@KINDS
@pytest.mark.parametrize(("n", "d"), [(1, 2), (3, 1), (700, 6), (1200, 23)])
def test_the_two_products_are_adjoint(draw, n, d):
    rng = np.random.default_rng(n)
    operator = draw(rng, n, d)
    S, g = symmetric(rng, d), rng.standard_normal(n)
    total = operator.adjoint(g)
    assert operator.samples == n and operator.size == d
    assert np.array_equal(total, total.T)
    assert np.vdot(operator.forward(S), g) == pytest.approx(np.vdot(S, total), rel=1e-11, abs=1e-11)


@KINDS
def test_norms_are_those_of_the_dense_features(draw):
    operator = draw(np.random.default_rng(0), 40, 7)
    assert operator.norms() == pytest.approx(np.linalg.norm(dense(operator), axis=(1, 2)), rel=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_quadratic_features_are_the_outer_products_of_the_inputs(order):
    rng = np.random.default_rng(1)
    X, S, g = rng.standard_normal((900, 11)), symmetric(rng, 11), rng.standard_normal(900)
    g[::7] = 0.0
    operator = QuadraticFeatures(np.array(X, order=order))
    G = (np.einsum("ni,nj->nij", X, X) - np.eye(11)) / np.sqrt(11)
    assert operator.forward(S) == pytest.approx(np.einsum("nij,ij->n", G, S), rel=1e-11, abs=1e-11)
    assert operator.adjoint(g) == pytest.approx(np.einsum("nij,n->ij", G, g), rel=1e-11, abs=1e-11)


@KINDS
def test_the_features_have_the_stated_moments(draw):
    d, n = 8, 20_000
    operator = draw(np.random.default_rng(2), n, d)
    same, other = np.zeros((d, d)), np.zeros((d, d))
    same[2, 2] = 1.0
    other[1, 3] = other[3, 1] = 0.5
    diagonal, off = operator.forward(same), operator.forward(other)
    for values, variance in ((diagonal, 2 / d), (off, 1 / d)):
        assert abs(values.mean()) < 5 * np.sqrt(variance / n)
        # The fourth moment is at most 15 variances squared (that of x^2 - 1).
        assert values.var() == pytest.approx(variance, rel=5 * np.sqrt(14 / n))
    assert abs(np.mean(diagonal * off)) < 5 * np.sqrt(10 / n) / d


def test_features_drawn_again_are_the_features_kept():
    rng = np.random.default_rng(3)
    kept, drawn = (GaussianFeatures(2500, 50, seed=5, keep=keep) for keep in (True, False))
    S, g = symmetric(rng, 50), rng.standard_normal(2500)
    for _ in range(2):
        assert np.array_equal(kept.forward(S), drawn.forward(S))
        assert np.array_equal(kept.adjoint(g), drawn.adjoint(g))
    assert np.array_equal(kept.norms(), drawn.norms())
    assert not np.array_equal(GaussianFeatures(2500, 50, seed=6).forward(S), kept.forward(S))


def test_small_sets_of_gaussian_features_are_kept_and_large_ones_are_not():
    assert GaussianFeatures(1000, 50, seed=0).kept
    assert not GaussianFeatures(12_000, 200, seed=0).kept


def peak(function) -> int:
    tracemalloc.start()
    function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_the_memory_of_the_products_does_not_grow_with_the_inputs():
    rng = np.random.default_rng(4)
    d, n = 40, 40_000
    operator = QuadraticFeatures(rng.standard_normal((n, d)))
    S, g = symmetric(rng, d), rng.standard_normal(n)
    for product in (lambda: operator.forward(S), lambda: operator.adjoint(g)):
        assert peak(product) < operator.X.nbytes / 4


def test_gaussian_features_that_are_not_kept_take_the_memory_of_a_block():
    operator = GaussianFeatures(6000, 80, seed=1, keep=False)
    assert peak(lambda: operator.forward(np.eye(80))) < 3 * 2**24 < 6000 * 3240 * 8


@KINDS
def test_a_weight_that_is_not_a_number_is_not_hidden(draw):
    operator = draw(np.random.default_rng(6), 30, 4)
    g = np.ones(30)
    g[3] = np.nan
    assert np.isnan(operator.adjoint(g)).any()
