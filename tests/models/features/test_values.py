"""Networks with a frozen or once trained first layer: known values, and runs of the network itself."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv

TANH = sv.TwoLayer("sin(z)", "tanh", 0.83, noise=0.1)


def test_ridge_on_random_features():
    found = sv.predict(TANH, sv.RandomFeatures(0.05), alpha=1.37)
    assert found["generalization_error"] + 0.1 == pytest.approx(0.4791437878, abs=1e-8)
    assert found["training_error"] == pytest.approx(0.1357633623, abs=1e-8)


def test_one_step_with_its_exact_bulk_and_the_published_one():
    model = sv.TwoLayer("sin(z)", "tanh", 1.0)
    for bulk, value in (("exact", 0.328197), ("isotropic", 0.304235)):
        found = sv.predict(model, sv.OneStep(0.1, 3.0, 0.5, bulk=bulk), alpha=0.6)
        assert found["generalization_error"] == pytest.approx(value, abs=2e-6)
    kinked = sv.predict(sv.TwoLayer("sin(z)", "relu", 1.2), sv.OneStep(0.1, 2.0, 2.0), alpha=0.6)
    assert kinked["generalization_error"] == pytest.approx(0.3555, abs=1e-4)


def test_logistic_regression_on_random_features():
    found = sv.predict(sv.TwoLayer("sign(z)", "tanh", 1.2), sv.RandomFeatures(0.05, "logistic"), alpha=1.6)
    assert found["classification_error"] == pytest.approx(0.2807482, abs=1e-5)


def test_runs_agree_with_theory():
    theory = sv.predict(TANH, sv.RandomFeatures(0.05), alpha=1.37)
    runs = [sv.simulate(TANH, sv.RandomFeatures(0.05), alpha=1.37, d=200, seed=seed) for seed in range(8)]
    for metric in ("generalization_error", "training_error"):
        found = np.array([run[metric] for run in runs])
        error = found.std(ddof=1) / np.sqrt(len(runs))
        assert abs(found.mean() - theory[metric]) < 4 * error + 8 / 200 * theory[metric]


def test_power_law_features_have_their_exponents():
    """The local slope of the error in n at p = n^q and penalty n^(1 - decay), against the closed form."""
    capacity, source, decay, q = 1.5, 0.4, 0.6, 0.8
    model = sv.PowerLawFeatures(capacity, source, 0.0)
    n = np.array([1e6, 1e7])
    found = [sv.predict(model, sv.RandomFeatures(k ** (1 - decay)), n=k, p=k**q)["generalization_error"] for k in n]
    assert -np.log10(found[1] / found[0]) == pytest.approx(0.487, abs=0.01)
