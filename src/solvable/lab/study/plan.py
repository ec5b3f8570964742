"""Where a study looks and how much it computes: the sample ratios, the dimension and the number of runs.

The ratios span the thresholds. What is affordable is measured, not assumed: a typed target of three projections can be
a thousand times slower than one of one projection, and a study has to end while its reader still waits.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from solvable.core.learners import AMP, BayesOptimal
from solvable.core.model import Model
from solvable.core.status import Status
from solvable.lab.curve import Curve
from solvable.lab.curve.entries import ENTRY, entries_of
from solvable.lab.grid.results import run_once
from solvable.lab.verdict import SMALL
from solvable.verbs.predict import predict

BEYOND = 1.6
"""A study looks this many times farther than the last threshold."""

AWAY = 0.25
"""Runs are made at least this far from a threshold of AMP, relatively: nearer to it a finite dimension blurs all."""

_INVISIBLE = ("information_theoretic",)
_CANDIDATES = 12
_NEARBY = 0.1
_STEADY = 0.4
_SPANS = (1.0, 1.5, 2.25)
_LEARNED = 0.5
_NO_THRESHOLD = (1.0, 2.0, 4.0, 8.0)
_FINEST = 160
_AT_ONCE = 0.2
_PATIENCE = 3.0
_TRIAL = 100


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much time a study may take, and the dimensions and numbers of runs it chooses from, best first.

    Theory and runs are planned to take `theory_seconds` and `run_seconds`, less if the diagnosis was slow: a run that
    is not begun within `seconds` of the study's beginning is left out.
    """

    seconds: float = 100.0
    theory_seconds: float = 20.0
    run_seconds: float = 75.0
    sizes: tuple[tuple[int, int], ...] = ((500, 32), (500, 16), (300, 16), (200, 16), (200, 8))
    points: int = 5

    def after(self, elapsed: float) -> Effort:
        """What can still be done after some seconds; a little always can, so that every study has runs to show."""
        left = max(self.seconds - elapsed, self.seconds / 5)
        theory, runs = min(self.theory_seconds, left / 3), min(self.run_seconds, left)
        return dataclasses.replace(self, seconds=left, theory_seconds=theory, run_seconds=runs)


QUICK = Effort(seconds=30.0, theory_seconds=5.0, run_seconds=8.0, sizes=((300, 16), (200, 16), (200, 8)), points=3)


def last_alpha(model: Model, marks: Iterable[float]) -> float:
    """The largest sample ratio to look at: well beyond the last threshold, and farther if little is learned there."""
    finite = [mark for mark in marks if 0 < mark < math.inf]
    candidates = [BEYOND * max(finite) * span for span in _SPANS] if finite else list(_NO_THRESHOLD)
    nothing = _error_left(model, 0.0)
    for alpha in candidates:
        start = time.perf_counter()
        if _error_left(model, alpha) < _LEARNED * nothing or time.perf_counter() - start > _PATIENCE:
            return alpha
    # AMP learns nothing however many samples it gets (a hard target), or so little that the first span shows it.
    return candidates[0] if finite else candidates[2]


def _error_left(model: Model, alpha: float) -> float:
    return float(predict(model, AMP(), throw=False, alpha=alpha)["estimation_error"])


@dataclasses.dataclass(frozen=True)
class Costs:
    """The seconds that an exact value takes, for AMP and for Bayes-optimal learning."""

    amp: float
    bayes: float

    @classmethod
    def of(cls, model: Model, top: float) -> Costs:
        """Measured at typical sample ratios; what is slow the first time, perhaps to compile, is tried again."""
        found = []
        for learner in (AMP(), BayesOptimal()):
            seconds = math.inf
            for part in (0.61, 0.83):
                if seconds > _AT_ONCE:
                    start = time.perf_counter()
                    predict(model, learner, throw=False, alpha=part * top)
                    seconds = time.perf_counter() - start
            found.append(max(seconds, 1e-4))
        return cls(*found)

    @property
    def thresholds(self) -> float:
        """About how long the search for the thresholds takes, which solves for dozens of fixed points."""
        return 20 * (self.amp + self.bayes)


def exact_grid(top: float, marks: Iterable[float], runs: Iterable[float], affordable: int) -> np.ndarray:
    """Sample ratios from 0 to `top` for the theory: those of the runs, and as many others as are affordable.

    They are spread evenly, with a pair close to each threshold, where curves may jump.
    """
    runs = np.asarray(list(runs))
    more = min(affordable - len(runs), _FINEST)
    if more < 2:
        return np.unique([0.0, *runs])
    around = [mark * (1 + side) for mark in marks if 0 < mark < top for side in (-2e-3, 2e-3)]
    return np.unique(np.concatenate([np.linspace(0.0, top, more), runs, around]))


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
    each = max(1, points // len(stretches))
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
    """Some of the candidates where theory changes little, or if it does nowhere, the last of those where least."""
    changes = np.array([0.0 if change is None else change(alpha) for alpha in candidates])
    steady = candidates[changes < _STEADY]
    if not len(steady):
        return candidates[changes <= np.min(changes) + 1e-3][-1:]
    if count > 1:
        return steady[np.linspace(0, len(steady) - 1, count).astype(int)]
    flat = candidates[changes <= np.min(changes) + 1e-3]
    return flat[len(flat) // 2 :][:1]


def nearby_change(exact: Curve) -> Callable[[float], float]:
    """By how much theory's overlaps change, relative to the larger, if alpha changes by 10 %: about how runs scatter."""
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


def trial_time(model: Model, alphas: Sequence[float]) -> float:
    """The seconds of computing that a small run takes, a mean over some alphas, once everything is compiled."""
    run_once(model, AMP(), _TRIAL, 0, {"alpha": alphas[0]})
    start = time.thread_time()  # not the time by the clock: the choice shall not depend on what else is running
    for alpha in alphas:
        run_once(model, AMP(), _TRIAL, 1, {"alpha": alpha})
    return (time.thread_time() - start) / len(alphas)


def affordable_size(seconds: float, points: int, effort: Effort, workers: int) -> tuple[int, int]:
    """The dimension and the number of runs at each point that fit the time, if a small run takes `seconds`."""
    for d, seeds in effort.sizes:
        # The channel takes most of the time; it grows with the number of samples, some of the rest does not.
        if 0.7 * seconds * d / _TRIAL * seeds * points / workers <= effort.run_seconds:
            return d, seeds
    return effort.sizes[-1]
