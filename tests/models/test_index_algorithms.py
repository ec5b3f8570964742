"""Finite-size algorithms of the single-index model, with small closed-form channels that stand in for the library's."""

from __future__ import annotations

import dataclasses
import sys
import types
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from solvable.core.learners import AMP, BayesOptimal, Spectral
from solvable.core.model import Data
from solvable.core.registry import find_simulation
from solvable.core.status import Status
from solvable.models.index import MultiIndex
from solvable.models.index.algorithms import ChannelOutput, PriorSignal, run_amp, run_bayes_optimal, scores
from solvable.models.index.spectral_algorithms import asymmetric, run_spectral, second_moments, symmetric
from solvable.priors import GaussBernoulli, Gaussian, Rademacher
from solvable.targets.target import Target


class Posterior(NamedTuple):
    log_Z: Any
    mean: Any
    variance: Any


def abs_kernel(y, omega, V):
    mean = y * np.tanh(y * omega / V)
    log_Z = np.logaddexp(-((y - omega) ** 2) / (2 * V), -((y + omega) ** 2) / (2 * V)) - np.log(2 * np.pi * V) / 2
    return Posterior(log_Z, mean, y**2 - mean**2)


def sign_kernel(y, omega, V):
    a = y * omega / np.sqrt(V)
    log_Z = log_ndtr(a)
    hazard = np.exp(-(a**2) / 2 - log_Z) / np.sqrt(2 * np.pi)
    return Posterior(log_Z, omega + y * np.sqrt(V) * hazard, V * (1 - hazard * (hazard + a)))


def linear_kernel(y, omega, V):
    total = V + LINEAR_NOISE
    log_Z = -((y - omega) ** 2) / (2 * total) - np.log(2 * np.pi * total) / 2
    return Posterior(log_Z, omega + V / total * (y - omega), V * LINEAR_NOISE / total * np.ones_like(y))


LINEAR_NOISE = 0.1


class StandInChannel:
    def __init__(self, kernel, predict, classify=None, continuous_mass=0.0):
        self.kernel, self.predict, self.classify = kernel, predict, classify
        self.discrete = classify is not None
        self.continuous_mass = continuous_mass

    def observe(self, y):
        return np.asarray(y, float)

    def posterior(self, observation, omega, V, evidence=True):
        return self.kernel(observation, omega, V)


def _abs_mean(omega, V):
    s = np.sqrt(V)
    return s * np.sqrt(2 / np.pi) * np.exp(-((omega / s) ** 2) / 2) + omega * (2 * ndtr(omega / s) - 1)


def _sign(omega, V):
    return np.where(omega >= 0, 1.0, -1.0)


@dataclasses.dataclass(frozen=True)
class StandInModel:
    target: Target
    channel: StandInChannel
    prior: Any = dataclasses.field(default_factory=Gaussian)

    def hides_sign(self):
        return self.target.is_even()

    def sample(self, rng, d, alpha, noise=0.0):
        truth = self.prior.sample(rng, d)[:, None]
        X = rng.standard_normal((round(alpha * d), d)) / np.sqrt(d)
        y = self.target.numpy(X @ truth) + np.sqrt(noise) * rng.standard_normal(len(X))
        return Data(X, y, truth)


ABS: Any = StandInModel(Target("abs(z)"), StandInChannel(abs_kernel, _abs_mean, continuous_mass=1.0))
SIGN: Any = StandInModel(
    Target("sign(z)"), StandInChannel(sign_kernel, lambda omega, V: 2 * ndtr(omega / np.sqrt(V)) - 1, _sign)
)
LINEAR: Any = StandInModel(Target("z"), StandInChannel(linear_kernel, lambda omega, V: omega))


def simulate(model, run, learner, alpha, d, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    return run(model, learner, model.sample(rng, d, alpha, noise), rng)


def test_output_denoiser_is_the_gradient_of_the_evidence():
    rng = np.random.default_rng(0)
    y, Omega, V, h = np.abs(rng.standard_normal(50)), rng.standard_normal((50, 1)), np.array([[0.3]]), 1e-5
    output = ChannelOutput(ABS.channel, y)
    step = output(Omega, V)
    assert step.g.dtype == np.float64
    slope = (output.log_Z(Omega + h, V) - output.log_Z(Omega - h, V)) / (2 * h)
    np.testing.assert_allclose(step.g[:, 0], slope, atol=1e-7)
    derivative = (output(Omega + h, V).g - output(Omega - h, V).g).mean() / (2 * h)
    np.testing.assert_allclose(step.minus_derivative, -derivative, atol=1e-6)
    np.testing.assert_allclose(second_moments(ChannelOutput(ABS.channel, y), 50), y**2, rtol=1e-12)


@pytest.mark.parametrize("prior", [Gaussian(), Rademacher(), GaussBernoulli(0.3)])
def test_signal_denoiser_finds_the_precision_of_any_prior(prior):
    d, A = 200_000, 1.7
    rng = np.random.default_rng(1)
    w = prior.sample(rng, d)
    B = A * w + np.sqrt(A) * rng.standard_normal(d)
    step = PriorSignal(prior)(B[:, None])
    assert step.precision[0, 0] == pytest.approx(A, rel=0.02)
    # Nishimori in the scalar problem: estimate and truth overlap as the estimate with itself, variance = 1 - q.
    q = np.mean(step.estimate**2)
    assert np.mean(step.estimate[:, 0] * w) == pytest.approx(q, abs=0.01)
    assert step.response[0, 0] == pytest.approx(1 - q, abs=0.01)
    assert q == pytest.approx(float(prior.overlap(np.array(A))), abs=0.01)


@pytest.mark.parametrize(
    "model, alpha, noise, expected",
    [
        (dataclasses.replace(SIGN, prior=Rademacher()), 1.0, 0.0, 0.5607),
        (dataclasses.replace(LINEAR, prior=GaussBernoulli(0.5)), 1.0, LINEAR_NOISE, 0.8180),
    ],
)
def test_other_priors_reach_their_state_evolution(model, alpha, noise, expected):
    """Expected: fixed point of q = overlap(alpha E[g^2]) from q = 0, with an independent trapezoid rule."""
    outcomes = [simulate(model, run_amp, AMP(), alpha, 500, seed, noise) for seed in range(10)]
    found = np.array([outcome["overlap"] for outcome in outcomes])
    assert all(outcome.converged for outcome in outcomes)
    assert abs(found.mean() - expected) < 4 * found.std(ddof=1) / np.sqrt(10)


def test_perfect_recovery_of_abs():
    outcome = simulate(ABS, run_amp, AMP(), 1.25, 1000, 0)
    assert outcome.converged
    assert outcome["overlap"] == pytest.approx(1, abs=1e-5)
    assert outcome["estimation_error"] < 1e-5 and outcome["generalization_error"] < 1e-4
    assert outcome.details["self_overlap"] == pytest.approx(1, abs=1e-5)
    assert "classification_error" not in outcome.metrics


def test_sign_metrics_are_those_of_fresh_inputs():
    rng = np.random.default_rng(3)
    data = SIGN.sample(rng, 400, 2.0)
    outcome = run_amp(SIGN, AMP(), data, rng)
    w_hat, truth = outcome.estimate[:, 0], data.truth[:, 0]
    X = rng.standard_normal((20_000, 400)) / 20.0
    label, omega = np.sign(X @ truth), X @ w_hat
    direct = np.mean(label != np.sign(omega))
    mean = 2 * ndtr(omega / np.sqrt(1 - np.mean(w_hat**2))) - 1
    # Two averages of 20000 draws: the standard error of their difference is below 0.006.
    assert outcome["classification_error"] == pytest.approx(direct, abs=0.018)
    assert outcome["generalization_error"] == pytest.approx(np.mean((label - mean) ** 2), abs=0.025)
    assert outcome["overlap"] == pytest.approx(np.mean(w_hat * truth))
    assert outcome["estimation_error"] == pytest.approx(np.mean((w_hat - truth) ** 2))
    assert abs(outcome["overlap"] - outcome.details["self_overlap"]) < 3 / np.sqrt(400)
    assert outcome.details["consistent"]


def test_sign_of_the_estimate_counts_unless_the_target_is_even():
    rng = np.random.default_rng(0)
    truth = Gaussian().sample(rng, 300)
    wrong = -0.5 * truth
    assert scores(ABS, wrong, truth, rng)["overlap"] == pytest.approx(0.5)
    assert scores(ABS, wrong, truth, rng)["estimation_error"] == pytest.approx(0.25)
    assert scores(SIGN, wrong, truth, rng)["overlap"] == pytest.approx(-0.5)
    assert scores(SIGN, wrong, truth, rng)["estimation_error"] == pytest.approx(2.25)


def test_a_run_out_of_steps_is_not_converged():
    outcome = simulate(SIGN, run_amp, AMP(max_steps=3), 1.0, 200, 0)
    assert not outcome.converged
    assert outcome.details["status"] == Status.MAX_STEPS and outcome.details["iterations"] == 3


def test_nan_labels_are_not_converged():
    rng = np.random.default_rng(0)
    data = SIGN.sample(rng, 100, 1.0)
    data.y[3] = np.nan
    assert not run_amp(SIGN, AMP(), data, rng).converged
    assert not run_bayes_optimal(SIGN, BayesOptimal(), data, rng).converged


def test_bayes_optimal_takes_the_dominant_branch_of_a_first_order_transition():
    """Binary weights and sign labels: perfect recovery dominates above 1.245, message passing finds it above 1.493."""
    model = dataclasses.replace(SIGN, prior=Rademacher())
    hard = simulate(model, run_bayes_optimal, BayesOptimal(), 1.37, 600, 0)
    assert hard.converged and hard.details["branch"] == "informed"
    assert hard["overlap"] == pytest.approx(1, abs=1e-3)
    assert hard["classification_error"] < 5e-4
    assert hard.details["free_entropy"] == pytest.approx(-np.log(2), abs=1e-2)
    assert simulate(model, run_amp, AMP(), 1.37, 600, 0)["overlap"] < 0.9
    below = simulate(model, run_bayes_optimal, BayesOptimal(), 1.0, 600, 0)
    assert below.converged and below.details["branch"] == "uninformed"
    assert below["overlap"] == pytest.approx(0.5607, abs=0.1)


def test_bayes_optimal_recovers_abs_inside_its_hard_phase():
    outcome = simulate(ABS, run_bayes_optimal, BayesOptimal(), 1.05, 500, 1)
    assert outcome.converged and outcome.details["branch"] == "informed"
    assert outcome["overlap"] == pytest.approx(1, abs=1e-4)


def test_bayes_optimal_is_message_passing_where_the_fixed_point_is_unique():
    outcome = simulate(SIGN, run_bayes_optimal, BayesOptimal(), 1.5, 400, 0)
    entropies = [outcome.details[f"free_entropy_{name}"] for name in ("uninformed", "informed")]
    assert outcome.converged
    assert entropies[0] == pytest.approx(entropies[1], abs=1e-5)


@pytest.fixture
def predicted(monkeypatch):
    """Squared overlaps of abs(z) at alpha = 2; asymmetric: (2 alpha - 1)/(2 alpha + 4)."""
    module: Any = types.ModuleType("solvable.models.index.spectral_theory")
    module.squared_overlap = lambda model, kind, alpha: {"symmetric": 0.6389, "asymmetric": 0.375}[kind]
    monkeypatch.setitem(sys.modules, "solvable.models.index.spectral_theory", module)


@pytest.mark.parametrize("kind, expected, eigenvalue", [("symmetric", 0.6389, 1.0), ("asymmetric", 0.375, 4.0)])
def test_spectral_methods_reach_their_predicted_overlap(predicted, kind, expected, eigenvalue):
    outcomes = [simulate(ABS, run_spectral, Spectral(kind), 2.0, 400, seed) for seed in range(8)]
    squared = np.array([outcome["squared_overlap"] for outcome in outcomes])
    assert all(outcome.converged for outcome in outcomes)
    assert abs(squared.mean() - expected) < 4 * squared.std(ddof=1) / np.sqrt(8) + 0.01
    assert np.mean([outcome.details["eigenvalue"] for outcome in outcomes]) == pytest.approx(eigenvalue, rel=0.06)
    for outcome in outcomes:
        assert outcome.details["second_eigenvalue"] < outcome.details["eigenvalue"]
        assert np.mean(outcome.estimate**2) == pytest.approx(expected)
        cosine = outcome["overlap"]
        assert outcome["estimation_error"] == pytest.approx(1 + expected - 2 * np.sqrt(expected) * cosine)


def test_asymmetric_direction_solves_its_eigenvalue_equation():
    rng = np.random.default_rng(0)
    data = ABS.sample(rng, 60, 2.0)
    G = data.y**2 - 1
    L = (data.X @ data.X.T - np.eye(120)) * G
    values = np.linalg.eigvals(L)
    leading = asymmetric(data.X, data.y**2, rng)
    assert leading.eigenvalue == pytest.approx(values.real.max(), rel=1e-6)
    # Eliminating Omega: X^T diag(G / (gamma + G)) X has the estimate as eigenvector, with eigenvalue 1.
    S = data.X.T @ ((G / (leading.eigenvalue + G))[:, None] * data.X)
    np.testing.assert_allclose(S @ leading.direction, leading.direction, atol=1e-5)


def test_spectral_sign_follows_the_likelihood(predicted):
    """abs(z) + z/2 is not even: the sign of the weights can be told from the labels."""

    def kernel(y, omega, V):
        roots, slopes = np.stack([y / 1.5, -2 * y]), np.log(np.array([1.5, 0.5]))[:, None]
        weights = -((roots - omega) ** 2) / (2 * V) - slopes
        log_Z = np.logaddexp(*weights)
        p = np.exp(weights - log_Z)
        mean = np.sum(p * roots, 0)
        return Posterior(log_Z - np.log(2 * np.pi * V) / 2, mean, np.sum(p * roots**2, 0) - mean**2)

    model: Any = StandInModel(
        Target("abs(z) + z/2"), StandInChannel(kernel, lambda omega, V: np.abs(omega) + omega / 2)
    )
    for seed in range(3):
        outcome = simulate(model, run_spectral, Spectral("symmetric"), 3.0, 300, seed)
        assert outcome["estimation_error"] < 0.7
        assert outcome["overlap"] > 0.5


@pytest.mark.parametrize("method", [symmetric, asymmetric])
def test_spectral_nan_is_not_converged(method):
    rng = np.random.default_rng(0)
    leading = method(rng.standard_normal((20, 10)), np.full(20, np.nan), rng)
    assert not leading.converged and np.all(leading.direction == 0)


@pytest.mark.parametrize("learner", [AMP(), BayesOptimal(), Spectral("symmetric"), Spectral("asymmetric")])
@pytest.mark.parametrize("text, noise, alpha", [("relu(z)", 0.0, 3.0), ("step(1 - abs(z))", 0.0, 4.0)])
def test_every_learner_runs_on_the_library_model(learner, text, noise, alpha):
    model = MultiIndex(text, noise=noise)
    rng = np.random.default_rng(0)
    data = model.sample(rng, 200, alpha=alpha)
    outcome = find_simulation(model, learner).function(model, learner, data, rng)
    names = {"overlap", "estimation_error", "generalization_error"}
    assert names <= set(outcome.metrics)
    assert ("classification_error" in outcome.metrics) == model.channel.discrete
    assert outcome.converged and outcome["overlap"] > 0.5 and outcome["estimation_error"] < 0.8
    assert outcome.estimate.shape == (200, 1)


@pytest.mark.parametrize("learner", [AMP(), BayesOptimal(), Spectral("symmetric"), Spectral("asymmetric")])
@pytest.mark.parametrize("d, n", [(2, 1), (3, 4), (30, 1)])
def test_edge_sizes_give_finite_metrics(learner, d, n):
    model = MultiIndex("abs(z)")
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((d, 1))
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    outcome = find_simulation(model, learner).function(model, learner, Data(X, np.abs(X @ truth)[:, 0], truth), rng)
    assert all(np.isfinite(value) for value in outcome.metrics.values())
