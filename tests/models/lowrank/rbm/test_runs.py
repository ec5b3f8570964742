"""Boltzmann machines on data: optimisation, message passing and eigenvectors against theory, and two hidden units."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.models.lowrank.rbm.run import gradient, log_likelihood, run_rbm
from solvable.models.lowrank.rbm.units import BinaryUnits, GaussianUnits

MODEL = sv.SpikedCovariance(1.5)


def runs(learner, d, seeds, model=MODEL, alpha=2.0):
    return [sv.simulate(model, learner, alpha=alpha, d=d, seed=seed) for seed in range(seeds)]


def test_optimisation_and_message_passing_find_one_maximum():
    direct, messages = (runs(sv.RBM(solver=solver), 300, 2, sv.SpikedCovariance(2.5)) for solver in ("direct", "amp"))
    for one, other in zip(direct, messages, strict=True):
        assert one.converged and other.converged
        for metric in ("squared_overlap", "squared_norm", "log_likelihood"):
            assert one[metric] == pytest.approx(other[metric], rel=1e-4)


@pytest.mark.parametrize("d", [200, pytest.param(800, marks=pytest.mark.slow)])
def test_the_maximum_is_where_theory_says(d):
    model = sv.SpikedCovariance(2.5)
    theory, found = sv.predict(model, sv.RBM(), alpha=2.0), runs(sv.RBM(), d, 12, model)
    for metric in ("squared_overlap", "squared_norm", "log_likelihood"):
        values = np.array([run[metric] for run in found])
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - theory[metric]) < 4 * error + 4 / d * theory[metric], metric


def test_gaussian_units_are_eigenvectors():
    one, component = (runs(learner, 150, 1)[0] for learner in (sv.RBM("gaussian"), sv.Spectral()))
    assert one["squared_overlap"] == pytest.approx(component["squared_overlap"])
    data = MODEL.sample(np.random.default_rng(3), 150, alpha=2.0)
    two = run_rbm(MODEL, sv.RBM("gaussian", units=2), data, np.random.default_rng(0))
    values = np.linalg.eigvalsh(data.X.T @ data.X)[-2:]
    assert two["log_likelihood"] == pytest.approx(np.sum(values - 2 - 2 * np.log(values / 2)) / 2, rel=1e-9)
    assert np.abs(gradient(GaussianUnits(2), data.X, two.estimate)).max() < 1e-9


def test_two_binary_units_reach_a_maximum_above_that_of_one():
    """They have no theory; the likelihood of two is at least that of one, and their span knows the spike."""
    one, two = (runs(sv.RBM(units=units), 200, 1, sv.SpikedCovariance(3.0))[0] for units in (1, 2))
    assert two.converged and two.estimate.shape == (200, 2) and two.details["Q"].shape == (2, 2)
    assert two["log_likelihood"] > one["log_likelihood"]
    assert two["squared_overlap"] > 0.6
    assert np.linalg.norm(two.details["Q"] - two.estimate.T @ two.estimate / 200) < 1e-12


@pytest.mark.parametrize("units", [BinaryUnits(1), BinaryUnits(3), GaussianUnits(2)])
def test_the_gradient_is_that_of_the_likelihood(units):
    rng = np.random.default_rng(0)
    X, W, step = rng.normal(size=(40, 20)) / np.sqrt(20), 0.4 * rng.normal(size=(20, units.count)), 1e-6
    direction = rng.normal(size=W.shape)
    slope = (log_likelihood(units, X, W + step * direction) - log_likelihood(units, X, W - step * direction)) / (
        2 * step
    )
    assert 20 * slope == pytest.approx(np.vdot(gradient(units, X, W), direction), rel=1e-7)
