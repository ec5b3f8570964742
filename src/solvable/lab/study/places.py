"""Where a study makes its runs: away from the thresholds of AMP, where they say something about theory.

A finite dimension blurs every transition, and where theory is steep runs scatter: there it takes hundreds of them to
test it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from solvable.core.status import Status
from solvable.lab.curve import Curve
from solvable.lab.curve.entries import ENTRY, entries_of
from solvable.lab.verdict import SMALL

AWAY = 0.25
"""Runs are made this far from a threshold of AMP, relatively."""

_INVISIBLE = ("information_theoretic",)
_CANDIDATES = 12
_NEARBY = 0.1
_STEADY = 0.4


def visible(thresholds: Mapping[str, float]) -> list[float]:
    """The thresholds that a run of AMP passes, in order; the information-theoretic one is not among them."""
    return sorted({mark for name, mark in thresholds.items() if name not in _INVISIBLE and 0 < mark < math.inf})


def simulated_grid(
    top: float, marks: Iterable[float], points: int, change: Callable[[float], float] | None = None
) -> np.ndarray:
    """A few sample ratios for the runs, away from every threshold, as many in each stretch between two of them.

    `change(alpha)` says by how much theory changes nearby, and thus how much runs scatter. In a stretch ratios are
    taken evenly among those where theory changes little; if it does nowhere, the one where it changes least.
    """
    stretches = _stretches(top, sorted(mark for mark in marks if 0 < mark < math.inf))
    each = max(1, round(points / len(stretches)))
    chosen = [
        alpha for low, high in stretches for alpha in _steadiest(np.linspace(low, high, _CANDIDATES), each, change)
    ]
    return np.unique([float(f"{alpha:.3g}") for alpha in chosen])


def _stretches(top: float, marks: list[float]) -> list[tuple[float, float]]:
    """From 0 to `top` without what is near a threshold; all of it if nothing is left."""
    lows = [0.0, *(mark * (1 + AWAY) for mark in marks)]
    highs = [*(mark * (1 - AWAY) for mark in marks), math.inf]
    found = [(max(low, 0.1 * high), high) for low, high in zip(lows, np.minimum(highs, top), strict=True) if low < high]
    return found or [(0.1 * top, top)]


def _steadiest(candidates: np.ndarray, count: int, change: Callable[[float], float] | None) -> np.ndarray:
    """Some of the candidates where theory changes little, spread evenly; if it does nowhere, the one where least."""
    changes = np.array([0.0 if change is None else change(alpha) for alpha in candidates])
    steady = candidates[changes < _STEADY]
    if not len(steady):
        return candidates[changes <= np.min(changes) + 1e-3][-1:]
    if count == 1:
        steady = candidates[changes <= np.min(changes) + 1e-3]
    return steady[((np.arange(count) + 0.5) / count * len(steady)).astype(int)]


def nearby_change(exact: Curve) -> Callable[[float], float]:
    """By how much AMP's overlaps change in theory, relatively, if alpha does by 10 % to either side."""
    overlap = exact.theory("overlap").where(exact.dataset["status"] == Status.CONVERGED).sel(learner="amp")
    entries = entries_of(overlap).transpose("alpha", ENTRY).values
    known = np.isfinite(entries).all(axis=1)
    alpha, entries = exact.dataset["alpha"].values[known], entries[known]

    def change(at: float) -> float:
        ends = np.array(
            [[np.interp(x, alpha, entry) for x in (at * (1 - _NEARBY), at * (1 + _NEARBY))] for entry in entries.T]
        )
        largest = np.max(np.abs(ends), axis=1)
        return float(np.max(np.ptp(ends, axis=1) / np.maximum(largest, SMALL)))

    return change


def distance(ratios: Iterable[float], marks: Iterable[float]) -> float:
    """How far the ratios are from the nearest threshold, relative to it; infinite without thresholds."""
    marks = list(marks)
    return min((abs(alpha / mark - 1) for alpha in ratios for mark in marks), default=math.inf)
