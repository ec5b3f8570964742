"""Message passing for matrix models, against the fixed point of its state evolution."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

from solvable.core.learners import AMP
from solvable.core.status import Status
from solvable.models.matrix import MatrixSensing, QuadraticNetwork
from solvable.spectra import Discrete, MarchenkoPastur, PowerLaw
from solvable.spectra.denoising import mmse
from solvable.verbs.simulate import simulate


@functools.cache
def bayes_error(law_of, alpha, noise):
    """The largest root of D = (noise + 2 mmse(D)) / (4 alpha), by bisection; the error is 2 alpha D - noise / 2."""
    law = law_of()
    with jax.enable_x64(True):
        high = (noise + 2 * float(law.variance)) / (4 * alpha) * 1.001
        low = high * 1e-4
        for _ in range(45):
            D = np.sqrt(low * high)
            low, high = (low, D) if 4 * alpha * D > noise + 2 * float(mmse(law, D)) else (D, high)
    return 2 * alpha * D - noise / 2


def errors(model, alpha, d, seeds, learner=None):
    runs = [simulate(model, learner or AMP(), d=d, seed=seed, alpha=alpha) for seed in range(seeds)]
    return np.array([run["estimation_error"] for run in runs]), runs


@pytest.mark.sampled(1)
@pytest.mark.parametrize("features", ["quadratic", "gaussian"])
def test_the_error_is_that_of_state_evolution(features):
    exact = 0.125897  # the slow test below solves for it
    found, runs = errors(QuadraticNetwork(0.5, 0.25, features=features), 0.6, 40, 6)
    assert all(run.converged and run.details["consistent"] for run in runs)
    excess = found.mean() / exact - 1
    spread = found.std() / np.sqrt(5) / exact
    # At size d the error of quadratic features exceeds the limit's by about 5/d, that of Gaussian ones by 2/d.
    assert -3 * spread < excess < 7 / 40 + 3 * spread
    expected = np.mean([run.details["expected_error"] for run in runs])
    assert expected == pytest.approx(found.mean(), rel=0.15)
    assert runs[0]["generalization_error"] == pytest.approx(2 * found[0])
    assert np.sum((runs[0].estimate - runs[0].estimate.T) ** 2) < 1e-20


@pytest.mark.slow
@pytest.mark.parametrize("features", ["quadratic", "gaussian"])
@pytest.mark.parametrize(
    ("law", "alpha"), [(Discrete([-1, 1]), 0.2), pytest.param(PowerLaw(1.25, 40), 0.3, marks=pytest.mark.slow)]
)
def test_laws_of_points_give_the_error_that_the_residuals_imply(law, alpha, features):
    found, runs = errors(MatrixSensing(law, 0.1, features=features), alpha, 40, 3)
    expected = np.mean([run.details["expected_error"] for run in runs])
    # A squared residual scatters by about twice its mean (by the root of 2 for Gaussian features).
    assert abs(found.mean() - expected) < 4 * 2 * (0.1 / 2 + expected) / np.sqrt(3 * alpha * 40**2)
    assert found.mean() < 0.8 * float(law.variance)
    assert all(run.converged for run in runs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("model", "alpha"),
    [
        (QuadraticNetwork(0.5), 0.6),
        (QuadraticNetwork(0.5, features="gaussian"), 0.6),
        (QuadraticNetwork(2.0), 1.0),
        (MatrixSensing(Discrete([0, 1], [0.8, 0.2])), 0.3),
        (MatrixSensing(Discrete([-1, 1])), 0.4),
    ],
)
def test_without_noise_enough_samples_give_the_truth(model, alpha):
    run = simulate(model, AMP(), d=40, seed=1, alpha=alpha)
    assert run.converged
    assert run["estimation_error"] < 1e-5
    assert run.details["expected_error"] < 1e-5


def test_the_error_scales_with_the_spectrum():
    small, large = (
        simulate(MatrixSensing(Discrete([-s, s]), 0.1 * s**2), AMP(), d=40, seed=0, alpha=0.3) for s in (1e-3, 1e3)
    )
    assert small["estimation_error"] * 1e6 == pytest.approx(large["estimation_error"] * 1e-6, rel=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("noise", [0.0, 0.3, 1e4])
@pytest.mark.parametrize("features", ["quadratic", "gaussian"])
@pytest.mark.parametrize("alpha", [0.0, 0.003])
def test_a_few_samples_do_no_harm(alpha, features, noise):
    run = simulate(QuadraticNetwork(0.5, noise, features=features), AMP(max_steps=60), d=40, seed=0, alpha=alpha)
    assert np.isfinite(run.estimate).all()
    assert run["estimation_error"] < 2  # the prior's is 1 on average


def test_one_eigenvalue_leaves_nothing_to_learn():
    run = simulate(MatrixSensing([2.0, 2.0], 0.1), AMP(), d=10, alpha=0.3)
    assert run.converged and run["estimation_error"] < 1e-25
    assert run.details["status"] == Status.CONVERGED


def test_a_spectral_start_is_refused():
    with pytest.raises(ValueError, match="start must be 'noise' for QuadraticNetwork"):
        simulate(QuadraticNetwork(0.5), AMP(start="spectral"), d=10, alpha=0.3)


def test_runs_are_reproducible():
    one, two = (simulate(QuadraticNetwork(0.5, 0.1), AMP(), d=40, seed=3, alpha=0.4) for _ in range(2))
    assert np.array_equal(one.estimate, two.estimate)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


POINTS = [(0.5, 0.35, 0.25), (0.5, 0.6, 0.25), (0.25, 0.17, 0.1), (0.5, 0.3, 0.0), (1.5, 0.3, 0.5)]


@pytest.mark.slow
@pytest.mark.parametrize("features", ["quadratic", "gaussian"])
@pytest.mark.parametrize(("law", "alpha"), [(lambda: Discrete([-1, 1]), 0.2), (lambda: PowerLaw(1.25, 60), 0.3)])
def test_laws_of_points_against_state_evolution(law, alpha, features):
    found, _ = errors(MatrixSensing(law(), 0.1, features=features), alpha, 60, 4)
    assert found.mean() == pytest.approx(bayes_error(law, alpha, 0.1), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "alpha", "noise"), POINTS)
def test_the_excess_over_the_limit_falls_as_one_over_the_size(rho, alpha, noise):
    exact = bayes_error(lambda: MarchenkoPastur(rho), alpha, noise)
    for d, seeds in ((48, 12), (100, 6), (200, 3)):
        found, _ = errors(QuadraticNetwork(rho, noise), alpha, d, seeds)
        spread = found.std() / np.sqrt(seeds - 1) / exact
        assert -3 * spread < found.mean() / exact - 1 < 8 / d + 3 * spread
