"""Sums over all integers: powers against the zeta function, and rules that end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import zeta

from solvable.numerics.series import COARSE, FINE, integer_rule


@pytest.mark.parametrize("count", [FINE, COARSE])
@pytest.mark.parametrize("s", [1.05, 1.5, 2.0, 4.0, 12.0])
def test_powers_sum_to_the_zeta_function(s, count):
    rule = integer_rule(count)
    beyond = (rule.end - 0.5) ** (1 - s) / (s - 1)
    assert np.exp(-s * rule.logs) @ rule.weights + beyond == pytest.approx(zeta(s, 1), rel=1e-13)


@pytest.mark.parametrize("last", [1, 2, 63, 64, 65, 100, 1000, 4321])
def test_a_rule_that_ends_sums_up_to_there(last):
    rule = integer_rule(FINE, last)
    k = np.arange(1.0, last + 1)
    assert rule.weights.sum() == pytest.approx(last, rel=1e-13)
    terms = 1 / (1 + np.exp(1.7 * rule.logs) / 50)
    assert terms @ rule.weights == pytest.approx(np.sum(1 / (1 + k**1.7 / 50)), rel=1e-13)


def test_rules_of_any_number_of_nodes_have_one_length():
    for last in (None, 70, 5000):
        assert len(integer_rule(FINE, last).logs) == len(integer_rule(COARSE, last).logs)
