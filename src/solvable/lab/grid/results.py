"""The results of a task as values by name: the same bits whatever the process computed before, and in any process."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np

from solvable.core.errors import ConvergenceError
from solvable.core.model import Learner, Model
from solvable.core.results import Outcome, Prediction
from solvable.lab.grid.points import Point, Task
from solvable.numerics.blas import single_thread
from solvable.verbs.predict import predict
from solvable.verbs.simulate import simulate
from solvable.verbs.thresholds import thresholds

DETAILS = ("iterations", "consistent")
"""What is kept of the details of a run, if it tells: how long it took, and whether it is consistent with itself."""


def results_of(task: Task) -> list[dict[str, Any]]:
    """Compute a task: the result of each of its points. A prediction that did not converge is one, with its status."""
    point = task.first
    if point.learner is None:
        with single_thread():
            return [{"thresholds": dict(thresholds(point.model))}]
    if point.seed is None:
        return _predictions(task, point.learner)
    axes: dict[str, Any] = dict(point.axes)
    if task.path is not None:
        axes[task.path] = np.array([each.axes[task.path] for each in task.points])
    found = run_once(point.model, point.learner, point.d, point.seed, axes)
    values = {"metrics": found.metrics, "converged": found.converged, "seconds": found.seconds} | found.details
    return [values] if task.path is None else _split(values, len(task.points))


def run_once(model: Model, learner: Learner, d: int | None, seed: int, axes: dict[str, Any]) -> Outcome:
    """One simulation of size `d`, if the model has one, without its estimate.

    It uses one BLAS thread, so that its rounding is the same in any process.
    """
    size: dict[str, Any] = {} if model.size is None else {model.size: d}
    with single_thread():
        return simulate(model, learner, seed=seed, **size, **axes).light(DETAILS)


def _predictions(task: Task, learner: Learner) -> list[dict[str, Any]]:
    if not task.line:
        with single_thread():
            return [_described(_predicted(task.first, learner))]
    if len(task.points) == 1:
        return [_described(predict(task.first.model, learner, throw=False, **task.first.axes))]
    axes = {name: np.array([point.axes[name] for point in task.points]) for name in task.first.axes}
    found = _described(predict(task.first.model, learner, throw=False, **axes))
    return _split(found, len(task.points))


def _predicted(point: Point, learner: Learner) -> Prediction:
    try:
        return predict(point.model, learner, True, **point.axes)
    except ConvergenceError as error:
        if error.prediction is None:
            raise
        return error.prediction


def _described(found: Prediction) -> dict[str, Any]:
    return {
        "metrics": found.metrics,
        "order_parameters": {name: value for name, value in found.order_parameters.items() if np.isrealobj(value)},
        "uncertainty": found.uncertainty,
        "status": np.asarray(found.status, dtype=int)[()],
        "residual": found.residual,
        "iterations": found.iterations,
    }


def _split(values: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The parts of a line of `count` points; what is the same for the whole line, such as its seconds, is so for each.

    By columns, since a line of theory may have very many points.
    """

    def parts(value: Any) -> Iterable[Any]:
        if isinstance(value, dict):
            return _split(value, count) if value else repeat({}, count)
        if np.ndim(value) == 0 or len(value) != count:
            return repeat(value, count)
        return value.tolist() if np.ndim(value) == 1 else value

    columns = [parts(value) for value in values.values()]
    return [dict(zip(values, row, strict=True)) for row in zip(*columns, strict=True)]
