"""Parameters far out: what comes of them is right, or is not marked converged."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv


@pytest.mark.parametrize(("penalty", "width"), [(1e100, None), (1e300, None), (1e100, 0.4)])
def test_a_penalty_beyond_all_bounds_leaves_nothing(penalty, width):
    model = sv.QuadraticNetwork(0.5, noise=0.2)
    alpha = np.array([1e-9, 0.1, 0.5, 1e4])
    found = sv.predict(model, sv.NuclearNorm(penalty, width=width), alpha=alpha[1 if width else 0 :])
    for metric, value in {"estimation_error": 1.5, "training_error": 3.2, "rank": 0.0, "cosine": 0.0}.items():
        np.testing.assert_allclose(found[metric], value, rtol=1e-12, atol=1e-12)
    assert found.converged.all() and np.all(found.uncertainty["estimation_error"] < 1e-10)


@pytest.mark.slow
def test_a_large_penalty_goes_over_to_one_beyond_all_bounds():
    """A penalty a little below the one from which on S = 0 is written down, and one above."""
    model = sv.MatrixSensing("semicircle", noise=0.2)
    found = [sv.predict(model, sv.NuclearNorm(p), alpha=0.3) for p in (1e6, 1e9)]
    assert found[0]["training_loss"] == pytest.approx(found[1]["training_loss"], rel=1e-12)
    assert found[0].order_parameters["delta"] == pytest.approx(found[1].order_parameters["delta"], rel=1e-12)


@pytest.mark.parametrize("noise", [1e6, 1e9, 1e12])
def test_features_in_noise_are_known_as_well_as_their_ratio_to_the_samples(noise):
    """Only alpha over the noise counts where the noise is large: 4.3076 at 1e12 samples in noise of 1e12."""
    found = sv.predict(sv.WideTeacher(1.0, 50, "he3(z)", noise), sv.BayesOptimal(), alpha=noise * np.array([1e-9, 1.0]))
    variance = np.sum(np.arange(1, 51.0) ** -2) * 6
    assert found.converged.all() and found["generalization_error"][0] == pytest.approx(variance, rel=1e-9)
    assert found["generalization_error"][1] == pytest.approx(4.30758683, abs=2e-5 * (1e6 / noise + 1e-3))
    assert np.all(found.uncertainty["generalization_error"] < 1e-9)


@pytest.mark.slow
def test_a_hinge_loss_whose_lasso_leaves_next_to_nothing():
    """Where no share of the weights above 1e-70 is left numbers run out of range, which is said."""
    found = sv.predict(sv.MultiIndex("sign(z)"), sv.ERM("hinge", "lasso:4"), alpha=[0.3, 1.0, 3.0])
    assert found.converged.all() and np.all(np.diff(found["cosine"]) > 0)
    lost = sv.predict(sv.MultiIndex("sign(z)"), sv.ERM("hinge", "lasso:10"), alpha=[0.3, 10.0], throw=False)
    assert not lost.converged[0] and lost.converged[1]


@pytest.mark.slow
def test_wide_sequences_in_next_to_no_noise():
    """As good as Gaussian entries: 1 - alpha is left below alpha = 1, and beyond it less than noise, or no answer."""
    model, alpha = sv.BilinearSequence(1e3, noise=1e-6), np.array([0.1, 0.5, 0.9, 2.0])
    found = sv.predict(model, sv.BayesOptimal(), alpha=alpha, throw=False)
    np.testing.assert_allclose(found["estimation_error"][:3], 1 - alpha[:3], rtol=1e-3)
    assert found.converged[:3].all()
    assert not found.converged[3] or found["estimation_error"][3] < 1e-6
