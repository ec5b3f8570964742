"""Numbers written with the digits that mean something, after their error."""

from __future__ import annotations

import math

EXACT = 1e-9
"""A relative error below this leaves six digits, as many as are ever shown."""


def last_place(error: float) -> int:
    """The power of ten of the last digit worth writing: one digit of the error, two where it begins with 1."""
    place = math.floor(math.log10(error))
    if round(error / 10.0**place) == 10:  # 0.0098 is 0.010
        place += 1
    return place - 1 if round(error / 10.0 ** (place - 1)) < 20 else place


def rounded(value: float, error: float) -> str:
    """A value to the digits that its error leaves, six at most: 3.68429 with an error of 0.1 is 3.68."""
    if not math.isfinite(value) or not error > EXACT * abs(value) or math.isinf(error):
        return f"{value:.6g}"
    size = math.floor(math.log10(abs(value))) if value else 0
    place = max(last_place(error), size - 5)
    if place >= 0:
        return f"{round(value / 10**place) * 10**place}"
    return f"{value:.{-place}f}"


def with_error(value: float, error: float) -> str:
    """A value and its error: 3.68 +- 0.10; the value alone where it is exact, infinite or its error unknown."""
    if not math.isfinite(value) or not error > EXACT * max(abs(value), 1.0) or math.isinf(error):
        return f"{value:.6g}"
    place = last_place(error)
    if place >= 0:
        return f"{round(value / 10**place) * 10**place} +- {round(error / 10**place) * 10**place}"
    return f"{value:.{-place}f} +- {error:.{-place}f}" if place >= -5 else f"{value:.{-place}f} +- {error:.1g}"


def with_uncertainty(value: float, error: float) -> str:
    """A value with its error in parentheses, in units of the last digit: 2.49(3), 0.1234(12), 130(20)."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return f"{value:.6g}({error:g})"
    place = last_place(error)
    units = round(error / 10.0**place)
    if place >= 0:
        return f"{round(value / 10**place) * 10**place}({units * 10**place})"
    return f"{value:.{-place}f}({units})"


def says_number(text: str) -> bool:
    """Whether a text is a number, possibly infinite or not a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
