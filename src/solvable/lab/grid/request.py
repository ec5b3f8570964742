"""From what a user asks for to a plan: the arguments of `sv.learning_curve`, `sv.phase_diagram` and `sv.sweep`.

Every name and value is checked here, and named where it is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from solvable.core.checks import check_count, check_learner, check_model, is_array, real_array
from solvable.core.errors import bad_parameter
from solvable.core.fields import field_names, has_field
from solvable.core.model import Learner, Model
from solvable.lab.grid.plan import GridAxis, Plan, with_field

_LARGEST = sys.float_info.max
_TAKEN = ("learner", "title", "d", "seed", "row", "column", "entry", "status", "seconds", "failed")


def make_plan(
    model: Model,
    learners: Any,
    d: Any,
    seeds: Any,
    thresholds: bool,
    values: Mapping[str, Any],
    default_seeds: int = 1,
    lines: bool = False,
) -> Plan:
    """The plan of a model and learners; `values` are its axes, and fields to set or to vary, where a list varies.

    A model whose size has another name than `d` has it among the `values`. `default_seeds` is how many runs there are
    at each point if sizes are given but no `seeds`.
    """
    model, learners = check_model(model), check_learners(learners)
    if d is None and model.size not in (None, "d"):
        values = dict(values)
        d = values.pop(model.size, None)
    sizes, seeds = asked_runs(model, d, seeds, default_seeds)
    grid: list[GridAxis] = []
    fixed: dict[str, Any] = {}
    for name, value in values.items():
        given = grid_values(name, value)
        home, having = home_of(name, model, learners)
        if isinstance(given, tuple):
            grid.append(GridAxis(name, given, home, having))
            continue
        fixed[name] = given = number(name, given) if home == "axis" else given
        if home == "learner":
            learners = [with_field(le, name, given) if j in having else le for j, le in enumerate(learners)]
        elif home == "model":
            model = with_field(model, name, given)
    return checked_plan(model, learners, grid, fixed, sizes, seeds, thresholds, lines)


def checked_plan(
    model: Model,
    learners: Sequence[Learner],
    grid: Sequence[GridAxis],
    fixed: dict[str, Any],
    sizes: Sequence[int | None],
    seeds: Sequence[int],
    thresholds: bool,
    lines: bool = False,
) -> Plan:
    """The plan, if every name is there once and each axis is one of the model's."""
    names = [axis.name for axis in grid]
    for name in names:
        if names.count(name) > 1 or name in fixed:
            raise ValueError(f"{name} is given twice: it can vary in one place only.")
        if name in _TAKEN:
            raise ValueError(f"{name} cannot be a grid axis: the results have something of that name already.")
    for axis in grid:
        if axis.home == "axis":
            real_array(axis.name, list(axis.values))
    return Plan(model, tuple(learners), tuple(grid), fixed, tuple(sizes), tuple(seeds), thresholds, lines)


def asked_runs(
    model: Model, d: Any, seeds: Any, default: int, name: str = "d"
) -> tuple[tuple[int | None, ...], list[int]]:
    """The sizes and the seeds of the runs; none of either without a size, or for a model that has none without seeds.

    `name` is what the size is called where it was given.
    """
    if model.size is None:
        if d is not None:
            raise bad_parameter(name, d, f"left out: {model.name()} has no size besides its axes")
        return ((None,), check_seeds(seeds)) if seeds is not None else ((), [])
    chosen = check_seeds(default if seeds is None else seeds)
    if d is None:
        return (), []
    sizes = tuple(check_count(name, size, least=2) for size in (d if is_array(d) else [d]))
    if not sizes or len(set(sizes)) < len(sizes):
        raise bad_parameter(name, d, "a dimension, or a list of different ones")
    return sizes, chosen


def home_of(name: str, model: Model, learners: list[Learner]) -> tuple[str, tuple[int, ...]]:
    """Whose a name is: `"axis"` or `"model"`, or `"learner"` with the numbers of those that have it.

    A name that belongs to nobody, or to both the model and a learner, is a `ValueError`.
    """
    having = tuple(j for j, learner in enumerate(learners) if has_field(learner, name))
    homes = {"axis": name in model.axis_names, "model": has_field(model, name), "learner": bool(having)}
    if sum(homes.values()) > 1:
        raise ValueError(f"{name} belongs to both the model and a learner: set one of them where it is made.")
    if not any(homes.values()):
        fields = (field for owner in (model, *learners) for field in field_names(owner))
        known = [*model.axis_names, *fields]
        raise bad_parameter("axis", name, f"an axis or a field of the model or of a learner: {', '.join(known)}")
    return next(home for home, found in homes.items() if found), having


def check_learners(learners: Any) -> list[Learner]:
    """The learners, of which one alone may be given without a list."""
    if isinstance(learners, (list, tuple)) and not learners:
        raise bad_parameter("learners", learners, "one learner or a list of them")
    return [check_learner(learner) for learner in (learners if isinstance(learners, (list, tuple)) else [learners])]


def check_seeds(seeds: Any) -> list[int]:
    """The seeds: a number of them, or those listed."""
    if not is_array(seeds):
        return list(range(check_count("seeds", seeds, least=1, most=10**6)))
    chosen = [check_count("seeds", seed, least=0) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise bad_parameter("seeds", seeds, "a number of seeds, or a list of different ones")
    return chosen


def grid_values(name: str, value: Any) -> Any:
    """A tuple for a list or a range, which make a grid axis; a single value as it is."""
    if isinstance(value, Mapping):
        return value_range(name, value)
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


def value_range(name: str, table: Mapping[str, Any]) -> tuple[float, ...]:
    """The numbers of a table {start, stop, num}, evenly spaced or with a constant ratio."""
    takes = "{start = .., stop = .., num = ..}, with log = true for a constant ratio"
    given = dict(table)
    log = given.pop("log", False)
    if set(given) != {"start", "stop", "num"} or not isinstance(log, bool):
        raise bad_parameter(name, dict(table), takes)
    start, stop, num = number(name, given["start"]), number(name, given["stop"]), given["num"]
    num = check_count(f"{name}.num", num, least=1)
    if log and not (start > 0 and stop > 0):
        raise bad_parameter(name, dict(table), f"{takes}, start and stop then positive")
    values = np.geomspace(start, stop, num) if log else np.linspace(start, stop, num)
    if len(np.unique(values)) < num:
        raise bad_parameter(name, dict(table), f"{takes}, start and stop different")
    return tuple(values.tolist())


def number(name: str, value: Any) -> float:
    """A finite number, as a Python float."""
    array = real_array(name, value)
    if array.ndim or not np.isfinite(array):
        raise bad_parameter(name, value, "a finite number")
    return float(array)
