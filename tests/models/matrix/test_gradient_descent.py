"""Gradient descent on networks of quadratic units: runs, and the conjecture about where they end."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.core.learners import BayesOptimal
from solvable.models.matrix import MatrixSensing, QuadraticNetwork
from solvable.models.matrix.gradient_descent import GradientDescent, gradient_descent
from solvable.models.matrix.model import errors
from solvable.spectra import Discrete, MarchenkoPastur, Semicircle
from solvable.verbs.simulate import generators


def instance(rho=0.5, alpha=0.6, noise=0.5, d=16, seed=0, features="quadratic"):
    return QuadraticNetwork(rho, noise, features).sample(np.random.default_rng(seed), d, alpha=alpha)


def redrawn(model, alpha, d, seed=0):
    """The data that `simulate` draws."""
    return model.sample(generators(seed, d, {"alpha": alpha})[0], d, alpha=alpha)


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
    assert errors(found.S, data.truth)["estimation_error"] < 1e-6


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
    assert outcome["estimation_error"] == pytest.approx(errors(outcome.estimate, data.truth)["estimation_error"])
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


def test_one_run_and_an_average_of_several_stand_in_one_curve():
    """What runs tell besides their metrics has one shape, whatever the learner."""
    learners = [GradientDescent(max_steps=3), GradientDescent(runs=2, max_steps=3)]
    curve = sv.learning_curve(QuadraticNetwork(0.5), learners, alpha=[0.3], d=6, seeds=1)
    assert curve.dataset["iterations_simulation"].values.ravel().tolist() == [3, 6]
