"""Wide teachers: the transition of a feature, known errors, exponents, students of limited width."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv

SLOPES = [(1.0, -0.5), (0.75, -1 / 3)]


def error(model, alpha, learner=None):
    return np.asarray(sv.predict(model, learner or sv.BayesOptimal(), alpha=alpha)["generalization_error"])


@pytest.mark.parametrize(
    ("alpha", "width", "value"),
    [(1e3, 10, 0.097087), (1e3, 30, 0.036840), (1e4, 100, 0.011010), (1e5, 300, 0.003589), (1e5, 20_000, 0.002012)],
)
def test_known_errors_against_the_width_of_the_student(alpha, width, value):
    model = sv.WideTeacher(1.0, 20_000, "he3(z)/sqrt(6)", 0.1)
    assert error(model, alpha, sv.BayesStudent(width)) == pytest.approx(value, abs=1.5e-6)


@pytest.mark.parametrize(("exponent", "slope"), SLOPES)
def test_the_error_falls_with_its_exponent(exponent, slope):
    low, high = error(sv.WideTeacher(exponent, np.inf, "he3(z)/sqrt(6)", 0.1), [1e7, 1e8])
    assert np.log10(high / low) == pytest.approx(slope, abs=0.02)


def test_once_all_features_are_known_the_error_is_that_of_counting():
    assert error(sv.WideTeacher(1.0, 3000, "he3(z)/sqrt(6)", 0.1), 1e8) * 1e8 / 3000 == pytest.approx(
        0.1000031, abs=1e-6
    )


def test_features_are_learned_one_after_the_other():
    found = sv.thresholds(sv.WideTeacher(1.0, 100, "he3(z)/sqrt(6)", 0.1))
    places = [found[f"feature_{j}"] for j in range(1, 4)]
    assert np.all(np.diff(places) > 0)
    before, after = error(sv.WideTeacher(1.0, 100, "he3(z)/sqrt(6)", 0.1), [0.999 * places[0], 1.001 * places[0]])
    assert after < before - 0.1


def test_a_network_with_a_quadratic_part_has_a_universal_phase_and_flags_the_ansatz_beyond():
    model = sv.WideNetwork(0.5, "relu", 0.1)
    found = sv.predict(model, sv.BayesOptimal(), alpha=[0.4, 2.0], throw=False)
    assert found["generalization_error"][0] == pytest.approx(0.062067, abs=2e-6) and found.converged[0]
    assert found["overlap"][0] == pytest.approx(0.361635, abs=2e-6) and not found.converged[1]
