"""Power-law features: values of the sheet, an independent evaluation, limits, derivatives, runs and exponents."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from reference import random_feature_ridge as reference
from scipy.special import zeta

import solvable as sv
from solvable.verbs.simulate import simulate_many

MODEL, LEARNER = sv.PowerLawFeatures(1.5, 0.4, noise=0.3), sv.RandomFeatures(0.1)


@pytest.mark.parametrize("row", reference.VALUES, ids=["interpolation", "many samples"])
def test_it_meets_the_values_of_the_sheet(row):
    capacity, source, n, p, penalty, noise, terms, bias, variance, nu1, nu2 = row
    found = sv.predict(sv.PowerLawFeatures(capacity, source, noise, terms), sv.RandomFeatures(penalty), n=n, p=p)
    order = found.order_parameters
    assert found["bias"] == pytest.approx(bias, rel=1e-7) and found["variance"] == pytest.approx(variance, rel=1e-7)
    assert order["nu"] == pytest.approx(nu2, rel=1e-7) and order["nu"] * order["features_left"] == pytest.approx(nu1)
    assert found["generalization_error"] == pytest.approx(bias + variance, rel=1e-7)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_infinitely_many_eigenvalues_are_summed_as_integrals_say():
    points = [(1.3, 0.5, 30.0, 45.0, 0.02), (1.1, 0.2, 300.0, 20.0, 3.0), (2.6, 1.3, 40.0, np.inf, 0.5)]
    for capacity, source, n, p, penalty in points:
        found = sv.predict(sv.PowerLawFeatures(capacity, source, 0.3), sv.RandomFeatures(penalty), n=n, p=p)
        bias, variance, _, nu = reference.published(
            reference.power_law(capacity, source, direct=4000), n, p, penalty, 0.3
        )
        assert found["bias"] == pytest.approx(bias, rel=1e-9)
        assert found["variance"] == pytest.approx(variance, rel=1e-9)
        assert found.order_parameters["nu"] == pytest.approx(nu, rel=1e-9)


def test_the_uncertainty_covers_where_it_is_not_rounding():
    """Of eigenvalues that fall steeply the rule for their sum is not exact: against the sum of each of them."""
    ratios = []
    for capacity in (9.0, 13.0, 18.0):
        for n in (150.0, 333.0, 700.0):
            found = sv.predict(sv.PowerLawFeatures(capacity, 0.5, 0.3), sv.RandomFeatures(0.0), n=n, p=np.inf)
            k = np.arange(1.0, 20_000)
            logs = capacity * np.log(k)

            def freedom(t, logs=logs):
                return np.sum(1 / (1 + np.exp(np.minimum(t + logs, 700.0))))

            low, high = -capacity * np.log(n + 2), -capacity * np.log(n / 2)
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if freedom(middle) > n else (low, middle)
            s = 1 / (1 + np.exp(np.minimum(low + logs, 700.0)))
            true = 0.3 * np.sum(s**2) / (n - np.sum(s**2))
            error = abs(found["variance"] - true)
            assert error <= found.uncertainty["variance"] + 1e-12 * true
            if found.uncertainty["variance"] > 1e-10 * true:
                ratios.append(error / found.uncertainty["variance"])
    assert len(ratios) >= 4 and np.median(ratios) > 1e-3


def test_limits():
    found = sv.predict(MODEL, LEARNER, n=[0, 1e-9, 200, 200, 200], p=[30, 30, 0, 1e12, np.inf])
    nothing, total = zeta(1 + 2 * 1.5 * 0.4, 1), found["generalization_error"]
    assert total[[0, 2]] == pytest.approx(nothing, rel=1e-12) and total[1] == pytest.approx(nothing, rel=1e-6)
    assert total[3] == pytest.approx(total[4], rel=1e-9)  # so many features are the kernel
    assert found["cosine"][[0, 2]].tolist() == [0, 0]
    first = (nothing + 0.3) * (0.1 / (0.1 + zeta(1.5, 1))) ** 2
    assert found["training_error"][:2] == pytest.approx(first, rel=1e-6)


def test_without_penalty_it_diverges_at_interpolation_only():
    free = sv.RandomFeatures(0.0)
    found = sv.predict(MODEL, free, n=[40.0, 60.0, 80.0], p=60.0, throw=False)
    assert found.converged.tolist() == [True, False, True]
    assert found["variance"][2] == pytest.approx(0.3 * 60 / 20, rel=1e-12)  # noise p / (n - p), whatever the features
    small = sv.predict(MODEL, sv.RandomFeatures(1e-12), n=[40.0, 80.0], p=60.0)
    assert small["bias"] == pytest.approx(found["bias"][[0, 2]], rel=1e-6)
    with pytest.raises(ValueError, match="penalty = 0.0 is not allowed"):
        sv.predict(sv.PowerLawFeatures(1.5, 0.4, 0.3, terms=20), free, n=50, p=50)


def test_more_samples_and_features_never_hurt_at_the_best_penalty():
    grid = [(50, 40), (100, 40), (100, 200), (400, 200), (400, np.inf)]
    found = [sv.optimize(MODEL, LEARNER, n=n, p=p).prediction["generalization_error"] for n, p in grid]
    assert all(np.diff(found) < 0)


def test_the_best_penalty_is_found_by_its_derivative():
    best = sv.optimize(MODEL, LEARNER, n=100, p=60)
    assert best.method == "gradient" and not best.at_bound
    for factor in (0.8, 1.25):
        other = sv.predict(MODEL, sv.RandomFeatures(best.value * factor), n=100, p=60)
        assert other["generalization_error"] > best.prediction["generalization_error"]
    with jax.enable_x64(True):
        slope = jax.grad(lambda n: sv.predict(MODEL, LEARNER, n=n, p=60.0)["generalization_error"])(100.0)
    high, low = (sv.predict(MODEL, LEARNER, n=n, p=60.0)["generalization_error"] for n in (100.01, 99.99))
    assert float(slope) == pytest.approx((high - low) / 0.02, rel=1e-5)


def compare(model, learner, n, p, d, seeds):
    found = sv.predict(model, learner, n=n, p=p)
    runs = simulate_many(model, learner, d, range(seeds), n=n, p=p)
    # Without a penalty n < p samples are met exactly. A run is off by rounding: a residual of n eps times the labels,
    # which are of order one, squared.
    rounding = (n * np.finfo(float).eps) ** 2
    for metric in found.metrics:
        values = np.array([run[metric] for run in runs])
        error = values.std(ddof=1) / np.sqrt(seeds)
        assert abs(values.mean() - found[metric]) < 4 * error + 0.02 * found[metric] + rounding, metric


@pytest.mark.parametrize(("n", "p", "d"), [(60, 40, 300), (200, 130, 700), (100, np.inf, 400)])
def test_runs_agree(n, p, d):
    compare(MODEL, LEARNER, n, p, d, 24)


def test_a_run_without_a_tail_agrees():
    compare(sv.PowerLawFeatures(1.2, 0.3, 0.2, terms=200), LEARNER, 60, 90, 200, 24)


@pytest.mark.slow
@pytest.mark.parametrize(("capacity", "source", "penalty"), [(1.3, 0.5, 0.05), (2.0, 0.8, 0.01), (1.2, 0.3, 0.0)])
@pytest.mark.parametrize("size", [1, 4])
def test_runs_of_other_laws_agree_at_two_sizes(capacity, source, penalty, size):
    model = sv.PowerLawFeatures(capacity, source, 0.2)
    compare(model, sv.RandomFeatures(penalty), 60 * size, 200 * size, 450 * size, 48 // size)


def test_what_runs_do_not_take():
    for axes, message in (
        ({"n": 10.5, "p": 20, "d": 100}, "n = 10.5 is not allowed: n must be a whole number"),
        (
            {"n": 10, "p": 2.5, "d": 100},
            "p = 2.5 is not allowed: p must be a whole number of at least 1 in a run, or inf",
        ),
        ({"n": 90, "p": 80, "d": 100}, "d = 100 is not allowed: d must be at least 160 here"),
    ):
        with pytest.raises(ValueError, match=message):
            sv.simulate(MODEL, LEARNER, **axes)
    for kind in (sv.predict, lambda *a, **k: sv.simulate(*a, d=100, **k)):
        with pytest.raises(NotImplementedError, match="real labels"):
            kind(MODEL, sv.RandomFeatures(0.1, "logistic"), n=10, p=20)


def test_bad_parameters():
    for values, name in (((1.0, 0.5), "capacity"), ((2.0, 0.0), "source"), ((2.0, 0.5, -1.0), "noise")):
        with pytest.raises(ValueError, match=f"{name} = "):
            sv.PowerLawFeatures(*values)
    with pytest.raises(ValueError, match="n = 1e.16 is not allowed"):
        sv.predict(MODEL, LEARNER, n=1e16, p=10)


def test_exponents_are_those_of_the_sheet_and_of_local_slopes():
    for capacity, source, ell, q, bias, variance in reference.EXPONENTS:
        model = sv.PowerLawFeatures(capacity, source, noise=0.1)
        found = sv.scaling_exponents(model, ell, q)
        assert (found.bias, found.variance) == pytest.approx((bias, variance), abs=1e-12)
        assert found.generalization_error == pytest.approx(min(bias, variance), abs=1e-12)


@pytest.mark.parametrize("row", [reference.EXPONENTS[0], reference.EXPONENTS[2]], ids=["rough", "smooth"])
def test_local_slopes_approach_the_exponents_as_fast_as_the_next_powers_say(row):
    """The bias is a sum of two powers: the share of the second, read off the slope, falls with their difference.

    That is n^-0.06 for the smooth target, so that the slope at n = 1e11 is still 0.011 off. What is left are factors
    1 + c n^-x, x = min(kappa, q - kappa, 1 - kappa): of a sum that is no integral, and of T beside p and n.
    """
    capacity, source, ell, q, bias, variance = row
    model = sv.PowerLawFeatures(capacity, source, noise=0.1)
    n = np.array([1e5, 1e11, 1e15])
    local, kappa = sv.scaling_exponents(model, ell, q, n), sv.scaling_exponents(model, ell, q).cutoff
    other = (2 * capacity * min(source, 0.5) - 1) * kappa + q  # the exponent of finitely many features
    share = (local.bias - bias) / (other - local.bias)
    decades = np.log(n[2] / n[1])
    corrections = min(kappa, q - kappa, 1 - kappa)
    assert np.all(share > 0) and np.all(np.diff(share) < 0)
    assert np.log(share[2] / share[1]) / decades == pytest.approx(bias - other, rel=0.2)
    rest = np.abs(local.variance - variance)
    assert np.log(rest[2] / rest[1]) / decades == pytest.approx(-corrections, rel=0.05) and rest[1] < 1e-3


def test_the_optimal_exponents():
    found = sv.optimal_exponents(sv.PowerLawFeatures(2.0, 0.8, noise=0.1))
    assert (found.rate, found.ell, found.q) == pytest.approx(
        (0.7619047619047619, 0.47619047619047616, 0.5238095238095238)
    )
    for source, q in ((0.4, 1 / (1.6 + 1)), (1.5, 3 / 5)):
        assert sv.optimal_exponents(sv.PowerLawFeatures(2.0, source, noise=0.1)).q == pytest.approx(q)


@pytest.mark.parametrize(
    ("capacity", "source", "noise"), [(2.0, 0.8, 0.1), (1.3, 0.3, 0.1), (1.7, 1.4, 0.1), (2.0, 0.8, 0.0)]
)
def test_no_place_of_the_plane_is_faster_than_the_optimum(capacity, source, noise):
    model = sv.PowerLawFeatures(capacity, source, noise)
    best = sv.optimal_exponents(model)
    plane = sv.scaling_exponents(model, np.linspace(0, 6, 121)[:, None], np.linspace(0, 8, 161))
    assert plane.generalization_error.max() <= best.rate + 1e-12
    assert sv.scaling_exponents(model, best.ell, best.q).generalization_error == pytest.approx(best.rate)
    assert sv.scaling_exponents(model, best.ell, best.q - 0.01).generalization_error < best.rate
    assert set(plane.limited_by.ravel()) == {"penalty", "features", "samples"}


def test_exponents_refuse_what_is_no_place_of_the_plane():
    for args, name in (((-0.1, 1.0), "ell"), ((1.0, -1.0), "q"), ((1.0, 1.0, 0.5), "n"), ((np.inf, 1.0), "ell")):
        with pytest.raises(ValueError, match=f"{name} = "):
            sv.scaling_exponents(MODEL, *args)
    quiet = sv.PowerLawFeatures(1.5, 0.4)
    assert sv.scaling_exponents(quiet, 0.5, np.inf).variance == np.inf
    assert sv.scaling_exponents(quiet, 0.5, np.inf).dominated_by == "target"


def test_curves_and_diagrams():
    curve = sv.learning_curve(MODEL, LEARNER, n=np.array([20.0, 40.0]), p=30, d=120, seeds=3, progress=False)
    assert set(curve.metrics) >= {"bias", "variance", "generalization_error"}
    plane = sv.phase_diagram(
        MODEL, LEARNER, ("n", np.array([20.0, 40.0])), ("p", np.array([10.0, 30.0])), progress=False
    )
    assert plane.theory("generalization_error").shape[-2:] == (2, 2)
    laws = sv.phase_diagram(
        MODEL, LEARNER, ("capacity", np.array([1.2, 2.0])), ("source", np.array([0.3, 0.9])), n=40, p=30, progress=False
    )
    error = np.asarray(laws.theory("generalization_error")).reshape(2, 2)
    assert np.all(np.diff(error, axis=0) < 0) and np.all(np.diff(error, axis=1) < 0)
