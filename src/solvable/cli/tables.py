"""Predictions and curves as rows for a table, as JSON and as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.cli.parse import Request
from solvable.core.errors import bad_parameter
from solvable.core.results import Prediction
from solvable.core.status import Status

if TYPE_CHECKING:
    from solvable.lab.curve import Curve
    from solvable.verbs.optimize import Optimum

DATA = (".nc", ".csv")
FILES = (".png", ".pdf", ".svg", *DATA)


def prediction_json(request: Request, found: Prediction) -> dict[str, Any]:
    """A prediction with what it is a prediction of."""
    one = np.ndim(found.status) == 0
    return {
        "model": request.model.describe(),
        "learner": request.learners[0].describe(),
        "axes": request.axes,
        "metrics": found.metrics,
        "order_parameters": found.order_parameters,
        "uncertainty": found.uncertainty,
        "status": found.status.sentence if one else [Status(s).sentence for s in found.status.ravel()],
        "converged": found.converged,
        "residual": found.residual,
        "iterations": found.iterations,
    }


def optimum_json(request: Request, found: Optimum) -> dict[str, Any]:
    """An optimum with what it is an optimum of, and the Bayes-optimal value of its metric (None if not known)."""
    names, values = _as_lists(found)
    return {
        "model": request.model.describe(),
        "learner": found.learner.describe(),
        "axes": request.axes,
        "best": dict(zip(names, values, strict=True)),
        "metric": found.metric,
        "metrics": found.prediction.metrics,
        "bayes_optimal": _unbeatable(found),
        "method": found.method,
        "evaluations": found.evaluations,
        "at_bound": found.at_bound,
        "converged": found.converged,
    }


def optimum_rows(found: Optimum) -> tuple[list[str], list[list[Any]]]:
    """The best values, what they give, and what no learner can beat."""
    names, values = _as_lists(found)
    rows = [[f"best {name}", value] for name, value in zip(names, values, strict=True)]
    rows += [[name, value] for name, value in found.prediction.metrics.items()]
    bound = _unbeatable(found)
    rows += [[f"Bayes-optimal {found.metric}", bound]] if bound is not None else []
    rows += [["at a bound", "yes: a better value may lie beyond"]] if found.at_bound else []
    return ["quantity", "value"], rows


def _as_lists(found: Optimum) -> tuple[list[str], list[float]]:
    if isinstance(found.over, str):
        return [found.over], [found.value]  # pyright: ignore[reportReturnType]
    return list(found.over), list(found.value)  # pyright: ignore[reportArgumentType]


def _unbeatable(found: Optimum) -> float | None:
    return None if found.bayes_optimal is None else found.bayes_optimal.metrics.get(found.metric)


def prediction_rows(request: Request, found: Prediction) -> tuple[list[str], list[list[Any]]]:
    """A row for each metric of a single point, or a row for each point of a grid."""
    if np.ndim(found.status) == 0:
        errors = found.uncertainty
        rows = [
            [name, _entry(value), _entry(errors[name]) if name in errors else None]
            for name, value in found.metrics.items()
        ]
        rows += [[name, _entry(value), None] for name, value in found.order_parameters.items()]
        return ["quantity", "value", "uncertainty"], rows
    axes = np.broadcast_arrays(*(np.asarray(value) for value in request.axes.values()))
    columns = [*axes, *found.metrics.values()]
    rows = [
        [*(_entry(column[i]) for column in columns), Status(status).sentence] for i, status in enumerate(found.status)
    ]
    return [*request.axes, *found.metrics, "status"], rows


def curve_rows(curve: Curve, metric: str) -> tuple[list[str], list[list[Any]]]:
    """A row for each learner and grid point: theory, and the mean of the runs that settled with its standard error.

    If some did not settle, the means of all runs and their numbers stand beside. Of a matrix metric the diagonal is
    listed.
    """
    from solvable.lab.curve.entries import diagonal

    (axis,) = curve.axes
    data = curve.dataset
    simulated = f"{metric}_simulation" in data
    theory = diagonal(curve.theory(metric)).values if f"{metric}_theory" in data else None
    summary = [diagonal(part).values for part in curve.summary(metric)] if simulated else []
    every = [diagonal(part).values for part in curve.summary(metric, settled=False)] if simulated else []
    aside = simulated and bool(np.any(every[2] > summary[2]))
    rows = []
    for j, learner in enumerate(curve.learners):
        for i, x in enumerate(data[axis].values):
            status = int(data["status"].values[j, i])
            row = [learner, float(x), _entry(theory[j, i]) if theory is not None and status >= 0 else None]
            if simulated:
                mean, error, count = (part[j, i] for part in summary)
                row += [_entry(mean), _entry(error)] if np.any(count > 0) else [None, None]
                if aside:
                    made = int(np.max(every[2][j, i]))
                    row += [f"{int(np.max(count))} of {made}", _entry(every[0][j, i])] if made else [None, None]
            rows.append([*row, Status(status).sentence if status >= 0 else "no theory"])
    middle = ["simulation", "standard error"] if simulated else []
    middle += ["settled", "all runs"] if aside else []
    return ["learner", axis, metric, *middle, "status"], rows


def curve_json(curve: Curve) -> dict[str, Any]:
    """Every metric of every learner, theory and simulation, with the thresholds."""
    import json

    data = curve.dataset
    learners = []
    for j, label in enumerate(curve.learners):
        status = data["status"].values[j]
        entry: dict[str, Any] = {"label": label} | {"theory": {}, "simulation": {}}
        entry["status"] = [Status(s).sentence if s >= 0 else "no theory" for s in status]
        for metric in curve.metrics:
            if f"{metric}_theory" in data and np.any(status >= 0):
                entry["theory"][metric] = data[f"{metric}_theory"].values[j]
            if f"{metric}_simulation" in data:
                mean, error, count = (part.values[j] for part in curve.summary(metric))
                every, _, number = curve.summary(metric, settled=False)
                if np.any(number.values[j] > 0):
                    entry["simulation"][metric] = {"mean": mean, "standard_error": error, "runs": count}
                    entry["simulation"][metric] |= {"mean_of_all": every.values[j], "all_runs": number.values[j]}
        learners.append(entry)
    return {
        "model": curve.model,
        "fixed": json.loads(data.attrs["fixed"]),
        "axes": {name: data[name].values for name in curve.axes},
        "d": int(data.attrs["d"]) if "d" in data.attrs else None,
        "thresholds": curve.thresholds,
        "learners": learners,
        "agreement": _agreements(curve),
    }


def _agreements(curve: Curve) -> dict[str, Any]:
    """The verdict on each metric that has a theory and two runs at a point."""
    import dataclasses

    found = {}
    for metric in curve.metrics:
        try:
            found[metric] = dataclasses.asdict(curve.agreement(metric))
        except ValueError:
            continue
    return found


def check_outputs(paths: list[str]) -> list[Path]:
    """Refuse what cannot be written before anything is computed."""
    for path in map(Path, paths):
        if path.suffix.lower() not in FILES:
            raise bad_parameter("--out", str(path), f"a file name that ends in {', '.join(FILES)}")
        if not path.parent.is_dir():
            raise bad_parameter("--out", str(path), "in a folder that exists")
    return [Path(path) for path in paths]


def write_outputs(curve: Curve, metric: str, paths: list[Path]) -> None:
    """The data as netCDF or CSV, or a figure, after each file's ending."""
    for path in paths:
        curve.save(path) if path.suffix.lower() in DATA else curve.figure(path, metric)


def _entry(value: Any) -> Any:
    """A number as it is, a vector as its entries, a matrix as its diagonal where the rest is zero to six digits."""
    array = np.asarray(value)
    if array.ndim == 0:
        return array.item()
    if array.ndim == 1:
        return ", ".join(f"{entry:.6g}" for entry in array)
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        rest = array - np.diag(np.diag(array))
        if np.max(np.abs(rest)) <= 5e-7 * np.max(np.abs(array)):
            return f"diag({_entry(np.diag(array))})"
    return f"[{'; '.join(str(_entry(row)) for row in array)}]"
