"""A curve: predictions and outcomes over a grid, labelled, that can be drawn, judged and kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from solvable.core.errors import bad_parameter
from solvable.core.status import Status
from solvable.lab.assemble import MATRIX
from solvable.lab.matrices import ENTRY, diagonal, is_matrix
from solvable.lab.store import load_dataset, save_dataset

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

THEORY, SIMULATION = "_theory", "_simulation"


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The point where theory and simulation differ most, in standard errors of the simulated mean.

    `metric` is the scalar compared; of a matrix metric, the diagonal entry: `overlap_2` for the second of `overlap`.
    `deviation` is |theory - simulation| / standard_error. It is 0 where the two numbers agree to 1e-9 relative,
    whatever the spread, and infinite where they do not although the runs have no spread beyond rounding (1e-12).
    `points` is how many were compared, `runs` the number of seeds behind the point.
    """

    metric: str
    deviation: float
    learner: str
    at: dict[str, float]
    theory: float
    simulation: float
    standard_error: float
    points: int
    runs: int

    @property
    def chance(self) -> float:
        """How probable so large a deviation is at one of the points if theory is right and the runs are Gaussian.

        The standard error is itself estimated from few runs, so the deviation has Student's law; the probability is
        multiplied by the number of points, among which this is the worst.
        """
        from scipy.special import stdtr

        return float(min(1.0, 2 * self.points * stdtr(self.runs - 1, -self.deviation)))

    def __str__(self) -> str:
        where = ", ".join([self.learner, *(f"{name} = {value:g}" for name, value in self.at.items())])
        return (
            f"{self.metric}: largest deviation of {self.points} points is {self.deviation:.2f} standard errors, "
            f"at {where}: theory {self.theory:.6g}, simulation {self.simulation:.6g} +- {self.standard_error:.2g}"
        )


class Curve:
    """Predictions and outcomes over a grid of one or two axes.

    `dataset` is an `xarray.Dataset` with dimensions `learner`, the grid's axes and `seed`, and variables
    `<metric>_theory`, `<metric>_uncertainty`, `<name>_order_parameter`, `status` (a `Status`, or -1 where a learner has
    no theory), `<metric>_simulation`, `converged_simulation`, `seconds`, and `failed` (the error's text, present only
    if some runs raised). A metric that is a matrix at each point has the dimensions `row` and `column` too, counted
    from 1. Its attributes describe the model and the learners.
    """

    def __init__(self, dataset: xr.Dataset):
        self.dataset = dataset

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the grid's axes."""
        return tuple(json.loads(self.dataset.attrs["axes"]))

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
        """The thresholds of the model along the curve's axis, where they are known."""
        return {name: float(value) for name, value in json.loads(self.dataset.attrs["thresholds"]).items()}

    def __getitem__(self, metric: str) -> xr.DataArray:
        """The theory of one metric."""
        return self.theory(metric)

    def theory(self, metric: str) -> xr.DataArray:
        """What theory says of one metric."""
        return self._variable(metric, THEORY, "theory")

    def simulation(self, metric: str) -> xr.DataArray:
        """Every outcome of one metric, seed by seed."""
        return self._variable(metric, SIMULATION, "simulation")

    def summary(self, metric: str) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
        """Mean over the seeds, its standard error (NaN below two runs), and the number of runs that gave a value."""
        return over_seeds(self.simulation(metric))

    def agreement(self, metric: str | None = None, resolution: float = 0.0) -> Agreement:
        """The largest deviation between theory and the mean of the runs, in standard errors, and where it is.

        `resolution` is how exactly the algorithm solves its own problem, such as AMP's stopping tolerance: it is added
        to the standard error in quadrature, which matters only where the runs have next to no spread.
        Points count if theory converged there and at least two runs gave a value. Runs that the algorithm itself did
        not call converged are included: leaving them out would select the good ones. Of a matrix metric the diagonal
        entries are compared.
        """
        metric = self.metric_or_default(metric)
        nothing = f"nothing to compare for {metric}: no point has both a theory and at least two runs."
        if metric + THEORY not in self.dataset or metric + SIMULATION not in self.dataset:
            raise ValueError(nothing)
        theory = diagonal(self.theory(metric)).where(self.dataset["status"] == Status.CONVERGED)
        mean, error, count = (diagonal(part) for part in self.summary(metric))
        error = xr.apply_ufunc(np.hypot, error, resolution)
        theory, mean, error, count = xr.broadcast(theory, mean, error, count)
        usable = (theory.notnull() & mean.notnull() & (count >= 2)).values
        if not usable.any():
            raise ValueError(nothing)
        distance = np.abs(theory.values - mean.values)
        same = np.isclose(theory.values, mean.values, rtol=1e-9, atol=1e-15)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = error.values > 1e-12 * np.abs(mean.values)
            deviation = np.where(same, 0.0, np.where(spread, distance / error.values, np.inf))
        worst = np.unravel_index(np.argmax(np.where(usable, deviation, -1.0)), deviation.shape)
        place = theory[tuple(int(i) for i in worst)]
        return Agreement(
            metric=f"{metric}_{place[ENTRY].item()}" if ENTRY in theory.dims else metric,
            deviation=float(deviation[worst]),
            learner=str(place["learner"].values),
            at={name: float(place[name].values) for name in self.axes},
            theory=float(theory.values[worst]),
            simulation=float(mean.values[worst]),
            standard_error=float(error.values[worst]),
            points=int(usable.sum()),
            runs=int(count.values[worst]),
        )

    @property
    def default_metric(self) -> str:
        """The scalar that says most: `overlap`, or an error where that is a matrix, otherwise the first metric."""
        scalars = [metric for metric in self.metrics if not self.is_matrix(metric)]
        preferred = (self.dataset.attrs.get("metric"), "overlap", "generalization_error", "estimation_error")
        return next((metric for metric in preferred if metric in scalars), (scalars or self.metrics)[0])

    def is_matrix(self, metric: str) -> bool:
        """Whether a metric is a matrix at each point, with dimensions `row` and `column`."""
        return any(
            is_matrix(self.dataset[metric + end]) for end in (THEORY, SIMULATION) if metric + end in self.dataset
        )

    def plot(
        self, metric: str | None = None, ax: Axes | None = None, parts: Collection[str] = ("theory", "simulation")
    ) -> Axes:
        """Draw one metric: lines of theory and markers of simulation, or a heat map if there are two axes.

        A matrix metric is drawn by its diagonal entries, one line for those that theory does not tell apart.
        `parts` selects what is drawn, so that theory on a fine grid and simulations on a coarse one can share `ax`.
        """
        from solvable.lab.plots import draw

        return draw(self, self.metric_or_default(metric), ax, parts)

    def figure(self, path: str | Path, metric: str | None = None) -> Path:
        """Draw one metric into a file, as PNG, PDF or SVG after its ending."""
        from solvable.lab.plots import save_figure

        return save_figure(self, self.metric_or_default(metric), path)

    def save(self, path: str | Path) -> Path:
        """Write the curve to a netCDF file whose content is protected by checksums."""
        return save_dataset(self.dataset, path)

    @classmethod
    def load(cls, path: str | Path) -> Curve:
        """Read a curve that `save` wrote; a damaged file raises `CurveFileError`."""
        return cls(load_dataset(path))

    def to_dataframe(self) -> pd.DataFrame:
        """One row for each learner, grid point and seed; a column for each entry of a matrix (`overlap_theory_1_2`)."""
        flat = self.dataset.drop_dims(MATRIX, errors="ignore")
        for name, variable in self.dataset.data_vars.items():
            inner = [dim for dim in MATRIX if dim in variable.dims]
            for index in np.ndindex(*(variable.sizes[dim] for dim in inner)) if inner else ():
                entry = variable.isel(dict(zip(inner, index, strict=True)), drop=True)
                flat["_".join([str(name), *(str(i + 1) for i in index)])] = entry
        return flat.to_dataframe().reset_index()

    def __repr__(self) -> str:
        grid = ", ".join(
            f"{name} from {values.min():g} to {values.max():g} ({values.size})"
            for name, values in ((name, self.dataset[name].values) for name in self.axes)
        )
        d = self.dataset.attrs.get("d")
        size = "" if d is None else f"; d = {d}, {self.dataset.sizes['seed']} seeds"
        return f"Curve({self.model['name']}; {', '.join(self.learners)}; {grid}{size}; {', '.join(self.metrics)})"

    def metric_or_default(self, metric: str | None) -> str:
        """The metric asked for, if the curve has it; `default_metric` for None."""
        metric = self.default_metric if metric is None else metric
        if metric not in self.metrics:
            raise bad_parameter("metric", metric, f"one of: {', '.join(self.metrics)}")
        return metric

    def _variable(self, metric: str, ending: str, what: str) -> xr.DataArray:
        if metric + ending not in self.dataset:
            have = ", ".join(self._names(ending)) or "nothing"
            raise KeyError(f"no {what} of {metric!r}; there is {what} of: {have}")
        return self.dataset[metric + ending]

    def _names(self, ending: str) -> list[str]:
        names = (str(name).removesuffix(ending) for name in self.dataset if str(name).endswith(ending))
        return [name for name in names if name != "converged"]


def over_seeds(runs: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Mean over the seeds, its standard error (NaN below two runs), and the number of runs that gave a value."""
    count = runs.notnull().sum("seed")
    spread = runs.std("seed", ddof=1, skipna=True).where(count > 1)
    return runs.mean("seed", skipna=True), spread / np.sqrt(count.where(count > 0)), count
