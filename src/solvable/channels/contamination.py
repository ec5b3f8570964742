r"""Contaminated labels: a share of the samples follows another law.

With probability $p_c$ a label is $y = \beta_c\, g(z) + \sqrt{\Delta_c}\,\xi$. The clean samples have slope
$\beta = 1$ and the model's own noise; each `Contamination` is one more component of the mixture.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from solvable.core.checks import is_traced, real_number
from solvable.core.errors import bad_parameter

Component = tuple[float, float, float]
"""Probability, slope and noise of one component of the mixture."""

_TAKES = "None, a Contamination, a list of them, or text 'fraction:slope:noise' such as '0.3:0:5', joined with '+'"
_JOINED = re.compile(r"(?<![eE])\+")
_ROUNDING = 1e-12


def _fraction(value: Any) -> Any:
    return real_number("fraction", value, "a probability: a number from 0 to 1", lambda x: 0 <= x <= 1)


def _slope(value: Any) -> Any:
    return real_number("slope", value, "a finite number")


def _noise(value: Any) -> Any:
    return real_number("noise", value, "a variance: a finite number, zero or positive", lambda x: x >= 0)


class Contamination(eqx.Module):
    """A share `fraction` of the labels is y = slope g(z) + sqrt(noise) xi in place of the model's own law.

    Slope 0 makes them pure noise; slope -1 without noise flips the labels of a sign. Which samples are contaminated is
    drawn independently for each, and hidden from the learner.
    """

    fraction: float = eqx.field(converter=_fraction)
    slope: float = eqx.field(default=0.0, converter=_slope)
    noise: float = eqx.field(default=0.0, converter=_noise)

    def __str__(self) -> str:
        return f"{self.fraction!r}:{self.slope!r}:{self.noise!r}"


def as_contamination(value: Any) -> tuple[Contamination, ...]:
    """A tuple of contaminations from None, one, several, or text such as `"0.3:0:5"` or `"0.2:0:5+0.1:-1:0"`.

    The text `"none"` is no contamination. Fractions that add up to more than one are refused.
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none")):
        return ()
    if isinstance(value, Contamination):
        found = (value,)
    elif isinstance(value, str):
        found = tuple(_parsed(part, value) for part in _JOINED.split(value))
    elif isinstance(value, (list, tuple)) and all(isinstance(part, Contamination) for part in value):
        found = tuple(value)
    else:
        raise bad_parameter("contamination", value, _TAKES)
    total = sum(part.fraction for part in found)
    if not is_traced(total) and total > 1 + _ROUNDING:
        raise bad_parameter("contamination", value, "such that the fractions add up to at most 1")
    return found


def components_of(noise: float, contamination: Sequence[Contamination]) -> tuple[Component, ...]:
    """Every (probability, slope, noise): the clean labels first, with what the fractions leave, then the others."""
    left = 1.0 - sum(part.fraction for part in contamination)
    clean = left if is_traced(left) else max(left, 0.0)
    return ((clean, 1.0, noise), *((part.fraction, part.slope, part.noise) for part in contamination))


def merged(components: Sequence[Component]) -> tuple[Component, ...]:
    """The components of positive probability, those of one law joined: what the labels' law depends on."""
    share: dict[tuple[float, float], float] = {}
    for p, slope, noise in components:
        if p > 0:
            law = float(slope) + 0.0, float(noise)
            share[law] = share.get(law, 0.0) + float(p)
    total = sum(share.values())
    return tuple((p / total, *law) for law, p in share.items())


def contaminate(clean: np.ndarray, components: Sequence[Component], rng: np.random.Generator) -> np.ndarray:
    """Labels drawn from the mixture, each independently, from the noiseless label `clean` = g(z)."""
    share, slope, noise = (np.array(column, float) for column in zip(*components, strict=True))
    drawn = rng.choice(len(share), size=clean.shape, p=share / share.sum())
    return slope[drawn] * clean + np.sqrt(noise[drawn]) * rng.standard_normal(clean.shape)


def _parsed(part: str, text: str) -> Contamination:
    try:
        fraction, slope, noise = (float(number) for number in part.split(":"))
    except ValueError:
        raise bad_parameter("contamination", text, _TAKES) from None
    return Contamination(fraction, slope, noise)
