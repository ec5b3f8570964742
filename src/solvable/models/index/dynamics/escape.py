r"""When a single neuron leaves its start under one-pass descent, with constants: thresholds, and words for a diagnosis.

The expansion of the pull at zero overlap (`engine/dynamics/escape.py`) gives the number of samples, C d, C d log d or
C d^k, after which a neuron on the sphere with overlaps of order $d^{-1/2}$ has one of 1/2 with the target's directions.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from solvable.core.deadline import check_time
from solvable.core.errors import NotSolvable
from solvable.core.precision import float64
from solvable.core.registry import thresholds_of
from solvable.engine.dynamics.escape import Expansion, exit_time, expansion
from solvable.engine.dynamics.moves import Rates
from solvable.models.index.dynamics.learners import Extragradient, OnlineSGD, RepeatedSGD
from solvable.models.index.dynamics.sgd import check_labels, check_variance, move_of
from solvable.models.index.multi_index import MultiIndex
from solvable.targets.hermite import hermite_tensor

_SIZES = (0.3, 1.0, 3.0)
"""Extrapolations that are tried, of both signs, to find one that escapes."""
_MATCHED = 6
"""The highest degree of a neuron made for a target."""


@thresholds_of(MultiIndex, OnlineSGD, references="arous2021online")
@thresholds_of(MultiIndex, Extragradient, references="arnaboldi2024repetita")
@thresholds_of(MultiIndex, RepeatedSGD, references="arnaboldi2024repetita")
def escape(model: MultiIndex, learner: OnlineSGD) -> dict[str, float]:
    """Whether and when a neuron on the sphere escapes.

    - `escapes`: 1 or 0; `exit_constant` C, `exit_power` k and `exit_log` j: after C d^k (log d)^j samples.
    - `critical_learning_rate`: above it noise wins; `best_learning_rate`: escapes soonest (k = 1 and more). For k >= 2
      rates are constants c of a rate c d^p with p = `rate_power`, that of the learner too.
    - `escaping_extrapolation`, of an extragradient: the given one if it escapes, else one that does, or 0.
    """
    check_labels(model, NotSolvable, learner)
    check_variance(model.target)
    if learner.width > 1 or not learner.spherical:
        raise NotSolvable(
            "escape is known for one neuron on the sphere (width=1, spherical=True): other networks move their norms "
            "and each other before they leave."
        )
    if isinstance(learner, Extragradient) and 0 < learner.similarity < 1:
        raise NotSolvable("escape on near-copies is not solved: use similarity=1, or predict with a small start.")
    found = _expanded(model, learner)
    told = _told(model, learner, found)
    if isinstance(learner, Extragradient):
        told["escaping_extrapolation"] = _escaping(model, learner, found)
    return told


def _expanded(model: MultiIndex, learner: OnlineSGD) -> Expansion:
    move, rates = move_of(learner)
    return expansion(model.target, float(model.noise), move, rates)


def _told(model: MultiIndex, learner: OnlineSGD, found: Expansion) -> dict[str, float]:
    k, rate = found.order, float(learner.learning_rate)
    if k is None:
        never = {"escapes": 0.0, "exit_constant": math.inf, "exit_power": math.inf, "exit_log": 0.0}
        return never | {"critical_learning_rate": 0.0, "rate_power": 0.0}
    move, rates = move_of(learner)
    constant = exit_time(model.target, float(model.noise), move, rates) if k == 0 else found.constant(rate)
    told = {
        "escapes": float(math.isfinite(constant)),
        "exit_constant": constant,
        "exit_power": float(max(k, 1)),
        "exit_log": float(k == 1),
        "critical_learning_rate": found.critical_rate,
        "rate_power": found.rate_power,
    }
    return told | ({"best_learning_rate": found.best()[0]} if k > 0 and found.critical_rate > 0 else {})


def _escaping(model: MultiIndex, learner: Extragradient, found: Expansion) -> float:
    if found.order is not None and found.growth > 0:
        return float(learner.extrapolation)
    size = abs(float(learner.extrapolation)) or 1.0
    for value in (-math.copysign(size, learner.extrapolation), *(s * x for x in _SIZES for s in (1, -1))):
        other = _expanded(model, dataclasses.replace(learner, extrapolation=value))
        if other.order is not None and other.growth > 0:
            return value
    return 0.0


class Quote(NamedTuple):
    """After how many samples a neuron of a learner that suits the target escapes: C d^power (log d)^log."""

    constant: float
    power: int
    log: int
    learner: str

    def __str__(self) -> str:
        size = {1: "d"}.get(self.power, f"d^{self.power}") + (" log d" if self.log else "")
        return f"about {self.constant:.2g} {size} samples"

    @property
    def order(self) -> tuple[int, int, float]:
        """What quotes are compared by, at large d."""
        return self.power, self.log, self.constant


@float64
def quotes(model: MultiIndex, information_exponent: float) -> dict[str, Quote]:
    """What one-pass descent and repetition take of samples, each by a neuron and at a rate that suit the target.

    One pass is by the normalised Hermite polynomial of the information exponent, at its best rate; repetition by an
    erf neuron with a step ahead, given where it needs fewer samples at large d.
    """
    if model.contamination or model.named_channel is not None or model.projections > 3:
        return {}
    found: dict[str, Quote] = {}
    if information_exponent <= _MATCHED:
        k = int(information_exponent)
        first = _quote(model, OnlineSGD(1.0, f"he{k}(z)/sqrt({math.factorial(k)})", loss="correlation"))
        if first is not None:
            found["one-pass SGD"] = first
    if information_exponent <= 2:
        return found
    size = 1 / (math.sqrt(hermite_tensor(model.target, 0).variance) or 1.0)  # moves the fields by about one
    ahead = (Extragradient(1.0, "erf", loss="correlation", extrapolation=sign * size) for sign in (1, -1))
    best = min(filter(None, (_quote(model, learner) for learner in ahead)), key=lambda quote: quote.order, default=None)
    first = found.get("one-pass SGD")
    if best is not None and (first is None or best.order[:2] < first.order[:2]):
        found["with repetition"] = best
    return found


def _quote(model: MultiIndex, learner: OnlineSGD) -> Quote | None:
    """At the best rate, or one near it where that has no closed form; None if the neuron does not escape."""
    check_time()
    found = _expanded(model, learner)
    if found.order is None or found.growth <= 0:
        return None
    name = f"{type(learner).__name__}({learner.activation})"
    if found.order > 0:
        return Quote(found.best()[1], found.order, int(found.order == 1), name)
    move, rates = move_of(learner)
    rate = found.growth / found.V  # about where noise takes away as much as the pull gives
    time = exit_time(model.target, float(model.noise), move, Rates(rate, *rates[1:]))
    return Quote(time, 1, 0, name) if math.isfinite(time) else None
