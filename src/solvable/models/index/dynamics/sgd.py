r"""Descent on samples one after another: theory and runs of `OnlineSGD`, `Extragradient` and `RepeatedSGD`.

Theory is the flow of the overlaps in samples seen (`engine/dynamics/flow.py`), integrated once for all alpha asked
for: exact as d grows with the learning rate over d fixed [saad1995online, goldt2019dynamics,
arnaboldi2024repetita]. Runs follow the overlaps alone, which at any d have the law of those of the d-dimensional
weights (`engine/dynamics/chain.py`), or train the weights themselves.
"""

from __future__ import annotations

import numpy as np

from solvable.core.errors import NotSimulable, NotSolvable
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.engine.dynamics import committees, neuron, sampled
from solvable.engine.dynamics.chain import chain
from solvable.engine.dynamics.flow import Path, follow
from solvable.engine.dynamics.full import full_run
from solvable.engine.dynamics.moves import AHEAD, PLAIN, TWICE, Move, Rates
from solvable.models.index.dynamics.learners import Descent, Extragradient, OnlineSGD, RepeatedSGD
from solvable.models.index.dynamics.metrics import metrics_of, uncertainty_of
from solvable.models.index.multi_index import MultiIndex
from solvable.targets.admissible import check_admissible
from solvable.targets.landscape import landscape
from solvable.targets.target import Target


def move_of(learner: OnlineSGD) -> tuple[Move, Rates]:
    """What the learner does with a sample, and the numbers of it."""
    rate = float(learner.learning_rate)
    if isinstance(learner, RepeatedSGD):
        return Move(learner.student, TWICE, learner.spherical), Rates(rate)
    ahead, similarity = 0.0, 1.0
    if isinstance(learner, Extragradient):
        ahead, similarity = float(learner.extrapolation), float(learner.similarity)
    if ahead == 0 or similarity == 0:
        return Move(learner.student, PLAIN, learner.spherical), Rates(rate)
    return Move(learner.student, AHEAD, learner.spherical, similarity < 1), Rates(rate, ahead, similarity)


def check_labels(model: MultiIndex, error: type[Exception], learner: Descent) -> None:
    """Refuse labels that are not a target with Gaussian noise."""
    if model.contamination or model.named_channel is not None:
        what = "contaminated labels" if model.contamination else f"the channel {model.named_channel!r}"
        raise error(f"{type(learner).__name__} takes labels y = g(z) + noise, not {what}.")


def check_variance(target: Target) -> None:
    """Refuse labels of infinite variance: their gradients have no flow as a limit, single samples decide."""
    if target.projections == 1:
        landscape(target)
    else:
        check_admissible(target)


def path_of(model: MultiIndex, learner: OnlineSGD, times: np.ndarray) -> Path:
    """The overlaps in the limit at increasing times n/d."""
    check_labels(model, NotSolvable, learner)
    check_variance(model.target)
    move, rates = move_of(learner)
    start = learner.first_overlaps(model.projections)
    noise = float(model.noise)
    closed = committees.committee_rules(model.target, noise, move)
    if closed is not None:
        return follow(committees.average, move, rates, closed, start, times)
    if move.student.width == 1 and not move.copies:
        rules = neuron.neuron_rules(model.target, noise, move, rates)
        return follow(neuron.average, move, rates, rules, start, times)
    rules = sampled.sampled_rules(model.target, noise, move, rates)
    return follow(sampled.average, move, rates, rules, start, times, replicas=True)


@theory(MultiIndex, OnlineSGD, references=("saad1995online", "goldt2019dynamics", "arous2021online"))
@theory(MultiIndex, Extragradient, references=("saad1995online", "arnaboldi2024repetita"))
@theory(MultiIndex, RepeatedSGD, references=("saad1995online", "arnaboldi2024repetita"))
def online(model: MultiIndex, learner: OnlineSGD, alpha: np.ndarray) -> Prediction:
    """The flow of the overlaps, integrated once and seen at every alpha."""
    times, where = np.unique(alpha, return_inverse=True)
    path = path_of(model, learner, times)
    student = learner.student
    metrics = metrics_of(model, student, path.M, path.Q)
    slack = 1 + path.slack
    # Neurons on the sphere keep their norm, and where M and Q move together a difference of labels hardly does.
    others = [*path.others, (slack * path.M, path.Q)]
    if not learner.spherical:
        others.append((slack * path.M, slack * path.Q))
    uncertainty = uncertainty_of(model, student, path.M, path.Q, others)
    return Prediction(
        metrics={name: value[where] for name, value in metrics.items()},
        order_parameters={"M": path.M[where], "Q": path.Q[where]},
        status=path.status[where],
        iterations=np.full(len(alpha), path.steps),
        uncertainty={name: value[where] for name, value in uncertainty.items()},
    )


@simulation(MultiIndex, OnlineSGD, path="alpha", data=False, together=True, references="arous2021online")
@simulation(MultiIndex, Extragradient, path="alpha", data=False, together=True, references="arnaboldi2024repetita")
@simulation(MultiIndex, RepeatedSGD, path="alpha", data=False, together=True, references="arnaboldi2024repetita")
def run_online(
    model: MultiIndex, learner: OnlineSGD, d: int, alpha: np.ndarray, rngs: list[np.random.Generator]
) -> list[Outcome]:
    """One run a seed, seen after round(alpha d) samples for every alpha."""
    check_labels(model, NotSimulable, learner)
    move, rates = move_of(learner)
    starts = [learner.first_overlaps(model.projections, d, rng) for rng in rngs]
    counts = np.round(alpha * d).astype(int)
    if learner.reduced:
        M, Q = chain(model.target, float(model.noise), move, rates, d, starts, counts, rngs)
    else:
        pairs = zip(starts, rngs, strict=True)
        found = [full_run(model.stream(rng, d), move, rates, start, counts, rng) for start, rng in pairs]
        M, Q = (np.stack(part) for part in zip(*found, strict=True))
    outcomes = []
    for one_M, one_Q in zip(M, Q, strict=True):
        metrics = metrics_of(model, learner.student, one_M, one_Q)
        finite = np.isfinite(one_M).all((1, 2)) & np.isfinite(one_Q).all((1, 2))
        outcomes.append(Outcome(metrics, estimate={"M": one_M, "Q": one_Q}, converged=finite))
    return outcomes
