"""Wide teachers: the transition of a feature, known errors, exponents, students of limited width."""

from __future__ import annotations

import numpy as np
import pytest
from reference.wide_teacher_equations import KERNELS, solved

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


CASES = [(0.6, 500, 0.3, 200.0), (0.8, np.inf, 0.05, 60.0), (1.5, 50, 0.0, 8.0), (2.0, np.inf, 10.0, 900.0)]
CASES += [(1.0, 1, 0.2, 40.0), (0.0, 7, 0.5, 200.0)]
EQUATIONS = [pytest.param(name, *case, marks=pytest.mark.slow) for name in KERNELS for case in CASES]
EQUATIONS += [("erf(z)", 0.8, np.inf, 0.05, 60.0), ("sign(z)", 1.0, 1, 0.2, 200.0)]


@pytest.mark.parametrize(("activation", "exponent", "width", "noise", "alpha"), EQUATIONS)
def test_errors_are_those_of_the_equations_solved_by_scipy(activation, exponent, width, noise, alpha):
    """Within the stated uncertainty; the table of the reference is good to 2e-10."""
    known = solved(activation, exponent, width, noise, alpha)
    found = sv.predict(sv.WideTeacher(exponent, width, activation, noise), sv.BayesOptimal(), alpha=alpha)
    assert found["effective_width"] == known["effective_width"]
    for name in ("generalization_error", "nonlinear_error"):
        assert abs(found[name] - known[name]) < found.uncertainty[name] + 2e-10 * known[name]


@pytest.mark.parametrize("activation", ["he3(z)", "tanh(z)", "sign(z)"])
@pytest.mark.parametrize(("exponent", "width"), [(0.6, np.inf), (1.5, 1), (0.0, 12)])
def test_errors_fall_with_samples_from_the_variance_of_the_label(activation, exponent, width):
    alpha = np.concatenate([[0.0, 1e-9], np.geomspace(1e-2, 1e9, 60)])
    for noise in (0.0, 50.0):
        model = sv.WideTeacher(exponent, width, activation, noise)
        for learner in (sv.BayesOptimal(), sv.BayesStudent(3)):
            found = sv.predict(model, learner, alpha=alpha)
            values = found["generalization_error"]
            assert values[0] == pytest.approx(model.variance, rel=1e-9) and values.min() >= 0
            assert np.all(np.diff(values) <= 1e-9 * values[:-1] + 2 * found.uncertainty["generalization_error"][1:])
            assert np.all(np.diff(found["overlap"], axis=0) > -1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exponent": 0.5}, "width"),
        ({"exponent": -1.0, "width": 3}, "exponent"),
        ({"width": 2.5}, "width"),
        ({"width": 0}, "width"),
        ({"noise": -0.1}, "noise"),
        ({"activation": "relu"}, "WideNetwork"),
        ({"activation": "2*z"}, "degree three or more"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        sv.WideTeacher(**given)


@pytest.mark.parametrize(("rho", "noise"), [(0.3, 0.1), (1.0, 0.1), (1.0, 0.0), (2.0, 0.0)])
def test_nothing_beyond_the_universal_phase_is_converged(rho, noise):
    model = sv.WideNetwork(rho, "he2(z)/sqrt(2) + he3(z)/6", noise)
    edge = sv.thresholds(model)["specialization"]
    found = sv.predict(model, sv.BayesOptimal(), alpha=edge * np.array([0.5, 0.99, 1.01, 4.0, 100.0]), throw=False)
    assert found.converged.tolist() == [True, True, False, False, False]
    assert np.all(found["overlap_weights"][:2] == 0) and np.all(found["overlap_weights"][3:] > 0)
    assert np.all(np.diff(found["generalization_error"]) <= 0)


def test_without_noise_as_many_samples_as_weights_tell_all_of_them():
    model = sv.WideNetwork(1.0, "relu", 0.0)
    assert sv.thresholds(model)["specialization"] == 1.0
    found = sv.predict(model, sv.BayesOptimal(), alpha=[0.9, 1.1], throw=False)
    assert found["generalization_error"][0] > 0.01 and found["generalization_error"][1] == 0
    assert found["overlap_weights"].tolist() == [0.0, 1.0]
    assert sv.thresholds(sv.WideNetwork(1.0, "relu", 1e-10))["specialization"] == pytest.approx(1.0, abs=0.1)


def test_runs_of_a_network_come_near_to_the_universal_solution():
    """Excess errors fall like 1/d: the linear part is fitted from alpha d samples an unknown."""
    model, alpha = sv.WideNetwork(0.5, "he2(z)/sqrt(2) + he3(z)/6", 0.2), 0.6
    theory = sv.predict(model, sv.AMP(), alpha=alpha)["generalization_error"]
    small, large = (
        np.mean([sv.simulate(model, sv.AMP(), alpha=alpha, d=d, seed=s)["generalization_error"] for s in range(4)])
        for d in (20, 40)
    )
    assert 0 < large - theory < 0.7 * (small - theory) and large - theory < 0.4 * theory


def test_curves_diagrams_and_sweeps_over_the_fields(tmp_path):
    teacher, network = sv.WideTeacher(1.0, 20, "tanh(2*z)", 0.02), sv.WideNetwork(0.5, "he2(z)", 0.1)
    curve = sv.learning_curve(teacher, sv.BayesOptimal(), exponent=[0.8, 1.0, 1.4], alpha=50.0, progress=False)
    assert np.all(np.diff(curve.theory("generalization_error").values.ravel()) < 0)
    wider = sv.learning_curve(teacher, sv.BayesOptimal(), width=[2, 4, 8], alpha=80.0, progress=False)
    assert np.all(np.diff(wider.theory("generalization_error").values.ravel()) > 0)
    runs = sv.learning_curve(
        teacher, sv.AdamStudent(2, 20), alpha=[10.0, 20.0], d=6, seeds=2, progress=False
    ).simulation("generalization_error")
    assert np.isfinite(runs).all()
    for model, field in ((teacher, "exponent"), (network, "rho")):
        axes = ("alpha", [5.0, 50.0]), (field, [0.7, 1.2])
        diagram = sv.phase_diagram(model, sv.BayesOptimal(), *axes, metric="generalization_error", progress=False)
        assert diagram.theory("generalization_error").values.squeeze().shape == (2, 2)
    swept = sv.sweep(network, sv.BayesOptimal(), store=tmp_path / "store", rho=[0.4, 0.8], alpha=[0.2, 0.5], workers=1)
    again = sv.open(tmp_path / "store").theory("overlap").values
    assert np.array_equal(swept.theory("overlap").values, again)


def test_amplitudes_too_small_for_a_number_are_no_reason_for_a_warning(recwarn):
    found = sv.predict(sv.WideTeacher(100.0, 50, "he3(z)", 0.1), sv.BayesOptimal(), alpha=[1.0, 1e4])
    assert found.converged.all() and found["effective_width"].tolist() == [0, 1] and not recwarn.list
