"""Boltzmann machines on a spiked covariance: known values, the machine that is PCA, flags where theory fails."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv


@pytest.mark.parametrize(("snr", "squared_cosine", "norm"), [(1.5, 0.5873, 2.290), (2.5, 0.7895, 3.119)])
def test_known_maxima_of_the_likelihood(snr, squared_cosine, norm):
    found = sv.predict(sv.SpikedCovariance(snr), sv.RBM(), alpha=2.0)
    assert found["squared_overlap"] == pytest.approx(squared_cosine, abs=1e-4)
    assert found["squared_norm"] == pytest.approx(norm, abs=1e-3)
    assert found["squared_overlap"] <= sv.predict(sv.SpikedCovariance(snr), sv.BayesOptimal(), alpha=2.0)["overlap"]


def test_a_gaussian_unit_finds_the_principal_component():
    for snr in (0.6, 1.5):
        model = sv.SpikedCovariance(snr)
        machine, component = (
            sv.predict(model, learner, alpha=2.0)["squared_overlap"] for learner in (sv.RBM("gaussian"), sv.Spectral())
        )
        assert machine == pytest.approx(component, abs=1e-6)


@pytest.mark.parametrize("snr", [0.6, 0.8, 1.0])
def test_where_the_point_is_unstable_or_missing_it_is_not_converged(snr):
    found = sv.predict(sv.SpikedCovariance(snr), sv.RBM(), alpha=2.0, throw=False)
    assert not np.any(found.converged)


def test_ascent_follows_its_mean_field():
    learner = sv.RBMAscent(steps=3, learning_rate=0.3, start=0.2, self_overlap=1.0)
    model = sv.SpikedCovariance(1.5)
    theory = sv.predict(model, learner, alpha=2.0)
    runs = [sv.simulate(model, learner, alpha=2.0, d=400, seed=seed) for seed in range(8)]
    for metric in ("squared_overlap", "squared_norm"):
        found = np.array([run[metric] for run in runs])
        error = found.std(ddof=1) / np.sqrt(len(runs))
        assert abs(found.mean() - float(theory[metric])) < 4 * error + 8 / 400 * abs(float(theory[metric]))
