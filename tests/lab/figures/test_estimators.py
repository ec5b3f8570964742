"""Thresholds read off runs alone: the estimators find what they should on made-up runs, within their errors."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import ndtr

import solvable as sv
from solvable.lab.figures.curves import growth
from solvable.lab.figures.entry import Effort
from solvable.lab.figures.estimators import Runs, continuous_onset, growth_onset, jump


def noisy(curve, alpha, d, seeds=200, scatter=1.0):
    """Runs around a curve, with a spread of `scatter` / sqrt(d)."""
    rng = np.random.default_rng(1)
    alpha = np.asarray(alpha)
    return Runs(d, alpha, curve(alpha)[:, None] + scatter * rng.standard_normal((alpha.size, seeds)) / np.sqrt(d))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bend", [-0.08, 0.0, 0.3])
def test_a_continuous_onset_is_found_within_its_error(bend):
    def curve(alpha):
        above = np.maximum(alpha - 1.3, 0)
        return 0.5 * above + bend * above**2

    found = continuous_onset(noisy(curve, np.arange(0.5, 3.0, 0.1), d=400))
    assert abs(found.value - 1.3) < 3 * found.error and found.error < 0.08


def test_an_onset_needs_points_in_its_window():
    found = continuous_onset(noisy(lambda alpha: 0 * alpha, [1.0, 2.0, 3.0], d=400))
    assert math.isnan(found.value) and math.isnan(found.error)


def test_runs_without_outcome_are_left_out():
    full = noisy(lambda alpha: 0.5 * (alpha - 1), np.arange(1.3, 2.2, 0.1), d=400, seeds=20)
    holes = dataclasses.replace(
        full, values=np.concatenate([full.values, np.full((full.alpha.size, 5), np.nan)], axis=1)
    )
    assert continuous_onset(holes).value == continuous_onset(full).value
    steps = dataclasses.replace(holes, values=holes.values + 0.5)
    assert (
        jump([steps], above=0.75).value == jump([dataclasses.replace(full, values=full.values + 0.5)], above=0.75).value
    )


def test_the_onset_of_growth_is_where_one_step_keeps_small_overlaps_as_they_are():
    runs = noisy(lambda alpha: alpha / 1.3, [2.5, 3.0, 3.5], d=400, seeds=20)
    found = growth_onset(runs)
    assert abs(found.value - 1.3) < 3 * found.error and found.error < 0.01
    holes = dataclasses.replace(runs, values=np.concatenate([runs.values, np.full((3, 2), np.nan)], axis=1))
    assert growth_onset(holes).value == pytest.approx(found.value, rel=1e-12)
    assert math.isnan(growth_onset(Runs(400, np.array([1.0]), np.array([[np.nan]]))).value)


def test_small_overlaps_of_the_parity_grow_as_they_should():
    found = growth(sv.MultiIndex("sign(z1*z2)"), [6.0, 8.0], d=100, seeds=3, effort=Effort())
    assert found.values.shape == (2, 3) and growth_onset(found).value == pytest.approx(2.467, abs=0.4)


def jumping(d, alpha, seeds, shift, width=1.0):
    rng = np.random.default_rng(d)
    alpha = np.asarray(alpha)
    chance = ndtr(np.sqrt(d) * (alpha - 1.4 - shift * d ** (-2 / 3)) / width)
    return Runs(d, alpha, np.where(rng.random((alpha.size, seeds)) < chance[:, None], 1.0, 0.6))


def test_a_jump_is_found_with_its_shift_in_the_dimension():
    alpha = np.linspace(1.2, 1.7, 21)
    runs = [jumping(d, alpha, 60, shift=2.0) for d in (200, 800)]
    found = jump(runs, above=0.99)
    assert abs(found.value - 1.4) < 3 * found.error and 0.001 < found.error < 0.03
    alone = jump(runs[:1], above=0.99)
    assert abs(alone.value - 1.4 - 2.0 * 200 ** (-2 / 3)) < 3 * alone.error


def test_a_jump_that_the_runs_do_not_resolve_has_no_estimate():
    alpha = np.linspace(1.0, 2.0, 3)
    assert math.isnan(jump([Runs(200, alpha, np.repeat([[0.0], [1.0], [1.0]], 5, axis=1))], above=0.9).value)
    mixed = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert math.isnan(jump([Runs(200, alpha, mixed)], above=0.9).value)
    assert math.isnan(jump([Runs(200, alpha, np.zeros((3, 4)))], above=0.9).value)
