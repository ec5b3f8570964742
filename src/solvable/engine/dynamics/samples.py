r"""The samples that averages over a process with Gaussian inputs are made of: points with weights.

A sample has projections z on the target's directions, some extra variables, and the coordinates e that its fields are
made of, all independent N(0, 1). In many dimensions the points are those of a scrambled Sobol sequence, z spread wider
and weighted, because what a polynomial label does happens in the tails. In up to three dimensions they are a grid.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from solvable.numerics.gaussian import normal_trapezoid, panels, standard_edges
from solvable.numerics.sobol import normal_points
from solvable.targets.target import Target

WIDE = 1.5
"""How much wider z is spread."""
_SOBOL = 32
"""Sobol points have no more coordinates than this; what comes later matters less, and is drawn independently."""
_STEP = 0.25
_TAIL = 8.0
"""How far grids reach: what lies beyond is below 1e-13 of a square, and no finer grid would show it."""


class Samples(NamedTuple):
    """`z` (r, n), `extra` (k, n), `e` (m, n) and the `weight` (n,) of each point, of sum one."""

    z: np.ndarray
    extra: np.ndarray
    e: np.ndarray
    weight: np.ndarray


def sobol_samples(r: int, extra: int, coordinates: int, power: int, number: int) -> Samples:
    """2^power points: scrambling `number` of the Sobol sequence."""
    dimensions = r + extra + coordinates
    few = min(-(-dimensions // 8) * 8, _SOBOL)  # in eights: fewer sets of points to keep
    first = normal_points(few, power, number).T[: min(dimensions, few)]
    rest = np.random.default_rng([7, power, number]).standard_normal((max(dimensions - few, 0), 2**power))
    draws = np.concatenate([first, rest])
    weight = WIDE**r * np.exp(-(WIDE**2 - 1) / 2 * np.sum(draws[:r] ** 2, axis=0))
    return Samples(WIDE * draws[:r], draws[r : r + extra], draws[r + extra :], weight / weight.sum())


def grid_samples(target: Target, extra: int, coordinates: int, fineness: float) -> Samples:
    """A grid for a target of one direction, fine in z: there the forces of earlier steps may be steep."""
    if len(target.breaks):
        edges = standard_edges(target.breaks)
        z, weight = panels(edges, max(4, round(16 * fineness)), graded=False)
        weight = weight * np.exp(-(z**2) / 2)
    else:
        z, weight = normal_trapezoid(0.3 * _STEP / fineness, _TAIL)
    x, x_weight = normal_trapezoid(_STEP / fineness, _TAIL)
    axes = [z] + [x] * (extra + coordinates)
    points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")])
    weights = functools.reduce(np.multiply.outer, [weight] + [x_weight] * (extra + coordinates)).ravel()
    keep = weights > 1e-17 * weights.max()
    points, weights = points[:, keep], weights[keep]
    return Samples(points[:1], points[1 : 1 + extra], points[1 + extra :], weights / weights.sum())
