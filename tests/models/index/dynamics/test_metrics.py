"""The metrics of networks from their overlaps: closed forms, singular spans, kinks."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.engine.dynamics.student import Student, as_activation
from solvable.models.index.dynamics.metrics import metrics_of, uncertainty_of


def network(activation: str, *layer: float) -> Student:
    return Student(as_activation(activation), layer)


def one(m: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    return np.full((1, 1, 1), m), np.full((1, 1, 1), q)


def arc_cosine(c: float) -> float:
    """E relu(x) relu(y) for x, y ~ N(0, 1) of correlation c."""
    return (np.sqrt(1 - c**2) + (np.pi - np.arccos(c)) * c) / (2 * np.pi)


@pytest.mark.parametrize(("m", "q"), [(0.3, 1.0), (-0.7, 0.6), (0.999, 1.0), (1.0, 1.0), (3.0, 16.0), (0.0, 0.0)])
def test_the_error_of_a_rectifier_is_that_of_the_arc_cosine_kernel(m, q):
    c = m / np.sqrt(q) if q else 0.0
    exact = q / 2 + 0.5 - 2 * np.sqrt(q) * arc_cosine(c)
    found = metrics_of(sv.MultiIndex("relu(z)"), network("relu", 1.0), *one(m, q))["generalization_error"][0]
    error = uncertainty_of(sv.MultiIndex("relu(z)"), network("relu", 1.0), *one(m, q))["generalization_error"][0]
    assert abs(found - exact) <= error + 1e-12 and error < 1e-10


@pytest.mark.parametrize("target", ["sign(z)", "sign(z-0.3)"])
def test_jumps_of_the_target_cost_no_digits(target):
    place = 0.3 if "0.3" in target else 0.0
    m = 0.6
    tail = np.exp(-(place**2) / 2) / np.sqrt(2 * np.pi)
    exact = 1 + 1 - 2 * m * 2 * tail  # E z sign(z - t) = 2 phi(t)
    found = metrics_of(sv.MultiIndex(target), network("z", 1.0), *one(m, 1.0))
    assert abs(found["generalization_error"][0] - exact) < 1e-11


def test_one_neuron_and_one_direction_keep_the_sign():
    found = metrics_of(sv.MultiIndex("z"), network("relu", 1.0), *one(-0.4, 4.0))
    assert found["cosine"][0] == pytest.approx(-0.2) and found["norm"][0] == pytest.approx(2.0)
    assert found["squared_overlap"][0] == pytest.approx(0.04)


def test_shares_are_those_of_the_span_also_if_neurons_are_parallel():
    model, student = sv.MultiIndex("z1*z2"), network("tanh(z)", 0.5, -0.5)
    M = np.array([[[0.6, 0.0], [0.6, 0.0]], [[0.6, 0.3], [-0.3, 0.6]]])
    Q = np.array([np.ones((2, 2)), np.eye(2)])
    found = metrics_of(model, student, M, Q)
    np.testing.assert_allclose(found["share_1"], [0.36, 0.45], rtol=1e-10)
    np.testing.assert_allclose(found["share_2"], [0.0, 0.45], atol=1e-10)
    np.testing.assert_allclose(found["squared_overlap"], [0.18, 0.45], rtol=1e-10)
    np.testing.assert_allclose(found["cosine"] ** 2, found["squared_overlap"], rtol=1e-12)
    assert found["generalization_error"][0] == pytest.approx(1.0, abs=2e-3)  # the two outputs cancel, E (z1 z2)^2 = 1


def test_points_cover_the_error_of_two_rectifiers():
    model, student = sv.MultiIndex("relu(z1) + relu(z2)"), network("relu", 1.0, 1.0)
    M, Q = np.array([[[0.8, 0.0], [0.1, 0.7]]]), np.array([[[1.0, 0.2], [0.2, 1.0]]])
    of_student = 1 + 2 * arc_cosine(0.2)
    of_both = sum(arc_cosine(c) for c in (0.8, 0.0, 0.1, 0.7))
    exact = of_student + 1 + 2 * arc_cosine(0.0) - 2 * of_both
    found, error = (f(model, student, M, Q)["generalization_error"][0] for f in (metrics_of, uncertainty_of))
    assert abs(found - exact) <= error < 0.01 * exact


def test_other_overlaps_enter_the_uncertainty():
    model, student = sv.MultiIndex("z"), network("relu", 1.0)
    M, Q = one(0.5, 1.0)
    error = uncertainty_of(model, student, M, Q, others=[(M + 0.01, Q), (M, Q)])
    assert error["cosine"][0] == pytest.approx(0.01) and error["norm"][0] < 1e-12


def test_every_metric_has_a_definition():
    names = set(metrics_of(sv.MultiIndex("z1+z2*z3"), network("relu", 1.0), np.zeros((1, 1, 3)), np.ones((1, 1, 1))))
    assert names <= set(sv.MultiIndex.definitions)
