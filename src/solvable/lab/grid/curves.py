"""Learning curves and phase diagrams: a plan, computed without a store, as a curve.

A grid runs over axes of the model or over numeric fields of the model or the learners. Theory is computed for all
values of the axes at once; simulations are independent runs that go through any `concurrent.futures` executor.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from typing import Any

import numpy as np

from solvable.core.checks import is_array, real_array
from solvable.core.errors import ComputationError, NotSolvable, bad_parameter
from solvable.core.fields import get_field, is_number
from solvable.core.model import Learner, Model
from solvable.core.plain import to_json
from solvable.core.registry import find_thresholds
from solvable.lab.curve import Curve
from solvable.lab.curve.assemble import assemble
from solvable.lab.grid.crews import simple_crew
from solvable.lab.grid.plan import Plan, points_of
from solvable.lab.grid.points import Task
from solvable.lab.grid.request import make_plan
from solvable.lab.grid.results import results_of
from solvable.lab.grid.run import Keeper, execute
from solvable.lab.progress import progress_bar
from solvable.numerics.blas import single_thread
from solvable.verbs.predict import POINT_FAILURES


def learning_curve(
    model: Model,
    learners: Learner | Sequence[Learner],
    d: int | None = None,
    seeds: int | Sequence[int] | None = None,
    executor: Executor | None = None,
    progress: bool = True,
    marks: dict[str, float] | bool | None = None,
    **axes: Any,
) -> Curve:
    """Theory along one axis and, if `d` is given, simulations of dimension `d` at the same points.

    **Arguments:** `learners`, one or several; `d`, and `seeds`, how many runs a point (16 unless told) or which, where
    a model without a size has runs if `seeds` are given; `executor`, any `concurrent.futures` executor for the runs;
    `marks`, the thresholds to keep with the curve, as a dictionary, or whether to find those of the model: unless told,
    only along the axis they are values of (the model's first, or the field in its place) and if that is quick
    (`Model.quick_thresholds`); the model's axes by keyword, and
    numeric fields of the model or the learners if they are to be varied. Exactly one of these is a grid.

    **Returns:** a `Curve`. Each run uses one BLAS thread and its own seed, so the values do not depend on the number
    of workers. A run that raises is kept as NaN, its error in the variable `failed`; if all do, the first is raised.
    """
    grid = {name: _grid(name, value) for name, value in axes.items() if is_array(value)}
    if len(grid) != 1:
        given = ", ".join(grid) or "none"
        raise ValueError(f"exactly one axis must be a grid (a one-dimensional array of values); got {given}.")
    plan = _plan(model, learners, d, seeds, 16, axes | grid)
    if isinstance(marks, dict):
        return computed(plan, executor, progress, marks)
    along = model.threshold_axis() in grid and _has_thresholds(model)
    wanted = along and (marks or (marks is None and model.quick_thresholds))
    return computed(dataclasses.replace(plan, thresholds=bool(wanted)), executor, progress)


def phase_diagram(
    model: Model,
    learner: Learner,
    x: tuple[str, Any],
    y: tuple[str, Any],
    metric: str | None = None,
    d: int | None = None,
    seeds: int | Sequence[int] | None = None,
    executor: Executor | None = None,
    progress: bool = True,
    marks: bool = True,
    **axes: Any,
) -> Curve:
    """A metric over two axes, each the name of an axis or of a numeric field with its values.

    **Arguments:** `x` and `y`, for instance `("alpha", grid)` and `("noise", grid)`; `metric`, what `.plot()` draws
    (`squared_overlap` unless told, where there is one); `d` and `seeds` (4 unless told), to simulate as well; `marks`,
    whether to find the thresholds along the model's first axis, or the field in its place, where that is `x` or `y`,
    for each value of the other
    (this can take long); the remaining axes, single numbers.

    **Returns:** a `Curve`. Its variables `<name>_threshold` are the thresholds that vary over the diagram, NaN where
    one could not be found and infinite where there is none; the figure shows them as lines.
    """
    (x_name, x_values), (y_name, y_values) = _named_grid("x", x), _named_grid("y", y)
    if x_name == y_name or x_name in axes or y_name in axes:
        given = ", ".join([x_name, y_name, *axes])
        raise ValueError(f"x and y must be two different axes, given nowhere else; got {given}.")
    plan = _plan(model, learner, d, seeds, 4, {x_name: x_values, y_name: y_values, **axes})
    # Thresholds lie along one axis. They vary with the fields of the model, and do not depend on the learner's.
    homes = {axis.name: axis.home for axis in plan.grid}
    other = next(home for name, home in homes.items() if name != model.threshold_axis())
    along = model.threshold_axis() in homes and other != "axis" and _has_thresholds(model)
    curve = computed(dataclasses.replace(plan, thresholds=marks and along), executor, progress)
    curve.dataset.attrs["metric"] = curve.metric_or_default(metric)
    return curve


def computed(
    plan: Plan,
    executor: Executor | None = None,
    progress: bool = True,
    marks: dict[str, float] | None = None,
) -> Curve:
    """The curve of a plan, computed here and now; the executor, if there is one, makes the runs meanwhile.

    `marks` are thresholds that are known already.
    """
    layout = plan.layout(filed=False)
    here = [task for task in layout.tasks if task.first.seed is None]
    runs = [task for task in layout.tasks if task.first.seed is not None]
    kept = Keeper()
    shared = nullcontext() if executor is None else single_thread()  # its threads, or its processes, take the cores
    with shared, progress_bar(points_of(layout.tasks), "learning curve", progress) as show:
        theory = [(task, results_of if task.first.learner is not None else _thresholds) for task in here]
        execute(runs, simple_crew(executor), kept, lambda failed: show(), theory)
    _raise_if_all_failed(runs, kept)
    dataset = assemble(layout.content, kept.records.get, strict=True)
    if marks is not None:
        dataset.attrs["thresholds"] = json.dumps(to_json(marks))
    return Curve(dataset)


def _plan(model: Model, learners: Any, d: Any, seeds: Any, default: int, values: dict[str, Any]) -> Plan:
    plan = make_plan(model, learners, d, seeds, False, values, default, lines=True)
    for axis in plan.grid:
        owner = plan.learners[axis.learners[0]] if axis.learners else plan.model
        if axis.home != "axis" and not is_number(get_field(owner, axis.name)):
            raise ValueError(f"{axis.name} cannot be a grid: it is not a number on {type(owner).__name__}.")
    return plan


def _thresholds(task: Task) -> list[dict[str, Any]]:
    """The thresholds of a model that can be found; a curve does without the others."""
    try:
        return results_of(task)
    except (NotSolvable, *POINT_FAILURES):
        return [{"thresholds": {}}]


def _raise_if_all_failed(runs: list[Task], kept: Keeper) -> None:
    records = [kept.records.get(point.id) for task in runs for point in task.points]
    if not records or not all(record is not None and "error" in record for record in records):
        return
    results_of(runs[0])  # raises it again, with where it comes from
    raise ComputationError(f"every run failed, the first with: {records[0]['error']['message']}")  # pyright: ignore


def _has_thresholds(model: Model) -> bool:
    try:
        find_thresholds(model)
    except NotSolvable:
        return False
    return True


def _named_grid(which: str, value: Any) -> tuple[str, np.ndarray]:
    try:
        name, values = value
    except (TypeError, ValueError):
        raise bad_parameter(which, value, "a pair (name, values), such as ('alpha', grid)") from None
    if not isinstance(name, str):
        raise bad_parameter(which, value, "a pair (name, values), such as ('alpha', grid)")
    return name, _grid(name, values)


def _grid(name: str, value: Any) -> np.ndarray:
    array = real_array(name, value)
    if array.ndim != 1 or not np.all(np.isfinite(array)) or len(np.unique(array)) < array.size:
        raise bad_parameter(name, value, "a one-dimensional array of different finite values")
    return array
