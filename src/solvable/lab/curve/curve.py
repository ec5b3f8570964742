"""A curve: predictions and outcomes over a grid, labelled, that can be drawn, judged and kept."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from solvable.core.errors import bad_parameter
from solvable.lab.curve.agreement import Agreement, compared
from solvable.lab.curve.entries import has_entries
from solvable.lab.curve.files import check_ending, load_dataset, save_dataset, write_whole
from solvable.lab.curve.selection import THRESHOLD, select, threshold_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

THEORY, SIMULATION = "_theory", "_simulation"
COMPARED = ("squared_overlap", "cosine", "overlap", "generalization_error", "estimation_error")
"""What learners are compared by, unless told: each means the same for all of them."""
NOT_METRICS = ("converged", "status", "failed", "iterations", "consistent")
"""What else ends in `_theory` or `_simulation`: how a computation ended."""


class Curve:
    """Predictions and outcomes over a grid of any number of axes.

    `dataset` is an `xarray.Dataset` with dimensions `learner`, the grid's axes (numbers or texts), `d` if there are
    runs of several sizes (a single size is the attribute `d`) and `seed`, and variables `<metric>_theory`,
    `<metric>_uncertainty`, `<name>_order_parameter`, `status` (a `Status`, or -1 where a learner has no theory, -2
    where it was not computed, -3 where it raised an error), `<metric>_simulation`, `status_simulation` (0 where a run
    was made, or -1, -2, -3 likewise), `converged_simulation`, `seconds` (of a run that is seen all along an axis, those
    of the whole run), `iterations_simulation` and `consistent_simulation` where runs tell how many steps they took and
    whether they pass their own checks, `failed` (the error's text, present only if some runs raised) and
    `<name>_threshold` (thresholds that vary over the grid, as places on the `model_axis`). A metric that is a
    matrix at each point has the dimensions `row` and `column` too, a vector `entry`, counted from 1. Its attributes
    describe the model and the learners.
    """

    def __init__(self, dataset: xr.Dataset):
        self.dataset = dataset

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the grid's axes."""
        return tuple(json.loads(self.dataset.attrs["axes"]))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The dimensions d of the runs; none if there are no runs, or if the model has no size."""
        if "d" in self.dataset.dims:
            return tuple(int(d) for d in self.dataset["d"].values)
        return (int(self.dataset.attrs["d"]),) if "d" in self.dataset.attrs else ()

    @property
    def size_name(self) -> str | None:
        """What the size of a run is called, mostly `"d"`; None if the model has no size."""
        return self.dataset.attrs.get("size", "d") or None

    @property
    def axis_labels(self) -> dict[str, str]:
        """What the axes of the model are, in short, such as `"n/d"`."""
        return json.loads(self.dataset.attrs.get("axis_labels", "{}"))

    @property
    def learners(self) -> tuple[str, ...]:
        """The labels of the learners."""
        return tuple(str(label) for label in self.dataset["learner"].values)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that have a theory, a simulation or both."""
        return tuple(dict.fromkeys(self._names(THEORY) + self._names(SIMULATION)))

    @property
    def model(self) -> dict[str, Any]:
        """The model's name and fields."""
        return json.loads(self.dataset.attrs["model"])

    @property
    def definitions(self) -> dict[str, str]:
        """What each metric means, in one line."""
        return json.loads(self.dataset.attrs["definitions"])

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the model along `model_axis`, where they are known and the same for the whole curve."""
        found = {name: float(value) for name, value in json.loads(self.dataset.attrs["thresholds"]).items()}
        constant = (name for name in threshold_names(self.dataset) if self.dataset[name + THRESHOLD].ndim == 0)
        return found | {name: float(self.dataset[name + THRESHOLD]) for name in constant}

    @property
    def model_axis(self) -> str | None:
        """The model's first axis, or the field in its place, along which its thresholds lie; None if not known."""
        if self.dataset.attrs.get("threshold_axis"):
            return self.dataset.attrs["threshold_axis"]
        if "model_axes" in self.dataset.attrs:
            return next(iter(json.loads(self.dataset.attrs["model_axes"])), None)
        fields = set(self.model).union(*json.loads(self.dataset.attrs["learners"]))
        names = [*self.axes, *json.loads(self.dataset.attrs["fixed"])]
        return next((name for name in names if name not in fields), None)

    def select(self, **values: Any) -> Curve:
        """The part of the curve with the given values: `curve.select(rho=0.2, learner="amp", d=120)`.

        An axis given one value is no longer an axis but is noted in the attribute `fixed`; given a list, it keeps those
        values. Numbers are found within 1e-9 relative. `learner` takes a label or a list of them, `d` one of the sizes
        or a list.
        """
        return Curve(select(self, values))

    def __getitem__(self, metric: str) -> xr.DataArray:
        """The theory of one metric."""
        return self.theory(metric)

    def theory(self, metric: str) -> xr.DataArray:
        """What theory says of one metric."""
        return self._variable(metric, THEORY, "theory")

    def simulation(self, metric: str) -> xr.DataArray:
        """Every outcome of one metric, seed by seed."""
        return self._variable(metric, SIMULATION, "simulation")

    @property
    def settled(self) -> xr.DataArray:
        """Which runs settled: the algorithm stopped moving, and where it checks its own estimates, they agree.

        Both are known without the truth, so that leaving the others out does not select the runs that are right.
        """
        converged = self.dataset["converged_simulation"].astype(bool)
        if "consistent_simulation" not in self.dataset:
            return converged
        return converged & (self.dataset["consistent_simulation"] != 0)  # NaN where a run does not say

    def summary(self, metric: str, settled: bool = True) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
        """Mean over the seeds, its standard error (NaN below two runs), and the number of runs behind it.

        The runs are those that settled (see `settled`); with `settled=False` all that gave a value.
        """
        runs = self.simulation(metric)
        return over_seeds(runs.where(self.settled) if settled else runs)

    def agreement(self, metric: str | None = None, resolution: float | None = None) -> Agreement:
        """Whether the runs agree with theory, differ from it, or are too few to say, and the point that decides.

        "Agrees" is said only if a theory that is wrong by 10 % would differ (the rule is that of `lab/verdict.py`).
        `resolution` is the relative shift that is expected of a finite dimension, 8/d but at most 5 % unless told; the
        numerical uncertainty of the theory and the algorithm's tolerance are added to it. Points count if theory
        converged there and at least two runs gave a value. Runs that did not settle are counted and set aside. Of a
        matrix metric the diagonal entries are compared.
        """
        return compared(self, self.metric_or_default(metric), resolution)

    @property
    def default_metric(self) -> str:
        """The first of `COMPARED` that every learner has, or else the first metric, a scalar if possible."""
        scalars = [metric for metric in self.metrics if not self.has_entries(metric)]
        shared = [metric for metric in scalars if self._is_shared(metric)]
        preferred = (self.dataset.attrs.get("metric"), *COMPARED)
        return next((metric for metric in preferred if metric in shared), (shared or scalars or self.metrics)[0])

    def has_entries(self, metric: str) -> bool:
        """Whether a metric is a matrix or a vector at each point, of which the diagonal or the entries are shown."""
        return any(
            has_entries(self.dataset[metric + end]) for end in (THEORY, SIMULATION) if metric + end in self.dataset
        )

    def plot(
        self,
        metric: str | None = None,
        ax: Axes | None = None,
        parts: Collection[str] = ("theory", "simulation"),
        x: str | None = None,
        kind: str | None = None,
    ) -> Axes | np.ndarray:
        """Draw one metric: lines of theory and markers of simulation, or a heat map of two axes.

        **Arguments:** `parts`, what is drawn, so that theory on a fine grid and simulations on a coarse one can share
        `ax`; `x`, the axis that runs from left to right (the model's first axis unless told, or else the longest);
        `kind`, `"lines"` or `"map"` (a map unless told for a phase diagram, and for two axes of at least 5 numbers).

        A matrix metric is drawn by its diagonal entries, one line for those that theory does not tell apart; a vector
        by its entries. Each combination of the other axes' values has a panel of its own.

        **Returns:** the `Axes`, or an array of them if there are several panels.
        """
        from solvable.lab.plots import draw

        return draw(self, self.metric_or_default(metric), ax, parts, x, kind)

    def figure(
        self, path: str | Path, metric: str | None = None, x: str | None = None, kind: str | None = None
    ) -> Path:
        """Draw one metric into a file, as PNG, PDF or SVG after its ending; `x` and `kind` as for `plot`."""
        from solvable.lab.plots import save_figure

        return save_figure(self, self.metric_or_default(metric), path, x, kind)

    def save(self, path: str | Path) -> Path:
        """Write the curve to a file, whole or not at all: netCDF or CSV after its ending.

        A netCDF file (.nc) holds everything, protected by checksums, and `load` reads it. A table (.csv) holds what
        `to_dataframe` does, for other programs.
        """
        if check_ending(path) == ".csv":
            return write_whole(path, lambda partial: self.to_dataframe().to_csv(partial, index=False))
        return save_dataset(self.dataset, path)

    @classmethod
    def load(cls, path: str | Path) -> Curve:
        """Read a curve that `save` wrote; a damaged file raises `CurveFileError`."""
        return cls(load_dataset(path))

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each learner, grid point, size and seed; a column for each entry of a matrix."""
        rows = [name for name in ("learner", *self.axes, "d", "seed") if name in self.dataset.dims]
        flat = self.dataset.drop_dims([dim for dim in self.dataset.dims if dim not in rows])
        for name, variable in self.dataset.data_vars.items():
            inner = [dim for dim in variable.dims if dim not in rows]
            for index in np.ndindex(*(variable.sizes[dim] for dim in inner)) if inner else ():
                entry = variable.isel(dict(zip(inner, index, strict=True)), drop=True)
                flat["_".join([str(name), *(str(i + 1) for i in index)])] = entry
        return flat.to_dataframe(dim_order=rows).reset_index()

    def __repr__(self) -> str:
        parts = [self.model["name"], ", ".join(self.learners)]
        if self.axes:
            parts.append(", ".join(_axis_in_words(name, self.dataset[name].values) for name in self.axes))
        if "seed" in self.dataset.dims:
            sizes = " and ".join(filter(None, [", ".join(map(str, self.sizes[:-1])), *map(str, self.sizes[-1:])]))
            parts.append(f"{f'd = {sizes}, ' if sizes else ''}{self.dataset.sizes['seed']} seeds")
        return f"Curve({'; '.join([*parts, ', '.join(self.metrics) or 'no metric yet'])})"

    def metric_or_default(self, metric: str | None) -> str:
        """The metric asked for, if the curve has it; `default_metric` for None."""
        if not self.metrics:
            raise ValueError("this curve has no metric yet: no point of it has been computed.")
        metric = self.default_metric if metric is None else metric
        if metric not in self.metrics:
            raise bad_parameter("metric", metric, f"one of: {', '.join(self.metrics)}")
        return metric

    def _variable(self, metric: str, ending: str, what: str) -> xr.DataArray:
        if metric + ending not in self.dataset:
            have = ", ".join(self._names(ending)) or "nothing"
            raise KeyError(f"no {what} of {metric!r}; there is {what} of: {have}")
        return self.dataset[metric + ending]

    def _is_shared(self, metric: str) -> bool:
        """Whether every learner that has any metric has a value of this one somewhere, in theory or in runs."""
        return bool((self._has_values([metric]) | ~self._has_values(self.metrics)).all())

    def _has_values(self, metrics: Collection[str]) -> np.ndarray:
        """For each learner, whether it has a value of one of the metrics."""
        names = [metric + end for metric in metrics for end in (THEORY, SIMULATION) if metric + end in self.dataset]
        found = [self.dataset[name].notnull() for name in names]
        return np.any([one.any([dim for dim in one.dims if dim != "learner"]) for one in found], axis=0)

    def _names(self, ending: str) -> list[str]:
        names = (str(name).removesuffix(ending) for name in self.dataset if str(name).endswith(ending))
        return [name for name in names if name not in NOT_METRICS]


def _axis_in_words(name: str, values: np.ndarray) -> str:
    if values.dtype.kind in "iuf":
        return f"{name} from {values.min():g} to {values.max():g} ({values.size})"
    return f"{name} in {', '.join(map(str, values))} ({values.size})"


def over_seeds(runs: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean over the seeds, its standard error (NaN below two runs), and the number of runs that gave a value."""
    count = runs.notnull().sum("seed")
    spread = runs.std("seed", ddof=1, skipna=True).where(count > 1)
    return runs.mean("seed", skipna=True), spread / np.sqrt(count.where(count > 0)), count
