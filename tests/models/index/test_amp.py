"""Message passing with one projection: the two denoisers, the scores, and runs against known overlaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from solvable.core.learners import AMP, BayesOptimal, Spectral
from solvable.core.model import Data
from solvable.core.registry import find_simulation
from solvable.core.status import Status
from solvable.engine.outputs.posterior import PosteriorDenoiser
from solvable.engine.signals.separable import PriorDenoiser
from solvable.engine.two_sided import run_amp
from solvable.models.index import MultiIndex
from solvable.models.index.informed import run_bayes_optimal
from solvable.models.index.scores import scores
from solvable.priors import GaussBernoulli, Gaussian, Rademacher

ABS, SIGN, BINARY_SIGN = MultiIndex("abs(z)"), MultiIndex("sign(z)"), MultiIndex("sign(z)", prior="rademacher")
SPARSE = MultiIndex("z", noise=0.1, prior="gauss-bernoulli:0.5")


def simulate(model, run, learner, alpha, d, seed):
    rng = np.random.default_rng(seed)
    return run(model, learner, model.sample(rng, d, alpha=alpha), rng)


def test_output_denoiser_is_the_gradient_of_the_evidence():
    rng = np.random.default_rng(0)
    y, Omega, V, h = np.abs(rng.standard_normal(50)), rng.standard_normal((50, 1)), np.array([[0.3]]), 1e-5
    output = PosteriorDenoiser(ABS.channel, y)
    step = output(Omega, V)
    assert step.g.dtype == np.float64
    slope = (output.log_Z(Omega + h, V) - output.log_Z(Omega - h, V)) / (2 * h)
    np.testing.assert_allclose(step.g[:, 0], slope, atol=1e-7)
    derivative = (output(Omega + h, V).g - output(Omega - h, V).g).mean() / (2 * h)
    np.testing.assert_allclose(step.minus_derivative, -derivative, atol=1e-6)


@pytest.mark.parametrize("prior", [Gaussian(), Rademacher(), GaussBernoulli(0.3)])
def test_signal_denoiser_finds_the_precision_of_any_prior(prior):
    d, A = 200_000, 1.7
    rng = np.random.default_rng(1)
    w = prior.sample(rng, d)
    B = A * w + np.sqrt(A) * rng.standard_normal(d)
    step = PriorDenoiser(prior)(B[:, None], np.eye(1))
    assert step.precision[0, 0] == pytest.approx(A, rel=0.02)
    # Nishimori in the scalar problem: estimate and truth overlap as the estimate with itself, variance = 1 - q.
    q = np.mean(step.estimate**2)
    assert np.mean(step.estimate[:, 0] * w) == pytest.approx(q, abs=0.01)
    assert step.response[0, 0] == pytest.approx(1 - q, abs=0.01)
    assert q == pytest.approx(float(prior.overlap(np.array(A))), abs=0.01)


@pytest.mark.parametrize(
    "model, expected",
    [(BINARY_SIGN, 0.5607), pytest.param(SPARSE, 0.8180, marks=pytest.mark.slow)],
    ids=["binary", "sparse"],
)
def test_other_priors_reach_their_state_evolution(model, expected):
    """Expected: fixed point of q = overlap(alpha E[g^2]) from q = 0, with an independent trapezoid rule."""
    outcomes = [simulate(model, run_amp, AMP(), 1.0, 500, seed) for seed in range(10)]
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
    data = SIGN.sample(rng, 400, alpha=2.0)
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
    assert outcome.consistent and outcome.details["consistent"]


def test_sign_of_the_estimate_counts_unless_the_target_is_even():
    rng = np.random.default_rng(0)
    truth = Gaussian().sample(rng, 300)[:, None]
    wrong = -0.5 * truth
    assert scores(ABS, wrong, truth, rng)["overlap"] == pytest.approx(0.5)
    assert scores(ABS, wrong, truth, rng)["estimation_error"] == pytest.approx(0.25)
    assert scores(SIGN, wrong, truth, rng)["overlap"] == pytest.approx(-0.5)
    assert scores(SIGN, wrong, truth, rng)["estimation_error"] == pytest.approx(2.25)


def test_a_run_that_finds_nothing_is_started_again_from_the_spectral_estimate():
    """An instance where noise dies out; from the truth message passing ends at 0.130, as from the eigenvector."""
    rng = np.random.default_rng([10, 7])
    data = ABS.sample(rng, 500, alpha=0.8)
    outcome = run_amp(ABS, AMP(), data, rng)
    assert outcome.details["starts"] == 2 and outcome.converged
    assert outcome["overlap"] == pytest.approx(0.130, abs=0.002)


def test_a_run_with_nothing_to_find_is_not_started_again():
    outcome = simulate(ABS, run_amp, AMP(), 0.3, 200, 0)
    assert outcome.details["starts"] == 1 and outcome.converged and outcome.consistent


def test_a_run_out_of_steps_is_not_converged():
    outcome = simulate(SIGN, run_amp, AMP(max_steps=3), 1.0, 200, 0)
    assert not outcome.converged
    assert outcome.details["status"] == Status.MAX_STEPS and outcome.details["iterations"] == 3


def test_nan_labels_are_not_converged():
    rng = np.random.default_rng(0)
    data = SIGN.sample(rng, 100, alpha=1.0)
    data.y[3] = np.nan
    assert not run_amp(SIGN, AMP(), data, rng).converged
    assert not run_bayes_optimal(SIGN, BayesOptimal(), data, rng).converged


def test_bayes_optimal_takes_the_dominant_branch_of_a_first_order_transition():
    """Binary weights and sign labels: perfect recovery dominates above 1.245, message passing finds it above 1.493."""
    model = BINARY_SIGN
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


@pytest.mark.parametrize("learner", [AMP(), BayesOptimal(), Spectral("symmetric"), Spectral("asymmetric")])
@pytest.mark.parametrize(
    "text, noise, alpha", [pytest.param("relu(z)", 0.0, 3.0, marks=pytest.mark.slow), ("step(1 - abs(z))", 0.0, 4.0)]
)
def test_every_learner_runs_on_the_library_model(learner, text, noise, alpha):
    model = MultiIndex(text, noise=noise)
    rng = np.random.default_rng(0)
    data = model.sample(rng, 200, alpha=alpha)
    outcome = find_simulation(model, learner).function(model, learner, data, rng)
    names = {"cosine", "squared_overlap", "estimation_error", "generalization_error"}
    assert names <= set(outcome.metrics) and ("overlap" in outcome.metrics) == (not isinstance(learner, Spectral))
    assert ("classification_error" in outcome.metrics) == model.channel.discrete
    assert outcome.converged and outcome["squared_overlap"] > 0.25 and outcome["estimation_error"] < 0.8
    assert outcome.estimate.shape == (200, 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("learner", [AMP(), BayesOptimal(), Spectral("symmetric"), Spectral("asymmetric")])
@pytest.mark.parametrize("d, n", [(2, 1), (3, 4), (30, 1)])
def test_edge_sizes_give_finite_metrics(learner, d, n):
    model = MultiIndex("abs(z)")
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((d, 1))
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    outcome = find_simulation(model, learner).function(model, learner, Data(X, np.abs(X @ truth)[:, 0], truth), rng)
    assert all(np.isfinite(value) for value in outcome.metrics.values())
