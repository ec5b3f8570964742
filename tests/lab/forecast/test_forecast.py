"""Forecasts on data that are shipped with scikit-learn: beyond the rows that they have seen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

import solvable as sv


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return (X / X.std(0))[order], ((y - y.mean()) / y.std())[order]


def test_a_quarter_of_the_rows_forecasts_all_of_them(diabetes):
    """Within its interval, and here within a tenth of what ridge regression is measured to have."""
    X, y = diabetes
    sizes = (30, 110, 350)
    found = sv.forecast(X[:110], y[:110], sv.LinearRidge(1.0), n=list(sizes))
    for n, error, low, high in zip(sizes, found.error, found.low, found.high, strict=True):
        measured = []
        for seed in range(20):
            rows = np.random.default_rng(seed).permutation(len(y))
            model = Ridge(alpha=1.0).fit(X[rows[:n]], y[rows[:n]])
            measured.append(np.mean((model.predict(X[rows[n:]]) - y[rows[n:]]) ** 2))
        assert low < np.mean(measured) < high
        assert error == pytest.approx(np.mean(measured), rel=0.1)


def test_missing_values_and_constant_columns_are_refused(diabetes):
    X, y = diabetes
    holed, flat = X.copy(), X.copy()
    holed[3, 2], flat[:, 1] = np.nan, 1.0
    for bad in (holed, flat):
        with pytest.raises(ValueError, match="X"):
            sv.forecast(bad, y, sv.LinearRidge(1.0), n=[50])
