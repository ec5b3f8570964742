"""Where the theory of a Boltzmann machine begins to hold: the replicon there, weak and strong spikes."""

from __future__ import annotations

import numpy as np
import pytest
from reference.machine_equations import averages
from scipy.optimize import root

import solvable as sv


def stability(snr, **more):
    return sv.thresholds(sv.SpikedCovariance(snr, **more), sv.RBM())


def replicon_one(theta, start):
    """alpha where the replicon of +-1 units and latents is one, from the equations alone."""

    def equations(x):
        c, q, V = np.exp(x)
        m = c * np.sqrt(q)
        u_g, g_g, h, h_h, _ = averages(theta, m, q, V)
        k, push = 1 - h, np.sqrt(theta) * u_g
        return np.log([push / (m * k), (m * push + V * g_g) / (q * k), V * h_h / k])

    _, q, V = np.exp(found := root(equations, np.log(start), tol=1e-13).x)
    return 1 / (V * (1 - averages(theta, np.exp(found[0]) * np.sqrt(q), q, V)[2]))


@pytest.mark.parametrize(("snr", "start"), [
    (1.5, (0.7, 2.3, 0.8)), (0.4, (0.45, 0.75, 0.37)), (0.1, (0.2, 0.2, 0.1)), (0.01, (0.02, 0.02, 0.01)),
])  # fmt: skip
def test_the_replicon_is_one(snr, start):
    found = stability(snr)
    assert found["weak_recovery"] == pytest.approx(1 / snr**2)
    assert abs(found["stability"] - replicon_one(snr, start)) < found.errors["stability"] + 1e-9 * found["stability"]


def test_predictions_begin_to_converge_there():
    model, learner = sv.SpikedCovariance(1.5), sv.RBM()
    edge = stability(1.5)["stability"]
    found = sv.predict(model, learner, alpha=[edge * (1 - 1e-7), edge * (1 + 1e-7)], throw=False)
    assert list(found.status) == [sv.Status.UNSTABLE, sv.Status.CONVERGED]
    np.testing.assert_allclose(found["replicon"], 1, atol=1e-5)


def test_weak_spikes_are_stable_eight_samples_above_the_transition():
    excess = [stability(snr)["stability"] - 1 / snr**2 for snr in (0.01, 0.001)]
    assert 7 < excess[0] < excess[1] < 8 and excess[1] == pytest.approx(8, abs=0.1)


def test_its_edges():
    assert stability(0.0) == {"weak_recovery": np.inf, "stability": np.inf}
    assert stability(1e4)["stability"] == pytest.approx(1)
    with pytest.raises(sv.SolvableError, match="not found at snr = 1e-05: for so weak a spike it is weak_recovery"):
        stability(1e-5)
    gaussian_units = sv.RBM("gaussian", units=2)
    assert list(sv.thresholds(sv.SpikedCovariance(1.5), gaussian_units)) == ["weak_recovery"]


@pytest.mark.slow
def test_other_latent_variables():
    """V = (1 + 1/theta)/alpha < 1 is what a strong spike with a Gaussian latent variable needs."""
    assert stability(1000.0, latent="gaussian")["stability"] == pytest.approx(1.001, abs=1e-8)
    for latent in ("gaussian", "gauss-bernoulli:0.1"):
        edge = stability(0.4, latent=latent)["stability"]
        found = sv.predict(sv.SpikedCovariance(0.4, latent=latent), sv.RBM(), alpha=edge * (1 + 1e-9))
        assert found["replicon"] == pytest.approx(1, abs=1e-6)
