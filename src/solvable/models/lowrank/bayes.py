"""Bayes-optimal learning of spikes: their thresholds, and a finite-size check that looks at the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.core.learners import BayesOptimal
from solvable.core.registry import simulation, thresholds_of
from solvable.core.results import Outcome
from solvable.engine.informed import dominant_end
from solvable.engine.solvers.base import Thresholds
from solvable.engine.solvers.curve import Curve
from solvable.models.lowrank.spiked import Spiked


@thresholds_of(Spiked, references=("lesieur2017statistical", "barbier2019optimal"))
def spiked_thresholds(model: Spiked) -> Thresholds:
    """weak_recovery, algorithmic, information_theoretic and spinodal, in `snr`, `noise` or `alpha` as the model has it.

    From the spinodal on there is a fixed point that knows more than the one that message passing reaches, from the
    information-theoretic threshold on it is the preferred one, and from the algorithmic one on message passing finds it
    too. Without a hard phase all are where weak recovery begins. A noise of 0 stands for never.
    """
    solver = model.solver()
    assert isinstance(solver, Curve)
    return Thresholds(solver.thresholds() | {"spinodal": solver.spinodal}).mapped(model.at_gain)


@simulation(Spiked, BayesOptimal, references=("lesieur2017statistical",))
def run_bayes_optimal(model: Spiked, learner: BayesOptimal, data: Any, rng: np.random.Generator) -> Outcome:
    """The end of larger free entropy of message passing from noise and from close to the truth."""
    return dominant_end(model, data, rng)
