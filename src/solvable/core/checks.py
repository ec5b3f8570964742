"""What the verbs accept: models, learners, axes, sizes and seeds, each refused with its name and what it takes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.model import Learner, Model


def check_model(model: Any) -> Model:
    """The model itself, or a `TypeError` that says what was given instead."""
    return _instance("model", model, Model, "MultiIndex('abs(z)')")


def check_learner(learner: Any) -> Learner:
    """The learner itself, or a `TypeError` that says what was given instead."""
    return _instance("learner", learner, Learner, "BayesOptimal()")


Matrix = tuple[tuple[float, ...], ...]
MOST = 2**63 - 1
"""The largest count: what files and arrays hold."""


def check_count(name: str, value: Any, least: int, most: int = MOST) -> int:
    """An integer of at least `least`, as a Python int (`True` and `3.0` are not integers)."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    count = int(value) if whole else least - 1
    if count < least:
        raise bad_parameter(name, value, f"an integer of at least {least}")
    if count > most:
        raise bad_parameter(name, value, f"an integer of at most {most}")
    return count


def is_traced(tree: Any) -> bool:
    """Whether JAX is differentiating or compiling through a value, which then has no number to look at."""
    import jax
    from jax.core import Tracer

    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def real_number(name: str, value: Any, takes: str, allowed: Callable[[float], bool] = lambda x: True) -> Any:
    """A finite number that is `allowed`, as a Python float; a value that JAX traces is let through unchecked."""
    if is_traced(value):
        return value
    if isinstance(value, np.ma.MaskedArray):  # whose number may be one that is not there
        raise bad_parameter(name, value, takes)
    if hasattr(value, "item") and np.ndim(value) == 0:
        value = value.item()
    try:
        number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and allowed(number)):
        raise bad_parameter(name, value, takes)
    return number


def is_array(value: Any) -> bool:
    """Whether a value is a list or an array, rather than a single value."""
    return isinstance(value, (list, tuple, range)) or np.ndim(value) > 0


def real_array(name: str, value: Any) -> np.ndarray:
    """The value as a float64 array, refusing text, complex numbers, ragged lists and empty arrays."""
    takes = "a number or an array of numbers"
    if isinstance(value, np.ma.MaskedArray) or (isinstance(value, (list, tuple)) and any(map(_is_no_number, value))):
        raise bad_parameter(name, value, takes)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise bad_parameter(name, value, takes) from None
    if array.dtype.kind not in "iuf" or array.size == 0:
        raise bad_parameter(name, value, takes)
    return array.astype(np.float64)


def as_matrix(name: str, value: Any) -> Matrix:
    """Rows of numbers, from an array, a list of one row, or text such as `"0.2 0.1; -0.1 0.3"`."""
    if isinstance(value, str):
        try:
            value = [[float(word) for word in row.split()] for row in value.split(";")]
        except ValueError:
            raise bad_parameter(name, value, "numbers, with spaces between them and ; between rows") from None
    array = np.atleast_2d(real_array(name, value))
    if array.ndim > 2 or not np.all(np.isfinite(array)):
        raise bad_parameter(name, value, "a matrix of finite numbers")
    return tuple(tuple(row) for row in array.tolist())


def _is_no_number(value: Any) -> bool:
    """Whether a value would become a number in an array although it is none."""
    return isinstance(value, (bool, np.bool_, np.ma.MaskedArray))


def check_axis_names(model: Model, axes: dict[str, Any]) -> tuple[str, ...]:
    """The names of the model's axes; one that is missing or unknown is a `ValueError`."""
    kind, declared = type(model).__name__, model.axis_names
    takes = f"{kind} takes {', '.join(declared) if declared else 'no axis'} ({model.scaling})"
    unknown = [name for name in axes if name not in declared]
    if unknown:
        raise ValueError(f"unknown axis {', '.join(unknown)}: {takes}.")
    missing = [name for name in declared if name not in axes]
    if missing:
        raise ValueError(f"missing axis {', '.join(missing)}: {takes}.")
    return declared


def check_axes(model: Model, axes: dict[str, Any]) -> tuple[dict[str, np.ndarray], tuple[int, ...]]:
    """The model's axes in their declared order, broadcast against each other, and their common shape.

    A missing or unknown axis is a `ValueError` that names it and the axes of the model; then the model itself
    refuses the values it cannot take (`Model.check_axes`).
    """
    arrays = {name: real_array(name, axes[name]) for name in check_axis_names(model, axes)}
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"the axes do not broadcast against each other: {shapes}.") from None
    model.check_axes(**arrays)
    return {name: np.broadcast_to(array, shape) for name, array in arrays.items()}, shape


def check_point(model: Model, axes: dict[str, Any]) -> dict[str, float]:
    """The model's axes when each must be a single number, as Python floats."""
    arrays, shape = check_axes(model, axes)
    if shape != ():
        name = next(name for name in arrays if np.ndim(axes[name]) > 0)
        raise bad_parameter(name, axes[name], "a single number here")
    return {name: float(array) for name, array in arrays.items()}


def check_path(model: Model, axes: dict[str, Any], path: str) -> tuple[np.ndarray, dict[str, float]]:
    """The values of the axis that one run follows, a number or an increasing array, and the other axes as floats."""
    arrays, shape = check_axes(model, axes)
    for name in arrays:
        if name != path and np.ndim(axes[name]) > 0:
            raise bad_parameter(name, axes[name], "a single number here")
    values = arrays.pop(path)
    if len(shape) > 1 or (shape and np.any(np.diff(values) <= 0)):
        raise bad_parameter(path, axes[path], "a number or an increasing one-dimensional array here")
    return values, {name: float(array.flat[0]) for name, array in arrays.items()}


def pair_name(model: Model, learner: Learner) -> str:
    """How messages name a pair."""
    return f"{type(model).__name__} x {type(learner).__name__}"


def _instance(name: str, value: Any, kind: type, example: str) -> Any:
    if isinstance(value, kind):
        return value
    if isinstance(value, type) and issubclass(value, kind):
        got = f"the class {value.__name__}; write {value.__name__}(...) to make an instance"
    else:
        got = f"{type(value).__name__} {value!r}"
    raise TypeError(f"{name} must be a {kind.__name__}, such as {example}; got {got}.")
