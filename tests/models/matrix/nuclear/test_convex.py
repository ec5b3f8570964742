"""Trace-penalised least squares on matrix models at finite size, by convex optimisation and by training networks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import solvable as sv
from solvable.engine.operators import QuadraticFeatures
from solvable.models.matrix import MatrixSensing, QuadraticNetwork
from solvable.models.matrix.nuclear import convex
from solvable.models.matrix.nuclear.convex import (
    NetworkDescent,
    ProximalGradient,
    duality_gap,
    hidden_units,
    largest_square,
    minimise,
)
from solvable.models.matrix.nuclear.theory import NuclearNorm
from solvable.spectra import Semicircle

VALUES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parents[3] / "reference" / "quadratic_values.json").read_text())
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


@pytest.mark.parametrize("solver", [pytest.param("convex", marks=pytest.mark.slow), "network"])
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
        monkeypatch.setattr(convex, "_SMALL", share)
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
