"""From a file, or from the arguments of `sv.sweep`, to a plan. Every key is checked and named where it is wrong."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from solvable.core.checks import check_count, check_model, real_array
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner, Model
from solvable.lab.named import find_learner, find_model, make, parameters
from solvable.lab.pairs import check_learners, check_seeds, home_of
from solvable.lab.sweep.plan import Axis, Plan

SEEDS = 8
_LARGEST = sys.float_info.max
_TAKEN = ("learner", "title", "d", "seed", "row", "column", "status", "seconds", "failed")


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
    axes = {name: _values(f"axes.{name}", value) for name, value in _table(tables, "axes", optional=True).items()}
    sizes, seeds = _simulation(tables)
    grid = [*model_grid, *learner_grid, *(Axis(n, v, "axis") for n, v in axes.items() if isinstance(v, tuple))]
    fixed = {name: _number(f"axes.{name}", value) for name, value in axes.items() if not isinstance(value, tuple)}
    return _plan(model, learners, grid, fixed, sizes, seeds, thresholds)


def make_plan(model: Model, learners: Any, d: Any, seeds: Any, thresholds: bool, values: Mapping[str, Any]) -> Plan:
    """The plan of a model and learners in Python; `values` are its axes, and fields to set or to vary."""
    model, learners = check_model(model), check_learners(learners)
    grid: list[Axis] = []
    fixed: dict[str, float] = {}
    for name, value in values.items():
        given = _values(name, value)
        home, having = home_of(name, model, learners)
        if isinstance(given, tuple):
            grid.append(Axis(name, given, home, having))
        elif home == "axis":
            fixed[name] = _number(name, given)
        elif home == "learner":
            learners = [le.with_field(name, given) if j in having else le for j, le in enumerate(learners)]
        else:
            model = model.with_field(name, given)
    return _plan(model, learners, grid, fixed, _sizes("d", d), check_seeds(seeds), thresholds)


def _plan(model, learners, grid, fixed, sizes, seeds, thresholds) -> Plan:
    names = [axis.name for axis in grid]
    for name in names:
        if names.count(name) > 1 or name in fixed:
            raise ValueError(f"{name} is given twice: it can vary in one place only.")
        if name in _TAKEN:
            raise ValueError(f"{name} cannot be a grid axis: the results have something of that name already.")
    for axis in grid:
        if axis.home == "axis":
            real_array(axis.name, list(axis.values))
    unknown = [
        name for name in [*fixed, *(axis.name for axis in grid if axis.home == "axis")] if name not in model.axis_names
    ]
    if unknown:
        takes = f"one of the axes of {model.name()}: {', '.join(model.axis_names) or 'none'}"
        raise bad_parameter("axes", unknown[0], f"{takes} (a field belongs to [model] or [[learner]])")
    return Plan(model, tuple(learners), tuple(grid), fixed, tuple(sizes), tuple(seeds if sizes else ()), thresholds)


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}.") from None


def _model(table: dict[str, Any]) -> tuple[type[Model], dict[str, Any], list[Axis]]:
    kind = find_model(_name("model", table))
    fixed, grid = _fields("model", kind, table)
    return kind, fixed, [Axis(name, values, "model") for name, values in grid.items()]


def _learners(model: type[Model], given: Any) -> tuple[list[Learner], list[Axis]]:
    tables = [given] if isinstance(given, Mapping) else given
    if not (isinstance(tables, list) and tables and all(isinstance(table, Mapping) for table in tables)):
        raise ValueError("the file needs at least one learner: a table [[learner]] with its name.")
    learners: list[Learner] = []
    grid: dict[str, Axis] = {}
    for j, table in enumerate(tables):
        kind = find_learner(model, _name("learner", table))
        fixed, varied = _fields("learner", kind, dict(table))
        first = {name: values[0] for name, values in varied.items()}
        learners.append(make(kind, fixed | first, {}, "{name} in [[learner]]"))
        for name, values in varied.items():
            before = grid.get(name, Axis(name, values, "learner"))
            if before.values != values:
                raise ValueError(f"{name} must have the same list of values in every [[learner]] that varies it.")
            grid[name] = Axis(name, values, "learner", (*before.learners, j))
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
            hint = "; axes of the model belong to [axes]" if name in getattr(kind, "axes", ()) else ""
            raise bad_parameter(f"{what}.{name}", value, f"left out: {kind.name()} has {', '.join(known)}{hint}")
        given = _values(f"{what}.{name}", value)
        if isinstance(given, tuple):
            grid[name] = given
        else:
            fixed[name] = given
    return fixed, grid


def _simulation(tables: Mapping[str, Any]) -> tuple[tuple[int, ...], list[int]]:
    if "simulation" not in tables:
        return (), []
    table = _table(tables, "simulation")
    _known("[simulation]", table, ("d", "seeds"))
    if "d" not in table:
        raise ValueError("[simulation] needs d, the dimension of the runs, or a list of them.")
    return _sizes("simulation.d", table["d"]), check_seeds(table.get("seeds", SEEDS))


def _sizes(name: str, d: Any) -> tuple[int, ...]:
    if d is None:
        return ()
    sizes = tuple(check_count(name, size, least=2) for size in (d if np.ndim(d) else [d]))
    if not sizes or len(set(sizes)) < len(sizes):
        raise bad_parameter(name, d, "a dimension, or a list of different ones")
    return sizes


def _values(name: str, value: Any) -> Any:
    """A tuple for a list or a range, which make a grid axis; a single value as it is."""
    if isinstance(value, Mapping):
        return _range(name, value)
    if isinstance(value, (list, tuple, range)) or (hasattr(value, "__array__") and np.ndim(value) > 0):
        values = tuple(np.asarray(value).tolist()) if not isinstance(value, (list, tuple)) else tuple(value)
        values = tuple(v.item() if hasattr(v, "item") and np.ndim(v) == 0 else v for v in values)
        scalar = all(isinstance(v, (int, float, str)) and not isinstance(v, bool) for v in values)
        if not values or not scalar or len({type(v) is str for v in values}) > 1 or len(set(values)) < len(values):
            raise bad_parameter(name, value, "a list of different numbers, or of different texts")
        if not all(isinstance(v, str) or abs(v) <= _LARGEST for v in values):
            raise bad_parameter(name, value, "a list of finite numbers")
        return values
    return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value


def _range(name: str, table: Mapping[str, Any]) -> tuple[float, ...]:
    takes = "{start = .., stop = .., num = ..}, with log = true for a constant ratio"
    given = dict(table)
    log = given.pop("log", False)
    if set(given) != {"start", "stop", "num"} or not isinstance(log, bool):
        raise bad_parameter(name, dict(table), takes)
    start, stop, num = _number(name, given["start"]), _number(name, given["stop"]), given["num"]
    num = check_count(f"{name}.num", num, least=1)
    if log and not (start > 0 and stop > 0):
        raise bad_parameter(name, dict(table), f"{takes}, start and stop then positive")
    values = np.geomspace(start, stop, num) if log else np.linspace(start, stop, num)
    if len(np.unique(values)) < num:
        raise bad_parameter(name, dict(table), f"{takes}, start and stop different")
    return tuple(values.tolist())


def _number(name: str, value: Any) -> float:
    array = real_array(name, value)
    if array.ndim or not np.isfinite(array):
        raise bad_parameter(name, value, "a finite number")
    return float(array)


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
