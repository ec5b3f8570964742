"""Directions of a function of a few variables, from its values: gradients, and normals of jumps.

A piecewise smooth g depends on z only through the span of its gradients and of the normals of its jumps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvable.numerics.roots import halving
from solvable.numerics.subspaces import snapped

Function = Callable[[np.ndarray], np.ndarray]
"""Values at points of shape (..., r)."""

_STEP = 1e-3
_OBLIQUE = 50.0
"""A jump whose normal is this much farther from the line it was met on than from another direction is skipped."""


def typical_points(projections: int, count: int, seed: int = 0) -> np.ndarray:
    """Gaussian points of standard deviations 1, 2 and 4, so that what happens in the tails is met too."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((count, projections)) * np.array([1.0, 2.0, 4.0])[np.arange(count) % 3, None]


def gradients(function: Function, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gradient at each point by differences of fourth order, and whether g is finite and smooth there."""
    with np.errstate(all="ignore"):
        coarse, fine = _differences(function, points, _STEP), _differences(function, points, _STEP / 2)
        size = np.linalg.norm(fine, axis=-1)
        # Across a break the estimate depends on the step.
        smooth = np.linalg.norm(coarse - fine, axis=-1) <= 1e-4 * size + 1e-8 * _level(function(points))
    return fine, smooth & np.isfinite(size)


def _differences(function: Function, points: np.ndarray, step: float) -> np.ndarray:
    axes = step * np.eye(points.shape[-1])
    at = [function(points[..., None, :] + k * axes) for k in (-2, -1, 1, 2)]
    return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step)


def gradient_span(function: Function, points: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the gradients at the points where g is smooth."""
    gradient, smooth = gradients(function, points)
    # Rounding leaves an error of about 1e-12 g in a gradient, which must not count where the gradient is small.
    scale = np.linalg.norm(gradient, axis=1) + 1e-2 * _level(function(points)) + 1e-300
    return span((gradient / scale[:, None])[smooth])


def _level(values: np.ndarray) -> np.ndarray:
    """The size that rounding is relative to: that of the value, and of typical ones it may be a difference of."""
    finite = np.abs(values[np.isfinite(values)])
    return np.maximum(np.abs(values), np.median(finite) if finite.size else 0.0)


def span(rows: np.ndarray, tolerance: float = 1e-8) -> np.ndarray:
    """Orthonormal columns that span the rows, up to a relative tolerance."""
    if not len(rows):
        return np.zeros((rows.shape[1], 0))
    _, size, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[size > tolerance * max(size[0], 1e-300)].T


def jump_normals(function: Function, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Unit normals of jumps met on segments along which g is otherwise constant, one row for each that is clear."""
    before = function(start)

    def changed(t: np.ndarray) -> np.ndarray:
        return ~close(function(start + t[:, None] * (end - start)), before)

    share = halving(changed, np.zeros(len(start)), np.ones(len(start)), 55).middle
    line = (end - start) / np.linalg.norm(end - start, axis=1, keepdims=True)
    point = start + share[:, None] * (end - start)
    step = _STEP / 10
    left, right = function(point - step / 10 * line), function(point + step / 10 * line)
    axes = step * np.eye(start.shape[1])
    shifts = []
    for side in (1.0, -1.0):
        base = point[:, None, :] + side * axes
        shifts.append(_crossing(function, base, line[:, None, :], left[:, None], right[:, None], _OBLIQUE * step))
    # The normal n satisfies n.(h e_i + s_i d) = 0 where the jump, on the line moved by h e_i, has moved by s_i.
    normal = -(shifts[0] - shifts[1])
    size = np.linalg.norm(normal, axis=1, keepdims=True)
    return (normal / size)[np.isfinite(size[:, 0]) & ~close(left, right)]


def _crossing(function: Function, base, line, left, right, reach: float) -> np.ndarray:
    """Where on the lines g changes from `left` to `right`, within `reach` of the base; NaN where it does not."""

    def is_left(s: np.ndarray) -> np.ndarray:
        values = function(base + s[..., None] * line)
        return np.abs(values - left) < np.abs(values - right)

    low, high = np.full(base.shape[:-1], -reach), np.full(base.shape[:-1], reach)
    clear = is_left(low) & ~is_left(high)
    return np.where(clear, halving(lambda s: ~is_left(s), low, high, 50).middle, np.nan)


def close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether values agree, up to rounding: relative, and absolute where they are small differences of typical ones."""
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        near = np.abs(a - b) <= 1e-8 * size + 1e-12 * _level(size)
    return near | (a == b) | (np.isnan(a) & np.isnan(b))


def distinct_directions(normals: np.ndarray, least: int = 1) -> np.ndarray:
    """The directions, up to sign, that occur at least `least` times among unit rows; snapped to simple ratios."""
    found: list[np.ndarray] = []
    left = normals
    while len(left):
        same = np.linalg.norm(np.outer(left @ left[0], left[0]) - left, axis=1) < 1e-6
        if same.sum() >= least:
            found.append(snapped(left[0]))
        left = left[~same]
    return np.array(found).reshape(-1, normals.shape[1])
