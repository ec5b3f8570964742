"""From the words of a command line to models, learners and axes."""

from __future__ import annotations

import dataclasses
from typing import Any

from solvable.core.errors import bad_parameter
from solvable.core.model import Learner, Model
from solvable.lab.named import find_learner, find_model, make, parameters


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
        if "target" not in parameters(model_class):
            raise ValueError(f"unexpected target {target!r}: {model_class.name()} has no target.")
        values["target"] = target
    axes = {} if alpha is None else {"alpha": number_or_grid("--alpha", alpha)}
    for name in model_class.axis_names:
        if name in values:
            axes[name] = number_or_grid(f"--param {name}", str(values.pop(name)))
    for name, parameter in parameters(model_class).items():  # a number of the model, as the axis of a curve
        if parameter.annotation in ("float", float) and any(mark in str(values.get(name)) for mark in ":,"):
            axes[name] = number_or_grid(f"--param {name}", str(values[name]))
            values[name] = float(axes[name][0])
    model_fields = {key: values.pop(key) for key in parameters(model_class) if key in values}
    for name, given in model_fields.items():
        if _is_grid(given) and parameters(model_class)[name].annotation in _NUMBERS:
            axes[name] = number_or_grid(f"--param {name}", given)
            first = float(axes[name][0])  # what the model is made with; the grid replaces it
            model_fields[name] = int(first) if first.is_integer() else first
    made = []
    used: set[str] = set()
    for learner_class, text in learner_classes:
        shared = {key: value for key, value in values.items() if key in parameters(learner_class)}
        used |= set(shared)
        own = key_values(split_outside(text), "--learner") if text else {}
        made.append(_made(learner_class, shared | own))
    unknown = [key for key in values if key not in used]
    if unknown:
        known = [
            *model_class.axis_names,
            *parameters(model_class),
            *(f for cls, _ in learner_classes for f in parameters(cls)),
        ]
        raise bad_parameter("parameter", unknown[0], f"one of: {', '.join(dict.fromkeys(known))}")
    return Request(_made(model_class, model_fields), made, axes)


_NUMBERS = ("float", "int", float, int)


def _is_grid(value: Any) -> bool:
    """Whether a field that holds a number is given several, as an axis may be."""
    return isinstance(value, str) and (":" in value or "," in value)


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


def split_outside(text: str) -> list[str]:
    """The parts of a text between commas, but for those within parentheses, which belong to a formula."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


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


def _made(cls: Any, values: dict[str, Any]) -> Any:
    return make(cls, values, {"target": "TARGET"}, "--param {name}=VALUE")
