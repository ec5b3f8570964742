"""Coordinate planes z_i = c on which a target of several projections has a kink, a jump or a pole.

A tensor quadrature is exact only if its panels end on these planes. On a line along axis i the breaks of g are those
of a function of one variable; a location that two random lines share lies on a plane, since a curved or oblique break
moves with the other coordinates. The lines visit every orthant of the other coordinates, where a break may be confined.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import numpy as np

from solvable.numerics.gaussian import RADIUS
from solvable.targets.breaks import find_breaks, numeric_breaks
from solvable.targets.expression import (
    Expression,
    Hermite,
    Number,
    Operation,
    Power,
    Variable,
    break_expressions,
    evaluate,
    walk,
)
from solvable.targets.target import Target

_STEP = 1e-3
_BESIDE = np.array([-0.1317, -0.0731, 0.0731, 0.1317])


@functools.lru_cache(maxsize=64)
def axis_breaks(target: Target) -> tuple[np.ndarray, ...]:
    """For each axis i the sorted c of (-RADIUS, RADIUS) such that g has a kink, a jump or a pole on the plane z_i = c.

    Exact to rounding for a formula; found from values, to about 1e-9, for a callable. The plane may be partly smooth:
    `where(z2 > 0, abs(z1), z1)` has 0 on axis 1. Breaks that are not planes (sign(z1 + z2)) are left out.
    """
    found = _planes_of_formula(target) if target.expression is not None else _planes_of_values(target)
    found = tuple(c[_is_singular(target, axis, c)] for axis, c in enumerate(found))
    for locations in found:
        locations.flags.writeable = False
    return found


def random_lines(projections: int, axis: int, count: int, seed: int = 0) -> np.ndarray:
    """Points of typical lines along an axis: `count` in every orthant of the other coordinates, z_axis = 0."""
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=projections - 1)))
    others = np.abs(np.random.default_rng(seed).standard_normal((count, *signs.shape))) + 0.05
    return np.insert((others * signs).reshape(count * len(signs), projections - 1), axis, 0.0, axis=1)


def _planes_of_formula(target: Target) -> tuple[np.ndarray, ...]:
    """Zeros of the factors of the break expressions along lines, those that stay zero on other lines.

    A factor without breaks of its own is analytic: it vanishes on the whole of a plane or on no part of it, and one
    line meets every plane.
    """
    assert target.expression is not None
    vanishing = dict.fromkeys(f for u, _ in break_expressions(target.expression) for f in factors(u))
    planes = []
    for axis in range(target.projections):
        locations = [np.zeros(0)]
        for u in vanishing:
            used = {node.index for node in walk(u) if isinstance(node, Variable)}
            if axis + 1 not in used:
                continue
            lines = random_lines(target.projections, axis, 1)
            lines = lines if break_expressions(u) and len(used) > 1 else lines[:1]
            zeros = np.concatenate([_zeros_on(u, axis, line) for line in lines])
            locations.append(zeros if len(used) == 1 else zeros[_vanishes(u, target.projections, axis, zeros)])
        planes.append(_distinct(np.concatenate(locations)))
    return tuple(planes)


def _vanishes(u: Expression, projections: int, axis: int, locations: np.ndarray) -> np.ndarray:
    """Whether u is zero to rounding at z_axis = c on some other line, for each location c."""
    lines = random_lines(projections, axis, 4, seed=1)
    z = np.broadcast_to(lines, (3, len(locations), *lines.shape)).copy()
    z[..., axis] = locations[:, None] + np.array([0.0, -0.01, 0.01])[:, None, None]
    size = np.abs(evaluate(u, list(np.moveaxis(z, -1, 0)), np))
    return (size[0] <= 1e-10 * np.maximum(size[1], size[2])).any(-1)


def _planes_of_values(target: Target) -> tuple[np.ndarray, ...]:
    planes = []
    for axis in range(target.projections):

        def along(t: np.ndarray, line: np.ndarray, axis: int = axis) -> np.ndarray:
            return target.numpy(_points(line, axis, t))

        lines = random_lines(target.projections, axis, 2)
        found = [numeric_breaks(functools.partial(along, line=line), RADIUS) for line in lines]
        # One line lists a location once, so two of a group come from different lines.
        planes.append(_distinct(np.concatenate(found), 1e-7, least=2))
    return tuple(planes)


def _points(line: np.ndarray, axis: int, t: np.ndarray) -> np.ndarray:
    """The points of a line along an axis, at the values t of that coordinate."""
    z = np.broadcast_to(line, (*np.shape(t), len(line))).copy()
    z[..., axis] = t
    return z


def _distinct(points: np.ndarray, same: float = 1e-9, least: int = 1) -> np.ndarray:
    """One of each group of near-equal locations (the shortest to write), if the group has `least` members."""
    points = np.sort(points)
    groups = np.split(points, np.flatnonzero(np.diff(points) > same) + 1)
    return np.array([min(group, key=lambda x: len(repr(float(x)))) for group in groups if len(group) >= least])


def _is_singular(target: Target, axis: int, locations: np.ndarray) -> np.ndarray:
    """Whether g is singular on each plane, by values: a formula may list planes where it turns out smooth."""
    lines = random_lines(target.projections, axis, 8, seed=1)
    points = np.broadcast_to(lines, (len(locations), *lines.shape)).copy()
    points[..., axis] = locations[:, None]
    return np.any(is_singular(target, points, np.eye(target.projections)[axis]), axis=-1)


def is_singular(target: Target, points: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Whether g along `direction` has a kink or a jump at each of the points, of shape (..., r).

    Over points a distance h apart a fourth difference is of order h^4 where g is smooth, and of order 1 across a jump,
    h across a kink, h^2 across a jump of the second derivative: a break stands out from the places beside it.
    """
    t = np.concatenate([[0.0], _BESIDE])[:, None] + _STEP * (np.arange(6) - 2.5)
    with np.errstate(all="ignore"):
        values = target.numpy(points[..., None, None, :] + t[..., None] * direction)
        values = np.where(np.isfinite(values), values, 1e300)
        difference = np.abs(np.diff(values, 4, axis=-1)).max(-1)
        rounding = 1e-14 * np.abs(values).max((-2, -1))
        stands_out = difference[..., 0] > 10 * np.median(difference[..., 1:], axis=-1) + rounding
    return np.asarray(stands_out)


def factors(u: Expression) -> Iterator[Expression]:
    """Expressions of which at least one is zero where u is."""
    if isinstance(u, Power) and u.exponent > 0:
        yield from factors(u.base)
    elif isinstance(u, Operation) and u.name == "*":
        for operand in u.operands:
            yield from factors(operand)
    elif isinstance(u, Operation) and u.name in ("abs", "neg", "sign", "sqrt", "tanh", "erf", "/"):
        yield from factors(u.operands[0])
    elif u.projections:
        yield u


def _zeros_on(u: Expression, axis: int, line: np.ndarray) -> np.ndarray:
    """Zeros and breaks of u along a line, by the methods for one projection."""
    restricted = restrict(u, axis, line)
    # A comparison has a value also where u has none.
    return find_breaks(Target(Operation(">", (restricted, Number(0.0))))) if restricted.projections else np.zeros(0)


def restrict(expression: Expression, axis: int, line: np.ndarray) -> Expression:
    """The expression in one variable along a line: the coordinates other than `axis` replaced by numbers."""
    if isinstance(expression, Variable):
        return Variable(1) if expression.index == axis + 1 else Number(float(line[expression.index - 1]))
    arguments = tuple(restrict(argument, axis, line) for argument in expression.arguments)
    if isinstance(expression, Power):
        node = Power(arguments[0], expression.exponent)
    elif isinstance(expression, Hermite):
        node = Hermite(expression.degree, arguments[0])
    elif isinstance(expression, Operation):
        if expression.name == "where" and isinstance(arguments[0], Number):
            return arguments[1] if arguments[0].value else arguments[2]
        node = Operation(expression.name, arguments)
    else:
        return expression
    return node if node.projections else Number(float(evaluate(node, [], np)))
