r"""A model that is two sides and an operator: Bayes-optimal learning, message passing and thresholds come with it.

The model says what its labels are (`output_side`), what its unknowns are (`signal_side`), how many samples there are
for each unknown (`gain`), and how a data set looks to message passing (`instance`). State evolution of the two sides is
then solved by whichever solver suits them, and the loop of `amp` runs on the instance.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.learners import AMP, BayesOptimal
from solvable.core.model import Learner, Model
from solvable.core.ranges import SIGNED, UNIT, Range, usual_range
from solvable.core.registry import simulation, theory, thresholds_of
from solvable.core.results import Outcome, Prediction, reshaped
from solvable.engine.amp import AMPReport, amp, uninformed_start
from solvable.engine.cosines import cosine_error, cosines, cosines_of
from solvable.engine.operators import Operator
from solvable.engine.outputs.likelihood import Likelihood
from solvable.engine.sides import BayesOutput, BayesSignal, Evolution, OutputDenoiser, SignalDenoiser
from solvable.engine.solvers import solver_for
from solvable.engine.solvers.base import FixedPoints, Solver, Thresholds

SMALLEST_V = 1e-6
"""The floor of the posterior variance of z, unless an instance says otherwise."""
RESTARTS = 2
_RESTART_NORM = 0.8
_SOLVERS = 64


@dataclasses.dataclass(frozen=True)
class Instance:
    """One data set as message passing sees it: `operator`, the two denoisers, and where a run starts and ends.

    `start(rng)` is an uninformed start (d x p), pure noise unless told, and `spectral(rng)` one from the eigenvectors
    of a matrix with its Onsager term, or None where they carry nothing; `estimate` turns the loop's weights into what
    the learner returns, `details` adds to what a run reports, and `metrics` to its scores what the estimate alone does
    not tell.
    """

    operator: Operator
    output: OutputDenoiser
    signal: SignalDenoiser
    directions: int = 1
    least_variance: float = SMALLEST_V
    start: Callable[[np.random.Generator], np.ndarray] | None = None
    spectral: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray] | None] | None = None
    estimate: Callable[[np.ndarray], Any] = lambda W: W
    details: Callable[[AMPReport], dict[str, Any]] = lambda report: {}
    metrics: Callable[[AMPReport], dict[str, Any]] = lambda report: {}

    def run(
        self, start: np.ndarray, rng: np.random.Generator, learner: AMP, memory: np.ndarray | None = None
    ) -> AMPReport:
        """Message passing from `start` (d x p), whose Onsager term is `memory` (n x p) if it depends on the data."""
        return amp(
            self.operator,
            self.output,
            self.signal,
            start,
            rng,
            memory=memory,
            damping=float(learner.damping),
            max_steps=int(learner.max_steps),
            tolerance=float(learner.tolerance),
            vmin=self.least_variance,
        )

    def uninformed(self, rng: np.random.Generator, learner: AMP) -> tuple[AMPReport, int]:
        """The end of message passing from an uninformed start, and how many starts it took.

        A run can end at a false fixed point of finite sizes: nothing is found although there is something to find, or
        with several directions one is found and another is a random one that fits the labels a little. It shows
        without the truth (`_doubtful`). Then it is started again: from the eigenvectors of the spectral method where
        there are any; then, for several directions, from noise of norm close to that of the truth, which settles
        before the directions that grow fastest have taken over. Of all ends the one under which the labels are
        likeliest is kept, or, of an interaction, that of largest free entropy. Such runs are short, and get half the
        steps.
        """
        size = self.operator.dimension, self.directions
        start = uninformed_start(rng, *size) if self.start is None else self.start(rng)
        best, starts = self.run(start, rng, learner), 1
        again = learner.with_field("max_steps", max(1, int(learner.max_steps) // 2))
        if self.spectral is not None and (best.trivial or self._doubtful(best)):
            found = self.spectral(rng)
            if found is not None:
                best, starts = max(best, self.run(found[0], rng, again, found[1]), key=_likelihood), starts + 1
        while self.directions > 1 and starts <= RESTARTS and self._doubtful(best):
            start = np.sqrt(_RESTART_NORM) * rng.standard_normal(size)
            best, starts = max(best, self.run(start, rng, again), key=_likelihood), starts + 1
        return best, starts

    def _doubtful(self, end: AMPReport) -> bool:
        """Whether another start may lead to a better end.

        One direction that stopped did so at the fixed point of its instance, whatever the start. Nor is there anything
        better than a run that claims to know every direction, if it stopped or agrees with itself.
        """
        if end.nearly_recovered and (end.converged or end.consistent):
            return False
        return not (end.converged and (end.consistent or self.directions == 1))


class TwoSided(Model):
    """The base of models that are two sides and an operator."""

    @abc.abstractmethod
    def output_side(self) -> BayesOutput:
        """What the labels say of the projections: a posterior under the true law."""

    @abc.abstractmethod
    def signal_side(self) -> BayesSignal:
        """What is known of the unknowns, each of unit variance: a posterior mean under the true law."""

    @abc.abstractmethod
    def instance(self, data: Any) -> Instance:
        """A data set that `sample` drew, as message passing sees it."""

    def likelihood(self) -> Likelihood:
        """P(y|z) of labels of one projection, for learners that minimise a loss."""
        return self.output_side().likelihood()

    def gain(self, **axes: Any) -> Any:
        """Samples for each unknown; proportional to the model's first axis."""
        return axes["alpha"]

    def at_gain(self, gain: float) -> float:
        """The value of the model's first axis, or of the field in its place, that has this gain."""
        return gain / float(self.gain(**{self.axis_names[0]: 1.0}))

    def evolution(self) -> Evolution:
        """State evolution of message passing, step by step."""
        return Evolution(self.output_side(), self.signal_side())

    def solver(self) -> Solver:
        """The fixed points of state evolution; equal sides share one."""
        return _solver(self.output_side(), self.signal_side())

    def prediction(self, points: FixedPoints) -> Prediction:
        """The metrics at fixed points of one overlap, weights of unit variance: overlap q and estimation error V."""
        q, V = points.overlap[:, 0, 0], points.variance[:, 0, 0]
        metrics = {"overlap": q, **cosines(q, q, 1.0), "estimation_error": V}
        uncertainty = {name: points.uncertainty for name in metrics}
        uncertainty["cosine"] = cosine_error(q, points.uncertainty)
        return points.prediction(metrics, uncertainty)

    def knowing_nothing(self) -> Prediction:
        """The metrics without samples: a posterior mean does not have larger errors."""
        return self.prediction(FixedPoints.nothing(self.output_side().projections))

    def ranges(self, learner: Learner) -> dict[str, Range]:
        """A posterior mean has its overlap, or the eigenvalues of it, between 0 and 1, and errors up to those without
        samples; any other estimate may point backwards, and be worse."""
        overlaps = UNIT if learner.posterior_mean else SIGNED
        found = {f"overlap{end}": overlaps for end in ("", "_1", "_2", "_3")}
        if not learner.posterior_mean:
            return found
        nothing = self.knowing_nothing()
        for name, value in nothing.metrics.items():
            if name.endswith("_error"):
                most = float(value[0] + nothing.uncertainty[name][0])
                found[name] = usual_range(name)._replace(high=most, floor=usual_range(name).floor * most)
        return found

    def scores(self, estimate: Any, data: Any, rng: np.random.Generator) -> dict[str, Any]:
        """The metrics of a posterior mean of one direction; the sign counts unless `hides_sign`."""
        truth = np.asarray(data.truth)
        if self.hides_sign() and np.vdot(estimate, truth) < 0:
            estimate = -estimate
        error = float(np.mean((estimate - truth) ** 2))
        overlap = float(np.mean(estimate * truth))
        return {"overlap": overlap, **cosines_of(estimate, truth), "estimation_error": error}

    def hides_sign(self) -> bool:
        """Whether the labels of w* and of -w* have the same law, so that the sign of an estimate means nothing."""
        return False

    def spectral_start(self, data: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A start of message passing (d x p) from the top eigenvectors of a matrix, and its Onsager term (n x p)."""
        raise bad_parameter("start", "spectral", f"'noise' for {type(self).__name__}")


@functools.lru_cache(maxsize=_SOLVERS)
def _solver(output: BayesOutput, signal: BayesSignal) -> Solver:
    return solver_for(output, signal)


@theory(TwoSided, BayesOptimal, references=("barbier2019optimal", "aubin2018committee"))
def bayes_optimal(model: TwoSided, learner: BayesOptimal, **axes: np.ndarray) -> Prediction:
    """The fixed point of largest free entropy: the error of the exact posterior mean."""
    return _predicted(model, model.solver().optimal, axes)


@theory(TwoSided, AMP, references=("barbier2019optimal", "aubin2018committee", "troiani2024fundamental"))
def message_passing(model: TwoSided, learner: AMP, **axes: np.ndarray) -> Prediction:
    """The fixed point that the iteration reaches from an uninformed start."""
    return _predicted(model, model.solver().uninformed, axes)


def _predicted(model: TwoSided, solve: Callable[[np.ndarray], FixedPoints], axes: dict[str, np.ndarray]) -> Prediction:
    """The metrics at the fixed points of all values of the axes; at the only one of a model without axes."""
    gain = model.gain(**axes)
    return model.prediction(solve(gain)) if axes else reshaped(model.prediction(solve(np.atleast_1d(gain))), ())


@thresholds_of(TwoSided, references=("barbier2019optimal", "mondelli2017fundamental", "troiani2024fundamental"))
def thresholds(model: TwoSided) -> Thresholds:
    """weak_recovery, algorithmic and information_theoretic, each as a value of the model's axis (0: any, inf: none).

    With several projections also `step_2`, ... where the next directions of the staircase are learned.
    """
    return model.solver().thresholds().mapped(model.at_gain)


@simulation(TwoSided, AMP, references=("rangan2011generalized", "aubin2018committee"))
def run_amp(model: TwoSided, learner: AMP, data: Any, rng: np.random.Generator) -> Outcome:
    """Approximate message passing from an uninformed or a spectral start; the truth is used for scoring only."""
    instance = model.instance(data)
    if learner.start == "noise":
        report, starts = instance.uninformed(rng, learner)
    else:
        start, memory = model.spectral_start(data, rng)
        report, starts = instance.run(start, rng, learner, memory), 1
    return outcome(model, instance, data, rng, report, starts=starts)


def outcome(
    model: TwoSided, instance: Instance, data: Any, rng: np.random.Generator, report: AMPReport, **more: Any
) -> Outcome:
    """A run's end with its scores, and what judges it without the truth.

    `spread` is the standard deviation of each overlap between instances of this size that the run's own estimates
    lead to (`fluctuations`), NaN where none is known.
    """
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
    metrics = model.scores(estimate, data, rng) | instance.metrics(report)
    if instance.directions == 1 and "overlap" in metrics:
        details["spread"] = {"overlap": float(report.spread()[0, 0])}
    details |= instance.details(report) | more
    return Outcome(metrics, estimate, report.converged, details=details, consistent=report.consistent)


def _likelihood(report: AMPReport) -> float:
    found = report.free_entropy if report.log_likelihood is None else report.log_likelihood
    return -np.inf if found is None or not np.isfinite(found) else found
