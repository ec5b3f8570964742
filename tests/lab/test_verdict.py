"""The rule of verdicts: runs agree with theory only if they would differ from one that is wrong by 10 %."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvable.lab.verdict import AGREES, DIFFERS, LEVEL, MOST, TOO_FEW, finite_size, judge, read, shown, two_groups


def runs(mean, spread, count, seed=0):
    """Runs of a normal law."""
    return mean + spread * np.random.default_rng(seed).standard_normal(count)


def word(values, theory, resolution=0.0, settled=None, points=1):
    """The word on a theory of values near 1."""
    settled = np.ones(len(values), bool) if settled is None else settled
    return judge(theory, read(values, settled, points), resolution, 0.1 * abs(theory)).word


def test_sixteen_runs_tell_a_right_theory_from_one_that_is_wrong_by_ten_percent():
    said = {theory: [word(runs(1.0, 0.05, 16, seed), theory) for seed in range(200)] for theory in (1.0, 0.9, 1.1)}
    assert said[1.0].count(AGREES) > 190 and said[1.0].count(DIFFERS) < 8
    for wrong in (0.9, 1.1):
        assert said[wrong].count(DIFFERS) > 190 and AGREES not in said[wrong]


@pytest.mark.parametrize("spread", [0.03, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("count", [3, 6, 16])
def test_a_theory_that_is_wrong_by_ten_percent_does_not_agree_however_few_the_runs(spread, count):
    said = [word(runs(1.0, spread, count, seed), 1.1, resolution=0.02) for seed in range(300)]
    assert said.count(AGREES) <= 3 * LEVEL * len(said)


def test_three_runs_are_too_few():
    """They would have agreed with anything up to 45 standard errors away."""
    values = np.array([0.02, 0.03, 0.16])
    reading = read(values, np.ones(3, bool))
    found = judge(0.327, reading, 0.0, 0.0327)
    assert found.word == TOO_FEW and "3 runs cannot tell a theory that is wrong by 0.033: about" in found.reason
    assert abs(0.327 - reading.value) / reading.error > 5


def test_runs_without_spread_are_judged_by_the_resolution():
    assert word(np.full(3, 1 - 1e-6), 1.0, resolution=1e-4) == AGREES
    assert word(np.full(3, 1 - 1e-6), 1.0) == DIFFERS and word(np.full(16, 0.9), 1.0, resolution=0.02) == DIFFERS
    assert word(np.full(2, 1.0), 1.0) == TOO_FEW  # two runs may be equal by chance


def test_many_runs_do_not_make_a_theory_wrong_for_its_finite_dimension():
    """Ten thousand runs at d = 200 resolve a shift of 2/d; a theory wrong by 10 % still differs."""
    values = runs(1 + 2 / 200, 0.1, 10_000)
    assert word(values, 1.0) == DIFFERS and word(values, 1.0, finite_size(200)) == AGREES
    assert word(values, 1.1, finite_size(200)) == word(values, 0.9, finite_size(200)) == DIFFERS


def test_a_finite_dimension_never_excuses_ten_percent():
    assert finite_size(500) == 8 / 500 and finite_size(None) == 0
    assert finite_size(2) == finite_size(20) == MOST < 0.1 / 2 + 1e-12
    assert word(runs(1.0, 0.05, 1000), 1.1, finite_size(2)) == DIFFERS


def test_more_points_need_more_evidence():
    values = runs(1.0, 0.05, 8)
    alone, many = (read(values, np.ones(8, bool), points) for points in (1, 100))
    assert many.high - many.low > 1.5 * (alone.high - alone.low) and alone.value == many.value


def test_points_that_are_the_same_runs_do_not_multiply_the_evidence():
    """Along a path every point may see the same deviation: that is said to differ no more often than one point is."""
    right = [word(runs(1.0, 0.05, 8, seed), 1.0, points=20) for seed in range(1000)]
    assert right.count(DIFFERS) <= LEVEL * len(right)  # if the twenty points are one, their word is that of one
    wrong = [word(runs(1.0, 0.02, 8, seed), 1.1, points=20) for seed in range(300)]
    assert AGREES not in wrong  # nor does a wrong theory agree for being seen twenty times


def test_an_uncertain_theory_or_a_small_dimension_is_named_as_the_reason():
    reading = read(runs(1.0, 0.01, 16), np.ones(16, bool))
    assert "the dimension is too small" in judge(1.0, reading, 0.1, 0.1, shift=0.1).reason
    assert "theory or algorithm is not exact enough" in judge(1.0, reading, 0.1, 0.1).reason
    assert judge(1.0, read(np.array([1.0, np.nan]), np.ones(2, bool)), 0.0, 0.1).reason == "1 run at this point"


def test_runs_that_did_not_settle_are_set_aside_and_counted():
    values = np.concatenate([runs(1.0, 0.02, 14), [0.1, np.nan, 0.2]])
    settled = np.arange(17) < 14
    reading = read(values, settled)
    assert (reading.runs, reading.aside) == (14, 2) and reading.value == pytest.approx(values[:14].mean())
    assert reading.every == pytest.approx(np.nanmean(values)) and word(values, 1.0, settled=settled) == AGREES


def test_if_many_runs_did_not_settle_the_rest_is_not_judged_without_them():
    values = np.concatenate([runs(1.0, 0.02, 10), runs(0.3, 0.02, 6)])
    settled = np.arange(16) < 10
    found = judge(1.0, read(values, settled), 0.0, 0.1)
    assert found.word == TOO_FEW and found.reason == "6 of 16 runs did not settle, too many to leave out"
    assert word(runs(1.0, 0.02, 16), 1.0, settled=np.zeros(16, bool)) == AGREES  # with or without them the same
    assert word(runs(1.0, 0.02, 16), 1.2, settled=np.zeros(16, bool)) == DIFFERS


def test_two_groups_of_runs_have_a_median_and_agree_with_nothing():
    values = np.sort(np.concatenate([runs(0.37, 0.02, 11), runs(0.03, 0.01, 5, seed=1)]))
    (low, few), (high, most) = two_groups(values)
    assert (few, most) == (5, 11) and low == pytest.approx(0.03, abs=0.01) and high == pytest.approx(0.37, abs=0.02)
    reading = read(values, np.ones(16, bool))
    assert reading.value == np.median(values) and reading.low < 0.1 and reading.high > 0.35
    for theory in (0.37, 0.26, 0.05):
        found = judge(theory, reading, 0.0, 0.1 * theory)
        assert found.word == TOO_FEW and found.reason.startswith("the runs end in two groups, 5 near 0.03")
    assert judge(0.6, reading, 0.0, 0.06).word == DIFFERS
    value, down, up = shown(values)
    assert value == reading.value and down > 0.2 and 0 < up < 0.05


@pytest.mark.parametrize(("count", "most"), [(12, 0.01), (16, 0.004), (64, 0.001)])
def test_runs_of_one_law_are_seldom_taken_for_two_groups(count, most):
    samples = np.sort(np.random.default_rng(0).standard_normal((3000, count)), axis=1)
    assert np.mean([bool(two_groups(sample)) for sample in samples]) <= most
    assert two_groups(np.full(count, 0.3)) == () == two_groups(samples[0][:8])


def test_the_interval_of_the_median_covers_it():
    """Of 32 runs in two groups of a known median, one point alone."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(400):
        values = np.where(rng.random(32) < 0.6, 1.0, 0.0) + 0.02 * rng.standard_normal(32)
        reading = read(values, np.ones(32, bool))
        missed += reading.rejects(1 + 0.02 * -0.967, 0.0)  # 0.6 (1 - Phi(x)) = 1/2 at x = -0.967
    assert missed <= 3 * LEVEL * 400


def test_what_stands_for_runs_in_a_figure():
    values = runs(1.0, 0.1, 9)
    mean, down, up = shown(np.append(values, np.nan))
    assert mean == pytest.approx(values.mean()) and down == up == pytest.approx(values.std(ddof=1) / 3)
    alone = shown(np.array([0.5]))
    assert alone[0] == 0.5 and math.isnan(alone[1]) and math.isnan(shown(np.array([np.nan]))[0])
