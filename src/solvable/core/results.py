"""What theory says (`Prediction`) and what one run gave (`Outcome`): the same metrics under the same names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from solvable.core.status import Status


class _Metrics(Mapping[str, Any]):
    """A mapping from the names of metrics to their values: `dict(prediction)`, `"cosine" in prediction`."""

    metrics: dict[str, Any]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __getitem__(self, metric: str) -> Any:
        try:
            return self.metrics[metric]
        except KeyError:
            raise KeyError(f"no metric {metric!r}; there are: {', '.join(self.metrics)}") from None


@dataclasses.dataclass(frozen=True)
class Prediction(_Metrics):
    """What theory says in the limit of infinite dimension.

    Every entry has the shape of the axis given to `predict` (trailing axes for matrices). `status` holds a `Status`,
    or an integer array of them; `uncertainty` a numerical error estimate for each metric, none for closed forms exact
    to rounding. `residual` is how far the order parameters are from solving their equations: the largest relative
    difference between the two sides, or relative change by one more step; 0 where nothing is solved for.
    """

    metrics: dict[str, Any]
    order_parameters: dict[str, Any] = dataclasses.field(default_factory=dict)
    status: Any = Status.CONVERGED
    residual: Any = 0.0
    iterations: Any = 0
    uncertainty: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def converged(self) -> Any:
        """Whether each point succeeded; a `bool` for a single point."""
        ok = np.asarray(self.status) == Status.CONVERGED
        return bool(ok) if ok.ndim == 0 else ok

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self.metrics.items())
        ended = (
            Status(int(self.status)).sentence if np.ndim(self.status) == 0 else f"{np.sum(self.converged)} converged"
        )
        return f"Prediction({inside}; {ended})"


@dataclasses.dataclass(frozen=True)
class Outcome(_Metrics):
    """What one run at finite size gave; `estimate` is what the algorithm returns.

    Its own verdict is two facts: `converged`, that it stopped moving, and `consistent`, that what it estimates in
    several ways agrees, which is True for an algorithm that has no such check.
    A run that was asked for an array of values of one axis has the name of that axis as its `path`: the first axis of
    every metric, and of `converged`, then runs over those values. Any other outcome has `path` None. `details` are
    what else an algorithm has to say; of those that are numbers `light` keeps the ones asked for.
    """

    metrics: dict[str, Any]
    estimate: Any = None
    converged: Any = True
    seconds: float = float("nan")
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    path: str | None = None
    consistent: bool = True

    def light(self, details: Sequence[str] = ()) -> Outcome:
        """The outcome as curves and stores keep it: without its estimate, and with the named details only."""
        kept = {name: self.details[name] for name in details if name in self.details}
        return dataclasses.replace(self, estimate=None, details=kept)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self.metrics.items())
        ended = "converged" if np.all(self.converged) else "NOT converged"
        doubt = "" if self.consistent else ", NOT consistent"
        return f"Outcome({inside}; {ended}{doubt}, {self.seconds:.2g} s)"


def leading_arrays(found: Prediction, count: int, whose: str, pointwise: bool = False) -> Prediction:
    """What a theory returned for `count` points, as NumPy arrays whose first axis runs over the points.

    `pointwise` says that it was asked for one point and knows of no such axis.
    """

    def leading(name: str, value: Any) -> np.ndarray:
        array = _floats(value)
        return array[None] if pointwise else _first_axis(array, count, f"the {whose} theory returned {name}")

    groups = {
        group: {name: leading(name, value) for name, value in getattr(found, group).items()}
        for group in ("metrics", "order_parameters", "uncertainty")
    }
    status, residual, iterations = (leading(k, getattr(found, k)) for k in ("status", "residual", "iterations"))
    return Prediction(status=status.astype(int), residual=residual, iterations=iterations.astype(int), **groups)


def stacked(points: Sequence[Prediction | None], metrics: Iterable[str]) -> Prediction:
    """One prediction from single points; a point that raised (None) is NaN in every metric and marked NONFINITE.

    `metrics` are the names to use where every point raised.
    """
    solved = [point for point in points if point is not None]
    unknown = Prediction({name: np.full(1, np.nan) for name in metrics} if not solved else {})
    lost = dataclasses.replace(
        unknown, status=np.array([Status.NONFINITE]), residual=np.full(1, np.nan), iterations=np.zeros(1, int)
    )
    rows = [lost if point is None else point for point in points]

    def column(group: str) -> dict[str, np.ndarray]:
        samples = {name: value for row in rows for name, value in getattr(row, group).items()}
        blank = {name: np.full_like(value, np.nan) for name, value in samples.items()}
        return {name: np.concatenate([getattr(row, group).get(name, blank[name]) for row in rows]) for name in samples}

    return Prediction(
        metrics=column("metrics"),
        order_parameters=column("order_parameters"),
        status=np.concatenate([row.status for row in rows]),
        residual=np.concatenate([row.residual for row in rows]),
        iterations=np.concatenate([row.iterations for row in rows]),
        uncertainty=column("uncertainty"),
    )


def reshaped(found: Prediction, shape: tuple[int, ...]) -> Prediction:
    """Every entry in the shape of the axes instead of a list of points; a single point becomes Python numbers."""

    def reshape(array: np.ndarray) -> Any:
        return _plain(array.reshape(shape + array.shape[1:]))

    status = found.status.reshape(shape)
    return Prediction(
        metrics={name: reshape(value) for name, value in found.metrics.items()},
        order_parameters={name: reshape(value) for name, value in found.order_parameters.items()},
        status=Status(int(status)) if shape == () else status,
        residual=reshape(found.residual),
        iterations=reshape(found.iterations),
        uncertainty={name: reshape(value) for name, value in found.uncertainty.items()},
    )


def checked_outcome(found: Outcome, seconds: float, whose: str, path: str | None, count: int | None) -> Outcome:
    """What an algorithm returned, its metrics as plain numbers or arrays; none that is not finite is converged.

    A run along a path of `count` values has metrics with a first axis of that length, and of length one that is taken
    away again for a run up to one value (`count` None). `path` is None for an algorithm that knows of no such axis.
    """
    metrics = {name: np.asarray(value, dtype=np.float64) for name, value in found.metrics.items()}
    if path is None:
        converged: Any = bool(found.converged) and all(np.all(np.isfinite(value)) for value in metrics.values())
    else:
        where, length = f"the {whose} algorithm returned", count or 1
        metrics = {name: _first_axis(value, length, f"{where} {name}") for name, value in metrics.items()}
        claimed = _first_axis(np.asarray(found.converged, dtype=bool), length, f"{where} converged")
        converged = claimed & all_finite(metrics, length)
        if count is None:
            path, converged = None, bool(converged[0])
            metrics = {name: value[0] for name, value in metrics.items()}
    metrics = {name: _plain(np.asarray(value)) for name, value in metrics.items()}
    return dataclasses.replace(found, metrics=metrics, converged=converged, seconds=seconds, path=path)


def _first_axis(array: np.ndarray, count: int, what: str) -> np.ndarray:
    """An array whose first axis has the given length; a single number holds for every point."""
    if array.ndim == 0:
        return np.full(count, array)
    if array.shape[0] != count:
        raise ValueError(f"{what} of shape {array.shape} for {count} points; its first length must be {count}.")
    return array


def all_finite(metrics: dict[str, np.ndarray], count: int) -> np.ndarray:
    """Whether every metric of each point is finite."""
    good = np.ones(count, bool)
    for value in metrics.values():
        good &= np.isfinite(value).reshape(count, -1).all(axis=1)
    return good


def _floats(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind in "biuf" else array


def _plain(array: np.ndarray) -> Any:
    return array.item() if array.ndim == 0 else array


def _short(value: Any) -> str:
    array = np.asarray(value)
    return f"{float(array):.6g}" if array.ndim == 0 else f"<{'x'.join(map(str, array.shape))} array>"
