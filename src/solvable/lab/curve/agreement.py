"""Theory against the runs of a curve, point by point, with the rule of `lab/verdict.py`."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from solvable.core.digits import rounded, with_error
from solvable.core.status import Status
from solvable.lab.curve.entries import ENTRY, entries_of
from solvable.lab.verdict import (
    AGREES,
    DIFFERS,
    FINITE_SIZE,
    SMALL,
    TOO_FEW,
    WRONG,
    Judgement,
    Reading,
    finite_size,
    judge,
    read,
)

if TYPE_CHECKING:
    from solvable.lab.curve import Curve

TOLERANCE = 1e-6
"""How exactly an algorithm that has no `tolerance` solves its own problem, as a part of the metric's scale."""
NOTHING = 1e-6
"""Where theory stays below this all along, it says nothing of a metric's scale."""
SQUARES = ("squared_overlap",)
COSINES = ("overlap", "cosine")


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Whether theory and simulation agree in a metric, and the point that decides it.

    `word` is "agrees" if they do at every point, "differs" if they do not at one, and otherwise "too few runs to say",
    for a `reason`; `words` counts the points by their word. The decisive point is the one that differs most or, if none
    does, where the runs leave most room. `metric` is the scalar compared there; of a matrix metric, the diagonal entry:
    `overlap_2` for the second of `overlap`. `at` is its place in the grid, with the dimension d if the runs have
    several. `simulation` is the mean of its `runs` that settled with their `standard_error` (of runs in two groups, the
    median), `aside` how many did not settle, and `every` the mean of all. `resolution` is what cannot be resolved there
    and `deviation` the distance from theory beyond it, in standard errors. `within` is the largest relative error of
    the theory that the runs allow at any point, and `total` and `total_aside` count the runs of all points.
    """

    metric: str
    word: str
    reason: str
    words: dict[str, int]
    deviation: float
    within: float
    learner: str
    at: dict[str, float | str]
    theory: float
    simulation: float
    standard_error: float
    every: float
    resolution: float
    points: int
    runs: int
    aside: int
    total: int
    total_aside: int

    @property
    def place(self) -> str:
        """The learner and the place of the decisive point."""
        places = (f"{name} = {value if isinstance(value, str) else f'{value:g}'}" for name, value in self.at.items())
        return ", ".join([self.learner, *places])

    @property
    def numbers(self) -> str:
        """The numbers of the decisive point."""
        theory = rounded(self.theory, self.standard_error / 10 if self.standard_error > 0 else 0.0)
        used = f"{self.runs} runs" if not self.aside else f"{self.runs} of {self.runs + self.aside} runs"
        beside = f"; {self.aside} did not settle, {self.every:.3g} with them" if self.aside else ""
        return f"theory {theory}, simulation {with_error(self.simulation, self.standard_error)} ({used}{beside})"

    @property
    def settled(self) -> str:
        """How many runs of all points the word rests on, if some were set aside; otherwise nothing."""
        if not self.total_aside:
            return ""
        return f"{self.total_aside} of {self.total} runs did not settle and are set aside"

    def __str__(self) -> str:
        points = f"{self.points} point{'' if self.points == 1 else 's'}"
        where = f"{self.place}: {self.numbers}"
        if self.word == AGREES:
            said = f"agrees with theory at {points}, within {100 * self.within:.1f} %; least surely at {where}"
        elif self.word == DIFFERS:
            said = f"differs from theory at {self.words[DIFFERS]} of {points}, most at {where}"
        else:
            agrees, few = self.words[AGREES], self.words[TOO_FEW]
            said = f"{TOO_FEW} at {few} of {points}"
            if agrees:
                said = f"agrees with theory at {agrees} of {points} and differs at none; {TOO_FEW} at {few}"
            said = f"{said}, such as {where}: {self.reason}"
        return f"{self.metric}: {'; '.join(filter(None, [said, self.settled]))}"


@dataclasses.dataclass(frozen=True)
class _Point:
    """One comparison, and how much of the margin the runs leave open."""

    place: tuple[int, ...]
    theory: float
    reading: Reading
    resolution: float
    margin: float
    found: Judgement

    @property
    def room(self) -> float:
        """The largest error of the theory that the runs allow, in margins."""
        farthest = max(self.reading.high - self.theory, self.theory - self.reading.low)
        return (farthest + self.resolution) / self.margin

    @property
    def deviation(self) -> float:
        beyond = max(0.0, abs(self.theory - self.reading.value) - self.resolution)
        error = self.reading.error
        return 0.0 if beyond == 0 else math.inf if not error > 1e-12 * abs(self.reading.value) else beyond / error

    @property
    def rank(self) -> tuple[int, float]:
        """Decisive points come last."""
        order = (AGREES, TOO_FEW, DIFFERS).index(self.found.word)
        return order, self.deviation if self.found.word == DIFFERS else self.room


def compared(curve: Curve, metric: str, size: float | None) -> Agreement:
    """Compare the theory of a metric with the runs at every point (see `Curve.agreement`)."""
    nothing = f"nothing to compare for {metric}: no point has both a theory and at least two runs."
    if f"{metric}_theory" not in curve.dataset or f"{metric}_simulation" not in curve.dataset:
        raise ValueError(nothing)
    theory = curve.theory(metric).where(curve.dataset["status"] == Status.CONVERGED)
    uncertainty = curve.dataset.get(f"{metric}_uncertainty", xr.zeros_like(theory))
    parts = theory, uncertainty, curve.simulation(metric)
    theory, uncertainty, runs = (entries_of(part) if curve.has_entries(metric) else part for part in parts)
    scale = natural_scale(metric, theory.values)
    theory, uncertainty, runs, settled = xr.broadcast(theory, uncertainty, runs, curve.settled)
    outer = [dim for dim in theory.dims if dim != "seed"]
    theory, uncertainty = (part.isel(seed=0).transpose(*outer) for part in (theory, uncertainty))
    values, kept = (part.transpose(*outer, "seed").values for part in (runs, settled))
    usable = np.argwhere(theory.notnull().values & (np.isfinite(values).sum(axis=-1) >= 2))
    tolerances = _tolerances(curve)
    points = []
    for place in map(tuple, usable.tolist()):
        expected, reading = float(theory.values[place]), read(values[place], kept[place], len(usable))
        tolerance = tolerances[place[outer.index("learner")]]
        d = curve.sizes[place[outer.index("d")] if "d" in outer else 0] if curve.sizes else None
        numerical = scale * tolerance + float(np.nan_to_num(uncertainty.values[place]))
        shift, margin = shift_and_margin(metric, expected, scale, d, size)
        found = judge(expected, reading, shift + numerical, margin, shift)
        points.append(_Point(place, expected, reading, shift + numerical, margin, found))
    if not points:
        raise ValueError(nothing)
    worst = max(points, key=lambda point: point.rank)
    place = theory[worst.place]
    words = Counter(point.found.word for point in points)
    return Agreement(
        metric=f"{metric}_{place[ENTRY].item()}" if ENTRY in theory.dims else metric,
        word=worst.found.word,
        reason=worst.found.reason,
        words={word: words[word] for word in (AGREES, DIFFERS, TOO_FEW)},
        deviation=worst.deviation,
        within=WRONG * max(point.room for point in points),
        learner=str(place["learner"].values),
        at={name: place[name].item() for name in (*curve.axes, "d") if name in theory.dims},
        theory=worst.theory,
        simulation=worst.reading.value,
        standard_error=worst.reading.error,
        every=worst.reading.every,
        resolution=worst.resolution,
        points=len(points),
        runs=worst.reading.runs,
        aside=worst.reading.aside,
        **_counted(curve, metric),
    )


def natural_scale(metric: str, theory: np.ndarray) -> float:
    """What a metric is compared with where it is near zero: 1 for overlaps and cosines, which reach it.

    For others it is the largest value of the theory, but no more than 1, so that a peak does not hide the rest.
    """
    if metric in (*COSINES, *SQUARES):
        return 1.0
    largest = float(np.nanmax(np.abs(theory), initial=0.0))
    return min(largest, 1.0) if largest > NOTHING else 1.0


def shift_and_margin(
    metric: str, theory: float, scale: float, d: int | None, size: float | None
) -> tuple[float, float]:
    """How far a finite dimension may shift a metric, and the margin of a theory that is wrong by 10 %.

    The shift is the part `size` of the value, that of `verdict.finite_size` unless told, and the margin 10 % of the
    value. Near zero both are taken of the metric's scale. Zero is what a direction shows that is not learned: a cosine
    up to 1/sqrt(d) with the truth, its square a few 1/d, and for errors a thousandth of the scale.
    """
    size = finite_size(d) if size is None else size
    zero = SMALL
    if d and metric in (*COSINES, *SQUARES):
        zero = FINITE_SIZE / d if metric in SQUARES else 1 / math.sqrt(d)
    if abs(theory) <= zero * scale:
        return zero * scale, WRONG * scale
    return size * abs(theory), WRONG * abs(theory)


def _tolerances(curve: Curve) -> list[float]:
    """How exactly each learner's algorithm solves its own problem."""
    given = (learner.get("tolerance") for learner in json.loads(curve.dataset.attrs["learners"]))
    return [float(found) if isinstance(found, (int, float)) else TOLERANCE for found in given]


def _counted(curve: Curve, metric: str) -> dict[str, int]:
    """How many runs there are where theory converged, and how many of them did not settle."""
    runs = curve.simulation(metric)
    known = runs.notnull()
    known = known.any([dim for dim in known.dims if dim not in curve.settled.dims])
    known = known & (curve.dataset["status"] == Status.CONVERGED)
    return {"total": int(known.sum()), "total_aside": int((known & ~curve.settled).sum())}
