"""Predictions for several projections: metrics, shapes, limits, and the thresholds."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv

PARITY = sv.MultiIndex("sign(z1*z2)")
ALPHA = np.array([1.0, 3.0, 5.0])


@pytest.mark.parametrize("learner", [sv.BayesOptimal(), sv.AMP()])
def test_metrics_have_the_shape_of_alpha_and_agree_with_the_overlap(learner):
    found = sv.predict(PARITY, learner, alpha=ALPHA.reshape(3, 1))
    assert found["overlap"].shape == (3, 1, 2, 2) and found.order_parameters["Mhat"].shape == (3, 1, 2, 2)
    for name in ("overlap_1", "overlap_2", "estimation_error", "generalization_error", "classification_error"):
        assert found[name].shape == found.uncertainty[name].shape == (3, 1)
    np.testing.assert_allclose(found["overlap_1"].ravel(), [0, 0.2427062, 0.8235368], atol=1e-5)
    np.testing.assert_allclose(found["estimation_error"], 2 - 2 * found["overlap_1"], atol=1e-9)
    assert np.all(found.converged)


def test_errors_of_predicted_parities():
    """E[g | omega] = erf(w1/sqrt(2V)) erf(w2/sqrt(2V)): a product of two independent factors."""
    found = sv.predict(PARITY, sv.AMP(), alpha=ALPHA)
    q = found["overlap_1"]
    # E erf(w/sqrt(2V))^2 = (2/pi) arcsin(q), the kernel of sign.
    expected = 1 - (2 / np.pi * np.arcsin(q)) ** 2
    gap = np.abs(found["generalization_error"] - expected)
    assert np.all(gap <= 1e-6 + found.uncertainty["generalization_error"])
    assert found["classification_error"][0] == pytest.approx(0.5)


def test_a_single_alpha_gives_scalars():
    found = sv.predict(PARITY, sv.AMP(), alpha=3.0)
    assert np.shape(found["estimation_error"]) == () and found["overlap"].shape == (2, 2) and found.converged is True


def test_exact_recovery_makes_no_errors():
    found = sv.predict(sv.MultiIndex("z1**2 + sign(z1*z2*z3)"), sv.BayesOptimal(), alpha=[1.2])
    np.testing.assert_allclose(found["overlap"][0], np.diag([1.0, 0, 0]), atol=1e-12)
    assert found.order_parameters["free_entropy"][0] == np.inf
    # The sign is a fair coin that nothing known predicts.
    assert found["generalization_error"][0] == pytest.approx(
        1.0, abs=1e-3 + found.uncertainty["generalization_error"][0]
    )


def test_thresholds_and_steps():
    found = sv.thresholds(PARITY)
    assert set(found) == {"weak_recovery", "algorithmic", "information_theoretic"}
    np.testing.assert_allclose(list(found.values()), np.pi**2 / 4, rtol=1e-6)
    (step,) = PARITY.solver().steps
    assert step.kind == "easy" and step.directions.shape == (2, 2)
    found["weak_recovery"] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        step.directions[:] = 0.0
    assert sv.thresholds(PARITY)["weak_recovery"] > 2


def check_that_noise_never_helps(text: str, alpha: float, noises: list[float]) -> None:
    """The eigenvalues of the overlap fall with the noise, within the uncertainties stated."""
    before = None
    for noise in noises:
        found = sv.predict(sv.MultiIndex(text, noise=noise), sv.AMP(), alpha=alpha)
        values, error = np.linalg.eigvalsh(found["overlap"]), float(np.max(found.uncertainty["overlap"]))
        if before is not None:
            assert np.all(values <= before[0] + 2 * (before[1] + error)), (noise, values, before)
        before = values, error


@pytest.mark.slow
def test_a_little_noise_does_not_help():
    """Labels sign(z1 z2) + z1 / 2 say 2 z1 up to a choice: no eigenvalue of the overlap exceeds alpha."""
    found = sv.predict(sv.MultiIndex("sign(z1*z2)+0.5*z1", noise=1e-5), sv.AMP(), alpha=0.8)
    np.testing.assert_allclose(np.linalg.eigvalsh(found["overlap"]), [0.41028, 0.79964], atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text, alpha",
    [
        ("sign(z1*z2)+0.5*z1", 0.8),
        ("max(z1,z2)", 0.9),
        ("tanh(z1)*z2", 1.3),
    ],
)
def test_more_noise_never_helps(text, alpha):
    check_that_noise_never_helps(text, alpha, [0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1])
