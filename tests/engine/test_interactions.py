"""Interactions of an unknown with itself: their fields, and the part of a field that earlier estimates caused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from solvable.engine.interactions import SymmetricMatrix, SymmetricTensor
from solvable.models.lowrank.spiked import symmetric_noise


@pytest.mark.parametrize("directions", [1, 3])
def test_one_triangle_of_a_matrix_is_enough(directions):
    rng = np.random.default_rng(0)
    Y, w = symmetric_noise(rng, 9, 2), rng.standard_normal((9, directions))
    np.testing.assert_allclose(SymmetricMatrix(Y, 1.7).forward(w), 1.7 * Y @ w, rtol=1e-13)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_field_of_a_tensor_is_its_contraction(order):
    rng = np.random.default_rng(1)
    d, noise = 5, 0.3
    Y, w = symmetric_noise(rng, d, order), rng.standard_normal(d)
    whole = sum(
        Y[(slice(None), *rest)] * np.prod(w[list(rest)]) for rest in itertools.product(range(d), repeat=order - 1)
    )
    scale = noise * np.sqrt(float(np.prod(np.arange(1, order)))) * d ** ((order - 1) / 2)
    np.testing.assert_allclose(SymmetricTensor(Y, noise).forward(w[:, None])[:, 0], whole / scale, rtol=1e-12)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_memory_of_a_tensor_is_the_damped_sum_over_earlier_estimates(order):
    """O_t = sum_s damping (1 - damping)^(t-1-s) (k-1) <W_t, W_s>^(k-2) R_s W_s / noise, and what is left of a start."""
    rng = np.random.default_rng(2)
    d, noise, damping, steps = 6, 0.3, 0.4, 5
    start, W = rng.standard_normal((d, 1)), rng.standard_normal((steps + 1, d, 1))
    R = rng.random(steps)
    memory = SymmetricTensor(symmetric_noise(rng, d, order), noise).memory(start)
    for s in range(steps):
        memory.follow(W[s], W[s], np.full((1, 1), R[s]), damping)
    expected = (1 - damping) ** steps * start
    for s in range(steps):
        share = (order - 1) * float(np.mean(W[-1] * W[s])) ** (order - 2) / noise
        expected = expected + damping * (1 - damping) ** (steps - 1 - s) * share * R[s] * W[s]
    np.testing.assert_allclose(memory.onsager(W[-1]), expected, rtol=1e-12)
