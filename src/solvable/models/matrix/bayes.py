"""Bayes-optimal learning and message passing of models that are two sides and an operator."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.learners import AMP, BayesOptimal
from solvable.core.model import Model
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.engine.amp import AMPReport, amp
from solvable.engine.operators import Operator
from solvable.engine.sides import BayesOutput, BayesSignal, OutputDenoiser, SignalDenoiser
from solvable.engine.solvers.base import FixedPoints, Solver
from solvable.engine.solvers.bracket import Bracket


@dataclasses.dataclass(frozen=True)
class Instance:
    """One data set as message passing sees it."""

    operator: Operator
    output: OutputDenoiser
    signal: SignalDenoiser
    start: Callable[[np.random.Generator], np.ndarray]
    estimate: Callable[[np.ndarray], Any]
    details: Callable[[AMPReport], dict[str, Any]]


class TwoSided(Model):
    """The base of models that are two sides and an operator."""

    @abc.abstractmethod
    def output(self) -> BayesOutput: ...

    @abc.abstractmethod
    def signal(self) -> BayesSignal: ...

    @abc.abstractmethod
    def instance(self, data: Any) -> Instance: ...

    @abc.abstractmethod
    def gain(self, **axes: Any) -> Any: ...

    @abc.abstractmethod
    def prediction(self, points: FixedPoints) -> Prediction: ...

    @abc.abstractmethod
    def scores(self, estimate: Any, data: Any, rng: np.random.Generator) -> dict[str, Any]: ...

    def solver(self) -> Solver:
        return Bracket(self.output(), self.signal())


@theory(TwoSided, BayesOptimal)
@theory(TwoSided, AMP)
def bayes_optimal(model: TwoSided, learner: BayesOptimal | AMP, **axes: np.ndarray) -> Prediction:
    """The error of the posterior mean; message passing has the same, since the fixed point is unique."""
    return model.prediction(model.solver().optimal(model.gain(**axes)))


@simulation(TwoSided, AMP)
def run_amp(model: TwoSided, learner: AMP, data: Any, rng: np.random.Generator) -> Outcome:
    """Approximate message passing; the truth is used for scoring only."""
    if learner.start != "noise":
        raise bad_parameter("start", learner.start, f"'noise' for {type(model).__name__}")
    instance = model.instance(data)
    report = amp(
        instance.operator,
        instance.output,
        instance.signal,
        instance.start(rng),
        rng,
        damping=float(learner.damping),
        max_steps=int(learner.max_steps),
        tolerance=float(learner.tolerance),
    )
    estimate = instance.estimate(report.estimate)
    details = {
        "iterations": report.iterations,
        "status": report.status,
        "residual_ratios": report.residual_ratios,
        "derivative_ratios": report.derivative_ratios,
        "consistent": report.consistent,
        "log_likelihood": report.log_likelihood,
        "free_entropy": report.free_entropy,
    }
    metrics = model.scores(estimate, data, rng)
    return Outcome(metrics, estimate, report.converged, details=details | instance.details(report))
