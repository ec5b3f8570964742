"""What is learned (`Model`) and how (`Learner`): two abstract bases, immutable equinox modules."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis, as_axes
from solvable.core.errors import bad_parameter
from solvable.core.fields import field_names, has_field, is_number, number_paths, replaced
from solvable.core.memory import check_memory
from solvable.core.ranges import Range
from solvable.core.status import Status


class Data(NamedTuple):
    """One finite-size instance: inputs `X` (n x d), labels `y` (n), and the teacher's weights (d x r), for scoring."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


BLOCK = 256
"""How many samples of a stream are made at a time, unless told."""


class Stream:
    """Fresh samples of one instance without end: `draw(n)` gives the next n, `truth` is what they are drawn from.

    `samples(n)` makes n inputs and their labels. It is called for `block` samples at a time, so that the samples of a
    stream are the same however many are asked for at once.
    """

    def __init__(self, truth: Any, samples: Callable[[int], tuple[np.ndarray, np.ndarray]], block: int = BLOCK):
        self.truth = truth
        self._samples, self._block = samples, block
        self._left: tuple[np.ndarray, np.ndarray] | None = None

    def draw(self, n: int) -> Data:
        """The next n samples."""
        from solvable.core.checks import check_count  # which knows the models

        n = check_count("n", n, least=0)
        parts = [self._samples(self._block) if self._left is None else self._left]
        inputs = np.asarray(parts[0][0])
        check_memory(float(n) * inputs.itemsize * math.prod(inputs.shape[1:]), f"{n} samples", "n", n)
        while sum(len(y) for _, y in parts) < n:
            parts.append(self._samples(self._block))
        X, y = parts[0] if len(parts) == 1 else (np.concatenate(column) for column in zip(*parts, strict=True))
        self._left = (X[n:], y[n:])
        return Data(X[:n], y[:n], self.truth)


def kebab_case(name: str) -> str:
    """`MultiIndex` -> `multi-index`, `AMP` -> `amp`: the name used on the command line and in files."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


class _Named(eqx.Module):
    @classmethod
    def name(cls) -> str:
        """The registry name, in kebab case."""
        return kebab_case(cls.__name__)

    def with_field(self, field: str, value: Any):
        """A copy with one field replaced, or a number inside a field's module, such as the `scale` of a loss."""
        if not has_field(self, field):
            takes = f"one of the fields of {type(self).__name__}: {', '.join(field_names(self)) or 'none'}"
            raise bad_parameter("field", field, takes)
        path = number_paths(self).get(field, (field,))
        return replaced(self, path if len(path) == 1 or is_number(value) else (field,), value)

    def search_bounds(self, field: str, model: Any, axes: dict[str, float]) -> tuple[float, float] | None:
        """Where `optimize` looks for the best value of a number unless told; None for its own default."""
        return None

    def describe(self) -> dict[str, Any]:
        """The name and the fields as plain values, as stored beside results."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"name": self.name()} | {k: _plain(v) for k, v in fields.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, _Named):
        return value.describe()
    if hasattr(value, "item") and np.ndim(value) == 0:
        return value.item()
    return str(value)


class Model(_Named):
    """How data is generated. Subclasses declare their parameters as fields, and what follows on the class.

    - `axes`: the keywords the verbs take (`alpha` for most models), each an `Axis` or just its name; `axis_names` are
      their names, and `scaling` says what they mean.
    - `thresholds_in`: of a model without axes, the field whose values its thresholds are.
    - `size`: what the size of a run is called, None for a model that has none besides its axes.
    - `definitions`: each metric's meaning in one line.
    - `without`: learners registered for a base class that do not apply to this one.
    - `references`: publications about this model that a pair registered for a base class does not name.

    A model that can be simulated has `sample`, and `stream` for the learners that see fresh samples one after another.
    """

    axes: ClassVar[Sequence[Axis | str]] = (Axis("alpha", "n/d"),)
    axis_names: ClassVar[tuple[str, ...]] = ("alpha",)
    thresholds_in: ClassVar[str | None] = None
    scaling: ClassVar[str] = "n = alpha d"
    size: ClassVar[str | None] = "d"
    definitions: ClassVar[dict[str, str]] = {}
    without: ClassVar[tuple[type[Learner], ...]] = ()
    references: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.axes = as_axes(cls.axes)
        cls.axis_names = tuple(axis.name for axis in cls.axes)
        if cls.size in cls.axis_names:
            raise bad_parameter("size", cls.size, f"another name than an axis of {cls.__name__}")

    @classmethod
    def threshold_axis(cls) -> str | None:
        """What its thresholds are values of: its first axis, or the field that stands for one."""
        return next(iter(cls.axis_names), cls.thresholds_in)

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> Any:
        """Draw one instance of size `d` at the given axes (for most models, a `Data`).

        A model without size is given none: `sample(rng, **axes)`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sampler: define `sample(rng, d, **axes)` on the model")

    def stream(self, rng: np.random.Generator, d: int, **axes: float) -> Any:
        """Draw a truth of size `d` and return the `Stream` of its samples; the axis that a run follows is left out."""
        raise NotImplementedError(f"{type(self).__name__} has no stream: define `stream(rng, d, **axes)` on the model")

    @property
    def quick_thresholds(self) -> bool:
        """Whether its thresholds are found in seconds: only then do curves look for them unasked."""
        return True

    def ranges(self, learner: Learner) -> dict[str, Range]:
        """The values that metrics of this learner can take, where their names do not tell (`usual_range`)."""
        return {}

    def check_axes(self, **axes: np.ndarray) -> None:
        """Refuse axis values the model cannot take, with a `ValueError` naming the axis."""
        for axis in as_axes(self.axes):
            if axis.name in axes:
                axis.check(axes[axis.name])


class Learner(_Named):
    """How the data is learned from. Subclasses declare hyper-parameters as fields.

    `by_default` says whether commands that take all of a model's learners take this one too; not so where it means
    little before its hyper-parameters are chosen. `posterior_mean` says that the estimate is one, given the data or a
    part of what they say: then it is never worse than knowing nothing.
    """

    by_default: ClassVar[bool] = True
    posterior_mean: ClassVar[bool] = False

    def advice(self, status: Status) -> str | None:
        """The usual cause of a prediction that ended like this and what to try; None for that of the status itself."""
        return None
