"""Ridge regression whose penalty is chosen on samples set aside."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from solvable.numerics.ridge import best_penalty, by_kernel, on_features, solve, trained_samples


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((120, 40)) * np.linspace(0.1, 3, 40)
    return F, F @ rng.standard_normal(40) + 4 * rng.standard_normal(120)


def test_both_forms_give_one_prediction(sample):
    F, y = sample
    features, kernel = on_features(F, y, None, 90), by_kernel(F @ F.T, y, None, 90)
    # The two ranges of penalties are relative to different means, so each is asked for the other's penalty.
    same = by_kernel(F @ F.T, y, features.penalty, 90)
    np.testing.assert_allclose(F @ features.coefficients, F @ F.T @ same.coefficients, rtol=1e-8)
    assert 0.4 < features.penalty / kernel.penalty < 2.5


def test_it_is_the_ridge_regression_of_another_library(sample):
    F, y = sample
    found = on_features(F, y, 3.0, 90)
    np.testing.assert_allclose(found.coefficients, Ridge(3.0, fit_intercept=False).fit(F, y).coef_, rtol=1e-8)


def test_the_chosen_penalty_is_the_best_of_a_fine_grid(sample):
    F, y = sample
    A, b = F[:90].T @ F[:90], F[:90].T @ y[:90]
    penalty = best_penalty(A, b, F[90:], y[90:])

    def error(penalty):
        return np.mean((F[90:] @ solve(A, b, penalty) - y[90:]) ** 2)

    grid = [error(10.0**power) for power in np.linspace(-6, 6, 241)]
    assert error(penalty) <= min(grid) * 1.01


def test_no_penalty_on_a_singular_problem_is_the_least_norm():
    F = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    np.testing.assert_allclose(on_features(F, np.array([2.0, 2.0]), 0.0, 2).coefficients, [1, 1, 1], atol=1e-12)


def test_labels_that_say_nothing_leave_nothing(sample):
    F, _ = sample
    y = np.random.default_rng(5).standard_normal(120)
    assert np.abs(F @ on_features(F, y, None, 90).coefficients).max() < 0.5


def test_few_samples_are_split_too():
    assert [trained_samples(n, 0.2) for n in (2, 3, 10)] == [1, 2, 8]
