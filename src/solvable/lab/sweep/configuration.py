"""From a file to a plan. Every key is checked and named where it is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solvable.core.errors import bad_parameter
from solvable.core.model import Learner, Model
from solvable.lab.grid.plan import GridAxis, Plan
from solvable.lab.grid.request import asked_runs, checked_plan, grid_values, number
from solvable.lab.named import find_learner, find_model, make, parameters

SEEDS = 8
"""The runs of a sweep at each point, unless told."""


def read_plan(source: str | Path | Mapping[str, Any]) -> Plan:
    """The plan of a TOML file, or of the tables such a file would hold."""
    tables = source if isinstance(source, Mapping) else _load(Path(source))
    _known("the file", tables, ("model", "learner", "axes", "simulation", "thresholds"))
    thresholds = tables.get("thresholds", False)
    if not isinstance(thresholds, bool):
        raise bad_parameter("thresholds", thresholds, "true or false")
    kind, fixed_fields, model_grid = _model(_table(tables, "model"))
    model = make(kind, fixed_fields | {axis.name: axis.values[0] for axis in model_grid}, {}, "{name} in [model]")
    learners, learner_grid = _learners(kind, tables.get("learner"))
    axes = {name: grid_values(f"axes.{name}", value) for name, value in _table(tables, "axes", optional=True).items()}
    sizes, seeds = _simulation(tables, model)
    grid = [*model_grid, *learner_grid, *(GridAxis(n, v, "axis") for n, v in axes.items() if isinstance(v, tuple))]
    fixed = {name: number(f"axes.{name}", value) for name, value in axes.items() if not isinstance(value, tuple)}
    plan = checked_plan(model, learners, grid, fixed, sizes, seeds, thresholds)
    unknown = [name for name in axes if name not in model.axis_names]
    if unknown:
        takes = f"one of the axes of {model.name()}: {', '.join(model.axis_names) or 'none'}"
        raise bad_parameter("axes", unknown[0], f"{takes} (a field belongs to [model] or [[learner]])")
    return plan


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from None


def _model(table: dict[str, Any]) -> tuple[type[Model], dict[str, Any], list[GridAxis]]:
    kind = find_model(_name("model", table))
    fixed, grid = _fields("model", kind, table)
    return kind, fixed, [GridAxis(name, values, "model") for name, values in grid.items()]


def _learners(model: type[Model], given: Any) -> tuple[list[Learner], list[GridAxis]]:
    tables = [given] if isinstance(given, Mapping) else given
    if not (isinstance(tables, list) and tables and all(isinstance(table, Mapping) for table in tables)):
        raise ValueError("the file needs at least one learner: a table [[learner]] with its name.")
    learners: list[Learner] = []
    grid: dict[str, GridAxis] = {}
    for j, table in enumerate(tables):
        kind = find_learner(model, _name("learner", table))
        fixed, varied = _fields("learner", kind, dict(table))
        first = {name: values[0] for name, values in varied.items()}
        learners.append(make(kind, fixed | first, {}, "{name} in [[learner]]"))
        for name, values in varied.items():
            before = grid.get(name, GridAxis(name, values, "learner"))
            if before.values != values:
                raise ValueError(f"{name} must have the same list of values in every [[learner]] that varies it.")
            grid[name] = GridAxis(name, values, "learner", (*before.learners, j))
    return learners, list(grid.values())


def _fields(what: str, kind: Any, table: dict[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The fields of a table that are set, and those that vary."""
    known = parameters(kind)
    fixed: dict[str, Any] = {}
    grid: dict[str, tuple[Any, ...]] = {}
    for name, value in table.items():
        if name == "name":
            continue
        if name not in known:
            hint = "; axes of the model belong to [axes]" if name in getattr(kind, "axis_names", ()) else ""
            raise bad_parameter(f"{what}.{name}", value, f"left out: {kind.name()} has {', '.join(known)}{hint}")
        given = grid_values(f"{what}.{name}", value)
        if isinstance(given, tuple):
            grid[name] = given
        else:
            fixed[name] = given
    return fixed, grid


def _simulation(tables: Mapping[str, Any], model: Model) -> tuple[tuple[int | None, ...], list[int]]:
    if "simulation" not in tables:
        return (), []
    table = _table(tables, "simulation")
    _known("[simulation]", table, ("d", "seeds"))
    if "d" not in table and model.size is not None:
        raise ValueError("[simulation] needs d, the dimension of the runs, or a list of them.")
    return asked_runs(model, table.get("d"), table.get("seeds", SEEDS), SEEDS, "simulation.d")


def _name(what: str, table: Mapping[str, Any]) -> str:
    name = table.get("name")
    if not isinstance(name, str):
        raise ValueError(f'[{what}] needs a name, such as name = "{"multi-index" if what == "model" else "amp"}".')
    return name


def _table(tables: Mapping[str, Any], name: str, optional: bool = False) -> dict[str, Any]:
    found = tables.get(name, {} if optional else None)
    if not isinstance(found, Mapping):
        raise ValueError(f"the file needs a table [{name}].")
    return dict(found)


def _known(where: str, table: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in table:
        if key not in keys:
            raise ValueError(f"unknown key {key!r} in {where}: it takes {', '.join(keys)}.")
