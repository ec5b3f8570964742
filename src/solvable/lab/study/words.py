"""Directions, sample ratios and exponents in words."""

from __future__ import annotations

import math

import numpy as np

_TIDY = 1e-6


def directions_in_words(directions: np.ndarray) -> str:
    """The span of orthonormal columns: `z2, z3` where it is a span of coordinates, else a combination for each."""
    directions = np.asarray(directions, dtype=np.float64)
    count = len(directions)
    names = ["z"] if count == 1 else [f"z{i + 1}" for i in range(count)]
    projector = directions @ directions.T
    on_axis = np.round(np.diag(projector))
    if np.allclose(projector, np.diag(on_axis), atol=_TIDY):
        return ", ".join(name for name, kept in zip(names, on_axis, strict=True) if kept)
    return ", ".join(_combination(column, names) for column in directions.T)


def _combination(column: np.ndarray, names: list[str]) -> str:
    """`(z1 - z2)/sqrt(2)` where all entries have one size, else the entries to three digits."""
    used = np.abs(column) > _TIDY
    sign = np.sign(column[used][0])
    sizes, kept = sign * column[used], [name for name, use in zip(names, used, strict=True) if use]
    if np.allclose(np.abs(sizes), np.abs(sizes[0]), atol=_TIDY):
        terms = "".join(f" {'+' if size > 0 else '-'} {name}" for size, name in zip(sizes, kept, strict=True))
        return f"({terms.removeprefix(' + ')})/sqrt({len(kept)})" if len(kept) > 1 else kept[0]
    terms = [f" {'+' if size > 0 else '-'} {abs(size):.3g} {name}" for size, name in zip(sizes, kept, strict=True)]
    return "".join(terms).removeprefix(" + ")


def ratio_in_words(alpha: float) -> str:
    """A threshold in alpha = n/d."""
    if alpha == 0:
        return "any alpha > 0"
    return f"{alpha:.6g}" if math.isfinite(alpha) else "no alpha"


def exponent_in_words(generative_exponent: float) -> str:
    """The samples that a hard target needs."""
    return f"d^{generative_exponent / 2:g}" if math.isfinite(generative_exponent) else "a high power of d"
