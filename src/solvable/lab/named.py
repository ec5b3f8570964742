"""Models and learners by their registry names, made from plain values: what command lines and files give."""

from __future__ import annotations

import inspect
from typing import Any

from solvable.core.errors import bad_parameter
from solvable.core.model import Learner, Model
from solvable.core.registry import matrix


def find_model(name: str) -> type[Model]:
    """The model class of a registry name."""
    register_all()
    known = {model.name(): model for model, _ in matrix()}
    return _pick("model", name, known)


def find_learner(model: type[Model], name: str) -> type[Learner]:
    """The learner class of a registry name, among those that the model has."""
    return _pick("learner", name, {learner.name(): learner for learner in learners_of(model)})


def learners_of(model: type[Model], theory: bool = False) -> list[type[Learner]]:
    """The learners registered for a model; only those with a theory if asked."""
    return [
        learner
        for (base, learner), (solved, _) in matrix().items()
        if issubclass(model, base) and (solved or not theory)
    ]


def make(cls: Any, values: dict[str, Any], how: dict[str, str], otherwise: str) -> Any:
    """An instance; a field that is missing, unknown or refused is bad input.

    `how` and `otherwise` say how a missing field is given, such as `--param {name}=VALUE`.
    """
    fields = parameters(cls)
    for key in values:
        if key not in fields:
            raise bad_parameter("parameter", key, f"one of the fields of {cls.name()}: {', '.join(fields) or 'none'}")
    for name, parameter in fields.items():
        if name not in values and parameter.default is parameter.empty:
            raise ValueError(f"{cls.name()} needs {name}: give {how.get(name, otherwise.format(name=name))}.")
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"{cls.name()} cannot be made from {values}: {error}") from error


def parameters(cls: Any) -> dict[str, inspect.Parameter]:
    """What a model or a learner is made from."""
    return dict(list(inspect.signature(cls.__init__).parameters.items())[1:])


def _pick(what: str, name: str, known: dict[str, Any]) -> Any:
    """The entry of that name; `BayesOptimal`, `bayes_optimal` and `bayes-optimal` are the same."""
    plain = {key.replace("-", ""): value for key, value in known.items()}
    found = plain.get(name.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise bad_parameter(what, name, f"one of: {', '.join(sorted(known)) or 'none is registered'}")
    return found


def register_all() -> None:
    """Import every family, which fills the registry."""
    import solvable.models  # noqa: F401
