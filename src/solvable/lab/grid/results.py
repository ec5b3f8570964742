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
from solvable.verbs.simulate import simulate_many
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
    return _runs(task, point.learner)


def run_once(model: Model, learner: Learner, d: int | None, seed: int, axes: dict[str, Any]) -> Outcome:
    """One simulation of size `d`, if the model has one, without its estimate.

    It uses one BLAS thread, so that its rounding is the same in any process.
    """
    (found,) = _run_each(model, learner, d, [seed], axes)
    return found


def _runs(task: Task, learner: Learner) -> list[dict[str, Any]]:
    """One call for all seeds and all values along the path, also those that only some of the seeds miss."""
    point, path = task.first, task.path
    seeds = list(dict.fromkeys(each.seed for each in task.points))
    axes: dict[str, Any] = dict(point.axes)
    along = [] if path is None else sorted({each.axes[path] for each in task.points})
    if path is not None:
        axes[path] = np.array(along)
    found: dict[Any, dict[Any, Any]] = {}
    for seed, run in zip(seeds, _run_each(point.model, learner, point.d, seeds, axes), strict=True):
        values = {"metrics": run.metrics, "converged": run.converged, "seconds": run.seconds} | run.details
        found[seed] = values if path is None else dict(zip(along, _split(values, len(along)), strict=True))
    return [found[each.seed] if path is None else found[each.seed][each.axes[path]] for each in task.points]


def _run_each(model: Model, learner: Learner, d: int | None, seeds: Any, axes: dict[str, Any]) -> list[Outcome]:
    renamed = {} if model.size in (None, "d") else {model.size: d}
    with single_thread():
        found = simulate_many(model, learner, None if renamed else d, seeds, **renamed, **axes)
    return [outcome.light(DETAILS) for outcome in found]


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
