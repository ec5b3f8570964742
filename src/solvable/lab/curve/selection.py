"""A part of a curve: some of its learners, sizes and grid values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from solvable.core.errors import bad_parameter
from solvable.core.fields import is_number
from solvable.core.plain import to_json

if TYPE_CHECKING:
    from solvable.lab.curve import Curve

THRESHOLD = "_threshold"
NEAR = 1e-9
"""Numbers that differ by less than this, relative to the larger one, are the same place on an axis."""


def select(curve: Curve, values: dict[str, Any]) -> xr.Dataset:
    """The dataset of the part of a curve that has the given values (see `Curve.select`)."""
    dataset, fixed = curve.dataset, json.loads(curve.dataset.attrs["fixed"])
    for name, wanted in values.items():
        several = isinstance(wanted, (list, tuple, np.ndarray))
        if several and len(wanted) == 0:
            raise bad_parameter(name, wanted, "a value or a list of at least one")
        if name == "learner":
            where = [_place(name, label, curve.learners) for label in (wanted if several else [wanted])]
            described = json.loads(dataset.attrs["learners"])
            dataset = dataset.isel(learner=where).assign_attrs(learners=json.dumps([described[i] for i in where]))
        elif name == "d":
            where = [_place(name, size, curve.sizes) for size in (wanted if several else [wanted])]
            if "d" in dataset.dims:
                dataset = _with_sizes(dataset, where)
        elif name in curve.axes:
            along = dataset[name].values.tolist()
            if several:
                dataset = dataset.isel({name: [_place(name, value, along) for value in wanted]})
                continue
            place = _place(name, wanted, along)
            fixed[name] = along[place]
            dataset = dataset.isel({name: place}, drop=True)
        else:
            raise bad_parameter("name", name, f"one of: {', '.join([*curve.axes, 'learner', 'd'])}")
    axes = [name for name in curve.axes if name in dataset.dims]
    attributes = {"axes": json.dumps(axes), "fixed": json.dumps(to_json(fixed))}
    return _settle_thresholds(dataset.assign_attrs(attributes))


def _place(name: str, wanted: Any, known: Any) -> int:
    """Where a value is among the known ones: equal to it, or for numbers the nearest within rounding."""
    known = list(known)
    if isinstance(wanted, str):
        if wanted in known:
            return known.index(wanted)
    elif is_number(wanted) and known and all(is_number(value) for value in known):
        distances = np.abs(np.asarray(known, dtype=np.float64) - float(wanted))
        place = int(np.argmin(np.where(np.isnan(distances), np.inf, distances)))
        if distances[place] <= NEAR * max(abs(known[place]), abs(float(wanted))):
            return place
    listed = ", ".join(f"{value:.10g}" if is_number(value) else str(value) for value in known)
    raise bad_parameter(name, wanted, f"one of: {listed}" if known else "left out: this curve has no runs")


def _with_sizes(dataset: xr.Dataset, where: list[int]) -> xr.Dataset:
    """Some of several sizes; a single one is an attribute, not a dimension."""
    if len(where) > 1:
        return dataset.isel(d=where)
    return dataset.isel(d=where[0], drop=True).assign_attrs(d=int(dataset["d"].values[where[0]]))


def _settle_thresholds(dataset: xr.Dataset) -> xr.Dataset:
    """Thresholds that no longer vary over the grid move from variables to the attribute."""
    settled = [name for name in threshold_names(dataset) if dataset[name + THRESHOLD].ndim == 0]
    if not settled:
        return dataset
    known = json.loads(dataset.attrs["thresholds"])
    known |= {name: to_json(float(dataset[name + THRESHOLD])) for name in settled}
    return dataset.drop_vars([name + THRESHOLD for name in settled]).assign_attrs(thresholds=json.dumps(known))


def threshold_names(dataset: xr.Dataset) -> list[str]:
    """The thresholds that the dataset has as variables."""
    return [str(name).removesuffix(THRESHOLD) for name in dataset if str(name).endswith(THRESHOLD)]
