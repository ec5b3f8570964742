"""Quadrature over omega ~ N(0, M) in a few dimensions: tensor grids, and rules that follow planes through the origin.

`frame` is a tensor grid in the eigenbasis of M, for functions that are smooth at the scale of sqrt(V), V = I - M.
`omega_rule` is for even functions that bend at the scale of sqrt(V) near planes through the origin.

A label that jumps on the planes n^T z = 0 gives posteriors that change, at n^T omega = 0, within a width sqrt(n^T V n).
In whitened polar coordinates, omega = R x, R R^T = M, x = r (cos phi, sin phi), such a plane is a direction phi. The
radius is summed in its logarithm, where every width looks alike, and panels of angle shrink geometrically towards the
planes: the cost grows with log(1/V), not with V^(-1/2) per axis. In three dimensions the planes cut the sphere into
triangles, and each triangle, from an inner point, into three, one a side; their panels shrink towards side and corners.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from solvable.numerics.gaussian import gauss_legendre, normal_density, normal_trapezoid, panels

_NEGLIGIBLE = 1e-12
_RADIUS = 8.0
_IN_SIGHT = 8.5
_GRADING = 3.0
_SIDES = ((0, 1), (0, 2), (1, 2))
_GRID_RADIUS = {1: 6.0, 2: 5.2, 3: 4.8, 4: 4.4}
_GRID_STEP = {1: 0.25, 2: 0.5, 3: 0.7, 4: 0.8}
_GRID_NODES = {1: 600, 2: 160, 3: 36, 4: 10}
_KNOWN = 1e-12
"""Of tensor grids, by the number of directions in which something is known."""


class Frame(NamedTuple):
    """The eigenbasis of M: columns `basis`, variances `v` = 1 - m, and for each axis nodes of omega with weights."""

    basis: np.ndarray
    v: np.ndarray
    omega: list[np.ndarray]
    weight: list[np.ndarray]

    @property
    def weights(self) -> np.ndarray:
        """The weights of the tensor grid, flattened."""
        return functools.reduce(np.multiply.outer, self.weight).ravel()


def frame(M: np.ndarray, fineness: float = 1.0) -> Frame:
    """The tensor grid of omega ~ N(0, M): finer where the posterior is narrow, one node where nothing is known."""
    m, basis = np.linalg.eigh((M + M.T) / 2)
    # A diagonal M keeps the coordinate axes, so that grids do not depend on the order of eigenvalues.
    if np.abs(M - np.diag(np.diag(M))).max(initial=0.0) < 1e-13:
        m, basis = np.diag(M).copy(), np.eye(len(M))
    m = np.clip(m, 0.0, 1.0)
    v = 1 - m
    known = int(np.sum(m > _KNOWN))
    omega, weight = [], []
    for m_i, v_i in zip(m, v, strict=True):
        if m_i <= _KNOWN:
            omega.append(np.zeros(1))
            weight.append(np.ones(1))
            continue
        step = _GRID_STEP[known] / fineness * min(1.0, 1.6 * math.sqrt(v_i / m_i))
        step = max(step, 2 * _GRID_RADIUS[known] / _GRID_NODES[known])
        x, w = normal_trapezoid(step, _GRID_RADIUS[known])
        omega.append(math.sqrt(m_i) * x)
        weight.append(w)
    return Frame(basis, v, omega, weight)


class OmegaRule(NamedTuple):
    """E f(omega) = sum of weight * f for even f; `omega` is (n, r). `defect` is by how much f = 1 is missed."""

    omega: np.ndarray
    weight: np.ndarray
    defect: float = 0.0


def omega_rule(M: np.ndarray, walls: np.ndarray, fineness: float = 1.0) -> OmegaRule:
    """A rule for omega ~ N(0, M), M of rank up to three; `walls` (r x k) are the normals n of the planes.

    Omegas from which no wall is in sight are left out: there the label is certain, and says nothing.
    """
    values, vectors = np.linalg.eigh(M)
    kept = values > _NEGLIGIBLE
    R = vectors[:, kept] * np.sqrt(values[kept])
    width = float(np.sqrt(max(1 - values.max(initial=0.0), 1e-12)))
    rank = R.shape[1]
    if rank == 0:
        return OmegaRule(np.zeros((1, len(M))), np.ones(1))
    x, weight = (_line, _plane, _space)[rank - 1](R.T @ walls, width, fineness)
    omega = x @ R.T
    distance = np.abs(omega @ walls) / np.sqrt(np.sum(walls * (walls - M @ walls), 0))
    keep = (distance.min(1) < _IN_SIGHT) & (np.abs(weight) > 1e-15)
    return OmegaRule(omega[keep], weight[keep], abs(1 - float(weight.sum())))


def smooth_omega_rule(M: np.ndarray, fineness: float = 1.0) -> OmegaRule:
    """A rule for omega ~ N(0, M), M of rank up to three, and even functions that bend only near the origin."""
    values, vectors = np.linalg.eigh(M)
    kept = values > _NEGLIGIBLE
    R = vectors[:, kept] * np.sqrt(values[kept])
    rank = R.shape[1]
    if rank == 0:
        return OmegaRule(np.zeros((1, len(M))), np.ones(1))
    width = float(np.sqrt(max(1 - values.max(), 1e-12)))
    r, weight = radii(rank, width, 0.7 * fineness)
    x, x_weight = _half_sphere(rank, fineness)
    omega = np.concatenate([np.zeros((1, len(M))), (r[:, None, None] * (x @ R.T)).reshape(-1, len(M))])
    weight = np.outer(weight, x_weight).ravel()
    keep = np.append(True, weight > 1e-10)
    return OmegaRule(omega[keep], np.concatenate([[1 - weight.sum()], weight])[keep])


def _half_sphere(dimensions: int, fineness: float) -> tuple[np.ndarray, np.ndarray]:
    """Directions, and weights of total one, for even functions on the unit sphere."""
    if dimensions == 1:
        return np.ones((1, 1)), np.ones(1)
    steps = round(14 * fineness)
    turn = 1 if dimensions == 2 else 2
    phi = turn * np.pi * (np.arange(steps) + 0.5) / steps
    if dimensions == 2:
        return np.stack([np.cos(phi), np.sin(phi)], -1), np.full(steps, 1 / steps)
    height, weight = gauss_legendre(round(6 * fineness))
    height, phi = (grid.ravel() for grid in np.meshgrid(height, phi, indexing="ij"))
    across = np.sqrt(1 - height**2)
    return np.stack([across * np.cos(phi), across * np.sin(phi), height], -1), np.repeat(weight, steps) / steps


def _line(walls: np.ndarray, width: float, fineness: float) -> tuple[np.ndarray, np.ndarray]:
    x, weight = panels(_half_ladder(width, _RADIUS), round(10 * fineness), graded=False)
    return x[:, None], 2 * weight * normal_density(x)


def _plane(walls: np.ndarray, width: float, fineness: float) -> tuple[np.ndarray, np.ndarray]:
    """Half a turn of angle suffices for even functions."""
    crossings = _directions(walls)
    edges = []
    for low, high in zip(crossings, [*crossings[1:], crossings[0] + np.pi], strict=True):
        rungs = _half_ladder(width, (high - low) / 2)
        edges += [low + rungs, high - rungs[-2::-1]]
    phi, phi_weight = panels(np.concatenate(edges), round(10 * fineness), graded=False)
    r, r_weight = radii(2, width, fineness)
    x = r[:, None, None] * np.stack([np.cos(phi), np.sin(phi)], -1)
    weight = r_weight[:, None] * (phi_weight / np.pi)
    # What the radii leave out sits at the origin.
    x = np.concatenate([np.zeros((1, 2)), x.reshape(-1, 2)])
    return x, np.concatenate([[1 - r_weight.sum()], weight.ravel()])


def _space(walls: np.ndarray, width: float, fineness: float) -> tuple[np.ndarray, np.ndarray]:
    """Four of the eight triangles suffice for even functions; `walls` must be three independent normals."""
    nodes = round(5 * fineness)
    across, across_weight = panels(_half_ladder(width, 1.0), nodes, graded=False)
    rungs = _half_ladder(width, 0.5)
    along, along_weight = panels(np.append(rungs, 1 - rungs[-2::-1]), nodes, graded=False)
    u, v = (grid.ravel() for grid in np.meshgrid(across, along, indexing="ij"))
    area = np.outer(across_weight, along_weight).ravel() * (1 - u)
    away = np.linalg.inv((walls / np.linalg.norm(walls, axis=0)).T)
    directions, solid = [], []
    for signs in ((1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)):
        corners = [_unit(away[:, i] * signs[i]) for i in range(3)]
        for triangle in _thirds(_unit(away @ signs), corners):
            point = np.stack([u, (1 - u) * v, (1 - u) * (1 - v)], 1) @ triangle.T
            size = np.linalg.norm(point, axis=1)
            directions.append(point / size[:, None])
            solid.append(area * abs(np.linalg.det(triangle)) / size**3)
    direction, weight = np.concatenate(directions), np.concatenate(solid) / (2 * np.pi)
    r, r_weight = radii(3, width, 0.8 * fineness)
    x = (r[:, None, None] * direction).reshape(-1, 3)
    weight = np.outer(r_weight, weight).ravel()
    return np.concatenate([np.zeros((1, 3)), x]), np.concatenate([[1 - r_weight.sum()], weight])


def _thirds(incentre: np.ndarray, corners: list[np.ndarray]) -> list[np.ndarray]:
    """Triangles from an inner point to the sides of a spherical triangle, long sides halved; columns are corners."""
    middles = [_unit(corners[j] + corners[k]) for j, k in _SIDES]
    # Nearly coplanar corners make the triangle a half sphere, nearly antipodal ones a lune: no one centre fits both.
    far = np.stack([*corners, *middles])
    inner = max((incentre, _unit(np.sum(middles, 0))), key=lambda point: float(np.min(far @ point)))
    triangles = []
    for (j, k), middle in zip(_SIDES, middles, strict=True):
        stops = [corners[j], middle, corners[k]] if corners[j] @ corners[k] < -0.2 else [corners[j], corners[k]]
        triangles += [np.stack([inner, a, b], 1) for a, b in zip(stops[:-1], stops[1:], strict=True)]
    return triangles


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)


def radii(dimensions: int, width: float, fineness: float) -> tuple[np.ndarray, np.ndarray]:
    """Radii of a standard normal x, whose law is proportional to r^d exp(-r^2/2) d log r, and their weights."""
    step = 0.25 / fineness
    r = np.exp(np.arange(np.log(0.02 * width), np.log(_RADIUS), step))
    constant = {1: np.sqrt(2 / np.pi), 2: 1.0, 3: np.sqrt(2 / np.pi)}[dimensions]
    return r, step * constant * r**dimensions * np.exp(-(r**2) / 2)


def _directions(walls: np.ndarray) -> np.ndarray:
    """The angles in [0, pi), apart and sorted, at which the lines n^T x = 0 run."""
    seen = walls[:, np.hypot(*walls) > 1e-9]
    angles = np.sort(np.mod(np.arctan2(seen[0], -seen[1]), np.pi)) if seen.size else np.zeros(1)
    apart = np.concatenate([[True], np.diff(angles) > 1e-9])
    if angles[-1] - angles[0] > np.pi - 1e-9:
        apart[-1] = len(angles) == 1
    return angles[apart]


def _half_ladder(width: float, length: float) -> np.ndarray:
    """Panel ends from 0 to `length` that grow geometrically from a fraction of `width`."""
    rungs = 0.3 * width * _GRADING ** np.arange(40)
    return np.concatenate([[0.0], rungs[rungs < 0.7 * length], [length]])
