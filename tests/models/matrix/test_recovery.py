"""Thresholds of matrix models: known values, limits, and the same from the theories' own curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

import solvable as sv
from solvable.core.precision import float64
from solvable.models.matrix.recovery import interpolation, least_trace_recovery
from solvable.spectra import Discrete, MarchenkoPastur

# Least-trace recovery, computed independently with SciPy to 1e-8.
NUCLEAR = {
    0.01: 0.023142211167158883,
    0.05: 0.09200736755993723,
    0.1: 0.1575718151162956,
    0.2: 0.25556196641953766,
    0.5: 0.422174982185506,
    0.9: 0.4974051491976656,
}
# Interpolation threshold by (rho, noise), computed independently from the cubic equation of the resolvent.
INTERPOLATION = {
    (0.2, 0.1): 0.2946430054363132,
    (0.5, 2.0): 0.2773609020581107,
    (0.5, 10000.0): 0.25000900497675016,
    (0.137, 0.271): 0.2733288410761665,
}


def test_without_noise():
    for rho, value in NUCLEAR.items():
        found = sv.thresholds(sv.QuadraticNetwork(rho))
        assert found["nuclear_recovery"] == pytest.approx(value, abs=1e-10)
        assert found["perfect_recovery"] == pytest.approx(rho - rho**2 / 2, abs=1e-14)
        assert found["psd_recovery"] == found["interpolation"] == pytest.approx((1 + 2 * rho - rho**2) / 4, abs=1e-14)
        assert found["lazy_recovery"] == 0.5
        assert found["narrow_weak_recovery"] == pytest.approx(rho / 2)
        order = [found[name] for name in ("perfect_recovery", "nuclear_recovery", "psd_recovery", "lazy_recovery")]
        assert order == sorted(order)


@pytest.mark.parametrize("rho", [1.0, 2.5])
def test_a_network_wider_than_the_dimension(rho):
    found = sv.thresholds(sv.QuadraticNetwork(rho))
    recoveries = ("perfect_recovery", "nuclear_recovery", "psd_recovery", "lazy_recovery", "interpolation")
    assert [found[name] for name in recoveries] == [0.5] * 5


@float64
def test_narrow_networks():
    assert least_trace_recovery(MarchenkoPastur(1e-5)) / 1e-5 == pytest.approx(2.950011, abs=1e-6)
    for rho in (1e-7, 1e-10):
        series = 3 - 10 / 7 * (15 * math.pi * rho / 2) ** 0.4
        assert least_trace_recovery(MarchenkoPastur(rho)) / rho == pytest.approx(series, abs=10 * rho**0.6)
    assert least_trace_recovery(MarchenkoPastur(1 - 1e-9)) == pytest.approx(0.5, abs=1e-12)


def test_noise():
    found = sv.thresholds(sv.QuadraticNetwork(0.2, 0.1))
    assert found["interpolation"] == pytest.approx(INTERPOLATION[0.2, 0.1], abs=1e-10)
    assert found["narrow_weak_recovery"] == pytest.approx(0.105)
    assert all(found[name] == math.inf for name in found if name.endswith("recovery") and name[0] != "n")
    assert found["nuclear_recovery"] == math.inf


@float64
def test_interpolation():
    for (rho, noise), value in INTERPOLATION.items():
        assert interpolation(MarchenkoPastur(rho), noise) == pytest.approx(value, abs=1e-10)
    limit = 0.4375
    gaps = [limit - interpolation(MarchenkoPastur(0.5), noise) for noise in (1e-9, 1e-6, 1e-3)]
    assert gaps[1] == pytest.approx(2.651e-3, abs=1e-6)  # the limit is approached as noise^(1/3)
    assert gaps[1] / gaps[0] == pytest.approx(10, rel=0.02)
    assert interpolation(MarchenkoPastur(0.5), 1e-30) == pytest.approx(limit, abs=1e-9)
    assert interpolation(MarchenkoPastur(0.5), 1e9) == pytest.approx(0.25, abs=1e-9)
    wide = [interpolation(MarchenkoPastur(2.0), noise) for noise in (0.0, 1e-3, 1.0)]
    assert wide == sorted(wide, reverse=True)
    assert wide[0] == 0.5


@pytest.mark.slow
def test_interpolation_is_where_residuals_begin():
    model = sv.QuadraticNetwork(0.3, 0.5)
    threshold = sv.thresholds(model)["interpolation"]
    low, high = 0.1, 0.5
    for _ in range(22):
        middle = (low + high) / 2
        fits = sv.predict(model, sv.NuclearNorm(0.0), alpha=middle)["training_error"] == 0
        low, high = (middle, high) if fits else (low, middle)
    assert threshold == pytest.approx(low, abs=1e-6)


def test_recovery_is_where_the_error_vanishes():
    model = sv.QuadraticNetwork(0.2)
    threshold = sv.thresholds(model)["nuclear_recovery"]
    nearly = sv.QuadraticNetwork(0.2, 1e-9)
    for alpha, recovers in ((0.99 * threshold, False), (1.01 * threshold, True)):
        error = sv.predict(nearly, sv.NuclearNorm(0.0), alpha=alpha)["estimation_error"]
        assert (error < 1e-5) == recovers
        assert (sv.predict(model, sv.NuclearNorm(0.0), alpha=alpha)["estimation_error"] == 0) == recovers


def test_other_laws():
    found = sv.thresholds(sv.MatrixSensing(Discrete([-1.0, 0.0, 1.0], [0.1, 0.8, 0.1])))
    assert found["perfect_recovery"] == pytest.approx(0.17)
    assert found["nuclear_recovery"] == found["psd_recovery"] == math.inf  # negative eigenvalues
    assert found["interpolation"] == 0.25
    assert "narrow_weak_recovery" not in found
    # The rank alone counts for positive semidefinite learners.
    found = sv.thresholds(sv.MatrixSensing(Discrete([0.0, 1.0, 5.0], [0.8, 0.15, 0.05])))
    assert found["nuclear_recovery"] == pytest.approx(NUCLEAR[0.2], abs=1e-10)
    assert found["psd_recovery"] == found["interpolation"] == pytest.approx(0.34)
    assert found["perfect_recovery"] == pytest.approx((1 - 0.64 - 0.0225 - 0.0025) / 2)
    assert sv.thresholds(sv.MatrixSensing([0.0]))["nuclear_recovery"] == 0
    assert sv.thresholds(sv.MatrixSensing([1.0]))["nuclear_recovery"] == 0.5


@pytest.mark.slow
@float64
def test_interpolation_of_laws_with_negative_eigenvalues():
    law = Discrete([-1.0, 0.0, 2.0])
    values = [interpolation(law, noise) for noise in (0.0, 0.1, 10.0)]
    assert values == sorted(values, reverse=True)
    assert np.all(np.array(values) > 0.25)
    # Without noise too it is finite, and the theory interpolates up to there.
    model = sv.MatrixSensing(law)
    below, above = sv.predict(model, sv.NuclearNorm(0.0), alpha=values[0] * np.array([0.999, 1.001]))["training_error"]
    assert below == 0 < above
    assert interpolation(Discrete([-1.0, 0.5]), 0.3) == 0.25
