"""What the sealed files of a store hold: a file with a valid digest but other contents was not written by a sweep.

Every check raises `Damaged`. What it lets through can be put in its place without looking again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from solvable.lab.sweep.sealed import Damaged

POINT_ID, PLAN_ID = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
"""Ids are hexadecimal digits: a name made of one stays in its folder."""
_SPECIAL = ("nan", "inf", "-inf")
_DEPTH = 8
"""A metric is a number, a vector, a matrix or an array of few dimensions."""


def is_point_id(id: Any) -> bool:
    """Whether a value can be the id of a point."""
    return isinstance(id, str) and POINT_ID.fullmatch(id) is not None


def is_plan_id(id: Any) -> bool:
    """Whether a value can be the id of a plan."""
    return isinstance(id, str) and PLAN_ID.fullmatch(id) is not None


def check_latest(content: dict[str, Any]) -> None:
    """`latest.json` names a plan."""
    _need(is_plan_id(content.get("plan")), "plan")


def check_plan(content: dict[str, Any], id: str) -> None:
    """A plan: the ids of its points in the order of its grid, and what is needed to label them."""
    if content.get("id") != id:
        raise Damaged("it holds the plan of another sweep")
    _need(isinstance(content.get("started"), str), "started")
    _need(isinstance(content.get("schema", 1), int), "schema")
    _need(isinstance(_table(content, "versions").get("solvable"), str), "versions")
    _table(content, "model")
    _table(content, "fixed")
    _need(all(isinstance(text, str) for text in _table(content, "definitions").values()), "definitions")
    marked = _table({"axis_labels": {}} | content, "axis_labels")  # which earlier versions did not have
    _need(all(isinstance(text, str) for text in marked.values()), "axis_labels")
    _need(isinstance(content.get("scaling"), str), "scaling")
    _need(isinstance(content.get("size", "d"), (str, type(None))), "size")
    _list(content, "learners", lambda one: isinstance(one, dict))
    _list(content, "model_axes", lambda one: isinstance(one, str))
    _list(content, "titles", lambda one: isinstance(one, str))
    labels = _list(content, "labels", lambda one: isinstance(one, str))
    _need(len(content["titles"]) == len(labels) > 0, "titles")
    seeds, sizes = _list(content, "seeds", _is_count), _list(content, "sizes", _is_count)
    grid = _list(content, "grid", _is_axis)
    points = len(labels) * math.prod(len(axis["values"]) for axis in grid)
    own = content.get("threshold_axis", "")  # which earlier versions did not have
    _need(isinstance(own, str), "threshold_axis")
    models = math.prod(len(axis["values"]) for axis in grid if axis["home"] == "model" and axis["name"] != own)
    theory, runs, marks = (
        _list(content, key, lambda one: one == "" or is_point_id(one)) for key in ("theory", "runs", "marks")
    )
    _need(len(theory) in (0, points), "theory")
    _need(len(runs) in (0, points * max(1, len(sizes)) * len(seeds)), "runs")
    _need(len(marks) in (0, models), "marks")


def check_record(content: dict[str, Any], id: str, failed: bool) -> None:
    """What is kept of a point: what it is, its result or the error it raised, and the versions that computed it."""
    if content.get("id") != id:
        raise Damaged("it holds the result of another point")
    point = _table(content, "point")
    axes = _table({"axes": {}} | point, "axes")  # thresholds have none
    _need(all(isinstance(value, float) or _is_count(value) for value in axes.values()), "axes")
    if "learner" in point:
        _need(isinstance(_table(point, "learner").get("name"), str), "learner")
    _need(isinstance(_table(content, "provenance").get("solvable"), str), "provenance")
    if failed:
        _need(isinstance(_table(content, "error").get("message"), str), "error")
        return
    result = _table(content, "result")
    if "thresholds" in result:
        found = _table(result, "thresholds").values()
        _need(all(_is_count(value) for value in found if isinstance(value, int)), "thresholds")
        return
    groups = ("metrics",) if "converged" in result else ("metrics", "uncertainty", "order_parameters")
    for group in groups:
        _need(all(_is_array(value) for value in _table(result, group).values()), group)
    if "converged" in result:
        _need(isinstance(result["converged"], bool), "converged")
        told = (result[name] for name in ("seconds", "iterations", "consistent") if name in result)
        _need(all(_is_array(value) for value in told), "details")
    else:
        _need(_is_count(result.get("status")), "status")


def _need(good: bool, what: str) -> None:
    if not good:
        raise Damaged(f"its {what} has another form than what a sweep writes")


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    _need(isinstance(found, dict), key)
    assert isinstance(found, dict)
    return found


def _list(content: dict[str, Any], key: str, holds: Callable[[Any], bool]) -> list[Any]:
    found = content.get(key)
    _need(isinstance(found, list) and all(holds(one) for one in found), key)
    assert isinstance(found, list)
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, float) or _is_count(value) or value in _SPECIAL


def _is_axis(axis: Any) -> bool:
    if not (isinstance(axis, dict) and isinstance(axis.get("name"), str) and isinstance(axis.get("home"), str)):
        return False
    values = axis.get("values")
    scalars = (str, bool, type(None))
    return isinstance(values, list) and all(isinstance(value, scalars) or _is_number(value) for value in values)


def _is_array(value: Any, depth: int = _DEPTH) -> bool:
    """Whether a value is a number, or lists of one length of such values (a truth value counts as a number)."""
    return _shape(value, depth) is not None


def _shape(value: Any, depth: int) -> tuple[int, ...] | None:
    if value is None or isinstance(value, bool) or _is_number(value):
        return ()
    if not isinstance(value, list) or depth == 0:
        return None
    shapes = {_shape(item, depth - 1) for item in value}
    if len(shapes) > 1 or None in shapes:
        return None
    return (len(value), *(shapes.pop() or () if shapes else ()))
