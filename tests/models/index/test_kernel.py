"""Kernel ridge regression on index models: its curve in alpha, and its plateaus in n = d^kappa."""

from __future__ import annotations

import math

import numpy as np
import pytest

import solvable as sv

CURVED = sv.MultiIndex("tanh(z) + 0.3*z**2", noise=0.1)
METRICS = ("generalization_error", "training_error", "cosine")


def measured(model, learner, alpha, d, seeds):
    runs = [sv.simulate(model, learner, d=d, seed=seed, alpha=alpha) for seed in range(seeds)]
    values = np.array([[run[name] for name in METRICS] for run in runs])
    return values.mean(0), values.std(0, ddof=1) / math.sqrt(seeds)


def test_a_linear_kernel_is_the_ridge_regression_of_the_package():
    model, alpha = sv.MultiIndex("z", noise=0.2), [0.0, 0.4, 1.0, 3.0]
    kernel, ridge = (sv.predict(model, learner, alpha=alpha) for learner in (sv.Kernel(1, 0.3), sv.ERM("square", 0.3)))
    for name in ("generalization_error", "cosine"):
        np.testing.assert_allclose(kernel[name], ridge[name], rtol=0, atol=1e-9)
    np.testing.assert_allclose(kernel["training_error"][1:], 2 * ridge["training_loss"][1:], rtol=1e-9)


def test_curvature_is_penalty():
    """A kernel of degree two without a penalty errs as a linear one of penalty 1/2 does, but fits what it has seen."""
    alpha = np.array([0.5, 2.0])
    curved, plain = (sv.predict(CURVED, learner, alpha=alpha) for learner in (sv.Kernel(2, 0.0), sv.Kernel(1, 0.5)))
    np.testing.assert_allclose(curved["generalization_error"], plain["generalization_error"], rtol=1e-12)
    np.testing.assert_allclose(curved["training_error"], 0, atol=1e-12)


def test_a_chosen_penalty_is_bayes_optimal_for_a_linear_target():
    model = sv.MultiIndex("z", noise=0.3)
    errors = [sv.predict(model, one, alpha=2.0)["generalization_error"] for one in (sv.Kernel(1), sv.BayesOptimal())]
    assert errors[0] == pytest.approx(errors[1], abs=1e-9)


@pytest.mark.parametrize("degree", [1, 2])
def test_a_chosen_penalty_is_the_best(degree):
    alpha, chosen = 2.0, sv.predict(CURVED, sv.Kernel(degree), alpha=2.0)["generalization_error"]
    grid = [sv.predict(CURVED, sv.Kernel(degree, 10.0**p), alpha=alpha) for p in np.linspace(-4, 2, 25)]
    assert min(one["generalization_error"] for one in grid) >= chosen - 1e-12


def test_targets_without_a_linear_part_are_not_learned_in_proportion_to_d():
    for target in ("sign(z1*z2)", "abs(z)"):
        found = sv.predict(sv.MultiIndex(target), sv.Kernel(3), alpha=[0.0, 5.0])
        np.testing.assert_array_equal(found["cosine"], 0)
        assert np.ptp(found["generalization_error"]) == 0


def test_labels_of_another_law_are_refused_by_theory():
    with pytest.raises(sv.NotSolvable, match="Kernel is for labels"):
        sv.predict(sv.MultiIndex(sv.channels.Probit(0.1)), sv.Kernel(), alpha=1.0)


def test_plateaus_are_what_no_degree_explains():
    parity = sv.thresholds(sv.MultiIndex("sign(z1*z2)"), sv.Kernel(3))
    left = 1 - 4 / math.pi**2
    np.testing.assert_allclose(list(parity.values()), [1, 1, left, left], atol=1e-10)
    stairs = sv.thresholds(sv.MultiIndex("z1 + he2(z2)/sqrt(2)"), sv.Kernel(math.inf))
    np.testing.assert_allclose(list(stairs.values()), [2, 1, 0, 0, 0, 0, 0], atol=1e-10)


@pytest.mark.parametrize(
    ("model", "learner", "alpha"),
    [
        (CURVED, sv.Kernel(2, 0.2), 2.0),
        pytest.param(sv.MultiIndex("z1 + he2(z2)", 0.1), sv.Kernel(math.inf, 0.05), 3.0, marks=pytest.mark.slow),
        pytest.param(sv.MultiIndex("tanh(2*z)"), sv.Kernel(3, 0.0), 0.6, marks=pytest.mark.slow),
        pytest.param(
            sv.MultiIndex("z", 0.1, contamination=sv.Contamination(0.3, -1.0, 2.0)),
            sv.Kernel(2, 0.5),
            3.0,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_runs_meet_the_curve_at_two_sizes(model, learner, alpha):
    theory = sv.predict(model, learner, alpha=alpha)
    exact = np.array([theory[name] for name in METRICS])
    for d, seeds in ((100, 24), (250, 12)):
        mean, error = measured(model, learner, alpha, d, seeds)
        # Beyond statistics there is the correction of a finite dimension.
        assert np.all(np.abs(mean - exact) < 4 * error + 2 / d), (d, mean, error, exact)


@pytest.mark.slow
def test_runs_come_to_the_plateau():
    """Degree two of sign(z1 z2) is learned from n = d^2.5 samples, and nothing beyond."""
    left, far = 1 - 4 / math.pi**2, []
    for d in (16, 32):
        runs = [
            sv.simulate(sv.MultiIndex("sign(z1*z2)"), sv.Kernel(2), d=d, seed=seed, alpha=d**1.75) for seed in range(4)
        ]
        far.append(np.mean([run["generalization_error"] for run in runs]) - left)
    assert 0 < far[1] < far[0] < 0.2 and far[1] < 0.06
