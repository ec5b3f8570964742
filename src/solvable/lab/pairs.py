"""Which values a grid may vary, and on what: axes of the model, fields of the model, fields of the learners."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from solvable.core.checks import check_count, check_learner
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.core.fields import field_names, get_field, has_field, is_number
from solvable.core.model import Learner, Model
from solvable.core.registry import find_simulation, find_theory, has_simulation, has_theory


def with_value(model: Model, learner: Learner, name: str, value: Any) -> tuple[Model, Learner]:
    """The pair with a field set, on whichever of the two has it (a learner without it stays as it is)."""
    if name in model.axis_names:
        return model, learner
    if has_field(learner, name):
        return model, learner.with_field(name, _as_kept(get_field(learner, name), value))
    if has_field(model, name):
        return model.with_field(name, _as_kept(get_field(model, name), value)), learner
    return model, learner


def _as_kept(current: Any, value: Any) -> Any:
    """A whole number as an integer where the field holds one: grids are arrays of floats."""
    counts = isinstance(current, numbers.Integral) and not isinstance(current, bool)
    return int(value) if counts and isinstance(value, float) and value.is_integer() else value


def home_of(name: str, model: Model, learners: list[Learner]) -> tuple[str, tuple[int, ...]]:
    """Whose a name is: `"axis"` or `"model"`, or `"learner"` with the numbers of those that have it.

    A name that belongs to nobody, or to both the model and a learner, is a `ValueError`.
    """
    having = tuple(j for j, learner in enumerate(learners) if has_field(learner, name))
    homes = {"axis": name in model.axis_names, "model": has_field(model, name), "learner": bool(having)}
    if sum(homes.values()) > 1:
        raise ValueError(f"{name} belongs to both the model and a learner: set one of them where it is made.")
    if not any(homes.values()):
        known = [
            *model.axis_names,
            *field_names(model),
            *(field for learner in learners for field in field_names(learner)),
        ]
        raise bad_parameter("axis", name, f"an axis or a field of the model or of a learner: {', '.join(known)}")
    return next(home for home, found in homes.items() if found), having


def check_names(model: Model, learners: list[Learner], values: dict[str, Any]) -> None:
    """Every name is an axis of the model, a field of the model or a field of some learner, and only one of them."""
    for name, value in values.items():
        home, having = home_of(name, model, learners)
        if home != "axis" and np.ndim(value) > 0:
            owner = learners[having[0]] if having else model
            if not is_number(get_field(owner, name)):
                raise ValueError(f"{name} cannot be a grid: it is not a number on {type(owner).__name__}.")


def check_pairs(model: Model, learners: list[Learner], d: int | None) -> None:
    for learner in learners:
        if not has_theory(model, learner) and (d is None or not has_simulation(model, learner)):
            if has_simulation(model, learner):
                hint = "it can be simulated: give the dimension d"
                raise NotSolvable(f"no theory is registered for {learner} on {type(model).__name__}; {hint}.")
            find_theory(model, learner)
    if d is not None and not any(has_simulation(model, learner) for learner in learners):
        find_simulation(model, learners[0])


def check_learners(learners: Any) -> list[Learner]:
    if isinstance(learners, (list, tuple)) and not learners:
        raise bad_parameter("learners", learners, "one learner or a list of them")
    return [check_learner(learner) for learner in (learners if isinstance(learners, (list, tuple)) else [learners])]


def check_seeds(seeds: Any) -> list[int]:
    if np.ndim(seeds) == 0:
        return list(range(check_count("seeds", seeds, least=1)))
    chosen = [check_count("seeds", seed, least=0) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise bad_parameter("seeds", seeds, "a number of seeds, or a list of different ones")
    return chosen
