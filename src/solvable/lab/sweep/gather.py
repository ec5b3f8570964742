"""From the files of a store to one labelled dataset: `sv.open`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from solvable.lab.assemble import NO_THEORY, NOT_COMPUTED, RAISED, Columns, explain
from solvable.lab.curve import Curve
from solvable.lab.store import SCHEMA
from solvable.lab.sweep.store import FAILED, PointStore

DONE, NO_ALGORITHM = 0, NO_THEORY
"""What `status_simulation` says, besides `NOT_COMPUTED` and `RAISED`."""


def open(folder: str | Path) -> Curve:
    """The results of the sweep that was started last in a store, as far as it has got.

    What is not computed yet is NaN, with its status. A damaged file is set aside, with a warning, and counts as not
    computed.
    """
    store = PointStore(folder)
    return Curve(_Gatherer(store, store.latest_plan()).dataset())


class _Gatherer:
    """The dataset of a plan, read point by point."""

    def __init__(self, store: PointStore, plan: dict[str, Any]):
        self.store, self.plan = store, plan
        self.grid = {axis["name"]: np.asarray(axis["values"]) for axis in plan["grid"]}
        self.dims = ("learner", *self.grid)
        self.shape = (len(plan["labels"]), *(values.size for values in self.grid.values()))
        self.states = store.states()
        self.sizes: dict[str, int] = {}
        self.made: Counter[str] = Counter()

    def dataset(self) -> xr.Dataset:
        plan = self.plan
        variables = self._theory()
        if plan["sizes"]:
            variables |= self._runs()
        thresholds, marks = self._thresholds()
        variables |= marks
        coordinates: dict[str, Any] = {"learner": plan["labels"], **self.grid, "title": ("learner", plan["titles"])}
        if plan["sizes"]:
            coordinates["seed"] = plan["seeds"]
        if len(plan["sizes"]) > 1:
            coordinates["d"] = plan["sizes"]
        coordinates |= {dim: np.arange(1, size + 1) for dim, size in self.sizes.items()}
        dataset = xr.Dataset(variables, coordinates, self._attributes(thresholds))
        explain(dataset, plan["definitions"])
        if plan["sizes"]:
            meanings = ["raised an error", "not computed", "no algorithm", "done"]
            flags = {"flag_values": [RAISED, NOT_COMPUTED, NO_ALGORITHM, DONE], "flag_meanings": json.dumps(meanings)}
            dataset["status_simulation"].attrs = flags
        return dataset

    def _theory(self) -> dict[str, Any]:
        columns = Columns(self.dims, self.shape)
        status = np.full(self.shape, NO_THEORY)
        failed = np.full(self.shape, "", dtype=object)
        for place, id in _places(self.plan["theory"], self.shape):
            result, error = self._result(id)
            if result is None:
                status[place], failed[place] = (RAISED, error) if error else (NOT_COMPUTED, "")
                continue
            status[place] = result["status"]
            for group, ending in (("metrics", "theory"), ("uncertainty", "uncertainty")):
                for name, value in result[group].items():
                    columns.put(f"{name}_{ending}", place, value, 0)
            for name, value in result["order_parameters"].items():
                columns.put(f"{name}_order_parameter", place, value, 0)
        found: dict[str, Any] = columns.arrays(self.sizes, pad=True) | {"status": (self.dims, status)}
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
            result, error = self._result(id)
            if result is None:
                status[place], failed[place] = (RAISED, error) if error else (NOT_COMPUTED, "")
                continue
            status[place], converged[place] = DONE, result["converged"]
            columns.put("seconds", place, result["seconds"], 0)
            for name, value in result["metrics"].items():
                columns.put(f"{name}_simulation", place, value, 0)
        found: dict[str, Any] = columns.arrays(self.sizes, pad=True)
        found |= {"status_simulation": (dims, status), "converged_simulation": (dims, converged)}
        return found | _texts("failed", dims, failed)

    def _thresholds(self) -> tuple[dict[str, float], dict[str, Any]]:
        """The thresholds of one model; or, where fields of the model vary, as variables over those fields."""
        fields = [axis["name"] for axis in self.plan["grid"] if axis["home"] == "model"]
        shape = tuple(self.grid[name].size for name in fields)
        marks: dict[str, np.ndarray] = {}
        for place, id in _places(self.plan["marks"], shape):
            result, _ = self._result(id)
            for name, value in (result or {"thresholds": {}})["thresholds"].items():
                try:
                    marks.setdefault(name, np.full(shape, np.nan))[place] = float(value)
                except (TypeError, ValueError):
                    continue  # a threshold that is not a number, such as a list, has no place on an axis
        if not fields:
            return {name: float(value) for name, value in marks.items()}, {}
        return {}, {f"{name}_threshold": (tuple(fields), values) for name, values in marks.items()}

    def _result(self, id: str) -> tuple[dict[str, Any] | None, str]:
        """The result of a point, or the error it raised; neither if it is not computed."""
        if id not in self.states:
            return None, ""
        record = self.store.read(id, failed=self.states[id] == FAILED)
        if record is None:
            return None, ""
        if "error" in record:
            return None, record["error"]["message"]
        self.made[f"solvable {record['provenance']['solvable']}"] += 1
        return record["result"], ""

    def _attributes(self, thresholds: dict[str, float]) -> dict[str, Any]:
        plan = self.plan
        keys = ("id", "started", "versions")
        provenance = {key: plan[key] for key in keys} | {"computed_by": dict(self.made)}
        attributes = {
            "schema": SCHEMA,
            "solvable_version": plan["versions"]["solvable"],
            "model": json.dumps(plan["model"]),
            "learners": json.dumps(plan["learners"]),
            "axes": json.dumps(list(self.grid)),
            "model_axes": json.dumps(plan["model_axes"]),
            "fixed": json.dumps(plan["fixed"]),
            "definitions": json.dumps(plan["definitions"]),
            "scaling": plan["scaling"],
            "thresholds": json.dumps({name: str(value) for name, value in thresholds.items()}),
            "provenance": json.dumps(provenance, sort_keys=True),
        }
        return attributes | ({"d": plan["sizes"][0]} if len(plan["sizes"]) == 1 else {})


def _places(ids: list[str], shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], str]]:
    """The places that have a point, with its id."""
    return ((place, id) for place, id in zip(np.ndindex(*shape), ids, strict=True) if id) if ids else iter(())


def _texts(name: str, dims: tuple[str, ...], texts: np.ndarray) -> dict[str, Any]:
    return {name: (dims, texts.astype(str))} if np.any(texts != "") else {}
