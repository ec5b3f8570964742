"""Grids of predictions and simulations: learning curves and phase diagrams.

A grid runs over axes of the model or over numeric fields of the model or the learners. Theory is computed for all
values of the axes at once; simulations are independent runs that go through any `concurrent.futures` executor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import nullcontext
from typing import Any

import numpy as np

from solvable.core.checks import check_axes, check_count, check_model, real_array
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.core.fields import has_field, is_number
from solvable.core.model import Learner, Model
from solvable.core.registry import has_simulation, has_theory
from solvable.core.results import Outcome, Prediction
from solvable.lab.assemble import assemble
from solvable.lab.curve import Curve
from solvable.lab.pairs import check_learners, check_names, check_pairs, check_seeds, with_value
from solvable.lab.progress import progress_bar
from solvable.numerics.blas import single_thread
from solvable.verbs.predict import POINT_FAILURES, predict
from solvable.verbs.simulate import simulate
from solvable.verbs.thresholds import thresholds


def learning_curve(
    model: Model,
    learners: Learner | Sequence[Learner],
    d: int | None = None,
    seeds: int | Sequence[int] = 16,
    executor: Executor | None = None,
    progress: bool = True,
    marks: dict[str, float] | None = None,
    **axes: Any,
) -> Curve:
    """Theory along one axis and, if `d` is given, simulations of dimension `d` at the same points.

    **Arguments:** `learners`, one or several; `seeds`, how many runs a point (0, 1, ...) or which; `executor`, any
    `concurrent.futures` executor for the runs; `marks`, the thresholds to keep with the curve (those of the model
    unless told; finding them can take long); the model's axes by keyword, and numeric fields of the model or the
    learners if they are to be varied. Exactly one of these is a grid.

    **Returns:** a `Curve`. Each run uses one BLAS thread and its own seed, so the values do not depend on the number
    of workers. A run that raises is kept as NaN, its error in the variable `failed`; if all do, the first is raised.
    """
    grid = {name: _grid(name, value) for name, value in axes.items() if np.ndim(value) > 0}
    if len(grid) != 1:
        given = ", ".join(grid) or "none"
        raise ValueError(f"exactly one axis must be a grid (a one-dimensional array of values); got {given}.")
    fixed = {name: value for name, value in axes.items() if name not in grid}
    return _curve(model, learners, grid, fixed, d, seeds, executor, progress, marks)


def phase_diagram(
    model: Model,
    learner: Learner,
    x: tuple[str, Any],
    y: tuple[str, Any],
    metric: str | None = None,
    d: int | None = None,
    seeds: int | Sequence[int] = 4,
    executor: Executor | None = None,
    progress: bool = True,
    marks: bool = True,
    **axes: Any,
) -> Curve:
    """A metric over two axes, each the name of an axis or of a numeric field with its values.

    **Arguments:** `x` and `y`, for instance `("alpha", grid)` and `("noise", grid)`; `metric`, what `.plot()` draws
    (`overlap` unless told); `d` and `seeds`, to simulate as well; `marks`, whether to find the thresholds along the
    model's first axis, where that is `x` or `y`, for each value of the other (this can take long); the remaining axes,
    single numbers.

    **Returns:** a `Curve`. Its variables `<name>_threshold` are the thresholds, NaN where one could not be found and
    infinite where there is none; the figure shows them as lines.
    """
    (x_name, x_values), (y_name, y_values) = _named_grid("x", x), _named_grid("y", y)
    if x_name == y_name or x_name in axes or y_name in axes:
        given = ", ".join([x_name, y_name, *axes])
        raise ValueError(f"x and y must be two different axes, given nowhere else; got {given}.")
    grid = {x_name: x_values, y_name: y_values}
    curve = _curve(model, learner, grid, axes, d, seeds, executor, progress, {}, varying=marks)
    curve.dataset.attrs["metric"] = curve.metric_or_default(metric)
    return curve


@dataclasses.dataclass(frozen=True)
class Task:
    """A model, a learner and the axes of one point or of a whole line, with its place in the grid."""

    place: tuple[Any, ...]
    model: Model
    learner: Learner
    axes: dict[str, Any]


def run_once(model: Model, learner: Learner, d: int, seed: int, axes: dict[str, float]) -> Outcome:
    """One simulation, without its estimate, on one BLAS thread so that its rounding is the same in any process."""
    with single_thread():
        outcome = simulate(model, learner, d=d, seed=seed, **axes)
    return dataclasses.replace(outcome, estimate=None, details={})


def _curve(model, learners, grid, fixed, d, seeds, executor, progress, marks=None, varying=False) -> Curve:
    """The curve of a grid; `marks` as for `learning_curve`, `varying` to find those that vary over two axes."""
    check_model(model)
    learners = check_learners(learners)
    seeds = check_seeds(seeds)
    if d is not None:
        d = check_count("d", d, least=2)
    check_names(model, learners, {**fixed, **grid})
    check_pairs(model, learners, d)

    lines = [task for j, learner in enumerate(learners) for task in _lines(j, model, learner, grid, fixed)]
    solvable = [task for task in lines if has_theory(task.model, task.learner)]
    runs = []
    if d is not None:
        simulable = [task for task in lines if has_simulation(task.model, task.learner)]
        points = [point for task in simulable for point in _points(task)]
        # Seed by seed, so that an executor with a deadline leaves every point with about as many runs.
        runs = [(point, k, seed) for k, seed in enumerate(seeds) for point in points]

    dims, marked = _marked_models(lines[0].model, grid) if varying else ((), [])

    shared = nullcontext() if executor is None else single_thread()  # its threads, or its processes, take the cores
    with shared, progress_bar(len(solvable) + len(runs) + len(marked), "learning curve", progress) as advance:
        futures = []
        if executor is not None:
            futures = [executor.submit(run_once, t.model, t.learner, d, seed, t.axes) for t, _, seed in runs]
        try:
            predictions: list[tuple[tuple, Prediction]] = []
            for task in solvable:
                predictions.append((task.place, predict(task.model, task.learner, throw=False, **task.axes)))
                advance()
            outcomes: list[tuple[tuple, int, Outcome | Exception]] = []
            for i, (task, k, seed) in enumerate(runs):
                outcomes.append((task.place, k, _attempt(futures[i] if futures else None, task, d, seed)))
                advance()
            found: list[dict[str, float]] = []
            for variant in marked:
                found.append(_known_thresholds(variant))
                advance()
        finally:
            for future in futures:
                future.cancel()
    errors = [outcome for *_, outcome in outcomes if isinstance(outcome, Exception)]
    if errors and len(errors) == len(outcomes):
        raise errors[0]
    marks = _thresholds(lines[0].model, grid) if marks is None else marks
    names = dict.fromkeys(name for one in found for name in one)
    values = {name: np.array([one.get(name, np.nan) for one in found]) for name in names}
    varied = {name: (dims, each if dims else each[0]) for name, each in values.items()}
    return Curve(assemble(model, learners, grid, fixed, d, seeds, predictions, outcomes, marks, varied))


def _attempt(future: Any, task: Task, d: Any, seed: int) -> Outcome | Exception:
    try:
        return run_once(task.model, task.learner, d, seed, task.axes) if future is None else future.result()
    except BrokenExecutor:
        raise  # the workers are gone: this is not about the point
    except Exception as error:
        return error


def _lines(j: int, model: Model, learner: Learner, grid: dict[str, np.ndarray], fixed: dict[str, Any]) -> list[Task]:
    """The grid of one learner, split into tasks over which only axes of the model vary."""
    for name, value in fixed.items():
        model, learner = with_value(model, learner, name, value)
    axes: dict[str, Any] = {name: value for name, value in fixed.items() if name in model.axis_names}
    along = [name for name in grid if name in model.axis_names]
    mesh = np.meshgrid(*(grid[name] for name in along), indexing="ij") if along else []
    axes |= dict(zip(along, mesh, strict=True))
    tasks = [Task((j,), model, learner, axes)]
    for name, values in grid.items():
        if name in model.axis_names:
            tasks = [dataclasses.replace(task, place=(*task.place, slice(None))) for task in tasks]
            continue
        split = []
        for task in tasks:
            for i, value in enumerate(values):
                split.append(
                    Task((*task.place, i), *with_value(task.model, task.learner, name, float(value)), task.axes)
                )
        tasks = split
    for task in tasks:
        check_axes(task.model, task.axes)
    return tasks


def _points(task: Task) -> list[Task]:
    """The single points of a line."""
    arrays, shape = check_axes(task.model, task.axes)
    points = []
    for index in np.ndindex(shape):
        along = iter(index)
        place = tuple(next(along) if isinstance(part, slice) else part for part in task.place)
        axes = {name: float(array[index]) for name, array in arrays.items()}
        points.append(dataclasses.replace(task, place=place, axes=axes))
    return points


def _thresholds(model: Model, grid: dict[str, np.ndarray]) -> dict[str, float]:
    """The thresholds to mark: those of a one-axis curve along the model's first axis."""
    if len(grid) != 1 or not model.axis_names or next(iter(grid)) != model.axis_names[0]:
        return {}
    return _known_thresholds(model)


def _marked_models(model: Model, grid: dict[str, np.ndarray]) -> tuple[tuple[str, ...], list[Model]]:
    """The models whose thresholds are lines on a map of two axes, and the axis along which they vary.

    One of the axes is the model's first, along which thresholds lie. The other is a field of the model, with a model
    for each value, or a field of the learners, on which thresholds do not depend.
    """
    if not model.axis_names or model.axis_names[0] not in grid:
        return (), []
    (other,) = (name for name in grid if name != model.axis_names[0])
    if other in model.axis_names:
        return (), []
    if has_field(model, other):
        return (other,), [model.with_field(other, float(value)) for value in grid[other]]
    return (), [model]


def _known_thresholds(model: Model) -> dict[str, float]:
    """The thresholds of a model that are numbers; none where they could not be found."""
    try:
        known = thresholds(model)
    except (NotSolvable, *POINT_FAILURES):
        return {}
    return {name: float(value) for name, value in known.items() if is_number(value)}


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
