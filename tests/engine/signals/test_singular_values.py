"""The denoiser of singular values at finite size."""

from __future__ import annotations

import numpy as np

from solvable.engine.operators import DenseOnMatrices
from solvable.engine.signals.singular_values import SingularValueSignal


def test_a_singular_value_far_out_of_the_bulk_stays_within_the_support_of_the_law():
    """Otherwise a run of message passing whose field has one grows without bound."""
    d, signal, rng = 30, SingularValueSignal(0.2, 1.0), np.random.default_rng(0)
    denoiser = signal.denoiser(DenseOnMatrices(np.zeros((1, d * d)), (d, d)))
    B = rng.standard_normal((d, d))
    B[0, 0] += 50 * d
    step = denoiser(B.reshape(-1, 1), np.eye(1))
    largest = np.sqrt(float(signal.upright[0].ends[1]))
    assert np.linalg.norm(step.estimate.reshape(d, d), 2) / np.sqrt(d) <= largest * (1 + 1e-9)
