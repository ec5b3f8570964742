"""The solver for overlaps that are r x r matrices: branches of fixed points, continued in the number of samples."""

from __future__ import annotations

import functools

import numpy as np

from solvable.core.errors import NotSolvable
from solvable.engine.outputs.posterior import PosteriorOutput
from solvable.engine.sides import BayesSignal
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers.base import FixedPoints, Solver, Thresholds
from solvable.engine.solvers.branches import Branches, Point
from solvable.engine.solvers.staircase import LearnedStep, find_thresholds, staircase

_GRIDS = 256
"""How many grids of gains are remembered with their fixed points."""


class Continuation(Solver):
    """Fixed points of an output of r projections and weights from N(0, I_r).

    A result depends on the grid of gains that it was asked for, along which points are continued, to the last bit; it
    does not depend on what was asked before.
    """

    def __init__(self, output: PosteriorOutput, signal: BayesSignal):
        if not (isinstance(signal, SeparableSignal) and signal.gaussian):
            raise NotSolvable(
                f"weights of {signal!r} are solved for one projection; with {output.projections} projections the "
                'weights are Gaussian: use prior="gaussian".'
            )
        self.output = output
        # The uninformed points of a grid serve its optimal ones too, and a grid asked for again.
        self._along = functools.lru_cache(maxsize=_GRIDS)(lambda grid: self.branches())

    def branches(self) -> Branches:
        """A computation that has found nothing yet, and shares what the labels say with all others."""
        return Branches(self.output)

    def uninformed(self, gain: np.ndarray) -> FixedPoints:
        """The fixed points that AMP reaches from an uninformed start."""
        grid = _ascending(gain)
        branches = self._along(grid)
        with branches.lock:
            return _collected([branches.uninformed_point(a) for a in grid], gain)

    def optimal(self, gain: np.ndarray) -> FixedPoints:
        """The fixed points of largest free entropy: what no learner can beat."""
        grid = _ascending(gain)
        branches = self._along(grid)
        with branches.lock:
            for a in grid:
                branches.uninformed_point(a)
            # From above: what is known at a larger gain bounds what can be known at a smaller one.
            return _collected([branches.optimal_point(a) for a in reversed(grid)], gain)

    @functools.cached_property
    def steps(self) -> tuple[LearnedStep, ...]:
        """Which directions are learned in which order, and from how many samples on."""
        steps = tuple(staircase(self.branches()))
        for step in steps:
            step.directions.flags.writeable = False  # shared by all who ask
        return steps

    @functools.cached_property
    def _thresholds(self) -> Thresholds:
        return find_thresholds(self.branches(), list(self.steps))

    def thresholds(self) -> Thresholds:
        """weak_recovery, algorithmic and information_theoretic; step_2, .. for the later steps of the staircase; and
        specialization, where projections that the target does not distinguish come apart."""
        known = {step.alpha: step.error for step in self.steps}
        errors = {name: known[value] for name, value in self._thresholds.items() if value in known}
        return Thresholds(self._thresholds, errors=errors)


def _ascending(gain: np.ndarray) -> tuple[float, ...]:
    return tuple(sorted({float(a) for a in np.ravel(gain)}))


def _collected(points: list[Point], gain: np.ndarray) -> FixedPoints:
    """The points in the order of the gains."""
    by_gain = {point.gain: point for point in points}
    chosen = [by_gain[float(a)] for a in np.ravel(gain)]

    def column(name: str) -> np.ndarray:
        return np.array([getattr(point, name) for point in chosen])

    overlap = column("M")
    return FixedPoints(
        overlap=overlap,
        variance=np.eye(overlap.shape[-1]) - overlap,
        field=column("Mhat"),
        free_entropy=column("free_entropy"),
        status=column("status").astype(int),
        uncertainty=column("uncertainty"),
        residual=column("residual"),
        iterations=column("evaluations"),
        errors=np.array([np.zeros_like(point.M) if point.errors is None else point.errors for point in chosen]),
    )
