"""Bilinear sequence regression: theory against known values and limits, message passing against theory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import solvable as sv
from solvable.core.learners import AMP, BayesOptimal
from solvable.models.matrix.bilinear_sequence import BilinearSequence

VALUES = json.loads((Path(__file__).parents[2] / "reference" / "quadratic_values.json").read_text())
VALUES = {entry["id"]: entry for entry in VALUES if entry["id"].startswith("bsr_")}


def error(rho, beta, noise, alpha):
    found = sv.predict(BilinearSequence(rho, beta, noise), BayesOptimal(), alpha=alpha)
    assert np.all(found.converged)
    return found["estimation_error"]


def one_by_one(rho, beta, noise, alpha):
    """The same for an array: one alpha and many have programs of their own, which compile for seconds."""
    return np.array([error(rho, beta, noise, each) for each in alpha])


@pytest.mark.parametrize(
    "name",
    [  # square matrices have programs of their own, which compile for seconds
        pytest.param(name, marks=pytest.mark.slow if entry["params"]["beta"] == 1 else ())
        for name, entry in VALUES.items()
        if "alpha" in entry["params"]
    ],
)
def test_known_errors(name):
    entry = VALUES[name]
    p = entry["params"]
    assert abs(error(p["rho"], p["beta"], p["Delta"], p["alpha"]) - np.ravel(entry["value"])[0]) < entry["tol"]


@pytest.mark.parametrize("name", [name for name in VALUES if "alpha_c" in name or "nuclear" in name])
def test_known_thresholds(name):
    entry = VALUES[name]
    found = sv.thresholds(BilinearSequence(entry["params"]["rho"], entry["params"]["beta"]))
    kind = "nuclear_recovery" if "nuclear" in name else "perfect_recovery"
    assert abs(found[kind] - entry["value"]) < entry["tol"]


EDGES = np.array([0.0, 1e-6, 0.1, 0.3, 0.5, 0.6, 0.6249, 0.625, 1.0])


@pytest.mark.slow
def test_edges_of_a_curve():
    """One without samples, zero from the threshold on, monotone between."""
    found = error(0.5, 2.0, 0.0, EDGES)
    assert found[0] == 1 and np.isclose(found[1], 1, atol=1e-5)
    assert np.all(found[7:] == 0) and np.all(np.diff(found[:8]) < 0)
    assert np.isclose(found[6], 1.9656e-4, rtol=1e-3)


@pytest.mark.slow
def test_a_tall_matrix_is_a_long_one_transposed():
    assert np.allclose(error(0.25, 0.5, 0.0, EDGES), error(0.5, 2.0, 0.0, EDGES), rtol=1e-12)


def test_the_solution_solves_its_equation():
    """alpha kappa = noise + error, and with much data the error is that of as many unknowns in noise / alpha."""
    for alpha in (0.2, 1.0, 1e4):
        found = sv.predict(BilinearSequence(0.5, 2.0, 0.1), AMP(), alpha=alpha)
        kappa = found.order_parameters["effective_noise"]
        assert np.isclose(alpha * kappa - 0.1, found["generalization_error"], rtol=1e-7)
        assert found.residual < 1e-12
    assert np.isclose(found["estimation_error"], 0.625 * 0.1 / 1e4, rtol=1e-2)


@pytest.mark.parametrize("beta", [pytest.param(1.0, marks=pytest.mark.slow), 3.0])
def test_small_rank(beta):
    """rho -> 0 at fixed a = alpha beta / (rho (1 + beta)): a scalar fixed point, which leaves zero at the threshold."""
    noise, rho = 0.1, 1e-4
    weak = sv.thresholds(BilinearSequence(rho, beta, noise))["narrow_weak_recovery"]
    assert np.isclose(weak * beta / (rho * (1 + beta)), (1 + noise) * np.sqrt(beta) / (1 + beta))
    alpha = np.array([0.8, 1.2, 2.0, 3.0]) * weak
    limits = []
    for a in alpha * beta / (rho * (1 + beta)):
        left = right = 0.5
        for _ in range(2000):
            u = (1 + beta) * a / (noise + 1 - left * right)
            left, right = (max(u**2 - beta, 0) / (u * (u + c)) for c in (1, beta))
        limits.append(1 - left * right)
    assert limits[0] == 1 > limits[1]
    assert np.allclose(one_by_one(rho, beta, noise, alpha), limits, atol=2e-3)


def test_long_sequences():
    """beta -> infinity: q = 1 - D + D/2 (sqrt(1 + rho ((D+2) rho D + 2 D + rho - 2)) - (rho-1) - D rho)."""
    alpha, rho, noise, q = 0.5, 0.5, 0.1, 0.5
    for _ in range(2000):
        D = (1 + noise - q) / alpha
        root = np.sqrt(1 + rho * ((D + 2) * rho * D + 2 * D + rho - 2))
        q = 1 - D + D / 2 * (root - (rho - 1) - D * rho)
    assert np.isclose(error(rho, 1e5, noise, alpha), 1 - q, rtol=1e-4)


def test_full_rank_and_noise():
    assert sv.thresholds(BilinearSequence(2.0, 1.5))["perfect_recovery"] == 1
    assert sv.thresholds(BilinearSequence(0.6, 0.5))["nuclear_recovery"] == 1
    assert sv.thresholds(BilinearSequence(0.5, 2.0, 0.1))["perfect_recovery"] == np.inf


@pytest.mark.slow
def test_without_a_rank_to_exploit_each_sample_removes_one_unknown():
    """Where entries are almost Gaussian."""
    assert np.isclose(error(300.0, 1.0, 0.0, 0.4), 0.6, atol=2e-3)


@pytest.mark.slow
def test_message_passing_agrees_with_theory():
    model = BilinearSequence(0.5, 2.0, 0.1)
    expected = error(0.5, 2.0, 0.1, 0.5)
    runs = [sv.simulate(model, AMP(), alpha=0.5, d=24, seed=seed) for seed in range(6)]
    errors = np.array([run["estimation_error"] for run in runs])
    assert all(run.converged for run in runs)
    assert abs(errors.mean() - expected) < 4 * errors.std(ddof=1) / np.sqrt(len(errors)) + 0.02
    assert all(run["generalization_error"] == run["estimation_error"] for run in runs)
    # Bayes optimality: the error is one minus the norm of the estimate.
    assert abs(errors.mean() - np.mean([1 - run.details["self_overlap"] for run in runs])) < 0.05


def test_message_passing_recovers_without_noise_also_a_tall_matrix():
    run = sv.simulate(BilinearSequence(0.2, 0.5), AMP(), alpha=0.8, d=30, seed=0)
    assert run.converged and run["estimation_error"] < 1e-4
    assert run.estimate.shape == (30, 15)


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "beta", "alpha", "noise"), [(0.5, 1.0, 0.8, 0.2), (0.5, 2.0, 0.5, 0.1)])
def test_message_passing_at_two_sizes(rho, beta, alpha, noise):
    expected = error(rho, beta, noise, alpha)
    gaps = []
    for d in (30, 60):
        runs = [
            sv.simulate(BilinearSequence(rho, beta, noise), AMP(), alpha=alpha, d=d, seed=seed) for seed in range(12)
        ]
        errors = np.array([run["estimation_error"] for run in runs])
        spread = errors.std(ddof=1) / np.sqrt(len(errors))
        gaps.append(abs(errors.mean() - expected))
        assert gaps[-1] < 4 * spread + 0.3 / d
    assert max(gaps) < 0.05 * max(expected, 0.2) + 0.01


def test_what_is_refused():
    for build, name in [
        (lambda: BilinearSequence(0), "rho = 0"),
        (lambda: BilinearSequence("a"), "rho = 'a'"),
        (lambda: BilinearSequence(0.5, -1), "beta = -1"),
        (lambda: BilinearSequence(0.5, 1, -1), "noise = -1"),
        (lambda: sv.simulate(BilinearSequence(0.01), AMP(), alpha=0.5, d=20), "d = 20 .*at least 100"),
        (lambda: sv.simulate(BilinearSequence(0.5), AMP(), alpha=0.5, d=3000), "d = 3000 .*GB"),
        (lambda: sv.simulate(BilinearSequence(0.5), AMP(start="spectral"), alpha=0.5, d=10), "start = 'spectral'"),
    ]:
        with pytest.raises(ValueError, match=f"^{name}"):
            build()


@pytest.mark.parametrize("beta", [1.0, 0.1])
def test_a_large_rank_is_gaussian_and_one_that_costs_digits_is_refused(beta):
    """V = 1/(1 + qhat) and qhat = alpha/(noise + V), to the square of 1/rho; beyond, the law's cubic would be wrong."""
    alpha, noise, rho = np.geomspace(1e-3, 10, 8), 0.1, 1e4 * beta
    b = noise + alpha - 1
    limit = (np.sqrt(b**2 + 4 * noise) - b) / 2
    found = sv.predict(BilinearSequence(rho, beta, noise), BayesOptimal(), alpha=alpha)
    np.testing.assert_allclose(found["estimation_error"], limit, atol=2e-9)
    with pytest.raises(ValueError, match=rf"rho = .* at most {rho:g}: beyond, entries are as good as Gaussian"):
        sv.predict(BilinearSequence(1.01 * rho, beta, noise), BayesOptimal(), alpha=alpha)
