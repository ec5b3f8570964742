"""The verbs on one model and one learner: predict, simulate, thresholds, optimize."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from solvable.core.checks import check_axes, check_count, check_learner, check_model, check_point
from solvable.core.errors import ConvergenceError, NotSimulable
from solvable.core.model import Learner, Model
from solvable.core.optimum import Optimum, best_value
from solvable.core.precision import float64
from solvable.core.registry import TheoryEntry, find_pair_thresholds, find_simulation, find_theory, find_thresholds
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status

__all__ = ["Optimum", "optimize", "predict", "simulate", "thresholds"]

# What one point of a grid may raise without taking the others down. Errors about the pair or the parameters
# (NotSolvable, TargetError, ValueError) concern every point and are never swallowed.
POINT_FAILURES = (ConvergenceError, ArithmeticError, np.linalg.LinAlgError, eqx.EquinoxRuntimeError)


def predict(model: Model, learner: Learner, throw: bool = True, **axes: Any) -> Prediction:
    """What theory says, in the limit of infinite dimension.

    **Arguments:** `model`, `learner`; the model's axes by keyword (`alpha` for most), numbers or arrays that broadcast
    against each other; `throw`, whether a single point that fails raises.

    **Returns:** a `Prediction`. Numbers in give Python floats and a `Status`; arrays in give arrays of their shape and
    an integer array of statuses. A point that fails inside an array is kept with its status. A metric that is not
    finite, or an order parameter that is not a number, is never marked converged.

    **Raises:** `ConvergenceError` for a single failed point (unless `throw=False`), `NotSolvable` for a pair without a
    theory, `ValueError` for a bad axis.
    """
    check_model(model)
    check_learner(learner)
    entry = find_theory(model, learner)
    arrays, shape = check_axes(model, axes)
    flat = {name: np.array(array).reshape(-1) for name, array in arrays.items()}
    found, error = _solve(entry, model, learner, flat, int(np.prod(shape)))
    prediction = _shaped(_guarded(found), shape)
    if shape == () and throw and not prediction.converged:
        if isinstance(error, ConvergenceError):
            raise error
        failure = ConvergenceError(_failure(model, learner, arrays, prediction.status, error))
        failure.prediction = prediction if error is None else None
        raise failure from error
    if shape != () and error is not None:
        failed = int(np.sum(~prediction.converged))
        message = f"{failed} of {prediction.status.size} points failed; the first error: {_one_line(error)}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return prediction


def simulate(model: Model, learner: Learner, d: int, seed: int = 0, **axes: Any) -> Outcome:
    """What one run of the learner's algorithm gives at dimension `d`.

    The data depends on the model, its axes, `d` and `seed` only, so two learners given the same seed see the same
    data, and a run is reproducible from its arguments. `Outcome.seconds` times the algorithm, not the sampling.
    An outcome with a metric that is not finite is not marked converged.
    """
    check_model(model)
    check_learner(learner)
    algorithm = find_simulation(model, learner)
    d, seed = check_count("d", d, least=2), check_count("seed", seed, least=0)
    point = check_point(model, axes)
    if type(model).sample is Model.sample:
        raise NotSimulable(f"{type(model).__name__} has no sampler: define `sample(rng, d, **axes)` on the model.")
    data_rng, algorithm_rng = _generators(seed, d, point)
    outcome, seconds = _run(algorithm, model, learner, d, point, data_rng, algorithm_rng)
    if not isinstance(outcome, Outcome):
        raise TypeError(f"the {_pair(model, learner)} algorithm must return an Outcome; got {type(outcome).__name__}.")
    metrics = {name: _plain(np.asarray(value, dtype=np.float64)) for name, value in outcome.metrics.items()}
    finite = all(np.all(np.isfinite(value)) for value in metrics.values())
    return dataclasses.replace(outcome, metrics=metrics, converged=bool(outcome.converged) and finite, seconds=seconds)


def thresholds(model: Model, learner: Learner | None = None) -> dict[str, Any]:
    """The values of the model's axis at which what can be learned changes, by name; or those of one learner.

    Without a learner they are those of Bayes-optimal learning and message passing.
    """
    check_model(model)
    if learner is not None:
        return float64(find_pair_thresholds(model, check_learner(learner)))(model, learner)
    return float64(find_thresholds(model))(model)


def optimize(
    model: Model,
    learner: Learner,
    over: str | Sequence[str] = "penalty",
    metric: str | None = None,
    bounds: Any = None,
    **axes: Any,
) -> Optimum:
    """The best value of a number of the learner (or else of the model), by differentiating the theory.

    **Arguments:** `over`, the field, or up to three that are optimised together; a number inside a field goes by its
    own name, such as `"scale"` for that of a loss; `metric`, what to optimise (`generalization_error` if there is one,
    otherwise `estimation_error`); `bounds`, where to look, a pair or a pair for each field (what the learner proposes
    unless told, else 1e-4 to 1e4); the model's axes, single numbers. Overlaps, cosines and accuracies are made large,
    every other metric small.

    **Returns:** an `Optimum`. `method` says whether the derivative of the theory was used (`"gradient"`) or, for a
    theory that JAX cannot trace, function values only (`"derivative-free"`). A best value at a bound has `at_bound`,
    and `bayes_optimal` is the prediction that no learner can beat.
    """
    check_model(model)
    check_learner(learner)
    entry = find_theory(model, learner)
    point = check_point(model, axes)
    return best_value(predict, entry, model, learner, over, metric, bounds, point)


def _generators(seed: int, d: int, point: dict[str, float]) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for the data and the algorithm, from the seed, the size and the bits of the axes."""
    bits = [int(np.float64(value + 0.0).view(np.uint64)) for value in point.values()]
    streams = (np.random.SeedSequence([seed, d, *bits], spawn_key=(stream,)) for stream in (0, 1))
    data_rng, algorithm_rng = (np.random.default_rng(stream) for stream in streams)
    return data_rng, algorithm_rng


@float64
def _run(algorithm, model, learner, d, point, data_rng, algorithm_rng) -> tuple[Any, float]:
    data = model.sample(data_rng, d, **point)
    start = time.perf_counter()
    outcome = algorithm(model, learner, data, algorithm_rng)
    return outcome, time.perf_counter() - start


@float64
def _solve(
    entry: TheoryEntry, model: Model, learner: Learner, axes: dict[str, np.ndarray], count: int
) -> tuple[Prediction, Exception | None]:
    """The theory at `count` points, every entry with a leading axis of that length, and the first error met."""
    together = entry.vectorized and bool(axes)
    if together:
        try:
            return _arrays(entry.function(model, learner, **axes), model, learner, count), None
        except POINT_FAILURES:
            pass  # find out which points fail by taking them one at a time
    points: list[Prediction | None] = []
    first_error = None
    for i in range(count):
        values = {name: array[i : i + 1] if together else float(array[i]) for name, array in axes.items()}
        try:
            found = entry.function(model, learner, **values)
            points.append(_arrays(found, model, learner, 1, pointwise=not together))
        except POINT_FAILURES as error:
            points.append(None)
            first_error = first_error or error
    return _stack(points, model), first_error


def _arrays(found: Any, model: Model, learner: Learner, count: int, pointwise: bool = False) -> Prediction:
    """What a theory returned, as NumPy arrays whose leading axis runs over the points."""
    if not isinstance(found, Prediction):
        raise TypeError(f"the {_pair(model, learner)} theory must return a Prediction; got {type(found).__name__}.")

    def leading(name: str, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            array = array.astype(np.float64)
        if pointwise:
            return array[None]
        if array.ndim == 0:
            return np.full(count, array)
        if array.shape[0] != count:
            what = f"the {_pair(model, learner)} theory returned {name} of shape {array.shape} for {count} points"
            raise ValueError(f"{what}; its first length must be {count}.")
        return array

    groups = {
        group: {name: leading(name, value) for name, value in getattr(found, group).items()}
        for group in ("metrics", "order_parameters", "uncertainty")
    }
    status, residual, iterations = (leading(k, getattr(found, k)) for k in ("status", "residual", "iterations"))
    return Prediction(status=status.astype(int), residual=residual, iterations=iterations.astype(int), **groups)


def _stack(points: list[Prediction | None], model: Model) -> Prediction:
    """One prediction from single points; a point that raised is NaN in every metric and marked NONFINITE."""
    solved = [point for point in points if point is not None]
    unknown = Prediction({name: np.full(1, np.nan) for name in model.definitions} if not solved else {})
    lost = dataclasses.replace(
        unknown, status=np.array([Status.NONFINITE]), residual=np.full(1, np.nan), iterations=np.zeros(1, int)
    )
    rows = [lost if point is None else point for point in points]

    def column(group: str) -> dict[str, np.ndarray]:
        samples = {name: value for row in rows for name, value in getattr(row, group).items()}
        blank = {name: np.full_like(value, np.nan) for name, value in samples.items()}
        return {name: np.concatenate([getattr(row, group).get(name, blank[name]) for row in rows]) for name in samples}

    return Prediction(
        metrics=column("metrics"),
        order_parameters=column("order_parameters"),
        status=np.concatenate([row.status for row in rows]),
        residual=np.concatenate([row.residual for row in rows]),
        iterations=np.concatenate([row.iterations for row in rows]),
        uncertainty=column("uncertainty"),
    )


def _guarded(found: Prediction) -> Prediction:
    """Mark NONFINITE every point that claims convergence but carries a metric that is not finite, or a NaN.

    An infinite order parameter is legitimate (a conjugate field at perfect recovery); an infinite metric is not.
    """
    bad = np.zeros(found.status.shape, bool)
    for value in found.metrics.values():
        bad |= ~np.isfinite(value).reshape(len(bad), -1).all(axis=1)
    for value in found.order_parameters.values():
        bad |= np.isnan(value).reshape(len(bad), -1).any(axis=1)
    return dataclasses.replace(
        found, status=np.where(bad & (found.status == Status.CONVERGED), int(Status.NONFINITE), found.status)
    )


def _shaped(found: Prediction, shape: tuple[int, ...]) -> Prediction:
    """Give every entry the shape of the axes; a single point becomes Python numbers."""

    def reshape(array: np.ndarray) -> Any:
        return _plain(array.reshape(shape + array.shape[1:]))

    status = found.status.reshape(shape)
    return Prediction(
        metrics={name: reshape(value) for name, value in found.metrics.items()},
        order_parameters={name: reshape(value) for name, value in found.order_parameters.items()},
        status=Status(int(status)) if shape == () else status,
        residual=reshape(found.residual),
        iterations=reshape(found.iterations),
        uncertainty={name: reshape(value) for name, value in found.uncertainty.items()},
    )


def _plain(array: np.ndarray) -> Any:
    return array.item() if array.ndim == 0 else array


def _pair(model: Model, learner: Learner) -> str:
    return f"{type(model).__name__} x {type(learner).__name__}"


def _failure(model: Model, learner: Learner, axes: dict[str, Any], status: Status, error: Exception | None) -> str:
    where = "".join(f", {name} = {float(value):g}" for name, value in axes.items())
    message = f"no prediction for {model}, {learner}{where}: {status.sentence}"
    message += f" ({_one_line(error)})" if error is not None else ""
    return f"{message}; {learner.advice(status) or status.advice}. Use throw=False to get the values with their status."


def _one_line(error: Exception) -> str:
    first = str(error).strip().splitlines()[:1]
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
