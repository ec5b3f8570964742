"""Sample ratios, their errors and exponents in words."""

from __future__ import annotations

import math


def ratio_in_words(alpha: float) -> str:
    """A threshold in alpha = n/d."""
    if alpha == 0:
        return "any alpha > 0"
    return f"{alpha:.6g}" if math.isfinite(alpha) else "no alpha"


def error_in_words(error: float) -> str:
    """A numerical error estimate, or nothing where the value is exact."""
    return f"{error:.0e}" if error > 0 else ""


def exponent_in_words(generative_exponent: float) -> str:
    """The samples that a hard target needs."""
    return f"d^{generative_exponent / 2:g}" if math.isfinite(generative_exponent) else "a high power of d"
