"""Matrices of known spectrum as signals: closed forms, the table against what it tabulates, and its integral."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.engine.sides import Field
from solvable.engine.signals.eigenvalues import EigenvalueSignal
from solvable.engine.signals.singular_values import SingularValueSignal
from solvable.spectra import Discrete, MarchenkoPastur, Semicircle

QHAT = np.exp(np.random.default_rng(0).uniform(-25, 45, 64))
SIGNS = Discrete([-1.0, 1.0])


@pytest.mark.slow
def test_a_gaussian_matrix_has_gaussian_entries():
    """For the semicircle mmse = 1 / (1 + qhat) and the potential is (qhat - log(1 + qhat)) / 2."""
    signal = EigenvalueSignal(Semicircle(2.5, 0.4))
    assert signal.dimension == 1
    assert np.allclose(signal.mmse(QHAT), 1 / (1 + QHAT), rtol=1e-8)
    assert np.allclose(signal.overlap(QHAT), QHAT / (1 + QHAT), rtol=1e-8)
    near, far = QHAT[QHAT < 1e-3], QHAT[QHAT > 1e-3]
    assert np.allclose(signal.potential(near), near**2 / 4, rtol=1e-3)
    assert np.allclose(signal.potential(far), (far - np.log1p(far)) / 2, rtol=1e-8)


@pytest.mark.parametrize(
    "signal",
    [
        EigenvalueSignal(MarchenkoPastur(0.5)),  # compiled for the models of matrices as well
        pytest.param(EigenvalueSignal(SIGNS), marks=pytest.mark.slow),
        pytest.param(SingularValueSignal(0.3, 0.5), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_the_table_is_true_to_its_function(signal):
    """At the closing of a gap too (for two atoms that is qhat = 1)."""
    qhat = np.concatenate([QHAT, 1 + np.linspace(-1e-2, 1e-2, 9)])
    V, error = signal.measured(qhat)
    assert np.allclose(signal.mmse(qhat), V, rtol=1e-9, atol=0)
    seen = qhat > 1e-3  # below, 1 - V cancels
    assert np.allclose(signal.overlap(qhat)[seen], 1 - V[seen], rtol=1e-9, atol=0)
    assert np.all(error <= 1e-9 + 1e-6 * V)
    # Over a panel the potential changes by half the integral of the overlap, here by Simpson's rule.
    low = np.geomspace(1e-7, 1e3, 12)
    middle, high = low * 1.01, low * 1.02
    simpson = (signal.overlap(low) + 4 * signal.overlap(middle) + signal.overlap(high)) / 6 * (high - low) / 2
    assert np.allclose(signal.potential(high) - signal.potential(low), simpson, rtol=1e-6)


@pytest.mark.slow
def test_the_limits_are_continued():
    signal = EigenvalueSignal(SIGNS)
    assert signal.dimension == pytest.approx(0.5)
    for function in (signal.mmse, signal.overlap, signal.potential):
        for edge in (1e-5, 1.0, 1e12):
            below, above = function(edge * np.array([1 - 1e-9, 1 + 1e-9]))
            assert above == pytest.approx(below, rel=1e-6)
    V, error = signal.measured(np.array([0.0, 1e-12, 1e20, np.inf]))
    assert np.allclose(V, [1, 1, 0.5e-20, 0], rtol=1e-9, atol=0)
    assert np.allclose(error, 1e-6 * np.array([0, 0, 0.5e-20, 0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("law", "skewness"),
    [
        (MarchenkoPastur(0.5), 0.5**-0.5),  # a free Poisson law of rate 0.5
        pytest.param(
            Discrete([1.0, 5.0], [0.8, 0.2]),
            (0.8 * (-0.8) ** 3 + 0.2 * 3.2**3) / (0.8 * 0.8**2 + 0.2 * 3.2**2) ** 1.5,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["free Poisson", "two values"],
)
def test_a_skewed_spectrum_is_seen_better_at_first(law, skewness):
    """overlap = qhat + (skewness^2 - 1) qhat^2, against the law itself where both hold."""
    overlap = EigenvalueSignal(law).overlap(np.array([1e-10, 1e-4]))
    assert overlap[0] == pytest.approx(1e-10, rel=1e-9)
    assert overlap[1] / 1e-4 - 1 == pytest.approx(1e-4 * (skewness**2 - 1), rel=1e-3)


def test_one_eigenvalue_leaves_nothing_unknown():
    signal = EigenvalueSignal(Discrete([2.0]))
    assert signal.known and signal.dimension == 0 and signal.variance == 1
    assert np.all(np.array(signal.measured(np.array([0.0, 1.0, np.inf]))) == 0)


def test_signals_are_equal_by_definition():
    assert EigenvalueSignal(Discrete([-1.0, 1.0])) == EigenvalueSignal(SIGNS) != EigenvalueSignal(Discrete([-1.0, 2.0]))
    assert hash(EigenvalueSignal(Discrete([-1.0, 1.0]))) == hash(EigenvalueSignal(SIGNS))
    assert SingularValueSignal(0.3, 2.0) == SingularValueSignal(0.3, 2) != SingularValueSignal(0.3, 1.0)
    assert len({SingularValueSignal(0.3, 2.0), SingularValueSignal(0.3, 2)}) == 1


def test_half_a_step_has_the_shape_of_overlaps():
    signal = EigenvalueSignal(MarchenkoPastur(0.5))
    found = signal.average(Field.bayes(np.array([[[0.5]], [[2.0]]])))
    assert found.V.shape == found.m.shape == (2, 1, 1)
    assert np.allclose(found.V[:, 0, 0], signal.measured(np.array([0.5, 2.0]))[0], rtol=1e-9)
