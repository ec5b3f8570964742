"""Learners whose theory and algorithm return or raise what a test puts into `ANSWER`."""

from __future__ import annotations

import numpy as np
from toys import ridge as toy

import solvable as sv


class Probe(sv.Learner):
    """A learner whose theory returns or raises what a test asks for."""


class PointProbe(sv.Learner):
    """The same, one point at a time."""


ANSWER: dict = {}


@sv.theory(toy.Regression, Probe)
def _(model, learner, alpha):
    return ANSWER["theory"](alpha)


@sv.theory(toy.Regression, PointProbe, vectorized=False)
def _(model, learner, alpha):
    return ANSWER["theory"](alpha)


@sv.simulation(toy.Regression, Probe)
def _(model, learner, data, rng):
    return ANSWER["simulation"](data, rng)


class Spiked(sv.Model):
    """A model without axes, and without a sampler."""

    axes = ()
    scaling = "one matrix"


@sv.theory(Spiked, Probe)
def _(model, learner):
    return sv.Prediction({"overlap": 0.5, "matrix": np.eye(2)})


@sv.simulation(Spiked, Probe)
def _(model, learner, data, rng):
    return sv.Outcome({"overlap": 0.5})
