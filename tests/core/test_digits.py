"""Numbers are written with the digits that their error leaves."""

from __future__ import annotations

import math

import pytest

from solvable.core.digits import rounded, with_error, with_uncertainty


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (2.4912, 0.031, "2.49(3)"),
        (0.12344, 0.0012, "0.1234(12)"),
        (1.4962, 0.0098, "1.496(10)"),
        (1.4962, 0.00951, "1.496(10)"),
        (1.4962, 0.0194, "1.496(19)"),
        (1.4962, 0.0196, "1.50(2)"),
        (1.0, 1.3, "1.0(13)"),
        (130.2, 20.4, "130(20)"),
        (127.2, 1.0, "127.2(10)"),
        (5432.0, 150.0, "5430(150)"),
        (-0.0342, 0.02, "-0.03(2)"),
        (0.5, 0.0, "0.5(0)"),
        (float("nan"), 0.1, "nan(0.1)"),
        (0.5, float("inf"), "0.5(inf)"),
    ],
)
def test_numbers_with_their_uncertainty(value, error, text):
    assert with_uncertainty(value, error) == text


@pytest.mark.parametrize(
    ("value", "error", "alone", "both"),
    [
        (3.68429, 0.1, "3.68", "3.68 +- 0.10"),
        (3.68429, 0.03, "3.68", "3.68 +- 0.03"),
        (3.68429, 0.6, "3.7", "3.7 +- 0.6"),
        (0.575166, 4e-7, "0.575166", "0.5751660 +- 4e-07"),
        (0.5, 1e-12, "0.5", "0.5"),
        (0.5, 0.0, "0.5", "0.5"),
        (math.inf, 0.0, "inf", "inf"),
        (0.25, math.nan, "0.25", "0.25"),
        (1234.5, 200.0, "1200", "1200 +- 200"),
        (0.0, 0.02, "0.00", "0.00 +- 0.02"),
    ],
)
def test_no_digit_is_shown_that_means_nothing(value, error, alone, both):
    assert rounded(value, error) == alone and with_error(value, error) == both
