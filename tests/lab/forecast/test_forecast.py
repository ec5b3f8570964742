"""Forecasts: of data whose law is known, of data shipped with scikit-learn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.lab.forecast.curves import fit_of
from solvable.lab.forecast.data import LEAST
from solvable.lab.forecast.population import estimate, spectrum_of_features, spectrum_of_kernel
from solvable.lab.forecast.samples import Samples
from solvable.lab.verdict import AGREES, DIFFERS, TOO_FEW


def linear_data(rows, columns=30, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return X, X @ np.linspace(1, 0, columns) / 2 + np.sqrt(noise) * rng.standard_normal(rows)


def shipped(name):
    """A data set of scikit-learn in a random order: inputs, and labels of variance one."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    order = np.random.default_rng(7).permutation(len(found.target))
    X, y = found.data[order], found.target[order].astype(float)
    y = y % 2 if name == "digits" else y  # is the digit odd?
    return X[:, np.ptp(X, axis=0) > 0], (y - y.mean()) / y.std()


def test_at_the_number_of_rows_it_is_the_error_of_leaving_one_out():
    X, y = linear_data(60, 8)
    errors = []
    for k in range(60):
        others = np.delete(np.arange(60), k)
        F, mean = X[others] - X[others].mean(axis=0), y[others].mean()
        w = np.linalg.solve(F.T @ F + 3.0 * np.eye(8), F.T @ (y[others] - mean))
        errors.append((y[k] - mean - (X[k] - X[others].mean(axis=0)) @ w) ** 2)
    found = fit_of(estimate(spectrum_of_features(X, y), 8), 60, np.inf, 3.0)
    assert found.error == pytest.approx(np.mean(errors), rel=1e-3)  # the table is interpolated


def test_features_and_their_kernel_say_the_same():
    X, y = linear_data(60, 8)
    one, other = (estimate(found, 8) for found in (spectrum_of_features(X, y), spectrum_of_kernel(X @ X.T, y)))
    for n in (30, 60, 500):
        assert fit_of(one, n, np.inf, 2.0).error == pytest.approx(fit_of(other, n, np.inf, 2.0).error, rel=1e-6)


def test_a_part_of_the_rows_has_the_degrees_of_freedom_of_all_whatever_the_tails():
    """A kernel on rows of which some are far from all others: the same function of nu from few rows as from many."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((1200, 20))
    X[rng.random(1200) < 0.15] *= 2.5
    y = np.tanh(X[:, 0] + X[:, 1] * X[:, 2] / 2) + 0.3 * rng.standard_normal(1200)
    samples, nu = Samples(X, y, sv.KernelRidge("rbf")), np.geomspace(1e-3, 1e-1, 5)
    alike, found = [], []
    for rows in (300, 1200):
        table = samples.estimate(np.arange(rows)).seen
        alike.append(np.interp(np.log(nu), np.log(table.nu), rows - 1 - table.worth(rows - 1)))
        found.append(np.interp(np.log(nu), np.log(table.nu), table.T1))
    assert found[0] == pytest.approx(found[1], rel=0.08)
    assert np.max(alike[1] / alike[0]) > 1.15  # the function that all rows would have if they were alike


def test_it_forecasts_what_is_known_of_gaussian_data():
    """Least squares on d Gaussian inputs: noise (1 + d / (n - d - 1)) and the same for the constant."""
    X, y = linear_data(1500, noise=1.0)
    found = sv.forecast(X, y, sv.LinearRidge(1e-3), n=[100, 300, 1500, 15_000], standardize=False)
    known = (1 + 1 / found.n) * (1 + 30 / (found.n - 30 - 2))
    assert np.all((found.low < known) & (known < found.high))
    assert np.all(found.high / found.low < 1.3)
    assert found.word == AGREES and [check.n for check in found.checks] == [375, 750, 1125]


def test_the_verdict_can_say_no(monkeypatch):
    X, y = linear_data(1000)
    measured = Samples.error
    monkeypatch.setattr(Samples, "error", lambda self, *args: 1.25 * measured(self, *args))
    assert sv.forecast(X, y, n=[100]).word == DIFFERS
    monkeypatch.undo()
    assert sv.forecast(*linear_data(60, 5), n=[100]).word == TOO_FEW


@pytest.mark.parametrize(
    ("name", "learner"),
    [
        ("diabetes", sv.LinearRidge()),
        ("breast_cancer", sv.KernelRidge("laplace")),
        ("wine", sv.KernelRidge("rbf", 0.1)),
    ],
    ids=["diabetes", "cancer", "wine"],
)
def test_a_quarter_of_the_rows_forecasts_the_rest(name, learner):
    X, y = shipped(name)
    N = len(y)
    seen = max(N // 4, LEAST)  # a quarter of the wines would be too few
    found = sv.forecast(X[:seen], y[:seen], learner, n=[N // 8, N // 4, N // 2, 3 * N // 4], check=False)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    samples, rng = Samples(X, y, learner), np.random.default_rng(1)
    for n, penalty, low, high in zip(found.n, found.penalty, found.low, found.high, strict=True):
        orders = [rng.permutation(N) for _ in range(12)]
        measured = np.mean([samples.error(order[:n], order[n:], penalty, rng) for order in orders])
        assert low < measured < high


@pytest.mark.slow
@pytest.mark.parametrize("learner", [sv.LinearRidge(), sv.KernelRidge("laplace"), sv.KernelRidge("rbf")])
def test_random_quarters_are_covered_and_the_interval_is_not_huge(learner):
    """Of forecasts from random quarters of the digits nine in ten hold the measured error; they are within 40 %."""
    X, y = shipped("digits")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    samples, rng = Samples(X, y, learner), np.random.default_rng(2)
    inside, width = [], []
    for _ in range(6):
        rows = rng.permutation(len(y))
        X_part = X[rows[:449]]
        kept = np.ptp(X_part, axis=0) > 0
        found = sv.forecast(X_part[:, kept], y[rows[:449]], learner, n=[224, 449, 898], check=False, standardize=False)
        for n, penalty, low, high in zip(found.n, found.penalty, found.low, found.high, strict=True):
            orders = [rng.permutation(len(y)) for _ in range(4)]
            measured = np.mean([samples.error(order[:n], order[n:][:800], penalty, rng) for order in orders])
            inside.append(low < measured < high)
            width.append(np.sqrt(high / low) - 1)
    assert np.mean(inside) >= 0.9 and np.median(width) < 0.4


def test_random_features_are_a_kernel_with_fewer():
    X, y = shipped("diabetes")
    few, many, kernel = (
        sv.forecast(X, y, sv.KernelRidge("relu", 1.0, p=p), n=[200], check=False).error[0] for p in (20, 1e9, np.inf)
    )
    assert many == pytest.approx(kernel, rel=1e-6) and few > kernel
    same = sv.forecast(X, y, sv.RandomFeatures(1.0), n=[200], p=20, check=False)
    assert same.error[0] == few


def test_a_kernel_of_ones_own_and_a_fixed_seed():
    X, y = shipped("wine")
    own = sv.KernelRidge(lambda A, B: np.exp(-((A[:, None] - B) ** 2).sum(-1) / (2 * A.shape[1])), 0.3)
    named = sv.forecast(X, y, sv.KernelRidge("rbf", 0.3), n=[50, 500])
    found = sv.forecast(X, y, own, n=[50, 500])
    assert found.error == pytest.approx(named.error, rel=1e-6) and len(found.checks) == 3
    assert np.array_equal(sv.forecast(X, y, own, n=[50, 500]).low, found.low)
    features = sv.KernelRidge(own.kernel, 0.3, p=50)
    assert sv.forecast(X, y, features, n=[50]).checks == ()  # random features of it are not known


@pytest.mark.parametrize(
    ("learner", "options", "message"),
    [
        (sv.BayesOptimal(), {}, "learner = BayesOptimal"),
        (sv.RandomFeatures(0.1), {}, "missing p"),
        (sv.RandomFeatures(0.0), {"p": 10}, "penalty = 0.0 is not allowed"),
        (sv.RandomFeatures(0.1, "logistic"), {"p": 10}, "of square loss"),
        (sv.LinearRidge(), {"p": 10}, "unexpected p"),
        (None, {"n": [3]}, "n = 3.0 is not allowed"),
        (None, {"n": [10.5]}, "n = 10.5 is not allowed"),
        (None, {"n": [20, 10]}, "increasing"),
        (None, {"n": 10**6}, "n = 1000000.0 is not allowed"),
        (None, {"seed": -1}, "seed = -1"),
        (None, {"rows": 5}, "rows = 5"),
    ],
)
def test_what_is_refused(learner, options, message):
    with pytest.raises(ValueError, match=message):
        sv.forecast(*linear_data(60, 3), learner, **options)


def test_learners_refuse():
    for make, name in (
        (lambda: sv.KernelRidge("cubic"), "kernel"),
        (lambda: sv.KernelRidge(penalty=0.0), "penalty"),
        (lambda: sv.LinearRidge("worst"), "penalty"),
        (lambda: sv.KernelRidge(p=0.5), "p"),
    ):
        with pytest.raises(ValueError, match=f"{name} = "):
            make()


def test_the_report_and_the_figure():
    found = sv.forecast(*linear_data(120, 5), n=[30, 1200])
    text, data = str(found), found.to_dict()
    assert "linear-ridge on 120 rows of 5 inputs" in text and "n = 1200" in text and "check from 30 rows" in text
    assert data["word"] == found.word and len(data["checks"]) == 3 and np.all(found.r_squared < 1)
    labels = found.plot().get_legend_handles_labels()[1]
    assert labels == ["95 % interval", "forecast", "120 rows at hand", "measured"]


def test_units_do_not_matter():
    X, y = linear_data(80, 4)
    plain = sv.forecast(X, y, n=[40, 800])
    for inputs, labels in ((1.0, 1e130), (1e200, 1e-130), (1e-200, 3.0)):
        found = sv.forecast(X * inputs, y * labels + 2 * labels, n=[40, 800])
        for name in ("error", "low", "high", "baseline"):
            assert getattr(found, name) / labels**2 == pytest.approx(getattr(plain, name), rel=1e-6)
        assert found.checks[0].measured / labels**2 == pytest.approx(plain.checks[0].measured, rel=1e-6)
    with pytest.raises(ValueError, match="y has the standard deviation"):
        sv.forecast(X, y * 1e200, n=[40])


@pytest.mark.parametrize("learner", [sv.LinearRidge(), sv.KernelRidge("rbf")], ids=["ridge", "rbf"])
def test_odd_tables_have_a_forecast(learner):
    """Rows and columns that occur twice, and more columns than rows."""
    X, y = linear_data(60, 5)
    wide = np.random.default_rng(1).standard_normal((60, 150))
    for inputs, labels in ((np.repeat(X, 2, 0), np.repeat(y, 2)), (np.hstack([X, X]), y), (wide, y)):
        found = sv.forecast(inputs, labels, learner, n=[20, 60, 600])
        assert np.all(np.isfinite(found.high)) and np.all((found.low > 0) & (found.low <= found.error))
        assert np.all(found.error <= found.high)
