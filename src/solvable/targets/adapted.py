"""Coordinates that fit a target: the directions g depends on, turned so that its planes of breaks are axis planes.

g(z) = g(B B^T z) for the basis B (r x r') of the relevant directions. With u = B^T z, sign(z1 + z2) is sign(u1) and
sign(z1 + z2)*sign(z1 - z2) is sign(u1 u2): quadratures with panels along the axes are then exact.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from solvable.numerics.roots import halving
from solvable.numerics.subspaces import complement, tidy
from solvable.targets.axis_breaks import axis_breaks, factors, is_singular
from solvable.targets.breaks import numeric_breaks
from solvable.targets.directions import (
    Function,
    close,
    distinct_directions,
    gradient_span,
    gradients,
    jump_normals,
    span,
    typical_points,
)
from solvable.targets.expression import break_expressions, evaluate
from solvable.targets.target import Target

_SEGMENTS = 1536
_MAX_NORMALS = 12
_SIMPLE = 1e-9
"""Values show directions to about this: a subspace farther from one of simple fractions is another one."""


@functools.lru_cache(maxsize=64)
def relevant_directions(target: Target) -> np.ndarray:
    """Orthonormal columns (r x r') that span the smallest subspace g depends on; coordinate axes where possible.

    A direction v is left out when g(z + t v) = g(z) at all of many random points. r' = 0 for a constant.
    """
    found = tidy(_relevant(target.numpy, target.projections), _SIMPLE)
    found.flags.writeable = False
    return found


@functools.lru_cache(maxsize=64)
def adapted_basis(target: Target) -> np.ndarray:
    """Orthonormal columns (r x r') of the relevant subspace, with the normals of planes of breaks among them.

    Of the planes a.z = c on which g has a kink or a jump, the largest set with orthogonal normals is taken (the axes,
    among sets of one size); without one the result is `relevant_directions`.
    """
    relevant = relevant_directions(target)
    normals = _plane_normals(target)
    inside = np.linalg.norm(normals @ relevant @ relevant.T - normals, axis=1) < 1e-6
    found = tidy(relevant, _SIMPLE, _orthogonal_subset(normals[inside][:_MAX_NORMALS]))
    found.flags.writeable = False
    return found


def _relevant(function: Function, projections: int) -> np.ndarray:
    """The span of gradients; then, as long as g still changes along what is left, of the normals of jumps met there."""
    basis = gradient_span(function, typical_points(projections, 384))
    while basis.shape[1] < projections:
        unseen = complement(basis)
        start = typical_points(projections, _SEGMENTS, seed=1)
        end = start + typical_points(projections, _SEGMENTS, seed=2) @ unseen @ unseen.T
        jumps = np.flatnonzero(~close(function(start), function(end)))[:96]
        if not jumps.size:
            break
        normals = jump_normals(function, start[jumps], end[jumps])
        wider = span(np.concatenate([basis.T, normals]), 1e-6)
        # g changes along `unseen`, but not by clear jumps: nothing can be left out safely.
        basis = wider if wider.shape[1] > basis.shape[1] else np.eye(projections)
    return basis


def _orthogonal_subset(normals: np.ndarray) -> np.ndarray:
    """The largest set of mutually orthogonal rows, the one with the most axes among equals."""
    best, best_key = normals[:0], (0, 0)
    aligned = np.abs(normals @ normals.T) > 1e-9
    for size in range(1, normals.shape[1] + 1):
        for rows in itertools.combinations(range(len(normals)), size):
            key = size, int(np.sum(np.abs(normals[list(rows)]).max(1) > 1 - 1e-12))
            if key > best_key and not np.any(np.triu(aligned[np.ix_(rows, rows)], 1)):
                best, best_key = normals[list(rows)], key
    return best


def _plane_normals(target: Target) -> np.ndarray:
    """Unit normals of the planes on which g has a kink or a jump, the axes first, then the most frequent."""
    axes = np.eye(target.projections)[[c.size > 0 for c in axis_breaks(target)]]
    points, normals = zero_sets(target) if target.expression is not None else _breaks_by_values(target)
    directions = distinct_directions(normals, least=2)
    oblique = directions[np.abs(directions).max(1, initial=0.0) < 1 - 1e-9]
    real = []
    for direction in oblique:
        on = points[np.abs(normals @ direction) > 1 - 1e-9][:32]
        real.append(bool(is_singular(target, on, direction).any()))
    return np.concatenate([axes, oblique[np.array(real, bool)]])


def zero_sets(target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Points on the zero sets of the break expressions of a formula, and the unit normals there."""
    assert target.expression is not None
    vanishing = dict.fromkeys(f for u, _ in break_expressions(target.expression) for f in factors(u))
    points, normals = [np.zeros((0, target.projections))], [np.zeros((0, target.projections))]
    start, end = (typical_points(target.projections, 192, seed) for seed in (3, 4))
    for u in vanishing:

        def value(z: np.ndarray, u=u) -> np.ndarray:
            return evaluate(u, list(np.moveaxis(z, -1, 0)), np)

        sign = np.sign(value(start))
        rows = sign * np.sign(value(end)) < 0
        first, line, side = start[rows], (end - start)[rows], sign[rows]

        def other_side(t: np.ndarray, value=value, first=first, line=line, side=side) -> np.ndarray:
            return np.sign(value(first + t[:, None] * line)) != side

        share = halving(other_side, np.zeros(len(first)), np.ones(len(first)), 50).low
        on = first + share[:, None] * line
        gradient, smooth = gradients(value, on)
        size = np.linalg.norm(gradient, axis=1)
        keep = smooth & (size > 0)
        points.append(on[keep])
        normals.append(gradient[keep] / size[keep, None])
    return np.concatenate(points), np.concatenate(normals)


def _breaks_by_values(target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Points where a callable breaks on a few lines, and the unit normals if the break is a plane there.

    On the line moved by h e_i a plane with normal n moves by s_i = -h n_i / (n.d), with d the direction of the line.
    """
    generator = np.random.default_rng(5)
    projections, step = target.projections, 0.04
    points, normals = [np.zeros((0, projections))], [np.zeros((0, projections))]
    for base in generator.standard_normal((6, projections)):
        line = generator.standard_normal(projections)
        line /= np.linalg.norm(line)

        def on_line(at: np.ndarray, line=line) -> np.ndarray:
            return numeric_breaks(lambda t: target.numpy(at + t[:, None] * line), 5.0)

        here = on_line(base)
        if not here.size:
            continue
        moved = [on_line(base + step * axis) for axis in np.eye(projections)]
        if any(other.size == 0 for other in moved):
            continue
        shift = np.stack([other[np.abs(other - here[:, None]).argmin(1)] - here for other in moved], axis=1)
        points.append(base + here[:, None] * line)
        normals.append(-shift / np.linalg.norm(shift, axis=1, keepdims=True))
    return np.concatenate(points), np.concatenate(normals)
