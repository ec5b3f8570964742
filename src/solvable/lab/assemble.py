"""From single predictions and outcomes to one labelled `xarray.Dataset`."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from solvable.core.model import Learner, Model
from solvable.core.plain import to_json
from solvable.core.results import Outcome, Prediction
from solvable.core.status import Status
from solvable.core.version import installed_version
from solvable.lab.store import SCHEMA

NO_THEORY, NOT_COMPUTED, RAISED = -1, -2, -3
"""What `status` says besides a `Status`."""
MATRIX = ("row", "column")
"""The dimensions of a metric that is a matrix at each point; both count from 1."""


def assemble(
    model: Model,
    learners: list[Learner],
    grid: dict[str, np.ndarray],
    fixed: dict[str, Any],
    d: int | None,
    seeds: list[int],
    predictions: list[tuple[tuple, Prediction]],
    outcomes: list[tuple[tuple, int, Outcome | Exception]],
    thresholds: dict[str, float],
    marks: dict[str, tuple[tuple[str, ...], Any]] | None = None,
) -> xr.Dataset:
    """The dataset of a curve. Places index (learner, grid...); what was not computed is NaN.

    `thresholds` hold for the whole curve; `marks` are those that vary over the grid, with the axes they vary along.
    """
    dims = ("learner", *grid)
    shape = (len(learners), *(values.size for values in grid.values()))
    columns = Columns(dims, shape)
    status = np.full(shape, NO_THEORY, dtype=np.int64)
    for place, prediction in predictions:
        status[place] = prediction.status
        points = np.ndim(prediction.status)
        for name, value in prediction.metrics.items():
            columns.put(f"{name}_theory", place, value, points)
        for name, value in prediction.uncertainty.items():
            columns.put(f"{name}_uncertainty", place, value, points)
        for name, value in prediction.order_parameters.items():
            if np.asarray(value).dtype.kind != "c":
                columns.put(f"{name}_order_parameter", place, value, points)
    sizes: dict[str, int] = {}
    variables: dict[str, Any] = columns.arrays(sizes) | {"status": (dims, status)}

    if d is not None:
        runs = Columns((*dims, "seed"), (*shape, len(seeds)))
        converged = np.zeros(runs.shape, dtype=bool)
        failed = np.full(runs.shape, "", dtype=object)
        for place, seed, outcome in outcomes:
            if isinstance(outcome, Exception):
                failed[(*place, seed)] = f"{type(outcome).__name__}: {outcome}"
                continue
            converged[(*place, seed)] = outcome.converged
            runs.put("seconds", (*place, seed), outcome.seconds, 0)
            for name, value in outcome.metrics.items():
                runs.put(f"{name}_simulation", (*place, seed), value, 0)
        variables |= runs.arrays(sizes) | {"converged_simulation": (runs.dims, converged)}
        if np.any(failed != ""):
            variables["failed"] = (runs.dims, failed.astype(str))
    variables |= {f"{name}_threshold": mark for name, mark in (marks or {}).items()}

    coordinates: dict[str, Any] = {"learner": labels(learners), **grid}
    coordinates["title"] = ("learner", titles(learners))
    if d is not None:
        coordinates["seed"] = np.asarray(seeds)
    coordinates |= {dim: np.arange(1, size + 1) for dim, size in sizes.items()}
    dataset = xr.Dataset(variables, coordinates, _attributes(model, learners, grid, fixed, d, thresholds))
    explain(dataset, model.definitions)
    return dataset


def explain(dataset: xr.Dataset, definitions: Mapping[str, str]) -> None:
    """Say in the variables' attributes what a status means, and what each metric is."""
    values = [RAISED, NOT_COMPUTED, NO_THEORY, *(int(s) for s in Status)]
    meanings = ["raised an error", "not computed", "no theory", *(s.sentence for s in Status)]
    dataset["status"].attrs = {"flag_values": values, "flag_meanings": json.dumps(meanings)}
    for name, meaning in definitions.items():
        for ending in ("_theory", "_simulation"):
            if name + ending in dataset:
                dataset[name + ending].attrs["long_name"] = meaning


class Columns:
    """Values by name and place, made into arrays once all have arrived and it is known which of them are matrices."""

    def __init__(self, dims: tuple[str, ...], shape: tuple[int, ...]):
        self.dims, self.shape = dims, shape
        self.values: dict[str, list[tuple[tuple, np.ndarray, int]]] = {}

    def put(self, name: str, place: tuple, value: Any, points: int) -> None:
        """Keep a value whose first `points` axes run over grid points and whose other axes belong to a matrix."""
        self.values.setdefault(name, []).append((place, np.asarray(value, dtype=np.float64), points))

    def arrays(self, sizes: dict[str, int], pad: bool = False) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Each name's dimensions and array; matrices of the same size share `row` and `column`, noted in `sizes`.

        Values of one name have one shape, or with `pad` the smaller ones fill the first rows and columns of the largest
        (a number is then the first entry), and the other entries are missing.
        """
        found = {}
        for name, values in self.values.items():
            # A prediction that failed everywhere is a plain NaN also where others have a matrix: it stays missing.
            known = [(place, value, points) for place, value, points in values if not np.all(np.isnan(value))]
            shapes = {value.shape[points:] for _, value, points in known or values}
            if len(shapes) > 1 and not pad:
                raise ValueError(f"{name} has different shapes at different points or for different learners.")
            depth = max(map(len, shapes))
            shapes = {shape + (1,) * (depth - len(shape)) for shape in shapes}
            inner = tuple(max(shape[axis] for shape in shapes) for axis in range(depth))
            array = np.full(self.shape + inner, np.nan)
            for place, value, points in known:
                value = value.reshape(value.shape + (1,) * (points + depth - value.ndim))
                array[(*place, *(slice(size) for size in value.shape[points:]))] = value
            found[name] = (self.dims + _matrix_dims(name, inner, sizes), array)
        return found


def _matrix_dims(name: str, inner: tuple[int, ...], sizes: dict[str, int]) -> tuple[str, ...]:
    """`row` and `column`, or dimensions of the name's own where those have another size or do not suffice."""
    shared = MATRIX[: len(inner)]
    if len(shared) == len(inner) and all(sizes.get(dim, size) == size for dim, size in zip(shared, inner, strict=True)):
        sizes |= dict(zip(shared, inner, strict=True))
        return shared
    return tuple(f"{name}_{axis}" for axis in range(1, len(inner) + 1))


def labels(learners: list[Learner]) -> list[str]:
    """A unique label for each learner: its name, its distinguishing fields if names repeat, a number if all repeats."""
    return _unique([learner.name() for learner in learners], learners)


def titles(learners: list[Learner]) -> list[str]:
    """The labels as a figure shows them: `BayesOptimal` is "Bayes optimal", `AMP` stays."""
    return _unique([_words(type(learner).__name__) for learner in learners], learners)


def _unique(names: list[str], learners: list[Learner]) -> list[str]:
    repeated = {name for name, count in Counter(names).items() if count > 1}
    found = []
    for name, learner in zip(names, learners, strict=True):
        peers = [other for peer, other in zip(names, learners, strict=True) if peer == name]
        found.append(f"{name}({', '.join(_differences(learner, peers))})" if name in repeated else name)
    seen: Counter[str] = Counter()
    for i, name in enumerate(found):
        seen[name] += 1
        if seen[name] > 1:
            found[i] = f"{name} #{seen[name]}"
    return [name.replace("()", "") for name in found]


def _differences(learner: Learner, peers: list[Learner]) -> list[str]:
    described = [peer.describe() for peer in peers]
    fields = [f.name for f in dataclasses.fields(learner)]
    mine = learner.describe()
    return [f"{f}={mine[f]}" for f in fields if len({json.dumps(to_json(peer.get(f))) for peer in described}) > 1]


def _words(name: str) -> str:
    first, *rest = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).split()
    return " ".join([first, *(word if word.isupper() else word.lower() for word in rest)])


def _attributes(model, learners, grid, fixed, d, thresholds) -> dict[str, Any]:
    attributes = {
        "schema": SCHEMA,
        "solvable_version": installed_version(),
        "model": json.dumps(to_json(model.describe())),
        "learners": json.dumps(to_json([learner.describe() for learner in learners])),
        "axes": json.dumps(list(grid)),
        "model_axes": json.dumps(list(model.axis_names)),
        "fixed": json.dumps(to_json(fixed)),
        "definitions": json.dumps(dict(model.definitions)),
        "scaling": model.scaling,
        "thresholds": json.dumps(to_json(thresholds)),
    }
    return attributes if d is None else attributes | {"d": d}
