"""Message passing with several projections: the denoiser, the scores, and runs against state evolution."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.core.errors import NotSolvable
from solvable.core.learners import AMP, BayesOptimal
from solvable.core.model import Data
from solvable.core.registry import find_simulation
from solvable.core.status import Status
from solvable.engine.amp import amp
from solvable.engine.informed import truthful_start
from solvable.engine.operators import Dense
from solvable.engine.outputs.posterior import PosteriorDenoiser
from solvable.engine.signals.separable import gaussian_denoiser
from solvable.engine.two_sided import RESTARTS, run_amp
from solvable.models.index import MultiIndex
from solvable.models.index.multi_index import orthonormal_teacher
from solvable.models.index.scores import aligned, fresh_pairs, scores

PARITY = MultiIndex("sign(z1*z2)")
STAIRCASE = MultiIndex("z1**2 + sign(z1*z2*z3)")
SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])


def simulate(model, learner, alpha, d, seed):
    rng = np.random.default_rng(seed)
    return find_simulation(model, learner).function(model, learner, model.sample(rng, d, alpha=alpha), rng)


@pytest.mark.parametrize("d, r", [(3, 3), (50, 2), (400, 3)])
def test_teachers_are_orthonormal(d, r):
    W = orthonormal_teacher(np.random.default_rng(0), d, r)
    np.testing.assert_allclose(W.T @ W, d * np.eye(r), atol=1e-11 * d)


def test_teachers_need_room():
    with pytest.raises(ValueError, match="d = 2 is not allowed: d must be at least the number of projections, 3"):
        orthonormal_teacher(np.random.default_rng(0), 2, 3)


def test_starts_at_the_truth_lie_on_the_nishimori_line():
    rng = np.random.default_rng(1)
    W = orthonormal_teacher(rng, 60, 3)
    start = truthful_start(rng, W, 0.7)
    np.testing.assert_allclose(W.T @ start / 60, 0.7 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(start.T @ start / 60, 0.7 * np.eye(3), atol=1e-12)
    assert np.isfinite(truthful_start(rng, orthonormal_teacher(rng, 3, 3), 0.7)).all()


def test_floor_of_the_variance():
    """Labels without noise that jump leave a few samples near a jump; others have the floor of the channel."""
    floors = {
        (target, n): MultiIndex(target).instance(Data(np.zeros((n, 3)), np.zeros(n), np.eye(3)[:, :r])).least_variance
        for target, r, n in (("sign(z1*z2)", 2, 2000), ("sign(z1*z2)", 2, 2), ("z1*z2", 2, 100), ("abs(z)", 1, 100))
    }
    assert floors["sign(z1*z2)", 2000] == pytest.approx(2.5e-5) and floors["sign(z1*z2)", 2] == 0.01
    assert floors["abs(z)", 100] == 1e-6 and floors["z1*z2", 100] == MultiIndex("z1*z2").channel.row_resolution


def test_fresh_pairs_have_the_law_of_projections():
    rng = np.random.default_rng(2)
    W = orthonormal_teacher(rng, 40, 2)
    estimate = W @ np.array([[0.6, 0.1], [-0.2, 0.5]]) + 0.4 * rng.standard_normal((40, 2))
    M, Q, S = (a.T @ b / 40 for a, b in ((W, estimate), (estimate, estimate), (W, W)))
    z, Omega = fresh_pairs(rng, M, Q, S)
    both = np.hstack([W, estimate])
    found = np.cov(np.hstack([z, Omega]).T)
    # Each entry of the covariance of N draws has a standard error of at most sqrt(2/N) of the variances' scale.
    assert np.max(np.abs(found - both.T @ both / 40)) < 5 * np.sqrt(2 / len(z)) * found.max()


@pytest.mark.parametrize("model", [PARITY, STAIRCASE], ids=["parity", "staircase"])
def test_output_denoiser_is_the_gradient_of_the_evidence(model):
    rng = np.random.default_rng(3)
    r, n = model.target.projections, 40
    V = 0.3 * np.eye(r) + 0.1
    Omega = rng.standard_normal((n, r)) @ np.linalg.cholesky(np.eye(r) - V).T
    z = Omega + rng.standard_normal((n, r)) @ np.linalg.cholesky(V).T
    output = PosteriorDenoiser(model.channel, model.channel.sample(z, rng))
    step = output(Omega, V)
    np.testing.assert_array_equal(step.minus_derivative, step.minus_derivative.T)
    for j in range(r):
        h = 1e-5 * np.eye(r)[j]
        slope = (output.log_Z(Omega + h, V) - output.log_Z(Omega - h, V)) / 2e-5
        np.testing.assert_allclose(step.g[:, j], slope, rtol=1e-5, atol=1e-6)
        derivative = (output(Omega + h, V).g - output(Omega - h, V).g).mean(axis=0) / 2e-5
        np.testing.assert_allclose(step.minus_derivative[j], -derivative, rtol=1e-5, atol=1e-5)
    assert step.log_Z is not None
    np.testing.assert_array_equal(step.log_Z(), output.log_Z(Omega, V))


def test_only_the_symmetries_of_the_target_are_forgiven():
    rng = np.random.default_rng(4)
    W = orthonormal_teacher(rng, 100, 2)
    for symmetry in (np.eye(2), -np.eye(2), SWAP, -SWAP):
        found = scores(PARITY, 0.9 * W @ symmetry, W, rng)
        np.testing.assert_allclose(found["overlap"], 0.9 * np.eye(2), atol=1e-12)
        assert found["estimation_error"] == pytest.approx(2 * 0.1**2)
        assert found["overlap_1"] == pytest.approx(0.9) and found["overlap_2"] == pytest.approx(0.9)
        np.testing.assert_allclose(aligned(PARITY, W @ symmetry, W), W, atol=1e-9)
    wrong = scores(PARITY, W @ np.diag([1.0, -1.0]), W, rng)
    assert np.trace(wrong["overlap"]) == pytest.approx(0, abs=1e-12)
    assert wrong["classification_error"] == 1


def test_scores_of_nothing_and_of_a_single_direction():
    rng = np.random.default_rng(5)
    W = orthonormal_teacher(rng, 80, 3)
    nothing = scores(STAIRCASE, np.zeros_like(W), W, rng)
    assert np.all(nothing["overlap"] == 0) and nothing["estimation_error"] == pytest.approx(3)
    first = scores(STAIRCASE, W * np.array([-1.0, 0.0, 0.0]), W, rng)
    np.testing.assert_allclose(first["overlap"], np.diag([1.0, 0.0, 0.0]), atol=1e-9)
    # Knowing z1 leaves the sign, of variance one. V stays at 1e-6, which costs 2 z1 sqrt(V) and less.
    assert first["generalization_error"] == pytest.approx(1, abs=1e-4)
    assert "classification_error" not in first


def test_metrics_are_those_of_fresh_inputs():
    rng = np.random.default_rng(6)
    d, channel = 150, PARITY.channel
    W = orthonormal_teacher(rng, d, 2)
    estimate = truthful_start(rng, W, 0.8)
    found = scores(PARITY, estimate, W, rng)
    X = rng.standard_normal((20_000, d)) / np.sqrt(d)
    label, Omega = np.sign((X @ W).prod(axis=1)), X @ estimate
    direct = np.mean((label - channel.predictor.predict(Omega, 0.2 * np.eye(2))) ** 2)
    # Two averages of 20000 squared errors between 0 and 4: their difference is below 0.03 at four standard errors.
    assert found["generalization_error"] == pytest.approx(direct, abs=0.03)
    wrong = np.mean(label != channel.predictor.classify(Omega, 0.2 * np.eye(2)))
    assert found["classification_error"] == pytest.approx(wrong, abs=4 * np.sqrt(2 * 0.25 / 20_000))


@pytest.mark.slow
def test_undamped_steps_follow_state_evolution():
    """From an estimate with M = Q = q I the next overlaps are those of alpha E[g g^T], step by step."""
    d, alpha, q, runs, steps = 1000, 4.0, 0.3, 8, 4
    found = np.empty((runs, steps + 1, 2))
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        data = PARITY.sample(rng, d, alpha=alpha)

        def record(t, W, seed=seed, truth=data.truth):
            found[seed, t] = np.trace(truth.T @ W) / (2 * d), np.sum(W**2) / (2 * d)

        output = PosteriorDenoiser(PARITY.channel, data.y)
        start = truthful_start(rng, data.truth, q)
        amp(Dense(data.X), output, gaussian_denoiser, start, rng, damping=1.0, max_steps=steps, callback=record)
    expected = [q]
    for _ in range(steps):
        Mhat = alpha * PARITY.channel.information((1 - expected[-1]) * np.eye(2)[None]).information[0, 0, 0]
        expected.append(Mhat / (1 + Mhat))
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(runs)
    for t in range(1, steps + 1):
        # Four standard errors, and a finite-size bias of order 1/d.
        assert np.all(np.abs(mean[t] - expected[t]) < 4 * error[t] + 3 / d)
        assert np.all(np.abs(found[:, t, 0] - found[:, t, 1]) < 4 / np.sqrt(d))


def test_parity_is_learned_from_noise():
    outcome = simulate(PARITY, AMP(), 5.0, 300, 0)
    assert outcome.converged and outcome.estimate.shape == (300, 2)
    # State evolution gives 0.8235; one run at d = 300 scatters by 0.02.
    assert abs(outcome["overlap_1"] - 0.8235) < 0.1 and abs(outcome["overlap_2"] - 0.8235) < 0.1
    np.testing.assert_allclose(outcome["overlap"], outcome.details["self_overlap"], atol=3 / np.sqrt(300))
    assert outcome["estimation_error"] == pytest.approx(2 - np.trace(outcome["overlap"]), abs=0.1)
    assert outcome.details["status"] == Status.CONVERGED and outcome.details["iterations"] > 20
    assert all(np.all(np.isfinite(outcome.details[name])) for name in ("log_likelihood", "free_entropy"))


def test_a_run_that_did_not_converge_says_so():
    outcome = simulate(PARITY, AMP(max_steps=5), 5.0, 200, 0)
    assert not outcome.converged and outcome.details["status"] == Status.MAX_STEPS
    assert outcome.details["starts"] == 1 + RESTARTS
    assert outcome.consistent == outcome.details["consistent"]


@pytest.mark.slow
def test_other_starts_leave_a_false_fixed_point():
    """An instance in which tiny noise finds one direction and mistakes another; its log-likelihood gives it away."""
    rng = np.random.default_rng([77, 119])
    d, alpha = 500, 4
    W = orthonormal_teacher(rng, d, 2)
    X = rng.standard_normal((alpha * d, d)) / np.sqrt(d)
    data = Data(X, np.sign((X @ W).prod(axis=1)), W)
    outcome = run_amp(PARITY, AMP(), data, rng)
    assert outcome.details["starts"] > 1
    assert outcome["overlap_1"] > 0.6 and outcome["overlap_2"] > 0.6 and outcome.details["consistent"]


@pytest.mark.slow
def test_the_spectral_start_frees_a_run_of_the_staircase():
    """From noise of any norm this instance ends at an overlap of 0.012; state evolution says 0.327."""
    outcome = sv.simulate(STAIRCASE, AMP(), alpha=1.05, d=500, seed=0)
    assert outcome.converged and outcome.consistent
    assert abs(outcome["overlap_1"] - 0.3274) < 2 * outcome.details["spread"]["overlap_1"]


@pytest.mark.slow
@pytest.mark.parametrize("text, alpha", [("z1*z2 + 0.3*z1**3", 2.0), ("where(z1>0,z2,z3)", 3.0)])
def test_a_run_next_to_recovery_stops(text, alpha):
    """As many labels as unknowns, and a jump that hides a direction: both kept moving until the steps ran out."""
    model = MultiIndex(text)
    expected = sv.predict(model, AMP(), throw=False, alpha=alpha)["overlap"]
    outcome = simulate(model, AMP(), alpha, 200, 0)
    assert outcome.converged
    # The points of the level sets resolve V = 0.13 of three projections: what is left of z1 depends on it.
    assert np.max(np.abs(np.diag(outcome["overlap"] - expected))) < 0.15


def test_a_given_start_is_used_with_its_memory():
    rng = np.random.default_rng(7)
    data = PARITY.sample(rng, 200, alpha=5.0)
    W = truthful_start(rng, data.truth, 0.8)
    one_step = AMP(max_steps=1, damping=1.0)
    instance = PARITY.instance(data)
    plain = instance.run(W, rng, one_step)
    with_memory = instance.run(W, rng, one_step, memory=0.3 * data.X @ W)
    assert np.max(np.abs(plain.estimate - with_memory.estimate)) > 1e-3


@pytest.mark.slow
def test_staircase_is_learned_jointly():
    outcome = simulate(STAIRCASE, AMP(), 5.0, 250, 1)
    assert outcome.converged
    assert outcome["overlap_1"] == pytest.approx(1, abs=1e-4)
    assert abs(outcome["overlap_2"] - 0.8235) < 0.1 and abs(outcome["overlap_3"] - 0.8235) < 0.1


def test_bayes_optimal_keeps_the_end_of_larger_free_entropy():
    outcome = simulate(PARITY, BayesOptimal(), 5.0, 200, 0)
    entropies = {name: outcome.details[f"free_entropy_{name}"] for name in ("informed", "uninformed")}
    assert outcome.details["branch"] == max(entropies, key=lambda name: entropies[name])
    assert outcome["overlap_1"] > 0.7


@pytest.mark.slow
def test_perfect_recovery_dominates_where_labels_pin_the_first_direction():
    """Between alpha = 1 and 1.4001 noise does not find z1 of the staircase perfectly, but the posterior knows it."""
    outcome = simulate(STAIRCASE, BayesOptimal(), 1.25, 300, 0)
    assert outcome["overlap_1"] == pytest.approx(1, abs=1e-4)
    assert outcome.details["branch"] == "informed" or outcome.details["free_entropy_uninformed"] == np.inf
    assert outcome.details["free_entropy_informed"] == np.inf


def test_priors_other_than_gaussian_are_refused():
    model = MultiIndex("sign(z1*z2)", prior="rademacher")
    with pytest.raises(NotSolvable, match="rademacher|Rademacher"):
        simulate(model, AMP(), 3.0, 50, 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("learner", [AMP(), BayesOptimal()], ids=["amp", "bayes-optimal"])
@pytest.mark.parametrize("d, n", [(3, 1), *(pytest.param(*size, marks=pytest.mark.slow) for size in ((4, 5), (30, 1)))])
def test_edge_sizes_give_finite_metrics(learner, d, n):
    rng = np.random.default_rng(1)
    outcome = find_simulation(STAIRCASE, learner).function(
        STAIRCASE, learner, STAIRCASE.sample(rng, d, alpha=n / d), rng
    )
    assert all(np.all(np.isfinite(value)) for value in outcome.metrics.values())


def test_labels_that_are_not_numbers_are_never_converged():
    rng = np.random.default_rng(0)
    data = PARITY.sample(rng, 50, alpha=3.0)
    outcome = run_amp(PARITY, AMP(), data._replace(X=np.where(data.X > 0.3, np.nan, data.X)), rng)
    assert not outcome.converged and outcome.details["status"] == Status.NONFINITE


def test_the_spectral_start_is_offered():
    model = sv.MultiIndex("sign(z1*z2)")
    found = sv.simulate(model, sv.AMP(start="spectral"), alpha=6.0, d=150, seed=0)
    assert found["overlap_1"] > 0.6 and found["overlap_2"] > 0.6
    one = sv.simulate(sv.MultiIndex("abs(z)"), sv.AMP(start="spectral"), alpha=2.0, d=150, seed=0)
    assert one["overlap"] > 0.9
    with pytest.raises(ValueError, match="start must be 'noise' or 'spectral'"):
        sv.AMP(start="luck")
