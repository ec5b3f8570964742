"""Functions of small symmetric matrices against SciPy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm, logm

from solvable.numerics.symmetric import (
    clipped,
    exp_derivative,
    log_derivative,
    log_one_plus,
    one_minus_exp,
    positive_directions,
    smat,
    svec,
)


def positive(seed: int, size: int = 3) -> np.ndarray:
    A = np.random.default_rng(seed).standard_normal((size, size))
    return A @ A.T


def test_svec_keeps_scalar_products():
    S, T = positive(0), positive(1)
    np.testing.assert_allclose(svec(S) @ svec(T), np.trace(S @ T))
    np.testing.assert_allclose(smat(svec(S)), S)


def test_functions_agree_with_scipy():
    S = positive(2)
    np.testing.assert_allclose(log_one_plus(S), logm(np.eye(3) + S), atol=1e-12)
    np.testing.assert_allclose(one_minus_exp(S), np.eye(3) - expm(-S), atol=1e-12)
    a = np.linalg.eigvalsh(clipped(S - np.eye(3), 2.0))
    assert a.min() >= -1e-14 and a.max() <= 2 + 1e-14


@pytest.mark.parametrize("S", [positive(3), np.diag([2.0, 2.0, 1.0]), np.zeros((2, 2))], ids=["plain", "equal", "zero"])
def test_derivatives_agree_with_differences(S):
    h, step = 1e-6, positive(4, len(S))
    for function, derivative in ((log_one_plus, log_derivative), (one_minus_exp, exp_derivative)):
        difference = (function(S + 2 * h * step) - function(S)) / (2 * h)
        middle = derivative(S + h * step) @ svec(step)
        np.testing.assert_allclose(smat(middle), difference, atol=1e-8)


def test_positive_directions_span_the_symmetric_matrices():
    directions = positive_directions(positive(5))
    assert np.linalg.matrix_rank(directions) == 6
    assert all(np.linalg.eigvalsh(smat(d)).min() > -1e-12 for d in directions.T)
