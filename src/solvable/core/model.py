"""What is learned (`Model`) and how (`Learner`): two abstract bases, immutable equinox modules."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.fields import field_names, has_field, is_number, number_paths, replaced
from solvable.core.status import Status


class Data(NamedTuple):
    """One finite-size instance: inputs `X` (n x d), labels `y` (n), and the teacher's weights (d x r), for scoring."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


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
    """How data is generated. Subclasses declare their parameters as fields and their axes below.

    `axes` are the keywords the verbs take (`alpha` for most models), `scaling` says what they mean, and
    `definitions` gives each metric's meaning in one line. A model that can be simulated has `sample`.
    """

    axes: ClassVar[tuple[str, ...]] = ("alpha",)
    scaling: ClassVar[str] = "n = alpha d"
    definitions: ClassVar[dict[str, str]] = {}

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> Any:
        """Draw one instance of size `d` at the given axes (for most models, a `Data`)."""
        raise NotImplementedError(f"{type(self).__name__} has no sampler: define `sample(rng, d, **axes)` on the model")

    def check_axes(self, **axes: np.ndarray) -> None:
        """Refuse axis values the model cannot take, with a `ValueError` naming the axis."""
        for name, value in axes.items():
            bad = ~(np.isfinite(value) & (np.asarray(value) >= 0))
            if np.any(bad):
                raise bad_parameter(name, float(np.asarray(value)[bad].flat[0]), "finite and not negative")


class Learner(_Named):
    """How the data is learned from. Subclasses declare hyper-parameters as fields.

    `by_default` says whether commands that take all of a model's learners take this one too; not so where it means
    little before its hyper-parameters are chosen.
    """

    by_default: ClassVar[bool] = True

    def advice(self, status: Status) -> str | None:
        """The usual cause of a prediction that ended like this and what to try; None for that of the status itself."""
        return None
