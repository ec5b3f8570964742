"""What a grid computes: every point of its models, learners, axes, sizes and seeds, in its place.

A grid axis is an axis of the model (`alpha`), a field of the model, or a field of some of the learners. A learner that
does not have the field is the same at all its values, and is computed once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import numbers
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from solvable.core.axis import as_axes
from solvable.core.checks import check_axes
from solvable.core.errors import NotSolvable
from solvable.core.fields import get_field
from solvable.core.model import Learner, Model
from solvable.core.plain import to_json
from solvable.core.registry import find_simulation, find_theory, find_thresholds, has_simulation, has_theory
from solvable.lab.grid.labels import labels, titles
from solvable.lab.grid.points import SCHEMA, Point, Task, digest, dumped, identity

TOGETHER = 16
"""The most seeds in a task of a pair that makes several runs together: few enough for workers to share, and for a kill
to cost little."""


@dataclasses.dataclass(frozen=True)
class GridAxis:
    """One dimension of the grid; `home` says whose it is: `"axis"`, `"model"` or `"learner"`.

    Of a learner's field `learners` numbers the learners that vary with it.
    """

    name: str
    values: tuple[Any, ...]
    home: str
    learners: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Plan:
    """A grid, and what is computed at its points.

    `fixed` holds what does not vary but was given by name: axes of the model, and fields that the model and the
    learners have already. Runs are made for each of the `sizes` (None for a model without a size) and `seeds`.
    `thresholds` says whether to find those of each model. With `lines` theory is asked for all values of the axes at
    once, which is fast; without, point by point, so that its last digits do not depend on which points there are.
    """

    model: Model
    learners: tuple[Learner, ...]
    grid: tuple[GridAxis, ...]
    fixed: dict[str, Any]
    sizes: tuple[int | None, ...] = ()
    seeds: tuple[int, ...] = ()
    thresholds: bool = False
    lines: bool = False

    def layout(self, filed: bool = True) -> Layout:
        """Every point and its place; what cannot be computed is refused here, before anything runs.

        Points that are `filed` go by the digest of what they are, so they need a lasting description; others are
        numbered.
        """
        return _Builder(self, filed).layout()


@dataclasses.dataclass(frozen=True)
class Layout:
    """The points of a plan, once each, as tasks, and their ids in the order of the grid; no id where there is no point.

    `theory` runs over (learner, axes...), `runs` over (learner, axes..., size, seed), `marks` over the axes that are
    fields of the model. `content` is all that is needed to put results in their places, in plain values.
    """

    tasks: list[Task]
    theory: list[str]
    runs: list[str]
    marks: list[str]
    content: dict[str, Any]

    @property
    def points(self) -> list[Point]:
        """All points, in the order of the tasks."""
        return [point for task in self.tasks for point in task.points]

    @property
    def id(self) -> str:
        """The id of the whole: a digest of all its points in their places."""
        return hashlib.sha256(dumped([self.theory, self.runs, self.marks]).encode()).hexdigest()[:16]


class _Made(NamedTuple):
    """A model or a learner with its number and, if points are filed, the text that it is filed under."""

    what: Any
    number: int
    text: str


class _Builder:
    """Models, learners and points of a plan, each made once."""

    def __init__(self, plan: Plan, filed: bool):
        self.plan, self.filed = plan, filed
        self.points: dict[Any, Point] = {}
        self._models: dict[tuple[Any, ...], _Made] = {}
        self._learners: dict[tuple[Any, ...], _Made] = {}
        self._described: dict[Any, dict[str, Any]] = {}
        self._lines: dict[Any, list[Point]] = {}
        self._company = {seed: k // TOGETHER for k, seed in enumerate(plan.seeds)}

    def layout(self) -> Layout:
        plan = self.plan
        theory: list[str] = []
        runs: list[str] = []
        pairs: dict[tuple[int, int], tuple[bool, bool]] = {}
        check_pairs(plan.model, plan.learners, bool(plan.seeds))
        for j in range(len(plan.learners)):
            for values in itertools.product(*(axis.values for axis in plan.grid)):
                chosen = dict(zip((axis.name for axis in plan.grid), values, strict=True))
                model, learner, axes = self._model(chosen), self._learner(j, chosen), self._axes(chosen)
                pair = (model.number, learner.number)
                if pair not in pairs:
                    pairs[pair] = has_theory(model.what, learner.what), has_simulation(model.what, learner.what)
                solved, simulated = pairs[pair]
                theory.append(self._add(model, learner, axes) if solved else "")
                for d, seed in itertools.product(plan.sizes, plan.seeds):
                    runs.append(self._add(model, learner, axes, d, seed) if simulated else "")
        marks = self._marks() if plan.thresholds else []
        # Predictions first, then the runs seed by seed: what is stopped early has about as many runs everywhere.
        tasks = sorted(
            self._tasks(), key=lambda t: (t.first.learner is None, -1 if t.first.seed is None else t.first.seed)
        )
        return Layout(tasks, theory, runs, marks, self._content() | {"theory": theory, "runs": runs, "marks": marks})

    def _add(self, model: _Made, learner: _Made | None, axes, d=None, seed=None) -> str:
        if self.filed:
            key = digest(model.text, "thresholds" if learner is None else learner.text, axes, d, seed)
        else:
            key = (model.number, learner and learner.number, *axes.values(), d, seed)
        if key not in self.points:
            id = key if isinstance(key, str) else str(len(self.points))
            about = {"model": self._describe(model)} | ({} if learner is None else {"learner": self._describe(learner)})
            what = None if learner is None else learner.what
            point = self.points[key] = Point(id, model.what, what, axes, d, seed, model.number, about)
            self._lines.setdefault(self._line(model, learner, point), []).append(point)
        return self.points[key].id

    def _line(self, model: _Made, learner: _Made | None, point: Point) -> Any:
        """What tells the lines apart: points with the same answer are computed by one call."""
        if learner is None or (point.seed is None and not self.plan.lines):
            return point.id, None
        if point.seed is None:
            return (model.number, learner.number), None
        entry = find_simulation(model.what, learner.what)
        if entry.path is None and not entry.together:
            return point.id, None
        others = (value for name, value in point.axes.items() if name != entry.path)
        seeds = self._company[point.seed] if entry.together else point.seed
        return (model.number, learner.number, point.d, seeds, *others), entry.path

    def _tasks(self) -> Iterator[Task]:
        for (_, path), points in self._lines.items():
            if path is not None:
                points = sorted(points, key=lambda point: (point.seed, point.axes[path]))
            theory = points[0].seed is None and points[0].learner is not None
            yield Task(tuple(points), theory and self.plan.lines, path)

    def _describe(self, made: _Made) -> dict[str, Any]:
        key = (type(made.what), made.number)
        if key not in self._described:
            self._described[key] = to_json(made.what.describe())
        return self._described[key]

    def _marks(self) -> list[str]:
        try:
            find_thresholds(self.plan.model)
        except NotSolvable as error:
            raise NotSolvable(f"{error} Leave out `thresholds` for this sweep.") from None
        fields = [axis for axis in self.plan.grid if axis.home == "model"]
        # They do not vary along what they are values of: any of its values will do.
        own = self.plan.model.threshold_axis()
        chosen = itertools.product(*(axis.values[:1] if axis.name == own else axis.values for axis in fields))
        names = [axis.name for axis in fields]
        return [self._add(self._model(dict(zip(names, values, strict=True))), None, {}) for values in chosen]

    def _model(self, chosen: dict[str, Any]) -> _Made:
        fields = [axis.name for axis in self.plan.grid if axis.home == "model"]
        key = tuple(chosen[name] for name in fields)
        if key not in self._models:
            model = self.plan.model
            for name in fields:
                model = with_field(model, name, chosen[name])
            varied = {axis.name: np.asarray(axis.values) for axis in self.plan.grid if axis.home == "axis"}
            first = {name: values[0] for name, values in varied.items()} | self._fixed_axes()
            for name in model.axis_names:  # one at a time: two grids need not broadcast
                check_axes(model, first | ({name: varied[name]} if name in varied else {}))
            self._models[key] = self._made(model, "model", len(self._models))
        return self._models[key]

    def _learner(self, j: int, chosen: dict[str, Any]) -> _Made:
        fields = [axis.name for axis in self.plan.grid if axis.home == "learner" and j in axis.learners]
        key = (j, *(chosen[name] for name in fields))
        if key not in self._learners:
            learner = self.plan.learners[j]
            for name in fields:
                learner = with_field(learner, name, chosen[name])
            self._learners[key] = self._made(learner, "learner", len(self._learners))
        return self._learners[key]

    def _made(self, what: Model | Learner, name: str, number: int) -> _Made:
        return _Made(what, number, dumped(identity(what, name)) if self.filed else "")

    def _axes(self, chosen: dict[str, Any]) -> dict[str, float]:
        values = self._fixed_axes() | chosen
        return {name: float(values[name]) for name in self.plan.model.axis_names}

    def _fixed_axes(self) -> dict[str, Any]:
        return {name: value for name, value in self.plan.fixed.items() if name in self.plan.model.axis_names}

    def _content(self) -> dict[str, Any]:
        """The plan as kept in a store: all that is needed to gather its results, and nothing to be imported."""
        plan = self.plan
        learners = list(plan.learners)
        content = {
            "schema": SCHEMA,
            "model": plan.model.describe(),
            "learners": [learner.describe() for learner in learners],
            "labels": labels(learners),
            "titles": titles(learners),
            "grid": [vars(axis) for axis in plan.grid],
            "fixed": plan.fixed,
            "sizes": [d for d in plan.sizes if d is not None],
            "seeds": list(plan.seeds),
            "definitions": dict(plan.model.definitions),
            "scaling": plan.model.scaling,
            "model_axes": list(plan.model.axis_names),
            "threshold_axis": plan.model.threshold_axis() or "",
            "axis_labels": {axis.name: axis.label for axis in as_axes(plan.model.axes) if axis.label},
            "size": plan.model.size,
        }
        return to_json(content)


def with_field(owner: Any, name: str, value: Any) -> Any:
    """A model or a learner with a field set; a whole number as an integer where the field holds one."""
    counts = isinstance(current := get_field(owner, name), numbers.Integral) and not isinstance(current, bool)
    whole = counts and isinstance(value, float) and value.is_integer()  # grids are arrays of floats
    return owner.with_field(name, int(value) if whole else value)


def check_pairs(model: Model, learners: Sequence[Learner], runs: bool) -> None:
    """Every learner has something to compute, a theory or an algorithm; runs that are asked for need one of these."""
    for learner in learners:
        if not has_theory(model, learner) and not (runs and has_simulation(model, learner)):
            if has_simulation(model, learner):
                hint = f"it can be simulated: give {'seeds' if model.size is None else f'the dimension {model.size}'}"
                raise NotSolvable(f"no theory is registered for {learner} on {type(model).__name__}; {hint}.")
            find_theory(model, learner)
    if runs and not any(has_simulation(model, learner) for learner in learners):
        find_simulation(model, learners[0])


def points_of(tasks: Iterable[Task]) -> int:
    """How many points the tasks have."""
    return sum(len(task.points) for task in tasks)
