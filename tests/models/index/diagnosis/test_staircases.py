"""The diagnosis of targets of two to four projections: thresholds, staircases, exponents, invariance, report, time."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

import solvable as sv
from solvable.models.index.diagnosis import Diagnosis
from solvable.models.index.diagnosis.diagnosis import hermite_of
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

PARITY = np.pi**2 / 4
diagnose = functools.cache(sv.diagnose)


def spanned(directions: np.ndarray) -> np.ndarray:
    """The projector on the span of orthonormal columns."""
    return directions @ directions.T


def assert_near(found: Diagnosis, exact: float, relative: float, step: int = 0) -> None:
    """The threshold is right to the accuracy asked for, and its reported error is honest."""
    here = found.staircase[step]
    error = abs(here.alpha - exact)
    assert error <= relative * exact
    assert error <= 3 * here.error + 1e-4 * exact
    if step == 0:
        assert (found.alpha_weak, found.uncertainty) == (here.alpha, here.error)


# target, noise: threshold, relative accuracy
EASY = [
    ("sign(z1*z2)", 0.0, PARITY, 1e-6),
    pytest.param("sign(z1*z2)", 0.5, 3.20866, 1e-5, marks=pytest.mark.slow),
    ("z1*z2", 0.0, 0.593751098, 1e-6),
    ("z1**2+z2**2", 0.0, 1.0, 1e-4),
    pytest.param("abs(z1)+abs(z2)", 0.0, 1.06798754, 1e-3, marks=pytest.mark.slow),
    pytest.param("z1**2*z2**2", 0.0, 1.46154512, 1e-3, marks=pytest.mark.slow),
    pytest.param("cos(z1)+z2**2", 0.0, 0.524292963, 1e-3, marks=pytest.mark.slow),
    pytest.param("exp(z1*z2/3)", 0.0, 0.593751098, 1e-3, marks=pytest.mark.slow),
    pytest.param("(z1+z2)*(z1-z2)/2", 0.0, 0.593751098, 1e-3, marks=pytest.mark.slow),
    pytest.param("z1**2+z2**2*z3**2", 0.0, 1.13298775, 1e-3, marks=pytest.mark.slow),
    pytest.param("sign(z1**2+z2**2-1)", 0.0, 4 * (np.exp(0.5) - 1), 1e-3, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("text, noise, exact, relative", EASY)
def test_weak_recovery_thresholds(text, noise, exact, relative):
    found = diagnose(text, noise)
    assert found.verdict == "easy" and found.generative_exponent == 2
    assert_near(found, exact, relative)


@pytest.mark.slow
def test_the_grand_staircase():
    """z1^2 + sign(z1 z2 z3): z1 above 0.575166, and z2, z3 at exactly pi^2/4, because z1 is then known exactly."""
    found = diagnose("z1**2+sign(z1*z2*z3)")
    assert [s.kind for s in found.staircase] == ["easy", "easy"]
    assert_near(found, 0.5751664, 1e-6)
    assert_near(found, PARITY, 1e-9, step=1)
    np.testing.assert_allclose(spanned(found.staircase[0].directions), np.diag([1.0, 0, 0]), atol=1e-6)
    np.testing.assert_allclose(spanned(found.staircase[1].directions), np.diag([0.0, 1, 1]), atol=1e-6)
    assert [s.leap for s in found.csq_staircase] == [2, 2] and found.leap_exponent == 2
    assert found.sample_exponents == {"online SGD": "d log d", "best CSQ": "d", "AMP": "d"}


@pytest.mark.slow
def test_a_staircase_that_gradients_do_not_see():
    """he4(z1) + sign(z1 z2 z3): easy for AMP, a leap of three for methods linear in the label."""
    found = diagnose("he4(z1)+sign(z1*z2*z3)")
    # 1 / E[(E[z1^2|y] - 1)^2] by a quadrature over y that knows the preimages z1^2 = 3 +- sqrt(y - s + 6).
    assert_near(found, 0.68785346, 1e-3)
    assert_near(found, PARITY, 1e-3, step=1)
    assert (found.information_exponent, found.leap_exponent, found.generative_exponent) == (3, 3, 2)
    assert [s.leap for s in found.csq_staircase] == [3]
    assert found.sample_exponents == {"online SGD": "d^2", "best CSQ": "d^1.5", "AMP": "d"}


@pytest.mark.slow
def test_a_parity_of_three_is_hard():
    found = diagnose("sign(z1*z2*z3)")
    assert (found.verdict, found.alpha_weak, found.generative_exponent) == ("hard", np.inf, 3)
    assert found.leap_exponent == 3 and [s.kind for s in found.staircase] == ["hard"]
    assert found.sample_exponents["AMP"] == "d^1.5"
    assert "not learned from n = alpha d; n of order d^1.5 is needed" in str(found)


@pytest.mark.parametrize(
    "text, leaps",
    [
        ("z1 + z1*z2", [1, 1]),
        pytest.param("he3(z1) + z1 + he2(z1)*z2", [1, 1], marks=pytest.mark.slow),
        pytest.param("z1 + he3(z1)*z2 + he3(z2)*z3", [1, 1, 1], marks=pytest.mark.slow),
        pytest.param("z1*z2*z3 + z1 + z1*z2", None, marks=pytest.mark.slow),
    ],
)
def test_chains_of_trivial_steps(text, leaps):
    found = diagnose(text)
    assert found.verdict == "trivial" and found.alpha_weak == 0 and found.generative_exponent == 1
    assert all(step.kind == "trivial" and step.alpha == 0 for step in found.staircase)
    learned = np.concatenate([step.directions for step in found.staircase], 1)
    np.testing.assert_allclose(spanned(learned), np.eye(len(learned)), atol=1e-6)
    if leaps:
        assert [s.leap for s in found.csq_staircase] == leaps


@pytest.mark.slow
def test_a_trivial_step_opens_an_easy_one():
    """z1 + sign(z1 z2 z3): without noise z1 is soon exact, and the rest is a parity of two."""
    found = diagnose("z1 + sign(z1*z2*z3)")
    assert found.staircase[0].kind == "trivial"
    np.testing.assert_allclose(spanned(found.staircase[0].directions)[0, 0], 1, atol=1e-6)
    assert found.staircase[1].kind == "easy" and found.staircase[1].alpha == pytest.approx(PARITY, rel=1e-3)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "text, exact, by_formula",
    [
        ("z1*z2", 0.593751098, True),
        pytest.param("z1*z2", 0.593751098, False, marks=pytest.mark.slow),
        pytest.param("sign(z1*z2)", PARITY, True, marks=pytest.mark.slow),
        pytest.param("abs(z1)+abs(z2)", 1.06798754, True, marks=pytest.mark.slow),
        pytest.param("sign(z1*z2)", PARITY, False, marks=pytest.mark.slow),
        pytest.param("abs(z1)+abs(z2)", 1.06798754, False, marks=pytest.mark.slow),
    ],
)
def test_rotated_targets(text, exact, seed, by_formula):
    """The answer does not depend on the coordinates, whether the target is a formula or any function."""
    B = np.linalg.qr(np.random.default_rng(seed).standard_normal((2, 2)))[0]
    plain = Target(text)
    target = rotate(plain if by_formula else Target(lambda z: plain(z), 2), B)
    found, straight = sv.diagnose(target), diagnose(text)
    assert_near(found, exact, 1e-3)
    for field in ("verdict", "information_exponent", "leap_exponent", "generative_exponent", "sample_exponents"):
        assert getattr(found, field) == getattr(straight, field), field
    np.testing.assert_allclose(found.label_spectrum[:5], straight.label_spectrum[:5], atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("by_formula", [True, False])
def test_a_rotated_staircase(by_formula):
    """The first direction found is the rotated z1, and both thresholds stay."""
    B = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 3)))[0]
    plain = Target("z1**2+sign(z1*z2*z3)")
    found = sv.diagnose(rotate(plain if by_formula else Target(lambda z: plain(z), 3), B))
    assert_near(found, 0.5751664, 3e-3)
    np.testing.assert_allclose(spanned(found.staircase[0].directions), np.outer(B[0], B[0]), atol=1e-3)
    assert_near(found, PARITY, 3e-3, step=1)
    assert found.leap_exponent == 2


@pytest.mark.parametrize(
    "text, exact",
    [
        pytest.param("z1**2+z2**2+z3**2+z4**2", 2.0, marks=pytest.mark.slow),
        pytest.param("sqrt(z1**2+z2**2+z3**2+z4**2)", 2.0, marks=pytest.mark.slow),
        pytest.param("abs(z1)+abs(z2)+abs(z3)+abs(z4)", 2.208254, marks=pytest.mark.slow),
        pytest.param("sign(z1*z2)+sign(z3*z4)", 2 * PARITY, marks=pytest.mark.slow),
    ],
)
def test_four_projections(text, exact):
    """Thresholds to 5e-3; |z| has alpha = r/2, two parities share their label, and a sum has that of convolutions.

    For four terms |z_i|, E[z_i^2 | y] - 1 is a ratio of convolutions of half-normal densities on a line.
    """
    found = diagnose(text)
    assert found.verdict == "easy" and found.staircase[0].directions.shape == (4, 4)
    assert_near(found, exact, 5e-3)
    # What lies outside the ball of points counts for 1e-5.
    assert abs(found.alpha_weak - exact) < found.uncertainty + 1e-5 * exact
    assert found.uncertainty < 5e-3 * exact


@pytest.mark.slow
def test_a_direction_that_does_not_matter_is_left_out():
    found = diagnose("z1*z3 + 0*z2")
    assert found.alpha_weak == pytest.approx(0.593751098, rel=1e-3)
    np.testing.assert_allclose(spanned(found.staircase[0].directions), np.diag([1.0, 0, 1]), atol=1e-6)


def test_directions_that_do_not_matter_are_left_out():
    one = diagnose("abs(z1 + z2)")
    assert one.alpha_weak == pytest.approx(0.5, abs=1e-6)
    np.testing.assert_allclose(spanned(one.staircase[0].directions), np.full((2, 2), 0.5), atol=1e-6)


@pytest.mark.slow
def test_noise_moves_the_threshold_and_not_the_class():
    clean, noisy = diagnose("z1**2+z2**2"), diagnose("z1**2+z2**2", 1.0)
    assert noisy.alpha_weak > clean.alpha_weak and noisy.noise == 1.0
    for field in ("verdict", "information_exponent", "leap_exponent", "generative_exponent", "hermite", "symmetries"):
        assert getattr(noisy, field) == getattr(clean, field)


@pytest.mark.slow
def test_an_invertible_change_of_the_label_changes_nothing():
    first, second = diagnose("z1*z2"), diagnose("exp(z1*z2/3)")
    np.testing.assert_allclose(second.label_spectrum[:5], first.label_spectrum[:5], atol=5e-3)
    assert second.alpha_weak == pytest.approx(first.alpha_weak, rel=1e-3)


@pytest.mark.parametrize(
    "text, name",
    [
        ("sign(z1*z2)", "z1 <-> z2"),
        ("z1**2+z2**2", "rotations of (z1, z2)"),
        pytest.param("(z1+z2)*(z1-z2)/2", "z1 -> -z1", marks=pytest.mark.slow),
        pytest.param("sign(z1*z2*z3)", "(z1, z2) -> (-z1, -z2)", marks=pytest.mark.slow),
    ],
)
def test_symmetries_by_name(text, name):
    assert name in diagnose(text).symmetries


def test_hermite_coefficients():
    found = hermite_of(Target("he4(z1)+sign(z1*z2*z3)"))
    assert found[1, 1, 1] == pytest.approx((2 / np.pi) ** 1.5, abs=1e-6)
    assert found[4, 0, 0] == pytest.approx(np.sqrt(24), abs=1e-6)
    assert [sum(k) for k in found] == sorted(sum(k) for k in found)
    assert found[2, 0, 0] == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", ["z1 + z1*z2", "sign(z1*z2*z3)", "z1**2+sign(z1*z2*z3)"])
def test_the_dictionary_is_strict_json(text):
    found = diagnose(text)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert float(plain["alpha_weak"]) == found.alpha_weak and plain["target"] == text
    assert len(plain["staircase"]) == len(found.staircase)
    assert np.shape(plain["staircase"][0]["directions"]) == found.staircase[0].directions.shape
    assert {"directions", "leap", "online_sgd", "best_csq"} == set(plain["csq_staircase"][0])
    assert plain["hermite"]["1,1" if found.staircase[0].directions.shape[0] == 2 else "1,1,1"] != 0


def test_report():
    lines = str(diagnose("z1**2+sign(z1*z2*z3)")).splitlines()
    assert lines[:2] == ["y = z1**2+sign(z1*z2*z3): easy", "  learned for n > 0.575166 d samples"]
    assert "    z1                               easy, above alpha = 0.575166" in lines
    assert "    z2, z3                           easy, above alpha = 2.4674" in lines
    assert any(line.startswith("  unchanged under") and "z2 <-> z3" in line for line in lines)


@pytest.mark.parametrize(
    "text, match",
    [
        ("z1 - z1 + 0*z2", "constant: there is nothing to learn"),
        ("1/z1 + z2", "infinite variance"),
        ("exp(z1**2)*z2", "its variance is infinite"),
        ("sqrt(z1) + z2", "not a number"),
        ("z1*z5", "z5"),
    ],
)
def test_bad_targets_are_refused(text, match):
    with pytest.raises(sv.TargetError, match=match):
        sv.diagnose(text)


def test_bad_noise_is_refused():
    for noise in (-1.0, np.nan):
        with pytest.raises(ValueError, match="noise = .* is not allowed"):
            sv.diagnose("z1*z2", noise=noise)
    with pytest.raises(ValueError, match="or at least"):
        sv.diagnose("z1*z2 + z1", noise=1e-13)


def test_four_projections_have_no_learning_curve():
    with pytest.raises(sv.NotSolvable, match="up to 3"):
        sv.predict(sv.MultiIndex("z1*z2*z3*z4"), sv.AMP(), alpha=1.0)
