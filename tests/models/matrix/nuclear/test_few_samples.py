"""Trace-penalised learning from hardly any samples, and just below the interpolation threshold at small noise."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.core.precision import float64
from solvable.models.matrix.nuclear.few_samples import few_samples
from solvable.models.matrix.nuclear.theory import nuclear_points
from solvable.models.matrix.recovery import interpolation

NETWORK = sv.QuadraticNetwork(0.5, noise=0.3)
ALMOST_NOISELESS = sv.QuadraticNetwork(0.5, noise=1e-6)
TINY = np.array([9e-8, 1e-10, 1e-20, 1e-34, 1e-35, 1e-100, 1e-300])


@pytest.mark.parametrize("learner", [sv.NuclearNorm(0.0), sv.NuclearNorm(1.0), sv.NuclearNorm(0.0, width=0.3)])
def test_without_samples_the_error_is_that_of_guessing_zero(learner):
    found = sv.predict(NETWORK, learner, alpha=TINY)
    assert found.converged.all()
    gap = np.abs(found["estimation_error"] - 1.5)
    assert np.all(gap <= TINY**0.4 * 2)
    assert np.all(np.diff(gap) <= 0) and np.all(found["rank"] >= 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("spectrum", ["semicircle:1.0", "marchenko-pastur:0.5", [1.0, 2.0, 3.0], [-1.0, 0.0, 0.0]])
def test_without_samples_the_best_error_is_the_variance_of_the_prior(spectrum):
    model = sv.MatrixSensing(spectrum, noise=0.1)
    found = sv.predict(model, sv.BayesOptimal(), alpha=TINY)
    assert found.converged.all()
    assert np.allclose(found["estimation_error"], model.signal_side().variance, rtol=1e-6)


@pytest.mark.parametrize("learner", [sv.NuclearNorm(1.0), sv.NuclearNorm(1.0, width=0.3), sv.Lazy(1.0)])
def test_a_label_that_nothing_fits_is_the_training_error(learner):
    """With a penalty the first sample is fitted by nothing (S = 0) or, by a ridge, to a half."""
    expected = 3.3 if isinstance(learner, sv.NuclearNorm) else 3.3 / 4
    assert np.allclose(sv.predict(NETWORK, learner, alpha=TINY)["training_error"], expected, rtol=1e-6)


@float64
def _both(penalty: float, alpha: np.ndarray):
    law, noise = NETWORK.law, NETWORK.noise
    return nuclear_points(law, noise, penalty, alpha), few_samples(law, noise, penalty, alpha)


@pytest.mark.parametrize("penalty", [0.0, 1e-4])
def test_the_limit_of_few_samples_continues_the_equations(penalty):
    alpha = np.array([1e-4, 1e-5, 1e-6])
    solved, limit = _both(penalty, alpha)
    gap = np.abs(solved.metrics["estimation_error"] - limit.mse)
    assert np.all(gap <= limit.error) and np.all(gap >= 1e-3 * limit.error)
    for name, value in (("rank", limit.rank), ("training_loss", limit.D * limit.b**2 + penalty * limit.K)):
        known = solved.metrics[name]
        assert np.all(np.abs(known - value) <= limit.relative_error * known)


def test_points_below_the_interpolation_threshold_are_solved_at_small_noise():
    """The error falls with alpha, then rises towards the threshold: all of it is one smooth curve."""
    alpha = np.array([0.42, 0.43])
    assert alpha.max() < interpolation(ALMOST_NOISELESS.law, 1e-6)
    found = sv.predict(ALMOST_NOISELESS, sv.NuclearNorm(0.0), alpha=alpha)
    assert found.converged.all() and np.all(found.residual < 1e-9)
    assert found.uncertainty["estimation_error"][1] < 1e-3 * found["estimation_error"][1]


@pytest.mark.slow
def test_more_points_below_the_interpolation_threshold_are_solved_at_small_noise():
    found = sv.predict(ALMOST_NOISELESS, sv.NuclearNorm(0.0), alpha=np.array([0.425, 0.428, 0.432]))
    assert found.converged.all() and np.all(found.residual < 1e-9)


@pytest.mark.slow
def test_a_point_at_small_noise_is_that_of_an_independent_solver():
    """The width of 0.999 units a dimension does not limit a rank of 0.73."""
    found, narrow = (
        sv.predict(ALMOST_NOISELESS, sv.NuclearNorm(0.0, width=width), alpha=0.43) for width in (None, 0.999)
    )
    assert found["estimation_error"] == pytest.approx(narrow["estimation_error"], rel=1e-6)


@pytest.mark.slow
def test_a_width_has_an_uncertainty_that_covers_its_error():
    alpha = np.array([0.1, 0.3, 0.6])
    narrow = sv.predict(NETWORK, sv.NuclearNorm(0.2, width=0.999), alpha=alpha)
    wide = sv.predict(NETWORK, sv.NuclearNorm(0.2), alpha=alpha)
    for name, value in wide.metrics.items():
        assert np.all(np.abs(narrow[name] - value) <= narrow.uncertainty[name] + wide.uncertainty[name])
        assert np.all(narrow.uncertainty[name] > 0)
