"""Cosine and squared overlap have one definition, in theory and in runs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from solvable.engine.cosines import cosine_error, cosines, cosines_of


@pytest.mark.parametrize("shape", [(50,), (50, 1), (50, 3), (20, 20)])
def test_runs_and_theory_say_the_same_of_an_estimate(shape):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(shape)
    estimate = 0.3 * truth + 2 * rng.standard_normal(shape)
    found = cosines_of(estimate, truth)
    a, b = estimate.ravel(), truth.ravel()
    assert found["cosine"] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-14)
    assert found["squared_overlap"] == pytest.approx(found["cosine"] ** 2, rel=1e-14)
    assert cosines_of(-7 * estimate, truth)["cosine"] == pytest.approx(-found["cosine"], rel=1e-14)
    m, q, scale = np.mean(a * b), np.mean(a * a), np.mean(b * b)
    assert cosines(m, q, scale)["cosine"] == pytest.approx(found["cosine"], rel=1e-13)


def test_an_estimate_of_nothing_has_no_direction():
    assert cosines_of(np.zeros(4), np.ones(4)) == {"cosine": 0.0, "squared_overlap": 0.0}
    found = cosines(np.array([0.0, 0.5]), np.array([0.0, 0.5]), 1.0)
    assert found["cosine"].tolist() == [0.0, pytest.approx(np.sqrt(0.5))]
    assert found["squared_overlap"].tolist() == [0.0, 0.5]
    assert cosines(0.0, 0.0, 0.0) == {"cosine": 0.0, "squared_overlap": 0.0}


def test_a_posterior_mean_keeps_every_digit():
    q = np.random.default_rng(1).random(1000)
    np.testing.assert_array_equal(cosines(q, q, 1.0)["squared_overlap"], q)
    np.testing.assert_allclose(cosines(q, q, 2.0)["cosine"], np.sqrt(q / 2), rtol=1e-15)


def test_they_are_differentiable():
    with jax.enable_x64(True):
        slope = jax.grad(lambda q: cosines(q, q, jnp.asarray(2.0))["cosine"])(0.5)
        nowhere = jax.grad(lambda m: cosines(m, 0 * m, 1.0)["squared_overlap"])(0.0)
    assert float(slope) == pytest.approx(0.5 / np.sqrt(0.5 * 2.0)) and float(nowhere) == 0


def test_the_error_of_a_square_root_covers_both_sides():
    squared, error = np.array([0.0, 1e-6, 0.25, 1.0]), np.array([1e-8, 1e-4, 1e-3, 1e-12])
    found = cosine_error(squared, error)
    for side in (-1, 1):
        moved = np.sqrt(np.maximum(squared + side * error, 0.0))
        assert np.all(np.abs(moved - np.sqrt(squared)) <= found * (1 + 1e-3))
    assert found[0] == pytest.approx(1e-4) and found[2] == pytest.approx(1e-3, rel=0.01)
