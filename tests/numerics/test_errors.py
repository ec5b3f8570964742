"""Errors by a coarser rule: values, structure, and an estimate that is not too small."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.numerics.errors import COARSER, estimated
from solvable.numerics.gaussian import normal_trapezoid


def test_the_change_bounds_the_error_of_a_trapezoidal_rule():
    def average(fineness):
        x, weight = normal_trapezoid(0.9 / fineness)
        return {"cos": weight @ np.cos(2 * x), "both": np.array([weight @ x**2, weight @ x**4])}

    found = estimated(average)
    truth = {"cos": np.exp(-2), "both": np.array([1.0, 3.0])}
    for name in truth:
        assert np.all(np.abs(found.value[name] - truth[name]) <= found.error[name] + 1e-7)
    assert found.largest_error == max(float(np.max(e)) for e in found.error.values()) > 0
    assert found.coarser["cos"] == average(COARSER)["cos"]


def test_other_finenesses_and_plain_numbers():
    assert estimated(lambda fineness: fineness, 0.9, 0.5).error == pytest.approx(0.4)
    assert estimated(lambda fineness: ()).largest_error == 0
