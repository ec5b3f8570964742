"""The steps at which a tree target is learned, in the limit of many directions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import solvable as sv
from solvable.core.status import Status

MODEL = sv.TreeTarget(inner="he2(z)/2 + he3(z)/6")
ONE, TWO = sv.Layerwise(1), sv.Layerwise(2)


def error(model, learner, kappa):
    return sv.predict(model, learner, kappa=kappa)["generalization_error"]


def test_thresholds_are_those_of_the_literature():
    """1 + epsilon for the first layer, k epsilon for the second, q for the part of degree q of a kernel."""
    assert sv.thresholds(MODEL) == {"first_layer": 1.5, "second_layer": 1.5, "kernel": 2.0}
    wide = sv.TreeTarget(exponent=0.8)
    assert sv.thresholds(wide) == pytest.approx({"first_layer": 1.8, "second_layer": 2.4, "kernel": 2.0})
    assert sv.thresholds(wide, TWO) == pytest.approx({"first_layer": 1.8, "second_layer": 2.4})
    assert sv.thresholds(wide, sv.Layerwise(1)) == pytest.approx({"first_layer": 1.8, "degree_3": 2.4})
    assert sv.thresholds(MODEL, sv.Kernel(4)) == {"degree_2": 2.0, "degree_3": 3.0}
    assert sv.thresholds(MODEL, sv.Kernel(math.inf)) == {"degree_2": 2.0, "degree_3": 3.0, "degree_6": 6.0}


def test_directions_that_leave_no_trace_in_the_spectrum_are_not_found():
    for hidden in (sv.TreeTarget(inner="he3(z)"), sv.TreeTarget(outer="he2(z)")):
        assert sv.thresholds(hidden)["first_layer"] == math.inf
        assert error(hidden, TWO, 2.3) == pytest.approx(hidden.degrees.variance)


def test_errors_are_flat_between_steps_and_fall_at_them():
    kappa = np.linspace(0.05, 3.95, 40)
    for learner in (sv.Kernel(3), ONE, TWO):
        found = sv.predict(MODEL, learner, kappa=kappa, throw=False)
        steps = [0, *sorted(set(sv.thresholds(MODEL, learner).values())), 4]
        for low, high in itertools.pairwise(steps):
            inside = (kappa > low + 1e-6) & (kappa < high - 1e-6)
            assert np.ptp(found["generalization_error"][inside]) == 0 and np.all(found.converged[inside])
        assert np.all(np.diff(found["generalization_error"][found.converged]) <= 1e-12)
    assert found["generalization_error"][-1] == 0


def test_depth_is_ordered_where_all_layers_are_learned():
    errors = [error(MODEL, learner, 1.9) for learner in (sv.Kernel(3), ONE, TWO)]
    assert errors[0] > errors[1] > errors[2] == 0
    assert error(MODEL, sv.Kernel(3), 3.5) == pytest.approx(errors[1], abs=1e-12)


def test_a_step_itself_is_not_answered():
    with pytest.raises(sv.ConvergenceError, match="first-order threshold"):
        sv.predict(MODEL, sv.Kernel(2), kappa=2.0)
    assert sv.predict(MODEL, TWO, kappa=1.5, throw=False).status == Status.AMBIGUOUS_BRANCH


def test_a_regression_that_mixes_powers_is_out_of_domain():
    model = sv.TreeTarget(inner="z + he2(z)")
    assert sv.predict(model, TWO, kappa=1.9, throw=False).status == Status.OUT_OF_DOMAIN
    assert sv.predict(model, sv.Layerwise(2, degree=2), kappa=1.9).converged


def test_a_linear_part_that_is_found_alone_is_out_of_domain():
    model = sv.TreeTarget(inner="z + he2(z)", outer="z + z**2")
    status = sv.predict(model, ONE, kappa=[0.9, 1.3, 1.7], throw=False).status
    assert list(status) == [Status.CONVERGED, Status.OUT_OF_DOMAIN, Status.CONVERGED]
    assert sv.predict(sv.TreeTarget(inner="z + he2(z)"), ONE, kappa=1.3).converged  # tanh has no quadratic part


def test_a_kernel_of_any_degree_is_ambiguous_at_each_of_its_steps():
    status = sv.predict(MODEL, sv.Kernel(math.inf), kappa=np.arange(1.0, 9.0), throw=False).status
    ambiguous = {q for q, one in enumerate(status, start=1) if one == Status.AMBIGUOUS_BRANCH}
    assert ambiguous == {2, 3, 6, 7, 8}


def test_branches_hide_behind_their_sum():
    single, double = (error(sv.TreeTarget(r), TWO, 1.9) for r in (1, 2))
    assert single == 0 < double < error(sv.TreeTarget(2), ONE, 1.9)


@pytest.mark.parametrize("outer", ["tanh(3*z)", "sign(z) + 0.3*z**2"])
def test_degrees_explain_what_they_explain_in_samples(outer):
    """The parts of degree two and three of h, and products of them, as regressors, for more and more directions."""
    model = sv.TreeTarget(inner="he2(z)/2 + he3(z)/6", outer=outer)
    rng, n, misses = np.random.default_rng(0), 40_000, []
    for m in (20, 320):
        two, three = np.zeros(n), np.zeros(n)
        for _ in range(m):
            z = rng.standard_normal(n)
            sign = rng.choice([-1.0, 1.0])
            two += sign * (z**2 - 1) / 2 / math.sqrt(m)
            three += sign * (z**3 - 3 * z) / 6 / math.sqrt(m)
        y = model.labels((two + three)[:, None])
        y -= y.mean()
        columns = {2: [two], 3: [three], 4: [two**2], 5: [two * three], 6: [three**2, two**3]}
        found, F = [], np.ones((n, 1))
        for degree in range(2, 7):
            F = np.column_stack([F, *columns[degree]])
            found.append(np.var(F @ np.linalg.lstsq(F, y)[0]))
        misses.append(np.abs(np.array(found) - [model.degrees.learned(q) for q in range(2, 7)]).max())
    assert misses[1] < 0.02 and misses[1] < misses[0]


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 0.95), st.integers(1, 4), st.floats(0.1, 6.0), st.integers(1, 6))
def test_more_samples_and_more_layers_never_hurt(exponent, branches, kappa, degree):
    model = sv.TreeTarget(branches, exponent)
    for learner in (sv.Kernel(degree), sv.Layerwise(1, degree), sv.Layerwise(2, degree)):
        less, more = sv.predict(model, learner, kappa=np.array([kappa, kappa + 0.7]), throw=False)[
            "generalization_error"
        ]
        assert 0 <= more <= less <= model.degrees.variance * (1 + 1e-12)
