r"""The posterior of z row by row, for message passing: each label with the points of its own level set.

The points depend on the label only, so they are found once; at each omega and V the posterior is a weighted sum,
with weights w_k N(z_k; omega, V). With noise the points are a fixed grid weighted by N(y - g(z_k); noise) as long as
that resolves the noise, and otherwise the level sets of three labels around y, a Gauss-Hermite rule in the noise.

Where V is narrower than these points resolve, points are looked for near each omega (`near`). Where g is
linear over N(omega, V), without a kink or jump in reach, the posterior is Gaussian: its mean solves
z = omega + V n (y - g(z) - n.(omega - z)) / s with n = grad g(z), s = n^T V n + noise, and Cov = V - V n n^T V / s.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from solvable.channels.levels.fibres import Fibres, coordinate_rule, fibres, tensor_rule
from solvable.channels.levels.labels import Resolution, flat_sets
from solvable.channels.levels.near import (
    Box,
    NearPoints,
    bent,
    breaks_in_reach,
    near_flat_sets,
    near_level_sets,
    near_noisy_sets,
    resolvable,
)
from solvable.channels.levels.points import PointSets, joined, level_points
from solvable.channels.levels.surface import Surface
from solvable.numerics.blas import single_thread
from solvable.numerics.threads import each

_STEP = {1: 0.5, 2: 0.16, 3: 0.5, 4: 0.9}
_RADIUS = {1: 7.0, 2: 6.0, 3: 5.4, 4: 5.0}
_MOST_NODES = {1: 4_000, 2: 12_000, 3: 30_000, 4: 30_000}
_LAYERS = {1: 16, 2: 8, 3: 5, 4: 4}
_ACCURACY = 1e-6
_LEAST_SHARE = 3e-4
_STEEP = {1: 0.97, 2: 0.97, 3: 0.8, 4: 0.8}
"""The quantile of |grad g| at which a grid must resolve the noise."""
_CHUNK = 256
_NEWTON_STEPS = 6
_HERMITE = np.array([-np.sqrt(3.0), 0.0, np.sqrt(3.0)]), np.array([1 / 6, 2 / 3, 1 / 6])


@dataclasses.dataclass(frozen=True)
class Observation:
    """Labels `y`; `sets`, the points of the rows `own` that have their own; `atom`, that of each other row (or -1).

    `near` are the points of narrow posteriors: it remembers those of the last omega.
    """

    y: np.ndarray
    own: np.ndarray
    sets: PointSets | None
    atom: np.ndarray
    near: NearPoints


class RowPosterior:
    """(labels, omega, V) -> log Z, mean and covariance of z, for the target of a surface."""

    def __init__(self, surface: Surface, noise: float):
        self._surface, self._noise = surface, noise
        self._r = surface.projections

    @property
    def resolution(self) -> float:
        """The smallest variance that the points resolve."""
        return (_STEP[self._r] / 1.4) ** 2

    @functools.cached_property
    def _grids(self) -> list[Fibres]:
        return [fibres(self._surface, axis, _STEP[self._r], _RADIUS[self._r]) for axis in range(self._r)]

    @functools.cached_property
    def _flat(self) -> PointSets:
        return flat_sets(self._surface, self._grids, Resolution(_STEP[self._r], _LAYERS[self._r], _RADIUS[self._r]))

    @functools.cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """(z, log weight, g) of a grid that resolves the noise, or None if that would take too many nodes."""
        z = np.random.default_rng(4).standard_normal((2000, self._r))
        slope = np.quantile(np.abs(np.nan_to_num(self._surface.gradient(z))), _STEEP[self._r], axis=0)
        step = np.minimum(1.6 * np.sqrt(self._noise) / np.maximum(slope, 1e-9), 2 * _STEP[self._r])
        rules = []
        for planes, h in zip(self._surface.planes, step, strict=True):
            rules.append(coordinate_rule(planes, np.zeros(0), 0.0, float(h), _RADIUS[self._r]))
        if np.prod([float(len(x)) for x, _ in rules]) * 0.6 > _MOST_NODES[self._r]:
            return None
        z, weight = tensor_rule(rules, _RADIUS[self._r])
        return z, np.log(weight), self._surface.function(z)

    def observe(self, y: np.ndarray) -> Observation:
        """Find the points of each label."""
        none = np.full(len(y), -1)
        if self._noise > 0:
            if self._nodes is not None or self._surface.discrete:
                return Observation(y, np.zeros(0, int), None, none, self._near(y, none))
            labels = (y[:, None] + np.sqrt(self._noise) * _HERMITE[0]).ravel()
            sets = level_points(self._surface, self._grids, labels, _RADIUS[self._r], _ACCURACY, _LEAST_SHARE)
            weight = sets.weight * np.repeat(np.tile(_HERMITE[1], len(y)), np.diff(sets.start))
            sets = PointSets(sets.z, weight, sets.gradient, sets.start[::3])
            return Observation(y, np.arange(len(y)), sets, none, self._near(y, none))
        atoms = self._surface.atoms
        atom = none
        if len(atoms):
            nearest = np.argmin(np.abs(y[:, None] - atoms), 1)
            atom = np.where(np.abs(y - atoms[nearest]) < 1e-9 * (1 + np.abs(y)), nearest, -1)
        own = np.nonzero(atom < 0)[0]
        sets = (
            level_points(self._surface, self._grids, y[own], _RADIUS[self._r], _ACCURACY, _LEAST_SHARE)
            if len(own)
            else None
        )
        return Observation(y, own, sets, atom, self._near(y, atom))

    def _near(self, y: np.ndarray, atom: np.ndarray) -> NearPoints:
        """The points of narrow posteriors: of level sets, or nodes where labels are flat or noise is wide enough."""

        def search(rows: np.ndarray, box: Box) -> PointSets:
            if self._noise > 0:
                return near_noisy_sets(self._surface, y[rows], self._noise, box)
            flat = (atom[rows] >= 0) | self._surface.discrete
            curved, filled = np.nonzero(~flat)[0], np.nonzero(flat)[0]
            if not len(filled):
                return near_level_sets(self._surface, y[rows], box)
            found = near_flat_sets(self._surface, y[rows[filled]], box.of(filled))
            if not len(curved):
                return found
            both = joined(near_level_sets(self._surface, y[rows[curved]], box.of(curved)), found)
            return both.chosen(np.argsort(np.concatenate([curved, filled])))

        return NearPoints(search, len(y), self._r)

    def posterior(self, seen: Observation, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
        """log Z (n,), mean (n, r), covariance (n, r, r).

        Where V is narrower than points near omega resolve, or none of a label is in their reach, g and its derivative
        are those at a V widened to the resolution: a label says a little less than it could, and never more.
        """
        if np.linalg.eigvalsh(V)[0] >= self.resolution:
            return self._widely(seen, omega, V)
        log_Z, mean, covariance = self._narrowly(seen, omega, V)
        lost = np.nonzero(~np.isfinite(log_Z))[0]
        if len(lost):
            v, u = np.linalg.eigh(V)
            wide = (u * np.maximum(v, self.resolution)) @ u.T
            found = _narrowed(self._widely(seen, omega, wide), omega, V, wide)
            for part, other in zip((log_Z, mean, covariance), found, strict=True):
                part[lost] = other[lost]
        return log_Z, mean, covariance

    def _narrowly(self, seen: Observation, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
        """The posterior for a narrow V; log Z is -inf where no point of the label is near omega."""
        n = len(seen.y)
        log_Z, mean, covariance = np.full(n, -np.inf), np.array(omega, float), np.empty((n, self._r, self._r))
        covariance[:] = V
        flat = (seen.atom >= 0) | self._surface.discrete
        near = breaks_in_reach(self._surface, omega, V)
        near |= ~flat & bent(self._surface, omega, V, self._noise)
        plain = np.nonzero(~near & ~flat)[0]
        log_Z[plain], mean[plain], covariance[plain] = self._linear(seen.y[plain], omega[plain], V)
        # Within a flat piece a posterior is the prior.
        inside = np.nonzero(~near & flat)[0]
        log_Z[inside] = self._flat_evidence(seen.y[inside], omega[inside])
        rows = np.nonzero(near)[0]
        if len(rows):
            wide = resolvable(V)
            found = _ragged(seen.near.points(rows, omega[rows], wide), omega[rows], wide)
            log_Z[rows], mean[rows], covariance[rows] = _narrowed(found, omega[rows], V, wide)
        return log_Z, mean, covariance

    def _flat_evidence(self, y: np.ndarray, omega: np.ndarray) -> np.ndarray:
        excess = self._surface.function(omega) - y
        if self._noise > 0:
            return -(excess**2) / (2 * self._noise) - 0.5 * np.log(2 * np.pi * self._noise)
        return np.where(np.abs(excess) <= 1e-9 * (1 + np.abs(y)), 0.0, -np.inf)

    def _widely(self, seen: Observation, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
        """The posterior from the points of whole level sets, for a V that they resolve."""
        n = len(seen.y)
        log_Z, mean = np.zeros(n), np.array(omega, float)
        covariance = np.broadcast_to(V, (n, self._r, self._r)).copy()
        if self._noise > 0 and seen.sets is None:
            log_Z, mean, covariance = self._on_grid(seen.y, omega, V)
        elif seen.sets is not None:
            rows = seen.own
            log_Z[rows], mean[rows], covariance[rows] = _ragged(seen.sets, omega[rows], V)
        for k in range(len(self._surface.atoms)) if self._noise == 0 else ():
            rows = np.nonzero(seen.atom == k)[0]
            if len(rows):
                here = slice(self._flat.start[k], self._flat.start[k + 1])
                z, log_weight = self._flat.z[here], np.log(self._flat.weight[here])
                log_Z[rows], mean[rows], covariance[rows] = _shared(z, log_weight, None, omega[rows], V)
        # A label out of the reach of omega says nothing that can be trusted: keep what was known.
        lost = ~np.isfinite(log_Z)
        log_Z[lost], mean[lost], covariance[lost] = -1e3, omega[lost], V
        return log_Z, mean, covariance

    def _on_grid(self, y: np.ndarray, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
        if self._surface.discrete:
            z, log_weight = self._flat.z, np.log(self._flat.weight)
            g = self._surface.atoms[self._flat.label]
        else:
            assert self._nodes is not None
            z, log_weight, g = self._nodes
        normaliser = 0.5 * np.log(2 * np.pi * self._noise)

        def evidence(rows: slice) -> np.ndarray:
            return -((y[rows, None] - g) ** 2) / (2 * self._noise) - normaliser

        return _shared(z, log_weight, evidence, omega, V)

    def _linear(self, y: np.ndarray, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
        """The Gaussian posterior of a label that is linear in z near its mean."""
        z = np.array(omega)
        for _ in range(_NEWTON_STEPS):
            n = np.nan_to_num(self._surface.gradient(z))
            s = np.maximum(np.einsum("ki,ij,kj->k", n, V, n) + self._noise, 1e-300)
            residual = y - self._surface.function(z) - np.sum(n * (omega - z), 1)
            # Far from the level set a full step may leave the region where g is linear.
            target = omega + (residual / s)[:, None] * (n @ V)
            move = target - z
            length = np.sqrt(np.einsum("ki,ij,kj->k", move, np.linalg.inv(V), move))
            z = z + move * np.minimum(1.0, 6.0 / np.maximum(length, 1e-300))[:, None]
        Vn = n @ V
        covariance = V - Vn[:, :, None] * Vn[:, None, :] / s[:, None, None]
        log_Z = -0.5 * residual**2 / s - 0.5 * np.log(2 * np.pi * s)
        return log_Z, z, covariance


def _narrowed(
    found: tuple[np.ndarray, ...], omega: np.ndarray, V: np.ndarray, wide: np.ndarray
) -> tuple[np.ndarray, ...]:
    """log Z, mean and covariance for V whose g and its derivative are those found for a wider one."""
    log_Z, mean, covariance = found
    back = V @ np.linalg.inv(wide)
    return log_Z, omega + (mean - omega) @ back.T, V - back @ (wide - covariance) @ back.T


def _quadratic(z: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """V^-1, -z^T V^-1 z / 2 for each point, and the log normaliser of N(0, V)."""
    inverse = np.linalg.inv(V)
    constant = -0.5 * np.linalg.slogdet(2 * np.pi * V)[1]
    return inverse, -0.5 * np.einsum("ki,ij,kj->k", z, inverse, z, optimize=True), float(constant)


def _shared(z, log_weight, evidence, omega, V) -> tuple[np.ndarray, ...]:
    """The posterior on points that all rows share, by two matrix products a chunk of rows."""
    r = z.shape[1]
    inverse, bend, constant = _quadratic(z, V)
    field = omega @ inverse
    offset = -0.5 * np.sum(field * omega, 1) + constant
    pairs = np.triu_indices(r)
    features = np.concatenate([np.ones((len(z), 1)), z, z[:, pairs[0]] * z[:, pairs[1]]], 1)
    log_Z, sums = np.zeros(len(omega)), np.zeros((len(omega), features.shape[1]))

    def fill(start: int) -> None:
        rows = slice(start, start + _CHUNK)
        exponent = field[rows] @ z.T
        exponent += bend + log_weight
        if evidence is not None:
            exponent += evidence(rows)
        top = exponent.max(1)
        exponent -= top[:, None]
        sums[rows] = np.exp(exponent, out=exponent) @ features
        log_Z[rows] = top

    with single_thread():
        each(fill, range(0, len(omega), _CHUNK))
    return _finished(log_Z + offset, sums, r)


def _ragged(sets: PointSets, omega: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, ...]:
    """The posterior where each row has points of its own."""
    r = sets.z.shape[1]
    inverse, bend, constant = _quadratic(sets.z, V)
    field = omega @ inverse
    offset = -0.5 * np.sum(field * omega, 1) + constant
    count = np.diff(sets.start)
    filled = np.nonzero(count)[0]
    log_Z, sums = np.full(len(omega), -np.inf), np.zeros((len(omega), 1 + r + r * (r + 1) // 2))
    if not len(filled):
        return _finished(log_Z, sums, r)
    start = sets.start[filled]
    row = np.repeat(filled, count[filled])
    exponent = np.log(sets.weight) + bend
    for i in range(r):
        exponent += sets.z[:, i] * field[row, i]
    top = np.maximum.reduceat(exponent, start)
    weight = np.exp(exponent - np.repeat(top, count[filled]))
    columns = [weight, *(weight * sets.z[:, i] for i in range(r))]
    columns += [columns[1 + i] * sets.z[:, j] for i in range(r) for j in range(i, r)]
    for k, column in enumerate(columns):
        sums[filled, k] = np.add.reduceat(column, start)
    log_Z[filled] = top
    return _finished(log_Z + offset, sums, r)


def _finished(log_scale: np.ndarray, sums: np.ndarray, r: int) -> tuple[np.ndarray, ...]:
    """log Z, mean and covariance from the scaled sums of weight, weight z, weight z z^T."""
    total = np.maximum(sums[:, 0], 1e-300)
    mean = sums[:, 1 : 1 + r] / total[:, None]
    second = np.zeros((len(sums), r, r))
    i, j = np.triu_indices(r)
    second[:, i, j] = second[:, j, i] = sums[:, 1 + r :] / total[:, None]
    return log_scale + np.log(total), mean, second - mean[:, :, None] * mean[:, None, :]
