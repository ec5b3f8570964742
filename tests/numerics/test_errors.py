"""The error of a rule as two coarser ones tell it, and that of a mean of independent estimates."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.numerics.errors import CONFIDENCE, error_of_mean, told_by_two


def told(error, near: float = 0.9, far: float = 0.8) -> float:
    """The stated over the true error, for rules whose error is `error(fineness)`."""
    true, *changes = error(1.0), *(abs(error(fineness) - error(1.0)) for fineness in (near, far))
    return float(np.dot(told_by_two(np, *changes), changes) / abs(true))


@pytest.mark.parametrize("power", [1, 2, 4])
def test_an_error_that_is_a_power_of_the_nodes_is_covered_with_the_safety_of_four(power):
    assert 1 <= 4 * told(lambda fineness: fineness**-power) < 20


@pytest.mark.parametrize("rate", [20.0, 30.0, 40.0])
def test_an_error_that_falls_geometrically_is_covered_and_not_by_thousands(rate):
    """The far rule alone would say 50, 400 and 3000 times as much."""
    assert 1 <= told(lambda fineness: np.exp(-rate * fineness)) < 150


def test_a_near_rule_that_agrees_by_accident_is_not_believed():
    assert np.dot(told_by_two(np, 0.0, 1e-6), (0.0, 1e-6)) == pytest.approx(5e-8)


def test_whole_arrays_are_weighed_place_by_place():
    near, far = np.array([1e-9, 1e-3, 2e-3]), np.array([1e-8, 2e-3, 1e-3])
    a, b = told_by_two(np, near, far)
    np.testing.assert_allclose(a * near + b * far, [1e-9, 2e-3, 2e-3])


@pytest.mark.parametrize("count", [4, 8])
def test_the_error_of_a_mean_holds_the_share_of_means_that_it_says(count):
    draws = np.random.default_rng(0).standard_normal((count, 40_000))
    held = np.mean(np.abs(draws.mean(axis=0)) <= error_of_mean(draws))
    assert held == pytest.approx(CONFIDENCE, abs=4 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / 40_000))
