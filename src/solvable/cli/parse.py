"""From the words of a command line to models, learners and axes."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from solvable.core.errors import bad_parameter
from solvable.core.model import Learner, Model
from solvable.core.registry import matrix


@dataclasses.dataclass(frozen=True)
class Request:
    """What a command acts on."""

    model: Model
    learners: list[Learner]
    axes: dict[str, Any]


def build(
    model: str,
    target: str | None,
    options: dict[str, Any],
    params: list[str],
    learners: list[str],
    alpha: str | None = None,
) -> Request:
    """The model, the learners and the axes; each `key=value` goes to the axis or field of that name."""
    model_class = find_model(model)
    learner_classes = [(find_learner(model_class, text.partition(":")[0]), text.partition(":")[2]) for text in learners]
    values = {key: value for key, value in options.items() if value is not None} | key_values(params, "--param")
    if target is not None:
        if "target" not in _parameters(model_class):
            raise ValueError(f"unexpected target {target!r}: {model_class.name()} has no target.")
        values["target"] = target
    axes = {} if alpha is None else {"alpha": number_or_grid("--alpha", alpha)}
    for name in model_class.axes:
        if name in values:
            axes[name] = number_or_grid(f"--param {name}", str(values.pop(name)))
    model_fields = {key: values.pop(key) for key in _parameters(model_class) if key in values}
    made = []
    used: set[str] = set()
    for learner_class, text in learner_classes:
        shared = {key: value for key, value in values.items() if key in _parameters(learner_class)}
        used |= set(shared)
        own = key_values(text.split(","), "--learner") if text else {}
        made.append(_make(learner_class, shared | own))
    unknown = [key for key in values if key not in used]
    if unknown:
        known = [
            *model_class.axes,
            *_parameters(model_class),
            *(f for cls, _ in learner_classes for f in _parameters(cls)),
        ]
        raise bad_parameter("parameter", unknown[0], f"one of: {', '.join(dict.fromkeys(known))}")
    return Request(_make(model_class, model_fields), made, axes)


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


def number_or_grid(name: str, text: str) -> Any:
    """`1.3` is a number, `0.2:2:20` is 20 values from 0.2 to 2, `0.5,1,2` is a list of values."""
    import numpy as np

    takes = "a number, start:stop:count, or a list of numbers with commas"
    try:
        if ":" in text:
            start, stop, count = text.split(":")
            if int(count) < 1:
                raise ValueError
            return np.linspace(float(start), float(stop), int(count))
        return np.array([float(part) for part in text.split(",")]) if "," in text else float(text)
    except ValueError:
        raise bad_parameter(name, text, takes) from None


def key_values(pairs: list[str], option: str) -> dict[str, Any]:
    """`["damping=0.3", "kind=symmetric"]` as a dictionary, numbers and booleans converted."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (equals and key.strip()):
            raise bad_parameter(option, pair, "of the form key=value")
        found[key.strip()] = _literal(value.strip())
    return found


def _literal(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _make(cls: Any, values: dict[str, Any]) -> Any:
    """An instance; a field that is missing, unknown or refused is bad input."""
    fields = _parameters(cls)
    for key in values:
        if key not in fields:
            raise bad_parameter("parameter", key, f"one of the fields of {cls.name()}: {', '.join(fields) or 'none'}")
    for name, parameter in fields.items():
        if name not in values and parameter.default is parameter.empty:
            how = "TARGET" if name == "target" else f"--param {name}=VALUE"
            raise ValueError(f"{cls.name()} needs {name}: give {how}.")
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"{cls.name()} cannot be made from {values}: {error}") from error


def _parameters(cls: Any) -> dict[str, inspect.Parameter]:
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
