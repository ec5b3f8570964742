"""Which pairs of model and learner have a theory, a simulation, thresholds: the product's matrix.

A pair is filled by one decorator on a function, which names the publications behind it::

    @theory(MyModel, MyLearner, references=("barbier2019optimal",))
    def _(model, learner, alpha): ...                 # -> Prediction, for a one-dimensional array of alpha

    @simulation(MyModel, MyLearner)
    def _(model, learner, data, rng): ...             # -> Outcome, from what `model.sample` drew

    @simulation(MyModel, MyOnlineLearner, path="alpha", stream=True)
    def _(model, learner, stream, alpha, rng): ...    # -> Outcome, one run seen at every alpha of an increasing array

    @simulation(MyModel, MyReducedLearner, path="alpha", data=False, together=True)
    def _(model, learner, d, alpha, rngs): ...        # -> list of Outcomes, one a generator, from the size alone

    @thresholds_of(MyModel)
    def _(model): ...                                 # -> dict[str, float]

    @thresholds_of(MyModel, MyLearner)
    def _(model, learner): ...                        # those of one learner

What is registered for a class holds for its subclasses, unless they have an entry of their own or name the learner in
`Model.without`.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from solvable.core.bibliography import Publication, check_references
from solvable.core.errors import NotSimulable, NotSolvable, bad_parameter
from solvable.core.model import Learner, Model

References = str | Publication | Iterable[str | Publication]


@dataclasses.dataclass(frozen=True)
class TheoryEntry:
    """A registered theory; `vectorized` says whether it takes arrays of the axes or one point at a time."""

    function: Callable[..., Any]
    vectorized: bool = True
    references: tuple[str | Publication, ...] = ()


@dataclasses.dataclass(frozen=True)
class SimulationEntry:
    """A registered algorithm.

    `path` is the axis along which one run answers a whole array of values, None for a run at a single point; `stream`
    says that the algorithm is given `model.stream` instead of what `model.sample` drew, and `data` is False if it is
    given neither, but the size; `together` says that it makes the runs of several seeds at once.
    """

    function: Callable[..., Any]
    path: str | None = None
    stream: bool = False
    data: bool = True
    together: bool = False
    references: tuple[str | Publication, ...] = ()


@dataclasses.dataclass(frozen=True)
class ThresholdsEntry:
    """Registered thresholds, of a model or of a pair."""

    function: Callable[..., Any]
    references: tuple[str | Publication, ...] = ()


_theories: dict[tuple[type[Model], type[Learner]], TheoryEntry] = {}
_simulations: dict[tuple[type[Model], type[Learner]], SimulationEntry] = {}
_thresholds: dict[type[Model], ThresholdsEntry] = {}
_pair_thresholds: dict[tuple[type[Model], type[Learner]], ThresholdsEntry] = {}


def theory(model: type[Model], learner: type[Learner], *, vectorized: bool = True, references: References = ()):
    """Register the theory of a pair: `function(model, learner, **axes) -> Prediction`.

    The axes arrive as one-dimensional float64 arrays of one length, or as floats when `vectorized` is False (the verbs
    then loop); a model without axes gets none. `references` are the keys of the publications behind it.
    """

    def register(function):
        _theories[model, learner] = TheoryEntry(function, vectorized, check_references(references))
        return function

    return register


def simulation(
    model: type[Model],
    learner: type[Learner],
    *,
    path: str | None = None,
    stream: bool = False,
    data: bool = True,
    together: bool = False,
    references: References = (),
):
    """Register the algorithm of a pair: `function(model, learner, data, rng) -> Outcome`.

    With `path`, the name of an axis of the model, one run answers many values of that axis: the function is
    `function(model, learner, data, values, rng)` with an increasing array of them, each metric of its outcome has an
    entry for each value, and neither the data nor the seed depends on the axis. With `stream`, data is the model's
    `Stream` of fresh samples.

    With `data=False` nothing is drawn: for an algorithm that follows a few overlaps instead of d weights. In the place
    of the data the function is given the size, None for a model without one, and by keyword the axes other than `path`,
    which the data would have told: `function(model, learner, d, values, rng, **axes)`.

    With `together` the function makes the runs of several seeds at once: it is given a list of generators, and of data
    unless there are none, one a seed, and returns a list of outcomes in their order. Outcomes must not depend on which
    other seeds are computed with them, nor on how many: a run has to be reproducible from its own seed. So each run
    draws from its own generator only.
    """
    if stream and not data:
        raise ValueError("stream=True and data=False exclude each other: a stream is data.")
    if path is not None and path not in model.axis_names:
        raise bad_parameter(
            "path", path, f"an axis of {model.__name__}: {', '.join(model.axis_names) or 'it has none'}"
        )

    def register(function):
        known = check_references(references)
        _simulations[model, learner] = SimulationEntry(function, path, stream, data, together, known)
        return function

    return register


def thresholds_of(model: type[Model], learner: type[Learner] | None = None, *, references: References = ()):
    """Register a model's thresholds, `function(model) -> dict[str, float]`, or those of a pair."""

    def register(function):
        entry = ThresholdsEntry(function, check_references(references))
        if learner is None:
            _thresholds[model] = entry
        else:
            _pair_thresholds[model, learner] = entry
        return function

    return register


def find_theory(model: Model, learner: Learner) -> TheoryEntry:
    """The theory of this pair, or `NotSolvable` naming the learners that work for the model."""
    entry = _lookup(_theories, type(model), type(learner))
    if entry is None:
        raise NotSolvable(_missing("theory", _theories, model, learner))
    return entry


def find_simulation(model: Model, learner: Learner) -> SimulationEntry:
    """The algorithm of this pair, or `NotSimulable` naming the learners that work for the model."""
    entry = _lookup(_simulations, type(model), type(learner))
    if entry is None:
        raise NotSimulable(_missing("algorithm", _simulations, model, learner))
    return entry


def find_thresholds(model: Model) -> ThresholdsEntry:
    """The thresholds of a model, or `NotSolvable`."""
    for base in type(model).__mro__:
        if base in _thresholds:
            return _thresholds[base]
    known = ", ".join(sorted(m.__name__ for m in _concrete(_thresholds))) or "none"
    raise NotSolvable(f"no thresholds are known for {type(model).__name__}; models that have them: {known}.")


def find_pair_thresholds(model: Model, learner: Learner) -> ThresholdsEntry:
    """The thresholds of one learner on a model, or `NotSolvable` naming the learners that have any."""
    entry = _lookup(_pair_thresholds, type(model), type(learner))
    if entry is None:
        raise NotSolvable(_missing("threshold of its own", _pair_thresholds, model, learner))
    return entry


def has_theory(model: Model, learner: Learner) -> bool:
    """Whether this pair has a theory."""
    return _lookup(_theories, type(model), type(learner)) is not None


def has_simulation(model: Model, learner: Learner) -> bool:
    """Whether this pair has an algorithm."""
    return _lookup(_simulations, type(model), type(learner)) is not None


def matrix() -> dict[tuple[type[Model], type[Learner]], tuple[bool, bool]]:
    """Every pair of a model and a learner, with whether it has (theory, simulation), by name.

    A pair registered for an abstract model is listed for each model made from it that is loaded.
    """
    models = _concrete(model for model, _ in [*_theories, *_simulations])
    pairs = ((model, learner) for model in models for learner in _learners(model, _theories, _simulations))
    by_name = sorted(pairs, key=lambda pair: (pair[0].__name__, pair[1].__name__))
    return {pair: (_lookup(_theories, *pair) is not None, _lookup(_simulations, *pair) is not None) for pair in by_name}


def references_of(model: type[Model], learner: type[Learner]) -> tuple[str | Publication, ...]:
    """The publications behind a pair: those of the model, its theory, its algorithm and its thresholds, each once."""
    entries = [_lookup(table, model, learner) for table in (_theories, _simulations, _pair_thresholds)]
    found = [key for entry in entries if entry is not None for key in entry.references]
    return tuple(dict.fromkeys([*check_references(model.references), *found] if found else []))


def _lookup(table: dict, model: type[Model], learner: type[Learner]) -> Any:
    """The entry of the closest bases, so that a subclass inherits what its parent can do and it does not go without."""
    for model_base in model.__mro__:
        for learner_base in learner.__mro__:
            if (model_base, learner_base) in table:
                return table[model_base, learner_base]
        if issubclass(learner, vars(model_base).get("without", ())):
            return None
    return None


def _learners(model: type[Model], *tables: dict) -> list[type[Learner]]:
    """The learners registered for a model or a base of it that apply to it."""
    registered = {learner for table in tables for base, learner in table if issubclass(model, base)}
    return [learner for learner in registered if any(_lookup(table, model, learner) for table in tables)]


def _concrete(models: Iterable[type[Model]]) -> set[type[Model]]:
    """The models among these and their subclasses that can be made; of subclasses those with a public name."""
    registered = set(models)
    found = {model for base in registered for model in _subclasses(base) if model in registered or _public(model)}
    return {model for model in found if not inspect.isabstract(model)}


def _subclasses(model: type[Model]) -> Iterator[type[Model]]:
    yield model
    for child in model.__subclasses__():
        yield from _subclasses(child)


def _public(model: type[Model]) -> bool:
    """Whether a class is what its module holds under its name: not one made inside a function, or by equinox."""
    return (
        not model.__name__.startswith("_") and getattr(sys.modules.get(model.__module__), model.__name__, None) is model
    )


def _missing(what: str, table: dict, model: Model, learner: Learner) -> str:
    works = sorted(found.__name__ for found in _learners(type(model), table))
    return (
        f"no {what} is registered for {type(learner).__name__} on {type(model).__name__}; "
        f"learners that have one on this model: {', '.join(works) or 'none'}."
    )
