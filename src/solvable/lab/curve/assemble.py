"""From the records of single points to one labelled `xarray.Dataset`, whoever computed and kept them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from solvable.core.plain import to_json
from solvable.core.status import Status
from solvable.core.version import installed_version
from solvable.lab.curve.files import SCHEMA

NO_THEORY, NOT_COMPUTED, RAISED = -1, -2, -3
"""What `status` says besides a `Status`."""
DONE, NO_ALGORITHM = 0, NO_THEORY
"""What `status_simulation` says, besides `NOT_COMPUTED` and `RAISED`."""
MATRIX = ("row", "column")
"""The dimensions of a metric that is a matrix at each point; both count from 1."""
ENTRY = "entry"
"""The dimension of a metric that is a vector at each point, and of the diagonal of a matrix; it counts from 1."""
RUN_VALUES = ("seconds", "iterations", "consistent")
"""What a run tells besides its metrics, if it does."""

Found = Callable[[str], Mapping[str, Any] | None]
"""The record of a point by its id, with its `result` or the `error` it raised; None if it is not computed."""


def assemble(plan: Mapping[str, Any], found: Found, strict: bool = False) -> xr.Dataset:
    """The dataset of a plan in plain values (`Layout.content`). What was not computed is NaN, with its status.

    If `strict`, a metric whose values have different shapes is refused; otherwise the smaller ones are padded.
    """
    return _Assembler(plan, found, strict).dataset()


class _Assembler:
    def __init__(self, plan: Mapping[str, Any], found: Found, strict: bool):
        self.plan, self.found, self.strict = plan, found, strict
        self.grid = {axis["name"]: np.asarray(axis["values"]) for axis in plan["grid"]}
        self.dims = ("learner", *self.grid)
        self.shape = (len(plan["labels"]), *(values.size for values in self.grid.values()))
        self.sizes: dict[str, int] = {}

    def dataset(self) -> xr.Dataset:
        plan = self.plan
        variables = self._theory()
        if plan["seeds"]:
            variables |= self._runs()
        thresholds, marks = self._thresholds()
        variables |= marks
        coordinates: dict[str, Any] = {"learner": plan["labels"], **self.grid, "title": ("learner", plan["titles"])}
        if plan["seeds"]:
            coordinates["seed"] = plan["seeds"]
        if len(plan["sizes"]) > 1:
            coordinates["d"] = plan["sizes"]
        coordinates |= {dim: np.arange(1, size + 1) for dim, size in self.sizes.items()}
        dataset = xr.Dataset(variables, coordinates, _attributes(plan, thresholds))
        _explain(dataset, plan["definitions"])
        return dataset

    def _theory(self) -> dict[str, Any]:
        columns = Columns(self.dims, self.shape)
        status = np.full(self.shape, NO_THEORY)
        failed = np.full(self.shape, "", dtype=object)
        for place, id in _places(self.plan["theory"], self.shape):
            result, status[place], failed[place] = self._result(id)
            if result is None:
                continue
            status[place] = result["status"]
            for group, ending in (("metrics", "theory"), ("uncertainty", "uncertainty")):
                for name, value in result[group].items():
                    columns.put(f"{name}_{ending}", place, value)
            for name, value in result["order_parameters"].items():
                columns.put(f"{name}_order_parameter", place, value)
        found: dict[str, Any] = columns.arrays(self.sizes, self.strict) | {"status": (self.dims, status)}
        return found | _texts("failed_theory", self.dims, failed)

    def _runs(self) -> dict[str, Any]:
        plan = self.plan
        several = len(plan["sizes"]) > 1
        dims = (*self.dims, *(["d"] if several else []), "seed")
        shape = (*self.shape, *([len(plan["sizes"])] if several else []), len(plan["seeds"]))
        columns = Columns(dims, shape)
        status = np.full(shape, NO_ALGORITHM)
        converged = np.zeros(shape, dtype=bool)
        failed = np.full(shape, "", dtype=object)
        for place, id in _places(plan["runs"], shape):
            result, status[place], failed[place] = self._result(id)
            if result is None:
                continue
            converged[place] = result["converged"]
            for name in RUN_VALUES:
                if name in result:
                    columns.put(name if name == "seconds" else f"{name}_simulation", place, result[name])
            for name, value in result["metrics"].items():
                columns.put(f"{name}_simulation", place, value)
        found: dict[str, Any] = columns.arrays(self.sizes, self.strict)
        found |= {"status_simulation": (dims, status), "converged_simulation": (dims, converged)}
        return found | _texts("failed", dims, failed)

    def _thresholds(self) -> tuple[dict[str, float], dict[str, Any]]:
        """The thresholds of one model; or, where fields of the model vary, as variables over those fields."""
        own = self.plan.get("threshold_axis", "")
        fields = [axis["name"] for axis in self.plan["grid"] if axis["home"] == "model" and axis["name"] != own]
        shape = tuple(self.grid[name].size for name in fields)
        marks: dict[str, np.ndarray] = {}
        for place, id in _places(self.plan["marks"], shape):
            result, *_ = self._result(id)
            for name, value in (result or {"thresholds": {}})["thresholds"].items():
                try:
                    marks.setdefault(name, np.full(shape, np.nan))[place] = float(value)
                except (TypeError, ValueError):
                    continue  # a threshold that is not a number, such as a list, has no place on an axis
        if not fields:
            return {name: float(value) for name, value in marks.items()}, {}
        return {}, {f"{name}_threshold": (tuple(fields), values) for name, values in marks.items()}

    def _result(self, id: str) -> tuple[Mapping[str, Any] | None, int, str]:
        """The result of a point, or None; whether it is there; and the error that it raised instead."""
        record = self.found(id)
        if record is None:
            return None, NOT_COMPUTED, ""
        if "error" in record:
            return None, RAISED, record["error"]["message"]
        return record["result"], DONE, ""


def _attributes(plan: Mapping[str, Any], thresholds: dict[str, float]) -> dict[str, Any]:
    attributes = {
        "schema": SCHEMA,
        "solvable_version": installed_version(),
        "model": json.dumps(plan["model"]),
        "learners": json.dumps(plan["learners"]),
        "axes": json.dumps([axis["name"] for axis in plan["grid"]]),
        "model_axes": json.dumps(plan["model_axes"]),
        "threshold_axis": plan.get("threshold_axis", "") or next(iter(plan["model_axes"]), ""),
        "axis_labels": json.dumps(plan.get("axis_labels", {})),
        "fixed": json.dumps(plan["fixed"]),
        "definitions": json.dumps(plan["definitions"]),
        "scaling": plan["scaling"],
        "size": plan.get("size", "d") or "",
        "thresholds": json.dumps(to_json(thresholds)),
    }
    return attributes | ({"d": plan["sizes"][0]} if len(plan["sizes"]) == 1 else {})


def _explain(dataset: xr.Dataset, definitions: Mapping[str, str]) -> None:
    """Say in the variables' attributes what a status means, and what each metric is."""
    values = [RAISED, NOT_COMPUTED, NO_THEORY, *(int(s) for s in Status)]
    meanings = ["raised an error", "not computed", "no theory", *(s.sentence for s in Status)]
    dataset["status"].attrs = {"flag_values": values, "flag_meanings": json.dumps(meanings)}
    if "status_simulation" in dataset:
        meanings = ["raised an error", "not computed", "no algorithm", "done"]
        flags = {"flag_values": [RAISED, NOT_COMPUTED, NO_ALGORITHM, DONE], "flag_meanings": json.dumps(meanings)}
        dataset["status_simulation"].attrs = flags
    for name, meaning in definitions.items():
        for ending in ("_theory", "_simulation"):
            if name + ending in dataset:
                dataset[name + ending].attrs["long_name"] = meaning


def _places(ids: list[str], shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    """The places that have a point, with its id."""
    return ((place, id) for place, id in zip(np.ndindex(*shape), ids, strict=True) if id) if ids else iter(())


def _texts(name: str, dims: tuple[str, ...], texts: np.ndarray) -> dict[str, Any]:
    return {name: (dims, texts.astype(str))} if np.any(texts != "") else {}


class Columns:
    """Values by name and place, made into arrays once all have arrived and it is known which of them are matrices."""

    def __init__(self, dims: tuple[str, ...], shape: tuple[int, ...]):
        self.dims, self.shape = dims, shape
        self.values: dict[str, list[tuple[tuple[int, ...], Any]]] = {}

    def put(self, name: str, place: tuple[int, ...], value: Any) -> None:
        """Keep the value of a point: a number, a vector or a matrix."""
        self.values.setdefault(name, []).append((place, value))

    def arrays(self, sizes: dict[str, int], strict: bool) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Each name's dimensions and array; vectors share `entry`, matrices `row` and `column`, noted in `sizes`.

        If `strict`, values of one name have one shape. Otherwise the smaller ones fill the first rows and columns of
        the largest (a number is then the first entry), and the other entries are missing.
        """
        found = {}
        for name, given in self.values.items():
            if all(isinstance(value, float) for _, value in given):  # as most are, and there may be very many
                array = np.full(self.shape, np.nan)
                array[tuple(np.transpose([place for place, _ in given]))] = [value for _, value in given]
                found[name] = (self.dims, array)
                continue
            values = [(place, np.asarray(value, dtype=np.float64)) for place, value in given]
            # A prediction that failed everywhere is a plain NaN also where others have a matrix: it stays missing.
            known = [(place, value) for place, value in values if not np.all(np.isnan(value))]
            shapes = {value.shape for _, value in known or values}
            if strict and len(shapes) > 1:
                raise ValueError(f"{name} has different shapes at different points or for different learners.")
            depth = max(map(len, shapes))
            shapes = {shape + (1,) * (depth - len(shape)) for shape in shapes}
            inner = tuple(max(shape[axis] for shape in shapes) for axis in range(depth))
            array = np.full(self.shape + inner, np.nan)
            for place, value in known:
                value = value.reshape(value.shape + (1,) * (depth - value.ndim))
                array[(*place, *(slice(size) for size in value.shape))] = value
            found[name] = (self.dims + _inner_dims(name, inner, sizes), array)
        return found


def _inner_dims(name: str, inner: tuple[int, ...], sizes: dict[str, int]) -> tuple[str, ...]:
    """The dimensions of one value; dimensions of the name's own where the shared ones have another size."""
    shared = ((), (ENTRY,), MATRIX)[len(inner)] if len(inner) < 3 else ()
    if len(shared) == len(inner) and all(sizes.get(dim, size) == size for dim, size in zip(shared, inner, strict=True)):
        sizes |= dict(zip(shared, inner, strict=True))
        return shared
    return tuple(f"{name}_{axis}" for axis in range(1, len(inner) + 1))
