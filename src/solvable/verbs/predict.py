"""`predict`: what theory says of a model and a learner, in the limit of infinite dimension."""

from __future__ import annotations

import warnings
from typing import Any

import equinox as eqx
import numpy as np

from solvable.core.checks import check_axes, check_axis_names, check_learner, check_model, is_traced, pair_name
from solvable.core.errors import ConvergenceError
from solvable.core.model import Learner, Model
from solvable.core.precision import float64
from solvable.core.programs import drop_programs
from solvable.core.ranges import guarded, offence
from solvable.core.registry import TheoryEntry, find_theory
from solvable.core.results import Prediction, leading_arrays, reshaped, stacked
from solvable.core.status import Status
from solvable.verbs.lookup import looked_up

# What one point of a grid may raise without taking the others down. Errors about the pair or the parameters
# (NotSolvable, TargetError, ValueError) concern every point and are never swallowed.
POINT_FAILURES = (ConvergenceError, ArithmeticError, np.linalg.LinAlgError, eqx.EquinoxRuntimeError)


def predict(model: Model, learner: Learner, throw: bool = True, **axes: Any) -> Prediction:
    """What theory says, in the limit of infinite dimension.

    **Arguments:** `model`, `learner`; the model's axes by keyword (`alpha` for most), numbers or arrays that broadcast
    against each other; `throw`, whether a single point that fails raises.

    **Returns:** a `Prediction`. Numbers in give Python floats and a `Status`; arrays in give arrays of their shape and
    an integer array of statuses. A point that fails inside an array is kept with its status. Never marked converged are
    a metric that is not finite, an order parameter that is not a number, an error below zero or, for a posterior mean,
    above what knowing nothing gives, an overlap out of its bounds, and a metric whose uncertainty is a tenth of it or
    more. Inside `jax.grad` and other transformations of an axis the theory's own values are returned, neither checked
    nor guarded: wrap the whole in `jax.enable_x64(True)` for derivatives in double precision.

    **Raises:** `ConvergenceError` for a single failed point (unless `throw=False`), `NotSolvable` for a pair without a
    theory, `ValueError` for a bad axis.
    """
    check_model(model)
    check_learner(learner)
    entry = looked_up(find_theory, model, learner)
    if is_traced(axes):
        return _traced(entry, model, learner, axes)
    drop_programs()
    arrays, shape = check_axes(model, axes)
    flat = {name: np.array(array).reshape(-1) for name, array in arrays.items()}
    found, error = _solve(entry, model, learner, flat, int(np.prod(shape)))
    ranges = float64(model.ranges)(learner)
    found = guarded(found, ranges)
    prediction = reshaped(found, shape)
    if shape == () and throw and not prediction.converged:
        if isinstance(error, ConvergenceError):
            raise error
        failure = ConvergenceError(_failure(model, learner, arrays, prediction.status, error, offence(found, ranges)))
        failure.prediction = prediction if error is None else None
        raise failure from error
    if shape != () and error is not None:
        failed = int(np.sum(~prediction.converged))
        message = f"{failed} of {prediction.status.size} points failed; the first error: {_one_line(error)}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return prediction


@float64
def _solve(
    entry: TheoryEntry, model: Model, learner: Learner, axes: dict[str, np.ndarray], count: int
) -> tuple[Prediction, Exception | None]:
    """The theory at `count` points, every entry with a leading axis of that length, and the first error met."""
    together = entry.vectorized and bool(axes)

    def ask(values: dict[str, Any], points: int) -> Prediction:
        found = _checked(entry.function(model, learner, **values), model, learner)
        return leading_arrays(found, points, pair_name(model, learner), pointwise=not together)

    if together:
        try:
            return ask(axes, count), None
        except POINT_FAILURES:
            pass  # find out which points fail by taking them one at a time
    points: list[Prediction | None] = []
    first_error = None
    for i in range(count):
        values = {name: array[i : i + 1] if together else float(array[i]) for name, array in axes.items()}
        try:
            points.append(ask(values, 1))
        except POINT_FAILURES as error:
            points.append(None)
            first_error = first_error or error
    return stacked(points, model.definitions), first_error


@float64
def _traced(entry: TheoryEntry, model: Model, learner: Learner, axes: dict[str, Any]) -> Prediction:
    """The theory at values that JAX traces: there are no numbers to check, so that all is returned as it is."""
    import jax
    import jax.numpy as jnp

    names = check_axis_names(model, axes)
    arrays = dict(zip(names, jnp.broadcast_arrays(*(jnp.asarray(axes[name]) for name in names)), strict=True))
    shape = next(iter(arrays.values())).shape
    if not entry.vectorized and shape != ():
        raise ValueError(f"the {pair_name(model, learner)} theory takes one point at a time: use numbers inside JAX.")
    values = {name: array.reshape(-1) if entry.vectorized else array for name, array in arrays.items()}
    try:
        found = _checked(entry.function(model, learner, **values), model, learner)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise TypeError(f"the {pair_name(model, learner)} theory cannot be traced by JAX; call it outside.") from error

    def reshape(value: Any) -> Any:
        array = jnp.asarray(value)
        return array.reshape(shape + array.shape[1:]) if entry.vectorized and array.ndim else array

    groups = ("metrics", "order_parameters", "uncertainty")
    shaped = {group: {k: reshape(v) for k, v in getattr(found, group).items()} for group in groups}
    rest = {name: reshape(getattr(found, name)) for name in ("status", "residual", "iterations")}
    return Prediction(**shaped, **rest)


def _checked(found: Any, model: Model, learner: Learner) -> Prediction:
    if not isinstance(found, Prediction):
        raise TypeError(f"the {pair_name(model, learner)} theory must return a Prediction; got {type(found).__name__}.")
    return found


def _failure(
    model: Model, learner: Learner, axes: dict[str, Any], status: Status, error: Exception | None, offence: str
) -> str:
    where = "".join(f", {name} = {float(value):g}" for name, value in axes.items())
    message = f"no prediction for {model}, {learner}{where}: {status.sentence}"
    reason = _one_line(error) if error is not None else offence
    message += f" ({reason})" if reason else ""
    return f"{message}; {learner.advice(status) or status.advice}. Use throw=False to get the values with their status."


def _one_line(error: Exception) -> str:
    first = str(error).strip().splitlines()[:1]
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
