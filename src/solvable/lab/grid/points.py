"""What a point of a grid is, in a form that two points share only if they are the same computation.

A point is a prediction of theory, a run at finite size, or the thresholds of a model. In a store it goes by its id, a
digest of this form. So nothing may be left out of it, and a value that has no lasting description, such as a function,
is refused rather than named.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from solvable.channels.base import Channel
from solvable.core.model import Learner, Model
from solvable.targets.target import Target

SCHEMA = 2
"""Part of every id: raise it when the same description comes to mean another computation.

2: channels are described by all that defines them, a model without a size has none.
"""


@dataclasses.dataclass(frozen=True)
class Point:
    """One computation.

    Without a seed it is a prediction, without a learner the thresholds of the model. A run has the size `d`, unless its
    model has no size. `id` names it: in a store, the id under which its result is kept. `group` numbers points that
    share what has to be compiled or tabulated, so that one worker takes them one after another. `about` describes the
    model and the learner in plain values, made once for all points that have them.
    """

    id: str
    model: Model
    learner: Learner | None
    axes: dict[str, float]
    d: int | None = None
    seed: int | None = None
    group: int = 0
    about: dict[str, Any] = dataclasses.field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """What is computed, in words and numbers, as kept beside the result."""
        found = dict(self.about)
        if self.learner is not None:
            found["axes"] = dict(self.axes)
        if self.d is not None:
            found["d"] = self.d
        if self.seed is not None:
            found["seed"] = self.seed
        return found


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Points that one call computes: a single one, or several that differ in their axes or in their seeds only.

    A `line` is theory that is asked for all values of its axes at once. A run along the axis `path` is one run that is
    seen at all of its values. The runs of several seeds are made together; their points come seed by seed.
    """

    points: tuple[Point, ...]
    line: bool = False
    path: str | None = None

    @property
    def first(self) -> Point:
        """One of the points, for what they share: model, learner, size and group, and whether they have seeds."""
        return self.points[0]

    @property
    def alone(self) -> list[Task]:
        """The same points in the same order, as tasks of one seed each."""
        parts = (tuple(points) for _, points in itertools.groupby(self.points, key=lambda point: point.seed))
        return [dataclasses.replace(self, points=points) for points in parts]


def identity(value: Any, name: str) -> Any:
    """The value of the parameter `name` as plain JSON values that determine it; `ValueError` if there are none."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Target):
        return _target(value, name)
    if isinstance(value, (Model, Learner)):
        return {"name": _kind(type(value), value.name())} | _fields(value, name)
    if isinstance(value, Channel):
        return _channel(value, name)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"class": _kind(type(value), type(value).__name__)} | _fields(value, name)
    if isinstance(value, (list, tuple)):
        return [identity(item, name) for item in value]
    if isinstance(value, dict):
        return {str(key): identity(value[key], f"{name}.{key}") for key in sorted(value, key=str)}
    if hasattr(value, "__array__") and not callable(value):
        return _array(np.asarray(value))
    raise ValueError(
        f"{name} = {value!r:.80} is not allowed in a sweep: its points are filed under what {name} is, and a "
        f"{type(value).__name__} has no lasting description. Give a number, a text such as a formula, or an array."
    )


def dumped(value: Any) -> str:
    """The one text of plain values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(model: str, learner: str, axes: dict[str, float], d: int | None, seed: int | None) -> str:
    """The id of a point: a digest of the dumped model and learner, the axes, the size, the seed and the schema."""
    own = dumped([SCHEMA, {name: _number(value) for name, value in axes.items()}, d, seed])
    return hashlib.sha256("\n".join((model, learner, own)).encode()).hexdigest()[:32]


def _fields(value: Any, name: str) -> dict[str, Any]:
    """Every field, but for those that a class gained later where they are at the value that changes nothing."""
    found = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
    counts = {f.name: v for f, v in found.items() if "left_out" not in f.metadata or v != f.metadata["left_out"]}
    return {field: identity(v, field) for field, v in counts.items()}


def _kind(cls: type, name: str) -> str:
    """The name of a class; of a class from elsewhere with its module, since two modules may use one name."""
    if _ours(cls):
        return name
    module = cls.__module__
    if module == "__main__":  # a script keeps its results when it becomes a module
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or module).stem
    return f"{module}.{cls.__qualname__}"


def _ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "solvable"


def _channel(channel: Channel, name: str) -> dict[str, Any]:
    """The class of a channel and all that defines it."""
    return {"channel": _kind(type(channel), type(channel).__name__)} | {
        key: identity(value, key if isinstance(value, Target) else f"{name}.{key}")
        for key, value in channel.definition.items()
    }


def _target(target: Target, name: str) -> Any:
    if target.text is None or target.expression is None:
        raise ValueError(
            f"{name} is the function {target.name}, which is not allowed in a sweep: its points are filed under the "
            "formula, and a function has no lasting description. Write the formula as text, such as 'abs(z)'."
        )
    if target.projections == target.expression.projections:
        return target.text
    return {"formula": target.text, "projections": target.projections}


def _number(value: float) -> float | dict[str, str]:
    """A float; one that JSON has no number for in a form that no text shares."""
    return float(value) + 0.0 if np.isfinite(value) else {"float": str(float(value))}


def _array(array: np.ndarray) -> Any:
    if array.ndim == 0:
        return identity(array.item(), "array")
    if array.dtype.kind not in "biufU":
        raise ValueError(f"an array of {array.dtype} is not allowed in a sweep: it must hold numbers.")
    content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"array": str(array.dtype), "shape": list(array.shape), "sha256": content}
