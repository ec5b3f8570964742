"""Kernel ridge regression: the kernel and its features, and what the learner refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import solvable as sv
from solvable.engine.kernel.fit import feature_count, fit_kernel, kernel_values, monomials

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((30, 4)) / 2, RNG.standard_normal((7, 4)) / 2
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_monomials_are_the_features_of_the_kernel(degree):
    F = monomials(X, degree)
    assert F.shape[1] == feature_count(4, degree)
    np.testing.assert_allclose(F @ F.T, kernel_values(degree, X @ X.T), rtol=0, atol=1e-13)


@pytest.mark.parametrize("degree", [1, 3, math.inf])
def test_the_kernel_is_its_series(degree):
    t = np.linspace(-1.5, 1.5, 7)
    top = 30 if math.isinf(degree) else degree
    np.testing.assert_allclose(kernel_values(degree, t), sum(t**q / math.factorial(q) for q in range(1, top + 1)))
    whole = sum(1 / math.factorial(q) for q in range(2, top + 1))
    assert sv.Kernel(degree).curvature == pytest.approx(whole, abs=1e-15)


@pytest.mark.parametrize("degree", [1, 2, 4, math.inf])
def test_the_fit_is_that_of_another_library(degree):
    """By features for degrees one and two here, by the kernel matrix for the others."""
    fit = fit_kernel(sv.Kernel(degree, penalty=0.1), X, Y)
    other = KernelRidge(alpha=0.1, kernel="precomputed").fit(kernel_values(degree, X @ X.T), Y - Y.mean())
    expected = Y.mean() + other.predict(kernel_values(degree, NEW @ X.T))
    np.testing.assert_allclose(fit.predict(NEW), expected, rtol=1e-9)
    step = 1e-4 * np.eye(4)
    slope = (fit.predict(step) - fit.predict(-step)) / 2e-4
    np.testing.assert_allclose(fit.gradient, slope, atol=1e-7)


def test_one_sample_is_its_label():
    assert fit_kernel(sv.Kernel(), X[:1], Y[:1]).predict(NEW) == pytest.approx(Y[0])


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"degree": 0}, "degree = 0"), ({"degree": 1.5}, "degree = 1.5"), ({"degree": -math.inf}, "degree = -inf")]
    + [({"penalty": -1.0}, "penalty = -1.0"), ({"validation": 1.0}, "validation = 1.0")],
)
def test_what_is_no_kernel_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        sv.Kernel(**fields)
