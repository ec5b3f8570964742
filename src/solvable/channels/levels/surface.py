"""A target as its level sets see it: values, gradient, breaks, flat values and critical values."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable

import numpy as np

from solvable.targets.axis_breaks import axis_breaks
from solvable.targets.expression import break_expressions, evaluate
from solvable.targets.rotate import rotate
from solvable.targets.target import Target

Function = Callable[[np.ndarray], np.ndarray]

_STEP = 1e-6
_SAME = 1e-13
_FLAT_STEP = 1e-3
_MAX_CRITICAL = 16


@dataclasses.dataclass(frozen=True, eq=False)
class Surface:
    """The function g on R^r with what is known of its breaks.

    `planes` lists, for each axis i, the c of the planes z_i = c with a kink or a jump; the zero sets of
    `break_functions` contain every other break that is known.
    """

    function: Function
    projections: int
    planes: tuple[np.ndarray, ...]
    break_functions: tuple[Function, ...] = ()

    @classmethod
    def of(cls, target: Target, basis: np.ndarray) -> Surface:
        """g in the coordinates u of `basis` (r x k orthonormal columns), z = basis u."""
        turned = target if np.array_equal(basis, np.eye(target.projections)) else rotate(target, basis)
        return cls(turned.numpy, turned.projections, axis_breaks(turned), _break_functions(turned))

    def fixed(self, values: np.ndarray) -> Surface:
        """The function of the last coordinates once the first ones have the given values."""
        k = len(values)

        def within(function: Function) -> Function:
            return lambda u: function(np.concatenate([np.broadcast_to(values, (*u.shape[:-1], k)), u], -1))

        functions = tuple(map(within, self.break_functions))
        return Surface(within(self.function), self.projections - k, self.planes[k:], functions)

    def gradient(self, z: np.ndarray) -> np.ndarray:
        """grad g at z (..., r), by central differences with a step of 1e-6."""
        steps = _STEP * np.eye(self.projections)
        with np.errstate(over="ignore", invalid="ignore"):
            ahead, behind = (self.function(z[..., None, :] + s * steps) for s in (1.0, -1.0))
            return (ahead - behind) / (2 * _STEP)

    @functools.cached_property
    def climbed(self) -> tuple[int, ...]:
        """The axes along which g is not piecewise constant: lines along the others meet no level set."""
        z = np.random.default_rng(5).standard_normal((8192, self.projections))
        return tuple(np.nonzero(np.any(np.nan_to_num(self.gradient(z)) != 0, axis=0))[0].tolist())

    @functools.cached_property
    def curved_breaks(self) -> tuple[Function, ...]:
        """The break functions that depend on more than one coordinate."""
        z = np.random.default_rng(3).standard_normal((64, self.projections))
        slopes = [Surface(f, self.projections, self.planes).gradient(z) for f in self.break_functions]
        used = [np.sum(np.abs(np.nan_to_num(s)).max(0) > 1e-9) for s in slopes]
        return tuple(f for f, count in zip(self.break_functions, used, strict=True) if count > 1)

    @functools.cached_property
    def flat_values(self) -> tuple[np.ndarray, float]:
        """The values that g takes on sets of positive measure, and the measure of those sets under N(0, I)."""
        z = np.random.default_rng(1).standard_normal((8192, self.projections))
        value = self.function(z)
        steps = _FLAT_STEP * np.eye(self.projections)
        near = np.stack([self.function(z + s * step) for s in (1.0, -1.0) for step in steps], -1)
        around = np.concatenate([value[:, None], near], 1)
        # Relative to the value: near z1 = 0, z1**3 is tiny and not flat.
        flat = np.ptp(around, axis=1) <= _SAME * np.abs(value)
        values = np.unique(np.round(value[flat], 9))
        exact = np.array([value[flat][np.argmin(np.abs(value[flat] - v))] for v in values])
        # A point beside a jump between two flat pieces counts as flat: all values around it are flat values.
        distance = np.min(np.abs(around[..., None] - exact), axis=-1, initial=np.inf)
        fraction = np.mean(np.all(distance <= 1e-8 * (1 + np.abs(around)), axis=1))
        return exact, float(fraction)

    @property
    def atoms(self) -> np.ndarray:
        """The flat values."""
        return self.flat_values[0]

    @property
    def discrete(self) -> bool:
        """Whether g is piecewise constant."""
        return self.flat_values[1] > 1 - 1e-9

    @property
    def critical_values(self) -> np.ndarray:
        """Values of g at its critical points, also those of its restrictions to break planes, within |z| < 6.

        The law of the label and the posterior are singular in y there, and smooth in between.
        """
        return self._critical[0]

    @property
    def centres(self) -> tuple[np.ndarray, ...]:
        """For each axis the coordinates that many critical points share: level sets bend sharply near them."""
        return self._critical[1]

    @functools.cached_property
    def _critical(self) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        sides = [[None, *(c + s * 1e-7 for c in planes[:4] for s in (-1.0, 1.0))] for planes in self.planes]
        strata = sorted(itertools.product(*sides), key=lambda s: sum(c is not None for c in s))
        values, centres = [np.zeros(0)], tuple(np.zeros(0) for _ in range(self.projections))
        for stratum in strata[:64]:
            fixed = {i: c for i, c in enumerate(stratum) if c is not None}
            z, value = self._critical_points_on(fixed)
            values.append(value)
            if not fixed:
                centres = tuple(_clusters(coordinate, 1e-3, 0.2)[:3] for coordinate in z.T)
        return np.sort(_clusters(np.concatenate(values), 2e-4, 0.0)[:_MAX_CRITICAL]), centres

    def _critical_points_on(self, fixed: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method on the gradient in the free coordinates, from many starts."""
        free = [i for i in range(self.projections) if i not in fixed]
        starts = (200 if not fixed else 24) if free else 1
        z = 1.5 * np.random.default_rng(2).standard_normal((starts, self.projections))
        for i, c in fixed.items():
            z[:, i] = c
        if not free:
            return z, self.function(z)
        # Nothing to find where the function does not change.
        if np.ptp(self.function(z + 0.1)) + np.ptp(self.function(z)) < 1e-12 or not np.any(
            self._derivatives(z, free)[0]
        ):
            return z[:0], np.zeros(0)
        for _ in range(25):
            slope, curvature = self._derivatives(z, free)
            move = -np.einsum("nij,nj->ni", np.linalg.pinv(curvature, rcond=1e-8), slope)
            size = np.linalg.norm(move, axis=1, keepdims=True)
            z[:, free] += move * np.minimum(1.0, 0.7 / np.maximum(size, 1e-300))
            if np.all(size < 1e-9):
                break
        slope, curvature = self._derivatives(z, free)
        value = self.function(z)
        bend = np.linalg.norm(curvature, axis=(1, 2))
        stationary = np.linalg.norm(slope, axis=1) < 1e-5 * (1 + np.abs(value) + bend)
        # Far out a function may only be flat; nearby a flat point, like that of z1**3, is as critical as a curved one.
        found = stationary & (np.linalg.norm(z, axis=1) < np.where(bend > 1e-6, 6.0, 3.0)) & np.isfinite(value)
        return z[found], value[found]

    def _derivatives(self, z: np.ndarray, free: list[int], h: float = 1e-4) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian in the free coordinates, by central differences."""
        e = h * np.eye(self.projections)[free]
        with np.errstate(over="ignore", invalid="ignore"):
            centre = self.function(z)
            ahead, behind = self.function(z[:, None] + e), self.function(z[:, None] - e)
            slope = (ahead - behind) / (2 * h)
            corners = [
                [self.function(z + a * e[i] + b * e[j]) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
                for i in range(len(free))
                for j in range(len(free))
            ]
        mixed = np.stack([(pp - pm - mp + mm) / (4 * h * h) for pp, pm, mp, mm in corners], -1)
        curvature = mixed.reshape(len(z), len(free), len(free))
        index = np.arange(len(free))
        curvature[:, index, index] = (ahead - 2 * centre[:, None] + behind) / h**2
        return np.nan_to_num(slope), np.clip(np.nan_to_num(curvature), -1e12, 1e12)


def _clusters(values: np.ndarray, width: float, least: float) -> np.ndarray:
    """Medians of the groups of nearly equal values, largest group first; groups of a smaller share than `least` go."""
    values = np.sort(values)
    if not values.size:
        return values
    gaps = np.diff(values) > width * (1 + np.abs(values[1:]))
    groups = sorted(np.split(values, np.flatnonzero(gaps) + 1), key=len, reverse=True)
    return np.array([float(np.median(g)) for g in groups if len(g) >= least * len(values)])


def _break_functions(target: Target) -> tuple[Function, ...]:
    if target.expression is None:
        return ()

    def numeric(expression) -> Function:
        return lambda z: evaluate(expression, [z[..., i] for i in range(z.shape[-1])], np)

    return tuple(numeric(u) for u, _ in break_expressions(target.expression))
