"""A toy for runs without data, of several seeds together: online least squares as a chain of its error alone.

Between samples the error relaxes as it does in theory, and each hundredth of alpha adds noise of variance 1/(100 d).
The mean of the runs is the theory at any d, and a run costs the same at any d.
"""

from __future__ import annotations

import time

import numpy as np
from toys.axes import OnlineRegression

import solvable as sv

RATE = 100
"""Steps of the chain in a unit of alpha."""
CALLS: list[tuple[int, list[float], int]] = []
"""The size, the path and the number of seeds of each call, in this process."""


class Chain(sv.Learner):
    """Online least squares; raises if one of the runs begins above `limit`, and takes `seconds` for them all."""

    step: float = 0.5
    limit: float = float("inf")
    seconds: float = 0.0


class Alone(Chain):
    """The same, one seed at a time and without a path."""


def end_of(model, learner):
    return learner.step * model.noise / (2 - learner.step)


@sv.theory(OnlineRegression, Chain)
def _(model, learner, alpha):
    end = end_of(model, learner)
    return sv.Prediction({"estimation_error": end + (1 - end) * np.exp(-learner.step * (2 - learner.step) * alpha)})


@sv.simulation(OnlineRegression, Chain, path="alpha", data=False, together=True)
def _(model, learner, d, alpha, rngs):
    CALLS.append((d, alpha.tolist(), len(rngs)))
    time.sleep(learner.seconds)
    steps = np.round(alpha * RATE).astype(int)
    noise = np.stack([rng.standard_normal(steps[-1]) for rng in rngs]) / np.sqrt(RATE * d)
    if np.any(noise[:, 0] * np.sqrt(RATE * d) > learner.limit):
        raise ArithmeticError("a run begins too high")
    end, kept = end_of(model, learner), np.exp(-learner.step * (2 - learner.step) / RATE)
    errors = np.ones((len(rngs), steps[-1] + 1))
    for t in range(steps[-1]):
        errors[:, t + 1] = end + kept * (errors[:, t] - end) + noise[:, t]
    return [sv.Outcome({"estimation_error": row[steps]}, details={"consistent": True}) for row in errors]


@sv.simulation(OnlineRegression, Alone, data=False)
def _(model, learner, d, rng, alpha):
    CALLS.append((d, [alpha], 1))
    end = end_of(model, learner)
    error = end + (1 - end) * np.exp(-learner.step * (2 - learner.step) * alpha)
    return sv.Outcome({"estimation_error": error + rng.standard_normal() / np.sqrt(d)})
