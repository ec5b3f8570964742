"""Which pairs of model and learner have a theory, a simulation, thresholds: the product's matrix.

A pair is filled by one decorator on a function::

    @theory(MyModel, MyLearner)
    def _(model, learner, alpha): ...          # -> Prediction, for an array of alpha

    @simulation(MyModel, MyLearner)
    def _(model, learner, data, rng): ...      # -> Outcome, from what `model.sample` drew

    @thresholds_of(MyModel)
    def _(model): ...                          # -> dict[str, float]

    @thresholds_of(MyModel, MyLearner)
    def _(model, learner): ...                 # those of one learner
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from solvable.core.errors import NotSimulable, NotSolvable
from solvable.core.model import Learner, Model


@dataclasses.dataclass(frozen=True)
class TheoryEntry:
    """A registered theory; `vectorized` says whether it takes arrays of the axes or one point at a time."""

    function: Callable[..., Any]
    vectorized: bool


_theories: dict[tuple[type[Model], type[Learner]], TheoryEntry] = {}
_simulations: dict[tuple[type[Model], type[Learner]], Callable[..., Any]] = {}
_thresholds: dict[type[Model], Callable[..., Any]] = {}
_pair_thresholds: dict[tuple[type[Model], type[Learner]], Callable[..., Any]] = {}


def theory(model: type[Model], learner: type[Learner], *, vectorized: bool = True):
    """Register the theory of a pair: `function(model, learner, **axes) -> Prediction`.

    The axes arrive as float64 arrays of any shape, or as scalars when `vectorized` is False (the verbs then loop).
    """

    def register(function):
        _theories[model, learner] = TheoryEntry(function, vectorized)
        return function

    return register


def simulation(model: type[Model], learner: type[Learner]):
    """Register the algorithm of a pair: `function(model, learner, data, rng) -> Outcome`."""

    def register(function):
        _simulations[model, learner] = function
        return function

    return register


def thresholds_of(model: type[Model], learner: type[Learner] | None = None):
    """Register a model's thresholds, `function(model) -> dict[str, float]`, or those of a pair."""

    def register(function):
        if learner is None:
            _thresholds[model] = function
        else:
            _pair_thresholds[model, learner] = function
        return function

    return register


def find_theory(model: Model, learner: Learner) -> TheoryEntry:
    """The theory of this pair, or `NotSolvable` naming the learners that work for the model."""
    entry = _lookup(_theories, model, learner)
    if entry is None:
        raise NotSolvable(_missing("theory", _theories, model, learner))
    return entry


def find_simulation(model: Model, learner: Learner) -> Callable[..., Any]:
    """The algorithm of this pair, or `NotSimulable` naming the learners that work for the model."""
    entry = _lookup(_simulations, model, learner)
    if entry is None:
        raise NotSimulable(_missing("algorithm", _simulations, model, learner))
    return entry


def find_thresholds(model: Model) -> Callable[..., Any]:
    """The thresholds of a model, or `NotSolvable`."""
    for base in type(model).__mro__:
        if base in _thresholds:
            return _thresholds[base]
    known = ", ".join(sorted(m.__name__ for m in _thresholds)) or "none"
    raise NotSolvable(f"no thresholds are known for {type(model).__name__}; models that have them: {known}.")


def find_pair_thresholds(model: Model, learner: Learner) -> Callable[..., Any]:
    """The thresholds of one learner on a model, or `NotSolvable` naming the learners that have any."""
    entry = _lookup(_pair_thresholds, model, learner)
    if entry is None:
        raise NotSolvable(_missing("threshold of its own", _pair_thresholds, model, learner))
    return entry


def has_theory(model: Model, learner: Learner) -> bool:
    """Whether this pair has a theory."""
    return _lookup(_theories, model, learner) is not None


def has_simulation(model: Model, learner: Learner) -> bool:
    """Whether this pair has an algorithm."""
    return _lookup(_simulations, model, learner) is not None


def matrix() -> dict[tuple[type[Model], type[Learner]], tuple[bool, bool]]:
    """Every registered pair, with whether it has (theory, simulation)."""
    pairs = sorted({*_theories, *_simulations}, key=lambda pair: (pair[0].__name__, pair[1].__name__))
    return {pair: (pair in _theories, pair in _simulations) for pair in pairs}


def _lookup(table: dict, model: Model, learner: Learner):
    """The entry of the closest bases, so that a subclass inherits what its parent can do."""
    for model_base in type(model).__mro__:
        for learner_base in type(learner).__mro__:
            if (model_base, learner_base) in table:
                return table[model_base, learner_base]
    return None


def _missing(what: str, table: dict, model: Model, learner: Learner) -> str:
    works = sorted({pair[1].__name__ for pair in table if isinstance(model, pair[0])})
    return (
        f"no {what} is registered for {type(learner).__name__} on {type(model).__name__}; "
        f"learners that have one on this model: {', '.join(works) or 'none'}."
    )
