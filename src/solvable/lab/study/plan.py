"""How much a study computes: the range and the number of its sample ratios, the dimension and the number of runs.

A typed target of three projections can be a thousand times slower than one of one
projection, and a study has to end while its reader still waits. So work is counted in the seconds that it takes an
ordinary core, known for each kind of channel: no clock is read, and a busy machine makes the same study, later.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from solvable.channels import ScalarChannel
from solvable.channels.closed import Staircase
from solvable.channels.closed.discrete import DiscreteChannel
from solvable.channels.single_direction import SingleDirection
from solvable.core.learners import AMP
from solvable.core.model import Model
from solvable.models.index import MultiIndex
from solvable.verbs.predict import predict

BEYOND = 2.0
"""A study looks this many times farther than the last threshold."""

_SPANS = (1.0, 1.5, 2.25)
_LEARNED = 0.5
_NO_THRESHOLD = (1.0, 2.0, 4.0, 8.0)
_FINEST = 160
_PATIENCE = 5.0
_SMALL = 100
"""The dimension of a small run."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much a study may compute, and the dimensions and numbers of runs it chooses from, best first.

    `theory_seconds` and `run_seconds` are those of an ordinary core, by which work is counted.
    """

    theory_seconds: float = 25.0
    run_seconds: float = 75.0
    sizes: tuple[tuple[int, int], ...] = ((500, 32), (500, 16), (300, 16), (200, 16), (200, 8))
    points: int = 5


QUICK = Effort(theory_seconds=5.0, run_seconds=16.0, sizes=((300, 16), (200, 16), (200, 8)), points=3)


@dataclasses.dataclass(frozen=True)
class Costs:
    """The seconds of an ordinary core for an exact value of AMP, one of Bayes-optimal learning, and a small run."""

    amp: float
    bayes: float
    run: float

    @classmethod
    def of(cls, model: MultiIndex) -> Costs:
        """Typical of the kind of channel: one projection, sums over regions, or level sets in r dimensions."""
        channel = model.channel
        if isinstance(channel, (ScalarChannel, SingleDirection)):
            return cls(0.01, 0.01, 0.3)
        if isinstance(channel, (DiscreteChannel, Staircase)):
            return cls(0.1, 0.5, 1.0)
        return cls(2.0, 5.0, 2.0) if channel.projections == 2 else cls(10.0, 50.0, 3.0)

    @property
    def thresholds(self) -> float:
        """About how long the search for the thresholds takes, which solves for dozens of fixed points."""
        return 20 * (self.amp + self.bayes)


def last_alpha(model: Model, marks: Iterable[float], costs: Costs) -> float:
    """The largest sample ratio to look at: well beyond the last threshold, and farther if little is learned there.

    Where an exact value takes long it is not looked how much is learned.
    """
    finite = [mark for mark in marks if 0 < mark < math.inf]
    candidates = [BEYOND * max(finite) * span for span in _SPANS] if finite else list(_NO_THRESHOLD)
    if costs.amp > _PATIENCE:
        return candidates[0]
    nothing = _error_left(model, 0.0)
    for alpha in candidates:
        if _error_left(model, alpha) < _LEARNED * nothing:
            return alpha
    # AMP learns nothing however many samples it gets (a hard target), or so little that the first span shows it.
    return candidates[0] if finite else candidates[2]


def _error_left(model: Model, alpha: float) -> float:
    return float(predict(model, AMP(), throw=False, alpha=alpha)["estimation_error"])


def exact_grid(top: float, marks: Iterable[float], runs: np.ndarray, affordable: int) -> np.ndarray:
    """Sample ratios from 0 to `top` for the theory: those of the runs, and as many others as are affordable.

    They are spread evenly, with a pair close to each threshold, where curves may jump.
    """
    more = min(affordable - len(runs), _FINEST)
    if more < 2:
        return np.unique([0.0, *runs])
    around = [mark * (1 + side) for mark in marks if 0 < mark < top for side in (-2e-3, 2e-3)]
    return np.unique(np.concatenate([np.linspace(0.0, top, more), runs, around]))


def affordable_size(costs: Costs, points: int, effort: Effort, workers: int) -> tuple[int, int]:
    """The dimension and the number of runs at each point whose work fits the effort."""
    for d, seeds in effort.sizes:
        # The channel takes most of the time; it grows with the number of samples, some of the rest does not.
        if 0.7 * costs.run * d / _SMALL * seeds * points / workers <= effort.run_seconds:
            return d, seeds
    return effort.sizes[-1]
