"""Trace-penalised least squares, ridge regression and gradient descent on matrix models at finite size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import solvable as sv
from solvable.core.learners import BayesOptimal
from solvable.models.matrix import MatrixSensing, QuadraticNetwork, lazy_algorithm, nuclear_algorithm
from solvable.models.matrix.instance import scores
from solvable.models.matrix.lazy_algorithm import ridge
from solvable.models.matrix.learners import GradientDescent, Lazy, NuclearNorm
from solvable.models.matrix.network_descent import NetworkDescent, gradient_descent
from solvable.models.matrix.nuclear_algorithm import (
    ProximalGradient,
    duality_gap,
    hidden_units,
    largest_square,
    minimise,
)
from solvable.models.matrix.operators import QuadraticFeatures
from solvable.spectra import Discrete, MarchenkoPastur, Semicircle

VALUES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parents[1] / "reference" / "quadratic_values.json").read_text())
}
CASES = [(0.5, 0.6, 0.5, 0.2), (0.2, 0.3, 0.1, 0.05), (1.5, 0.4, 0.5, 0.3)]
"""(rho, alpha, noise, penalty)"""


def instance(rho=0.5, alpha=0.6, noise=0.5, d=16, seed=0, features="quadratic"):
    return QuadraticNetwork(rho, noise, features).sample(np.random.default_rng(seed), d, alpha=alpha)


def design(operator) -> np.ndarray:
    """The features as rows, n x d^2."""
    units = np.eye(operator.samples)
    return np.array([operator.adjoint(unit).ravel() for unit in units])


def objective(data, S, penalty) -> float:
    d = len(S)
    return float(np.sum((data.y - data.operator.forward(S)) ** 2) / d**2 + penalty / d * np.trace(S))


def relative(a, b) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def solved(program: Any, variable: Any) -> np.ndarray:
    """The value of a variable once an interior point method solved the program."""
    program.solve(solver="CLARABEL")
    assert program.status == "optimal"
    return variable.value


@pytest.mark.parametrize("case", CASES)
def test_convex_solution_is_that_of_an_interior_point_method(case):
    cvxpy = pytest.importorskip("cvxpy")
    rho, alpha, noise, penalty = case
    d = 9
    model = QuadraticNetwork(rho, noise)
    outcome = sv.simulate(model, NuclearNorm(penalty), alpha=alpha, d=d)
    data = redrawn(model, alpha, d)
    G, S = design(data.operator), cvxpy.Variable((d, d), PSD=True)
    loss = cvxpy.sum_squares(data.y - G @ cvxpy.vec(S, order="C")) / d**2 + penalty / d * cvxpy.trace(S)
    expected = solved(cvxpy.Problem(cvxpy.Minimize(loss)), S)
    assert outcome.converged
    assert relative(outcome.estimate, expected) < 1e-4
    assert outcome["training_loss"] == pytest.approx(objective(data, expected, penalty), rel=1e-5)
    assert outcome["training_loss"] <= objective(data, expected, penalty) * (1 + 1e-9)
    assert outcome["training_error"] == pytest.approx(np.mean((data.y - G @ outcome.estimate.ravel()) ** 2))
    assert outcome["estimation_error"] == pytest.approx(np.sum((outcome.estimate - data.truth) ** 2) / d)


def redrawn(model, alpha, d, seed=0):
    """The data that `simulate` draws."""
    from solvable.verbs.simulate import generators

    return model.sample(generators(seed, d, {"alpha": alpha})[0], d, alpha=alpha)


@pytest.mark.parametrize("solver", ["convex", "network"])
def test_vanishing_penalty_below_interpolation_is_the_interpolator_of_least_trace(solver):
    cvxpy = pytest.importorskip("cvxpy")
    d, model = 9, QuadraticNetwork(0.4, 0.2)
    outcome = sv.simulate(model, NuclearNorm(0.0, solver=solver), alpha=0.2, d=d)
    data = redrawn(model, 0.2, d)
    S = cvxpy.Variable((d, d), PSD=True)
    constraints = [design(data.operator) @ cvxpy.vec(S, order="C") == data.y]
    expected = solved(cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(S)), constraints), S)
    assert outcome.converged
    assert relative(outcome.estimate, expected) < 2e-4
    assert outcome["training_error"] < 1e-7 * np.mean(data.y**2)
    assert outcome["rank"] == np.mean(np.linalg.eigvalsh(expected) > 1e-4)


@pytest.mark.parametrize("solver", ["convex", "network"])
def test_vanishing_penalty_above_interpolation_is_semidefinite_least_squares(solver):
    cvxpy = pytest.importorskip("cvxpy")
    d, model = 9, QuadraticNetwork(0.4, 0.5)
    outcome = sv.simulate(model, NuclearNorm(0.0, solver=solver), alpha=0.7, d=d)
    data = redrawn(model, 0.7, d)
    S = cvxpy.Variable((d, d), PSD=True)
    loss = cvxpy.sum_squares(data.y - design(data.operator) @ cvxpy.vec(S, order="C"))
    expected = solved(cvxpy.Problem(cvxpy.Minimize(loss)), S)
    assert outcome.converged
    assert relative(outcome.estimate, expected) < 2e-4
    assert outcome["training_loss"] == pytest.approx(objective(data, expected, 0.0), rel=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_trained_network_is_the_convex_solution(case):
    rho, alpha, noise, penalty = case
    model, d = QuadraticNetwork(rho, noise, "gaussian"), 16
    convex = sv.simulate(model, NuclearNorm(penalty), alpha=alpha, d=d)
    for width in (None, 1.0, d + 5):
        network = sv.simulate(model, NuclearNorm(penalty, width=width, solver="network"), alpha=alpha, d=d)
        assert network.converged
        assert network["training_loss"] == pytest.approx(convex["training_loss"], rel=1e-8)
        assert relative(network.estimate, convex.estimate) < 1e-4
        assert network["rank"] == convex["rank"]
        assert network.details["units"] == (d if width in (None, 1.0) else d + 5)


def test_weight_decay_of_the_network_is_the_penalty_times_a_ratio_of_sizes():
    """The minimum over W of sum (y - y_hat)^2 + decay |W|^2, stated with W and S = W^T W / sqrt(p d)."""
    data, penalty, p, d = instance(), 0.3, 20, 16
    solver = NetworkDescent(data.operator, p, np.random.default_rng(0))
    solver.solve(data.y, penalty, 1e-9)
    assert solver.V is not None
    W, decay = solver.V * (p * d) ** 0.25, penalty / np.sqrt(p / d)
    residual = data.y - data.operator.forward(W.T @ W / np.sqrt(p * d))
    gradient = -4 * W @ data.operator.adjoint(residual) / np.sqrt(p * d) + 2 * decay * W
    assert np.abs(gradient).max() < 1e-5 * np.abs(decay * W).max()
    loss = residual @ residual + decay * np.sum(W**2)
    assert loss / d**2 == pytest.approx(objective(data, solver.V.T @ solver.V, penalty), rel=1e-12)


def test_duality_gap_bounds_the_distance_to_the_minimum():
    data, penalty, d = instance(), 0.2, 16
    best = minimise(ProximalGradient(data.operator, np.random.default_rng(0)), data.operator, data.y, penalty)
    least = objective(data, best.S, penalty)
    assert best.converged and 0 <= best.duality_gap < 1e-9
    rng = np.random.default_rng(1)
    for scale in (0.0, 1e-3, 0.1, 1.0):
        M = rng.standard_normal((d, d))
        S = best.S + scale * M @ M.T / d if scale else 0 * best.S
        residual = data.y - data.operator.forward(S)
        gap = duality_gap(data.y, residual, data.operator.adjoint(residual), np.trace(S), penalty * d)
        assert (objective(data, S, penalty) - least) / objective(data, S, penalty) <= gap + 1e-12


def test_two_ways_to_a_small_penalty_agree(monkeypatch):
    data, penalty = instance(0.3, 0.2, 0.1, d=12), 2e-2
    found = []
    for share in (0.0, 1.0):  # at once, or through larger penalties
        monkeypatch.setattr(nuclear_algorithm, "_SMALL", share)
        found.append(
            minimise(ProximalGradient(data.operator, np.random.default_rng(0)), data.operator, data.y, penalty)
        )
    assert all(minimum.converged for minimum in found)
    assert found[0].error == 0 < found[1].error < 1e-4
    assert relative(found[1].S, found[0].S) < 1e-4


def test_one_label_can_decide_the_trace():
    """Tr S >= -sqrt(d) y for each sample of quadratic features; where that is attained solutions are many."""
    model, d = QuadraticNetwork(0.3, 0.5), 12
    outcome = sv.simulate(model, NuclearNorm(0.0), alpha=0.2, d=d)
    data = redrawn(model, 0.2, d)
    sample = int(np.argmin(data.y))
    assert isinstance(data.operator, QuadraticFeatures)
    x = data.operator.X[sample]
    assert outcome.converged and not outcome.details["unique"]
    assert np.trace(outcome.estimate) == pytest.approx(-np.sqrt(d) * data.y[sample], rel=1e-3)
    assert x @ outcome.estimate @ x < 1e-3 * np.trace(outcome.estimate)
    ordinary = sv.simulate(model, NuclearNorm(0.2), alpha=0.2, d=d)
    assert ordinary.details["unique"]


def test_penalty_that_leaves_nothing():
    """S = 0 from the penalty 2 lambda_max(sum y G)/d on, and one eigenvalue just below."""
    data = redrawn(QuadraticNetwork(0.5, 0.5), 0.6, 16)
    critical = 2 * np.linalg.eigvalsh(data.operator.adjoint(data.y))[-1] / 16
    for solver in ("convex", "network"):
        ranks = [
            sv.simulate(QuadraticNetwork(0.5, 0.5), NuclearNorm(share * critical, solver=solver), alpha=0.6, d=16)
            for share in (0.98, 1.02)
        ]
        assert [outcome["rank"] for outcome in ranks] == [1 / 16, 0]
        assert all(outcome.converged for outcome in ranks)


def test_a_bound_on_the_curvature_that_is_too_small_is_raised():
    data, penalty = instance(), 0.2
    right = ProximalGradient(data.operator, np.random.default_rng(0))
    top = np.linalg.eigvalsh(design(data.operator) @ design(data.operator).T)[-1]
    assert 0.9 * top < largest_square(data.operator, np.random.default_rng(0)) <= top * (1 + 1e-12)
    wrong = ProximalGradient(data.operator, np.random.default_rng(0))
    wrong.L /= 50
    S, solved_it = wrong.solve(data.y, penalty, 1e-9)
    assert solved_it and top < wrong.L
    np.testing.assert_allclose(S, right.solve(data.y, penalty, 1e-9)[0], atol=1e-6)


def test_a_run_that_is_cut_short_says_so():
    data = instance()
    found = minimise(ProximalGradient(data.operator, np.random.default_rng(0), 5), data.operator, data.y, 0.2)
    assert not found.converged
    found = minimise(NetworkDescent(data.operator, 16, np.random.default_rng(0), 5), data.operator, data.y, 0.0)
    assert not found.converged


def test_narrow_networks():
    model, d = QuadraticNetwork(0.5, 0.5), 16
    convex = sv.simulate(model, NuclearNorm(0.2), alpha=0.6, d=d)
    data, losses = redrawn(model, 0.6, d), []
    for units in (1, 4, 8, 12):
        narrow = sv.simulate(model, NuclearNorm(0.2, width=units, solver="network"), alpha=0.6, d=d)
        values, vectors = np.linalg.eigh(convex.estimate)
        truncated = (vectors[:, -units:] * values[-units:]) @ vectors[:, -units:].T
        losses.append(narrow["training_loss"])
        assert narrow.converged
        assert np.linalg.matrix_rank(narrow.estimate, tol=1e-8) <= units
        assert narrow["rank"] <= units / d
        assert narrow["training_loss"] <= objective(data, truncated, 0.2) * (1 + 1e-9)
    assert losses == sorted(losses, reverse=True)
    assert convex["rank"] <= 12 / d  # so that 12 units do not limit it
    assert losses[-1] == pytest.approx(convex["training_loss"], rel=1e-8)
    unpenalised = sv.simulate(model, NuclearNorm(0.0, width=4, solver="network"), alpha=0.6, d=d)
    assert unpenalised.converged and unpenalised["training_error"] < losses[1] / 0.6


@pytest.mark.parametrize("width", [5, 0.5])
def test_convex_solver_refuses_to_limit_the_rank(width):
    with pytest.raises(ValueError, match="solver = 'convex' is not allowed: solver must be 'network' when `width`"):
        sv.simulate(QuadraticNetwork(0.5), NuclearNorm(0.1, width=width), alpha=0.5, d=12)


def test_widths():
    assert [hidden_units(width, 10) for width in (None, 3, 0.25, 1.0, 0.01, 20)] == [10, 3, 2, 10, 1, 20]


def test_nuclear_norm_of_a_matrix_that_is_not_positive():
    outcome = sv.simulate(MatrixSensing(Semicircle(1.0), 0.1), NuclearNorm(0.1), alpha=0.4, d=16)
    assert outcome.converged and np.linalg.eigvalsh(outcome.estimate)[0] > -1e-12


@pytest.mark.parametrize("alpha", [0.2, 0.7])
@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_lazy_is_ridge_regression(alpha, penalty):
    model, d = QuadraticNetwork(0.5, 0.5), 10
    outcome = sv.simulate(model, Lazy(penalty), alpha=alpha, d=d)
    data = redrawn(model, alpha, d)
    G = design(data.operator)
    if penalty:
        expected = np.linalg.solve(G.T @ G + penalty * d * np.eye(d * d), G.T @ data.y)
    else:
        expected = np.linalg.pinv(G) @ data.y
    np.testing.assert_allclose(outcome.estimate.ravel(), expected, atol=1e-7)
    np.testing.assert_allclose(outcome.estimate, outcome.estimate.T, atol=1e-12)
    fit = np.sum((data.y - G @ expected) ** 2)
    assert outcome.converged and "rank" not in outcome.metrics
    assert outcome["training_loss"] == pytest.approx(fit / d**2 + penalty / d * np.sum(expected**2), abs=1e-9)
    assert outcome["training_error"] == pytest.approx(fit / len(data.y), abs=1e-9)
    assert outcome["generalization_error"] == pytest.approx(2 * np.sum((expected - data.truth.ravel()) ** 2) / d)


def test_ridge_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(lazy_algorithm, "_STEPS", 2)
    data = instance()
    assert not ridge(data.operator, data.y, 1.0)[2]


def test_one_step_of_gradient_descent_follows_the_gradient():
    data, d = instance(d=6), 6
    W = np.random.default_rng(1).standard_normal((data.width, d))

    def loss(W):
        return np.sum((data.y - data.operator.forward(W.T @ W / np.sqrt(W.size))) ** 2) / 4

    gradient, h = np.zeros_like(W), 1e-5
    for place in np.ndindex(*W.shape):
        bump = np.zeros_like(W)
        bump[place] = h
        gradient[place] = (loss(W + bump) - loss(W - bump)) / (2 * h)
    after = gradient_descent(data.operator, data.y, W, step=1e-3, max_steps=1, tolerance=1e-12)
    moved = W - 1e-3 * gradient
    np.testing.assert_allclose(after.S, moved.T @ moved / np.sqrt(W.size), atol=1e-9)
    assert (after.iterations, after.step, after.converged) == (1, 1e-3, False)


def test_gradient_descent_halves_a_step_that_would_diverge():
    data = instance(alpha=4.0, noise=0.0, d=10)
    W = np.random.default_rng(1).standard_normal((data.width, 10))
    found = gradient_descent(data.operator, data.y, W, step=5.0, max_steps=3000, tolerance=1e-8)
    assert found.converged and 1e-4 < found.step < 1
    assert scores(found.S, data.truth)["estimation_error"] < 1e-6


def test_gradient_descent_stops_where_noise_cannot_be_fitted():
    data = instance(alpha=3.0, noise=0.5, d=10)
    W = np.random.default_rng(1).standard_normal((data.width, 10))
    found = gradient_descent(data.operator, data.y, W, step=0.1, max_steps=5000, tolerance=1e-8)
    assert found.converged and found.iterations < 5000
    slope = data.operator.adjoint(data.y - data.operator.forward(found.S)) @ found.S
    assert np.abs(slope).max() < 1e-2 * np.abs(data.operator.adjoint(data.y)).max()


def test_average_of_runs_on_the_same_data():
    model, d = QuadraticNetwork(0.5, 0.0, "gaussian"), 16
    outcome = sv.simulate(model, GradientDescent(runs=4, tolerance=1e-6), alpha=0.2, d=d)
    data = redrawn(model, 0.2, d)
    assert outcome.converged
    assert outcome["training_error"] == pytest.approx(np.mean((data.y - data.operator.forward(outcome.estimate)) ** 2))
    assert outcome["training_error"] < 1e-6  # the labels are linear in S: an average of fits is a fit
    assert outcome["estimation_error"] < outcome.details["single_run_error"]
    assert outcome["estimation_error"] == pytest.approx(scores(outcome.estimate, data.truth)["estimation_error"])
    again = sv.simulate(model, GradientDescent(runs=4, tolerance=1e-6), alpha=0.2, d=d)
    np.testing.assert_array_equal(outcome.estimate, again.estimate)


def test_gradient_descent_refuses_negative_eigenvalues():
    with pytest.raises(sv.NotSimulable, match="no negative eigenvalues"):
        sv.simulate(MatrixSensing(Semicircle(1.0)), GradientDescent(), alpha=0.4, d=12)
    positive = MatrixSensing(Discrete([0.0, 2.0], [0.5, 0.5]))
    assert sv.simulate(positive, GradientDescent(tolerance=1e-6), alpha=0.2, d=12).converged


def test_conjectured_error_of_averaged_gradient_descent():
    alpha = np.array([0.1, 0.3, 0.5])
    bayes = sv.predict(QuadraticNetwork(0.5), BayesOptimal(), alpha=alpha)["estimation_error"]
    for runs, factor in ((1, 2.0), (4, 1.25)):
        for model in (QuadraticNetwork(0.5), MatrixSensing(MarchenkoPastur(0.5))):
            found = sv.predict(model, GradientDescent(runs=runs), alpha=alpha)
            np.testing.assert_allclose(found["estimation_error"], factor * bayes, rtol=1e-12)
            np.testing.assert_allclose(found["generalization_error"], 2 * factor * bayes, rtol=1e-12)
            assert np.all(found["training_error"] == 0) and np.all(found.converged)


def test_gradient_descent_without_theory():
    with pytest.raises(sv.NotSolvable, match="only for noise = 0; it can be simulated"):
        sv.predict(QuadraticNetwork(0.5, 0.1), GradientDescent(), alpha=0.3)
    with pytest.raises(sv.NotSolvable, match="eigenvalues of a network with Gaussian weights"):
        sv.predict(MatrixSensing(Semicircle(1.0)), GradientDescent(), alpha=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erm_0.5_0.6_0.5_0.2", "erm_0.2_0.8_0.5_0.5", "erm_0.5_0.3_0.5_0.2"])
def test_nuclear_norm_of_gaussian_features_is_that_of_theory(name):
    """At d = 50 the bias of finite size is a few percent; the deviation shrinks with d."""
    p = VALUES[name]["params"]
    mse, fit, reg, rank, *_ = VALUES[name]["value"]
    model = QuadraticNetwork(p["rho"], p["Delta"], "gaussian")
    runs = [sv.simulate(model, NuclearNorm(p["lam"]), alpha=p["alpha"], d=50, seed=seed) for seed in range(8)]
    for metric, expected, bias in (
        ("estimation_error", mse, 0.08),
        ("training_error", fit / p["alpha"], 0.05),
        ("training_loss", fit + reg, 0.05),
        ("rank", rank, 0.05),
    ):
        values = np.array([run[metric] for run in runs])
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - expected) < 4 * error + bias * expected


@pytest.mark.slow
def test_quadratic_features_approach_the_theory_with_the_dimension():
    mse = VALUES["erm_0.5_0.6_0.5_0.2"]["value"][0]
    excess = {}
    for d, seeds in ((20, 24), (80, 6)):
        model = QuadraticNetwork(0.5, 0.5)
        runs = [sv.simulate(model, NuclearNorm(0.2), alpha=0.6, d=d, seed=seed) for seed in range(seeds)]
        excess[d] = np.mean([run["estimation_error"] for run in runs]) / mse - 1
    assert 0 < excess[80] < excess[20] / 2


@pytest.mark.slow
def test_lazy_of_gaussian_features_is_that_of_theory():
    entry = VALUES["ridge_0.5_0.3_0.5_0.2"]
    mse, fit = entry["value"]
    model = QuadraticNetwork(0.5, 0.5, "gaussian")
    runs = [sv.simulate(model, Lazy(0.2), alpha=0.3, d=50, seed=seed) for seed in range(12)]
    for metric, expected in (("estimation_error", mse), ("training_error", fit / 0.3)):
        values = np.array([run[metric] for run in runs])
        assert abs(values.mean() - expected) < 4 * values.std(ddof=1) / np.sqrt(len(values)) + 0.02 * expected


@pytest.mark.slow
def test_averaged_gradient_descent_is_near_its_conjecture():
    """At d = 40 a single run and the average of 8 are above it by at most a half."""
    model = QuadraticNetwork(0.5, 0.0, "gaussian")
    learner = GradientDescent(runs=8, tolerance=1e-6, max_steps=8000)
    bayes = sv.predict(model, BayesOptimal(), alpha=0.2)["estimation_error"]
    runs = [sv.simulate(model, learner, alpha=0.2, d=40, seed=seed) for seed in range(4)]
    assert all(run.converged for run in runs)
    single = np.mean([run.details["single_run_error"] for run in runs])
    average = np.mean([run["estimation_error"] for run in runs])
    assert 0.9 < single / (2 * bayes) < 1.5
    assert 0.9 < average / (1.125 * bayes) < 1.5
    assert average < 0.7 * single
