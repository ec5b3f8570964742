"""What a sweep computes: every point of a grid of models, learners, axes, sizes and seeds, in its place.

A grid axis is an axis of the model (`alpha`), a field of the model, or a field of some of the learners. A learner that
does not have the field is the same at all its values, and is computed once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from typing import Any

import numpy as np

from solvable.core.checks import check_axes
from solvable.core.errors import NotSolvable
from solvable.core.model import Learner, Model
from solvable.core.plain import to_json
from solvable.core.registry import find_thresholds, has_simulation, has_theory
from solvable.lab.assemble import labels, titles
from solvable.lab.pairs import check_pairs
from solvable.lab.sweep.identity import digest, dumped, identity
from solvable.lab.sweep.points import Point


@dataclasses.dataclass(frozen=True)
class Axis:
    """One dimension of the grid; `home` says whose it is: `"axis"`, `"model"` or `"learner"`.

    Of a learner's field `learners` numbers the learners that vary with it.
    """

    name: str
    values: tuple[Any, ...]
    home: str
    learners: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Plan:
    """The grid of a sweep. `fixed` holds the axes of the model that do not vary, `thresholds` whether to find them."""

    model: Model
    learners: tuple[Learner, ...]
    grid: tuple[Axis, ...]
    fixed: dict[str, float]
    sizes: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    thresholds: bool = False

    def layout(self) -> Layout:
        """Every point and its place; what cannot be computed is refused here, before anything runs."""
        return _Builder(self).layout()


@dataclasses.dataclass(frozen=True)
class Layout:
    """The points of a plan, once each, and their ids in the order of the grid; an empty id where there is no point.

    `theory` runs over (learner, axes...), `runs` over (learner, axes..., size, seed), `marks` over the axes that are
    fields of the model.
    """

    points: list[Point]
    theory: list[str]
    runs: list[str]
    marks: list[str]
    content: dict[str, Any]

    @property
    def id(self) -> str:
        """The id of the sweep: a digest of all its points in their places."""
        return hashlib.sha256(dumped([self.theory, self.runs, self.marks]).encode()).hexdigest()[:16]


class _Builder:
    """Models, learners and points of a plan, each made once."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.points: dict[str, Point] = {}
        self._models: dict[tuple[Any, ...], tuple[Model, str, int]] = {}
        self._learners: dict[tuple[Any, ...], tuple[Learner, str]] = {}
        self._described: dict[str, dict[str, Any]] = {}

    def layout(self) -> Layout:
        plan = self.plan
        theory: list[str] = []
        runs: list[str] = []
        check_pairs(plan.model, list(plan.learners), plan.sizes[0] if plan.sizes else None)
        for j in range(len(plan.learners)):
            for values in itertools.product(*(axis.values for axis in plan.grid)):
                chosen = dict(zip((axis.name for axis in plan.grid), values, strict=True))
                model, learner, axes = self._model(chosen), self._learner(j, chosen), self._axes(chosen)
                theory.append(self._add(model, learner, axes) if has_theory(model[0], learner[0]) else "")
                simulated = has_simulation(model[0], learner[0])
                for d, seed in itertools.product(plan.sizes, plan.seeds):
                    runs.append(self._add(model, learner, axes, d, seed) if simulated else "")
        marks = self._marks() if plan.thresholds else []
        # Predictions first, then the runs seed by seed: a sweep that is stopped has about as many runs everywhere.
        points = sorted(self.points.values(), key=lambda p: (p.learner is None, -1 if p.seed is None else p.seed))
        return Layout(points, theory, runs, marks, self._content(theory, runs, marks))

    def _add(self, model, learner, axes, d=None, seed=None) -> str:
        id = digest(model[1], learner[1], axes, d, seed)
        if id not in self.points:
            about = {"model": self._describe(*model[:2]), "learner": self._describe(*learner)}
            self.points[id] = Point(id, model[0], learner[0], axes, d, seed, model[2], about)
        return id

    def _describe(self, what: Model | Learner, text: str) -> dict[str, Any]:
        if text not in self._described:
            self._described[text] = to_json(what.describe())
        return self._described[text]

    def _marks(self) -> list[str]:
        try:
            find_thresholds(self.plan.model)
        except NotSolvable as error:
            raise NotSolvable(f"{error} Leave out `thresholds` for this sweep.") from None
        fields = [axis for axis in self.plan.grid if axis.home == "model"]
        found = []
        for values in itertools.product(*(axis.values for axis in fields)):
            chosen = dict(zip((axis.name for axis in fields), values, strict=True))
            model, text, group = self._model(chosen)
            id = digest(text, "thresholds", {}, None, None)
            about = {"model": self._describe(model, text)}
            self.points.setdefault(id, Point(id, model, None, {}, group=group, about=about))
            found.append(id)
        return found

    def _model(self, chosen: dict[str, Any]) -> tuple[Model, str, int]:
        fields = [axis.name for axis in self.plan.grid if axis.home == "model"]
        key = tuple(chosen[name] for name in fields)
        if key not in self._models:
            model = self.plan.model
            for name in fields:
                model = model.with_field(name, chosen[name])
            varied = {axis.name: np.asarray(axis.values) for axis in self.plan.grid if axis.home == "axis"}
            for name in model.axis_names:  # one at a time: two grids need not broadcast
                values = varied.get(name, self.plan.fixed.get(name))
                check_axes(model, {**_single(varied), **self.plan.fixed, **({} if values is None else {name: values})})
            self._models[key] = model, dumped(identity(model, "model")), len(self._models)
        return self._models[key]

    def _learner(self, j: int, chosen: dict[str, Any]) -> tuple[Learner, str]:
        fields = [axis.name for axis in self.plan.grid if axis.home == "learner" and j in axis.learners]
        key = (j, *(chosen[name] for name in fields))
        if key not in self._learners:
            learner = self.plan.learners[j]
            for name in fields:
                learner = learner.with_field(name, chosen[name])
            self._learners[key] = learner, dumped(identity(learner, "learner"))
        return self._learners[key]

    def _axes(self, chosen: dict[str, Any]) -> dict[str, float]:
        values = self.plan.fixed | {axis.name: chosen[axis.name] for axis in self.plan.grid if axis.home == "axis"}
        return {name: float(values[name]) for name in self.plan.model.axis_names}

    def _content(self, theory: list[str], runs: list[str], marks: list[str]) -> dict[str, Any]:
        """The plan as kept in the store: all that is needed to gather its results, and nothing to be imported."""
        plan = self.plan
        learners = list(plan.learners)
        content = {
            "model": plan.model.describe(),
            "learners": [learner.describe() for learner in learners],
            "labels": labels(learners),
            "titles": titles(learners),
            "grid": [dataclasses.asdict(axis) for axis in plan.grid],
            "fixed": plan.fixed,
            "sizes": list(plan.sizes),
            "seeds": list(plan.seeds),
            "definitions": dict(plan.model.definitions),
            "scaling": plan.model.scaling,
            "model_axes": list(plan.model.axis_names),
        }
        return to_json(content) | {"theory": theory, "runs": runs, "marks": marks}


def _single(varied: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: values[0] for name, values in varied.items()}
