"""Whether a target of several projections can be learned from at all, or a `TargetError` that says why not.

Refused are targets that are constant, that have no value (or an infinite one) on a set of positive probability, and
those of infinite variance, because of a pole or of their growth. Everything is judged by values.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from solvable.core.errors import TargetError
from solvable.core.programs import count_target
from solvable.numerics.gaussian import RADIUS, panels
from solvable.targets.adapted import relevant_directions, zero_sets
from solvable.targets.axis_breaks import axis_breaks
from solvable.targets.directions import Function, typical_points
from solvable.targets.expression import COMPARISONS, Expression, Operation, evaluate
from solvable.targets.target import Target

_LINES = 192
_SHELLS = 2.0 ** -np.arange(20, 41, 5)
_BALLS = 2.0 ** -np.arange(6, 17, 2)


@functools.lru_cache(maxsize=64)
def check_admissible(target: Target) -> None:
    """Raise a `TargetError` if g is constant, undefined on a set of positive probability, or of infinite variance."""
    count_target()
    _refuse_undefined(target)
    if not relevant_directions(target).shape[1]:
        raise TargetError(f"the target {target.name!r} is constant: there is nothing to learn")
    _refuse_poles(target)
    _refuse_growth(target)


def _refuse_undefined(target: Target) -> None:
    z = typical_points(target.projections, 6144, seed=6)
    z *= np.minimum(1.0, RADIUS / np.linalg.norm(z, axis=1, keepdims=True))
    values = target.numpy(z)
    if target.expression is not None:
        _refuse_hidden(target.expression, list(z.T), np.ones(len(z), bool))
    for bad, what in ((np.isnan(values), "undefined (NaN)"), (np.isinf(values), "infinite")):
        if bad.any():
            nearest = z[bad][np.argmin(np.linalg.norm(z[bad], axis=1))]
            raise TargetError(
                f"the target {target.name!r} is {what} on a set of positive probability (near z = {_place(nearest)})"
            )


def _refuse_hidden(node: Expression, z: list[np.ndarray], reached: np.ndarray) -> None:
    """Refuse a comparison with a part that has no value where it is reached: its answer would be no property of g."""
    parts = [(argument, reached) for argument in node.arguments]
    if isinstance(node, Operation) and node.name in (*COMPARISONS, "step", "where"):
        compared = node.operands[:1] if node.name == "where" else node.operands
        for part in compared:
            if np.isnan(np.broadcast_to(evaluate(part, z, np), reached.shape)[reached]).any():
                raise TargetError(
                    f"{part} is undefined (NaN) on a set of positive probability, and {node} compares it: say "
                    "what holds there, as in where(z > 0, log(z) > 1, 0)"
                )
    if isinstance(node, Operation) and node.name == "where":
        chosen = np.broadcast_to(evaluate(node.operands[0], z, np) != 0, reached.shape)
        parts = list(zip(node.operands, (reached, reached & chosen, reached & ~chosen), strict=True))
    for part, where in parts:
        _refuse_hidden(part, z, where)


def _refuse_growth(target: Target) -> None:
    """E[g^2] in polar coordinates: the mass along rays, beyond |z| = 12 and within."""
    r = target.projections
    corners = np.array([v for v in itertools.product((-1.0, 0.0, 1.0), repeat=r) if any(v)])
    rays = np.concatenate([corners, np.random.default_rng(7).standard_normal((256, r))])
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    # Off the exact axes, where a jump may have a value of its own.
    rays += 1e-7 * np.random.default_rng(8).standard_normal(rays.shape)
    radius, weight = panels([0.0, 3.0, 6.0, 12.0, 16.0, 24.0, 37.0], 32)
    with np.errstate(all="ignore"):
        mass = target.numpy(radius[:, None, None] * rays) ** 2
        mass = mass.sum(1) * weight * radius ** (r - 1) * np.exp(-(radius**2) / 2)
    mass = np.where(np.isnan(mass), np.inf, mass)
    if not mass[radius > 12].sum() <= 1e-6 * mass[radius <= 12].sum():
        raise TargetError(
            f"the target {target.name!r} grows too fast: its variance is infinite, or comes from |z| > 12, which no "
            "sample ever reaches"
        )


def _refuse_poles(target: Target) -> None:
    """A pole on a surface is met by lines; one on a smaller set is climbed to from the highest points of the lines."""
    found = [_peaks(target.numpy, target.projections), _on_planes(target)]
    if target.expression is not None:
        found.append(zero_sets(target))
    points, lines = (np.concatenate(parts) for parts in zip(*found, strict=True))
    diverges = _diverges_across(target.numpy, points, lines)
    if diverges.any():
        _fail_at(target, points[diverges][np.argmin(np.linalg.norm(points[diverges], axis=1))])
    height = _log_mass(target.numpy, points)
    for point in _climb(target.numpy, points[np.argsort(-height)[:6]]):
        if _diverges_at(target.numpy, point):
            _fail_at(target, point)


def _fail_at(target: Target, point: np.ndarray) -> None:
    raise TargetError(
        f"the target {target.name!r} has infinite variance: it diverges too fast near z = {_place(point)}"
    )


def _place(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{0.0 if abs(x) < 1e-6 else x:.3g}" for x in point) + ")"


def _log_mass(function: Function, z: np.ndarray) -> np.ndarray:
    """log(g^2 times the Gaussian density), up to a constant; -infinity where g has no value."""
    with np.errstate(all="ignore"):
        height = 2 * np.log(np.abs(function(z))) - np.sum(z**2, axis=-1) / 2
    return np.where(np.isnan(height), -np.inf, height)


def _peaks(function: Function, projections: int) -> tuple[np.ndarray, np.ndarray]:
    """The highest point of |g| on each of many random lines, found to rounding, and the lines' directions."""
    generator = np.random.default_rng(9)
    base = generator.standard_normal((_LINES, projections))
    lines = generator.standard_normal((_LINES, projections))
    lines /= np.linalg.norm(lines, axis=1, keepdims=True)
    t = np.broadcast_to(np.linspace(-5, 5, 401), (_LINES, 401))
    for _ in range(30):
        best = np.argmax(_log_mass(function, base[:, None] + t[..., None] * lines[:, None]), axis=1)[:, None]
        low = np.take_along_axis(t, np.maximum(best - 1, 0), 1)
        high = np.take_along_axis(t, np.minimum(best + 1, t.shape[1] - 1), 1)
        t = low + (high - low) * (np.arange(9) + 0.37) / 9
    return base + t[:, 4:5] * lines, lines


def _diverges_across(function: Function, points: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Whether g^2 cannot be integrated along the line across each point."""
    diverges = np.zeros(len(points), bool)
    for side in (-1.0, 1.0):
        with np.errstate(all="ignore"):
            size = np.abs(function(points + side * _SHELLS[:, None, None] * lines))
            shells = size**2 * _SHELLS[:, None]
            # Shells that halve in width must lose mass for the integral of g^2 to exist.
            diverges |= (size[-1] > 1e3) & ~(shells[-1] < 0.75 * shells[0])
    return diverges


def _on_planes(target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Points on the planes z_i = c of breaks, and their normals."""
    points, normals = [], []
    for axis, locations in enumerate(axis_breaks(target)):
        z = np.random.default_rng(11).standard_normal((8, len(locations), target.projections))
        z[..., axis] = locations
        points.append(z.reshape(-1, target.projections))
        normals.append(np.broadcast_to(np.eye(target.projections)[axis], points[-1].shape))
    return np.concatenate(points), np.concatenate(normals)


def _climb(function: Function, points: np.ndarray, reach: float = 0.5, normalise=lambda z: z) -> np.ndarray:
    """Local maxima of g^2 times the Gaussian density, by the best of random steps that shrink."""
    generator = np.random.default_rng(12)
    for _ in range(40):
        near = points[:, None] + reach * generator.standard_normal((len(points), 64, points.shape[1]))
        near[:, 0] = points
        near = normalise(near)
        points = near[np.arange(len(points)), np.argmax(_log_mass(function, near), axis=1)]
        reach *= 0.6
    return points


def _diverges_at(function: Function, point: np.ndarray) -> bool:
    """Whether g^2 cannot be integrated around the point, in a random section that its singular set only pierces.

    In c dimensions the shells of radius s have the mass g^2 s^c, which must decrease with s.
    """
    generator = np.random.default_rng(10)
    for size in range(len(point), 1, -1):
        frame = np.linalg.qr(generator.standard_normal((len(point), size)))[0]
        directions = generator.standard_normal((64, size))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)

        def onto_sphere(z: np.ndarray, frame=frame) -> np.ndarray:
            inside = (z - point) @ frame
            return point + _BALLS[0] * (inside / np.linalg.norm(inside, axis=-1, keepdims=True)) @ frame.T

        section = point + _BALLS[:, None, None] * (directions @ frame.T)
        with np.errstate(all="ignore"):
            values = np.abs(function(section))
            top = section[0, np.argsort(-values[0])[:4]]
            highest = np.abs(function(_climb(function, top, _BALLS[0], onto_sphere)))
        if not highest.max() < 100 * np.median(values[0]):
            continue
        shells = (values**2).mean(1) * _BALLS**size
        return bool(np.median(values[-1]) > 1e2 * np.median(values[0]) and not shells[-1] < 0.75 * shells[0])
    return False
