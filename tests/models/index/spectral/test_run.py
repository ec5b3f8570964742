"""The spectral methods on instances: their estimates for one projection and several, and theory."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.core.model import Data
from solvable.models.index.spectral.blocks import label_blocks
from solvable.models.index.spectral.run import run_spectral, spectral_estimate, spectral_start
from solvable.models.index.spectral.spectrum import block_spectrum
from solvable.models.index.spectral.theory import spectral_prediction, spectral_theory

SYMMETRIC, ASYMMETRIC = sv.Spectral("symmetric"), sv.Spectral("asymmetric")
both_kinds = pytest.mark.parametrize("learner", [SYMMETRIC, ASYMMETRIC], ids=["symmetric", "asymmetric"])
PARITY = sv.MultiIndex("sign(z1*z2)")
PRODUCT = sv.MultiIndex("z1*z2")
WINDOWED = sv.MultiIndex("sign(z1*z2)*where(abs(z1) < 1, 1, 2)")
"""Its label tells sign(z1 z2) and whether |z1| < 1; the matrices G of the four labels do not commute."""


def z_score(values: list[float], expected: float) -> float:
    return (np.mean(values) - expected) / (np.std(values, ddof=1) / np.sqrt(len(values)))


ABS = sv.MultiIndex("abs(z)")


def spectral_runs(kind: str, seeds: int, expected: float) -> list[sv.Outcome]:
    """Runs on abs(z) at alpha = 2, each of which says of itself what it must."""
    outcomes = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        outcome = run_spectral(ABS, sv.Spectral(kind), ABS.sample(rng, 400, alpha=2.0), rng)
        assert outcome.converged and outcome.details["second_eigenvalue"] < outcome.details["eigenvalue"]
        assert outcome.details["self_overlap"] == pytest.approx(np.mean(outcome.estimate**2))
        assert np.mean(outcome.estimate**2) == pytest.approx(expected, abs=1e-4)
        cosine, q = outcome["cosine"], outcome.details["self_overlap"]
        assert outcome["estimation_error"] == pytest.approx(1 + q - 2 * np.sqrt(q) * cosine)
        assert outcome["squared_overlap"] == pytest.approx(cosine**2)
        outcomes.append(outcome)
    return outcomes


def test_one_projection_has_an_estimate_of_the_predicted_length():
    (outcome,) = spectral_runs("symmetric", 1, 0.6389)
    assert outcome["squared_overlap"] > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("kind, expected, eigenvalue", [("symmetric", 0.6389, 1.0), ("asymmetric", 0.375, 4.0)])
def test_one_projection_reaches_its_predicted_overlap(kind, expected, eigenvalue):
    """Asymmetric: (2 alpha - 1)/(2 alpha + 4) and the eigenvalue 2 alpha."""
    outcomes = spectral_runs(kind, 8, expected)
    squared = np.array([outcome["squared_overlap"] for outcome in outcomes])
    assert abs(squared.mean() - expected) < 4 * squared.std(ddof=1) / np.sqrt(8) + 0.01
    assert np.mean([outcome.details["eigenvalue"] for outcome in outcomes]) == pytest.approx(eigenvalue, rel=0.06)


@pytest.mark.slow
def test_the_sign_follows_the_likelihood():
    """abs(z) + z/2 is not even: the sign of the weights can be told from the labels."""
    model = sv.MultiIndex("abs(z) + z/2")
    for seed in range(6):
        outcome = sv.simulate(model, SYMMETRIC, alpha=3.0, d=300, seed=seed)
        assert outcome["estimation_error"] < 0.7 and outcome["cosine"] > 0.5


def test_a_start_of_one_projection_is_ahead_of_noise():
    """The spectral start carries its Onsager term, and the fields without it have the covariances of fresh ones."""
    model, d = sv.MultiIndex("abs(z)", noise=0.1), 400
    data = model.sample(np.random.default_rng(0), d, alpha=2.5)
    W, memory = spectral_start(model, data, np.random.default_rng(1))
    assert W.shape == (d, 1) and memory.shape == (len(data.y), 1)
    q = float(spectral_theory(model, SYMMETRIC, np.array([2.5]))["squared_overlap"][0])
    assert np.mean(W**2) == pytest.approx(q, rel=1e-9)
    assert abs(np.mean(W * data.truth)) == pytest.approx(q, abs=0.1)
    Omega = data.X @ W - memory
    assert np.mean(Omega**2) == pytest.approx(q, abs=4 / np.sqrt(len(data.y)))
    assert np.mean(Omega * (data.X @ data.truth)) == pytest.approx(
        np.mean(W * data.truth), abs=4 / np.sqrt(len(data.y))
    )


@both_kinds
def test_broken_labels_are_not_converged(learner):
    data = ABS.sample(np.random.default_rng(0), 40, alpha=3.0)
    found = run_spectral(ABS, learner, data._replace(X=np.full_like(data.X, np.nan)), np.random.default_rng(1))
    assert not found.converged and np.all(found.estimate == 0)


@both_kinds
@pytest.mark.parametrize("model", [PARITY, PRODUCT], ids=["parity", "product"])
def test_metrics_of_a_run(model, learner):
    data = model.sample(np.random.default_rng(0), 120, alpha=8.0)
    found = run_spectral(model, learner, data, np.random.default_rng(1))
    again = run_spectral(model, learner, data, np.random.default_rng(1))
    predicted = spectral_theory(model, learner, np.array([8.0]))
    assert set(found.metrics) == set(predicted.metrics)
    for name, value in found.metrics.items():
        np.testing.assert_array_equal(value, again.metrics[name])
        assert np.shape(value) == predicted.metrics[name].shape[1:]
        assert np.shape(predicted.uncertainty[name]) == predicted.metrics[name].shape
    M = found["overlap"]
    assert found.converged and found["overlap_2"] == M[1, 1] and found.estimate.shape == (120, 2)
    assert found["squared_overlap"] == pytest.approx(predicted["squared_overlap"][0], abs=0.15)
    np.testing.assert_allclose(M, predicted["overlap"][0], atol=0.2)
    # The estimate has the predicted length in each of the two directions (1, 1) and (1, -1).
    np.testing.assert_allclose(found.estimate.T @ found.estimate / 120, found.details["self_overlap"], atol=0.15)
    assert np.sum(found.estimate**2) / 120 == pytest.approx(np.trace(predicted["overlap"][0]), rel=1e-9)


def test_labels_whose_matrices_do_not_commute():
    """Values of an independent calculation, at three times the threshold 0.7574682957."""
    alpha = np.array([3 * 0.7574682957])
    found = spectral_theory(WINDOWED, SYMMETRIC, alpha)
    Q = found["overlap"][0]
    assert found["squared_overlap"][0] == pytest.approx(np.trace(Q) / 2, abs=1e-12)
    np.testing.assert_allclose(Q / np.sqrt(np.trace(Q)), np.diag([0.641, 0.405]), atol=1e-3)
    found = spectral_theory(WINDOWED, ASYMMETRIC, alpha)
    assert found.order_parameters["outlier"][0] == pytest.approx(3, abs=1e-4)


@both_kinds
def test_below_the_threshold_the_estimate_vanishes(learner):
    data = PARITY.sample(np.random.default_rng(0), 100, alpha=1.0)
    found = run_spectral(PARITY, learner, data, np.random.default_rng(1))
    assert np.all(found.estimate == 0) and found["estimation_error"] == pytest.approx(2)
    assert 0 < found["squared_overlap"] < 0.2


def test_trivial_directions_are_seen_through_their_second_moment_only():
    """Message passing learns sign(z1) + sign(z2) from any number of samples; a spectral method sees z z^T only."""
    predicted = spectral_theory(sv.MultiIndex("sign(z1)+sign(z2)"), SYMMETRIC, np.array([50.0]))
    # A sign makes E[z_i^2|y] = 1; the sum correlates z1 and z2 given y: G_12 = 2/pi for |y| = 2, -2/pi for y = 0.
    parity = spectral_theory(PARITY, SYMMETRIC, np.array([50.0]))
    np.testing.assert_allclose(predicted["overlap"], parity["overlap"], atol=1e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
def test_fields_are_those_without_the_sample(kind):
    """Leave samples out one at a time, find the eigenvector anew, and look at the sample through it."""
    d, alpha = 150, 8.0
    data = PARITY.sample(np.random.default_rng(0), d, alpha=alpha)
    full = spectral_estimate(PARITY, kind, data, np.random.default_rng(1))
    naive, corrected = [], []
    for i in range(0, len(data.y), len(data.y) // 6):
        rest = Data(np.delete(data.X, i, 0), np.delete(data.y, i), data.truth)
        W = spectral_estimate(PARITY, kind, rest, np.random.default_rng(1)).W
        # The sign of each eigenvector is free: bring it to that of the full run, in the basis of the blocks.
        for v in (np.array([[1.0], [1.0]]), np.array([[1.0], [-1.0]])):
            if np.sum((W @ v) * (full.W @ v)) < 0:
                W = W - W @ v @ v.T
        left_out = data.X[i] @ W
        corrected.append(full.Omega[i] - left_out)
        naive.append(data.X[i] @ full.W - left_out)
    # What is left is of relative order d^-1/2 = 0.08.
    assert np.sqrt(np.mean(np.square(corrected))) < 0.25 * np.sqrt(np.mean(np.square(naive)))


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
def test_fields_are_unbiased(kind):
    """omega has the covariance Q and the covariance M with z that a fresh sample would see."""
    n_over_d, d = 6.0, 200
    data = PARITY.sample(np.random.default_rng(3), d, alpha=n_over_d)
    found = spectral_estimate(PARITY, kind, data, np.random.default_rng(1))
    n = len(data.y)
    M, z = data.truth.T @ found.W / d, data.X @ data.truth
    np.testing.assert_allclose(found.Omega.T @ found.Omega / n, found.W.T @ found.W / d, atol=4 / np.sqrt(n))
    np.testing.assert_allclose(z.T @ found.Omega / n, M, atol=4 / np.sqrt(n))


def test_spectral_start_of_message_passing():
    data = PARITY.sample(np.random.default_rng(0), 300, alpha=6.0)
    W, memory = spectral_start(PARITY, data, np.random.default_rng(1))
    assert W.shape == (300, 2) and memory.shape == (1800, 2)
    Q = spectral_prediction(PARITY.channel.label_law(), "symmetric", np.array(6.0)).overlap
    G = (2 / np.pi) * data.y[:, None, None] * np.array([[0.0, 1.0], [1.0, 0.0]])
    T = G @ np.linalg.inv(np.eye(2) + G)
    np.testing.assert_allclose(memory, np.einsum("ij,njk,nk->ni", np.eye(2) - Q, T, data.X @ W), atol=1e-9)


def test_spectral_start_without_anything_to_learn_is_noise():
    data = PARITY.sample(np.random.default_rng(0), 100, alpha=1.0)
    W, memory = spectral_start(PARITY, data, np.random.default_rng(1))
    assert 0 < np.mean(W**2) < 0.01 and np.all(memory == 0)


@pytest.mark.slow
@both_kinds
@pytest.mark.parametrize("model, alpha", [(PARITY, 3.5), (PARITY, 6.0), (PRODUCT, 2.0), (WINDOWED, 2.2724)])
def test_overlaps_and_errors_agree_with_theory(model, alpha, learner):
    """Sixteen runs at d = 1000: every metric within four standard errors and 5/d for the finite size."""
    predicted = spectral_theory(model, learner, np.array([alpha]))
    runs = []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        data = model.sample(rng, 1000, alpha=alpha)
        runs.append(run_spectral(model, learner, data, rng))
    for name, value in predicted.metrics.items():
        found = np.array([run[name] for run in runs])
        error = found.std(0, ddof=1) / np.sqrt(len(runs))
        assert np.all(np.abs(found.mean(0) - value[0]) < 4 * error + 0.005), name


@pytest.mark.slow
def test_deviation_from_theory_shrinks_with_size():
    predicted = spectral_theory(PARITY, SYMMETRIC, np.array([6.0]))["squared_overlap"][0]
    spread = []
    for d in (100, 800):
        values = []
        for seed in range(12):
            data = PARITY.sample(np.random.default_rng(seed), d, alpha=6.0)
            values.append(run_spectral(PARITY, SYMMETRIC, data, np.random.default_rng(seed))["squared_overlap"])
        spread.append(np.sqrt(np.mean((np.array(values) - predicted) ** 2)))
    assert spread[1] < 0.6 * spread[0]


@pytest.mark.slow
@both_kinds
def test_norm_finds_the_plane(learner):
    """Two copies of one block: the rotation of the plane is free, and a symmetry of the target."""
    model = sv.MultiIndex("z1**2 + z2**2")
    predicted = spectral_theory(model, learner, np.array([4.0]))
    runs = [
        run_spectral(
            model, learner, model.sample(np.random.default_rng(seed), 600, alpha=4.0), np.random.default_rng(seed)
        )
        for seed in range(12)
    ]
    for name in ("squared_overlap", "estimation_error", "generalization_error"):
        values = np.array([run[name] for run in runs])
        error = values.std(ddof=1) / np.sqrt(len(runs))
        assert abs(values.mean() - predicted[name][0]) < 4 * error + 0.02 * predicted[name][0], name


@pytest.mark.slow
def test_only_the_first_step_of_the_staircase_is_found():
    model = sv.MultiIndex("z1**2 + sign(z1*z2*z3)")
    predicted = spectral_theory(model, SYMMETRIC, np.array([2.0]))["overlap"][0]
    assert predicted[0, 0] > 0.5 and np.abs(predicted[1:, 1:]).max() < 1e-12
    found = []
    for seed in range(6):
        data = model.sample(np.random.default_rng(seed), 500, alpha=2.0)
        found.append(run_spectral(model, SYMMETRIC, data, np.random.default_rng(seed))["overlap"])
    assert abs(z_score([M[0, 0] for M in found], predicted[0, 0])) < 4
    assert np.abs(np.array(found)[:, 1:]).max() < 0.2


@pytest.mark.slow
@both_kinds
def test_a_weak_direction_behind_a_larger_eigenvalue(learner):
    """For z1^2 + 0.4 z2^2 the operator of z2 has an outlier of z1 above its own; each direction is still found."""
    model = sv.MultiIndex("z1**2 + 0.4*z2**2")
    alpha = 12.0
    law = model.channel.label_law()
    spectra = [block_spectrum(law, block, learner.kind, np.array(alpha)) for block in label_blocks(law)]
    assert sorted(found.larger for found in spectra) == [0, 1]
    predicted = spectral_theory(model, learner, np.array([alpha]))["overlap"][0]
    found = []
    for seed in range(8):
        data = model.sample(np.random.default_rng(seed), 300, alpha=alpha)
        found.append(run_spectral(model, learner, data, np.random.default_rng(seed))["overlap"])
    mean, error = np.mean(found, 0), np.std(found, 0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(mean - predicted) < 4 * error + 0.02)


@pytest.mark.slow
def test_a_rotation_that_the_target_notices_is_settled_by_the_labels():
    """|z1| + |z2| has G proportional to I, so the eigenvectors leave the rotation of the plane open."""
    model = sv.MultiIndex("abs(z1) + abs(z2)")
    predicted = spectral_theory(model, SYMMETRIC, np.array([8.0]))
    found = []
    for seed in range(4):
        data = model.sample(np.random.default_rng(seed), 500, alpha=8.0)
        found.append(run_spectral(model, SYMMETRIC, data, np.random.default_rng(seed)))
    np.testing.assert_allclose(np.mean([run["overlap"] for run in found], 0), predicted["overlap"][0], atol=0.06)
    errors = [run["generalization_error"] for run in found]
    assert np.mean(errors) == pytest.approx(predicted["generalization_error"][0], rel=0.15)
