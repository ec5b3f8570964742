"""Where a study looks and how much it computes: the sample ratios, the dimension and the number of runs.

The ratios span the thresholds. What is affordable is measured, not assumed: a typed target of three projections can be
a thousand times slower than one of one projection, and a study has to end while its reader still waits.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Sequence

import numpy as np

from solvable.core.learners import AMP, BayesOptimal
from solvable.core.model import Model
from solvable.lab.grid.results import run_once
from solvable.verbs.predict import predict

BEYOND = 1.6
"""A study looks this many times farther than the last threshold."""

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

    seconds: float = 90.0
    theory_seconds: float = 25.0
    run_seconds: float = 60.0
    sizes: tuple[tuple[int, int], ...] = ((500, 8), (500, 6), (500, 4), (500, 3), (300, 3), (200, 3))
    points: int = 7

    def after(self, elapsed: float) -> Effort:
        """What can still be done after some seconds; a little always can, so that every study has runs to show."""
        left = max(self.seconds - elapsed, self.seconds / 5)
        theory, runs = min(self.theory_seconds, left / 3), min(self.run_seconds, left)
        return dataclasses.replace(self, seconds=left, theory_seconds=theory, run_seconds=runs)


QUICK = Effort(seconds=30.0, theory_seconds=5.0, run_seconds=8.0, sizes=((300, 4), (300, 3), (200, 3)), points=5)


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


def exact_grid(top: float, marks: Iterable[float], runs: np.ndarray, affordable: int) -> np.ndarray:
    """Sample ratios from 0 to `top` for the theory: those of the runs, and as many others as are affordable.

    They are spread evenly, with a pair around each threshold, where curves may jump.
    """
    more = min(affordable - len(runs), _FINEST)
    if more < 2:
        return np.unique([0.0, *runs])
    around = [mark * (1 + side) for mark in marks if 0 < mark < top for side in (-2e-3, 2e-3)]
    return np.unique(np.concatenate([np.linspace(0.0, top, more), runs, around]))


def simulated_grid(top: float, marks: Iterable[float], points: int) -> np.ndarray:
    """A handful of sample ratios for the runs, moved away from thresholds, where a finite dimension blurs all."""
    marks = np.array([mark for mark in marks if 0 < mark < top])
    gap = 0.4 * top / points
    chosen = []
    for alpha in top * np.arange(1, points + 1) / (points + 0.5):
        near = marks[np.abs(marks - alpha) < gap]
        if near.size:
            sides = [mark + side * gap for mark in near for side in (-1, 1)]
            free = [x for x in sides if np.min(np.abs(marks - x)) >= 0.99 * gap and 0 < x <= top]
            alpha = min(free, key=lambda x: abs(x - alpha)) if free else alpha
        chosen.append(float(f"{alpha:.3g}"))
    return np.unique(chosen)


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
