"""The exact channel of any noiseless target: posteriors on level sets, without bandwidth.

Given a noiseless label, z lies on the level set {g(z) = y}: finitely many roots c, that weigh N(c; omega, V)/|g'(c)|,
or, where y is the value of a flat, intervals that weigh their Gaussian probability. A label equal to an atom is
infinitely more likely to come from a flat than from a root, so a row has either roots or intervals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import scipy.special

from solvable.channels.scalar import NARROW, PosteriorKernel, Rows, ScalarChannel, ScalarPosterior, pad_rows
from solvable.core.errors import bad_parameter
from solvable.numerics.gaussian import RADIUS, ladder_edges, normal_density, panels, standard_edges
from solvable.targets.landscape import Landscape

_NEAR = 14 * np.sqrt(NARROW)
"""At variances below NARROW, candidates farther than this from the true z cannot matter."""

_FAR = 100.0
"""Stands for infinity as the end of an interval: nothing of a Gaussian is left there."""


class LevelSets(NamedTuple):
    """Level sets of labels, one row each: roots with their log weights, and intervals (-inf where absent).

    `root`, `log_jacobian` have shape (rows, roots); `lower`, `upper`, `log_present` have shape (rows, intervals).
    """

    root: Any
    log_jacobian: Any
    lower: Any
    upper: Any
    log_present: Any


class LevelSetPosterior(PosteriorKernel):
    """Log-sum-exp over the roots and intervals of each row.

    A root c has weight N(c; omega, V) / |g'(c)|; an interval [a, b] has weight Phi((b-omega)/s) - Phi((a-omega)/s) and
    the moments of a truncated normal, s = sqrt(V). `guarded` keeps intervals far in the tail apart; averages over the
    joint law do without, since the true z lies in one of the intervals.
    """

    guarded: bool = eqx.field(static=True, default=True)

    def evaluate(self, xp: Any, observation: LevelSets, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        s = xp.sqrt(V)
        centre = omega[..., None]
        parts = []
        if observation.root.shape[-1]:
            u = (observation.root - centre) / s
            log_weight = observation.log_jacobian - u**2 / 2 - xp.log(2 * xp.pi * V) / 2
            parts.append((log_weight, u, xp.zeros_like(u)))
        if observation.lower.shape[-1]:
            a, b = (observation.lower - centre) / s, (observation.upper - centre) / s
            log_mass, mean, variance = _truncated_normal(xp, a, b, self.guarded)
            parts.append((observation.log_present + log_mass, mean, variance))
        log_weight, u, spread = (xp.concatenate(part, -1) for part in zip(*parts, strict=True))
        largest = xp.max(log_weight, -1, keepdims=True)
        weight = xp.exp(log_weight - largest)
        total = xp.sum(weight, -1)
        mean = xp.sum(weight * u, -1) / total
        variance = xp.sum(weight * (spread + (u - mean[..., None]) ** 2), -1) / total
        return ScalarPosterior(xp.log(total) + largest[..., 0], omega + s * mean, V * variance)


def _truncated_normal(xp: Any, a: Any, b: Any, guarded: bool) -> tuple[Any, Any, Any]:
    """Log mass, mean and variance of a standard normal on [a, b]; `guarded` keeps them exact in the far tails."""
    special = scipy.special if xp is np else jax.scipy.special
    flip = a + b > 0
    low, high = xp.where(flip, -b, a), xp.where(flip, -a, b)
    if guarded:
        log_low, log_high = special.log_ndtr(low), special.log_ndtr(high)
        log_mass = log_high + xp.log1p(-xp.exp(xp.minimum(log_low - log_high, -1e-300)))
    else:
        log_mass = xp.log(xp.maximum((special.erfc(-high / xp.sqrt(2)) - special.erfc(-low / xp.sqrt(2))) / 2, 1e-300))
    log_mass = xp.maximum(log_mass, -1e300)
    density_low = xp.exp(-(low**2) / 2 - log_mass) / xp.sqrt(2 * xp.pi)
    density_high = xp.exp(-(high**2) / 2 - log_mass) / xp.sqrt(2 * xp.pi)
    mean = density_low - density_high
    variance = 1 + low * density_low - high * density_high - mean**2
    # Rounding can leave a narrow interval's mean outside of it, or its variance negative.
    mean, variance = xp.clip(mean, low, high), xp.clip(variance, 0.0, (high - low) ** 2 / 4)
    return log_mass, xp.where(flip, -mean, mean), variance


class LevelSetChannel(ScalarChannel):
    """The noiseless channel y = g(z) of any one-projection target, continuous, discrete or mixed."""

    kernel = LevelSetPosterior()

    def __init__(self, landscape: Landscape):
        self.landscape = landscape

    def average_kernel(self, fineness: float, narrow: bool) -> LevelSetPosterior:
        return LevelSetPosterior(guarded=False)

    def observe(self, y: np.ndarray) -> LevelSets:
        y = np.asarray(y, float)
        atom = self.landscape.atom_of(y)
        root, has_root = self.landscape.preimages(y)
        has_root &= (atom < 0)[:, None]
        if not np.all(has_root.any(1) | (atom >= 0)):
            impossible = y[~has_root.any(1) & (atom < 0)][0]
            takes = f"a value of {self.landscape.target.name!r} (or give the model some noise)"
            raise bad_parameter("y", float(impossible), takes)
        return self._level_sets(root, has_root, atom)

    def _level_sets(
        self, root: np.ndarray, has_root: np.ndarray, atom: np.ndarray, near: np.ndarray | None = None
    ) -> LevelSets:
        order = np.argsort(~has_root, axis=1, kind="stable")[:, : _slots(has_root.sum(1).max(initial=0))]
        root, has_root = np.take_along_axis(root, order, 1), np.take_along_axis(has_root, order, 1)
        slope = self.landscape.target.value_and_slope(root[has_root])[1]
        log_jacobian = np.full(root.shape, -np.inf)
        log_jacobian[has_root] = -np.log(np.maximum(np.abs(slope), 1e-300))
        # The extra last atom, without intervals, serves the rows that have roots.
        lower, upper, log_present = (a[atom] for a in self._intervals())
        if near is not None:
            log_present[(lower > near[:, None] + _NEAR) | (upper < near[:, None] - _NEAR)] = -np.inf
            order = np.argsort(-log_present, axis=1, kind="stable")
            order = order[:, : _slots(np.isfinite(log_present).sum(1).max(initial=0))]
            lower, upper, log_present = (np.take_along_axis(a, order, 1) for a in (lower, upper, log_present))
        return LevelSets(root, log_jacobian, lower, upper, log_present)

    def _intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The intervals of each atom, padded, and an extra row without any (index -1)."""
        shape = self.landscape
        groups = [shape.flat & (np.abs(shape.value_lower - a) <= 1e-9 * (1 + abs(a))) for a in shape.atoms]
        width = _slots(max((int(g.sum()) for g in groups), default=0))
        lower, upper = np.zeros((len(groups) + 1, width)), np.ones((len(groups) + 1, width))
        log_present = np.full((len(groups) + 1, width), -np.inf)
        for i, group in enumerate(groups):
            count = int(group.sum())
            lower[i, :count] = np.where(shape.lower[group] <= -RADIUS, -_FAR, shape.lower[group])
            upper[i, :count] = np.where(shape.upper[group] >= RADIUS, _FAR, shape.upper[group])
            log_present[i, :count] = 0.0
        return lower, upper, log_present

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        shape = self.landscape
        edges = self._edges(narrow)
        z, weight = panels(edges, round((8 if narrow else 24) * fineness), graded=not narrow)
        if not narrow:
            z = _keep_off(z, edges)
        weight = weight * normal_density(z)
        piece = np.searchsorted(shape.edges, z)
        atom = np.where(shape.flat[piece], shape.atom_of(shape.value_lower[piece]), -1)
        root, has_root = shape.preimages(shape.target.numpy(z[:, None]))
        has_root &= (atom < 0)[:, None]
        # A node is its own root, exactly; near a turning point solving for it would lose half of the digits.
        branch = np.cumsum(~shape.flat) - 1
        own = np.nonzero(atom < 0)[0]
        root[own, branch[piece[own]]] = z[own]
        has_root[own, branch[piece[own]]] = True
        if narrow:
            has_root &= np.abs(root - z[:, None]) < _NEAR
        return pad_rows(Rows(z, weight, self._level_sets(root, has_root, atom, z if narrow else None)))

    def _edges(self, narrow: bool) -> np.ndarray:
        """Panel ends: the edges of the pieces, and every preimage of a critical value, where a branch appears."""
        shape = self.landscape
        root, has_root = shape.preimages(shape.critical_values)
        breaks = np.concatenate([shape.edges, root[has_root]])
        edges = standard_edges(breaks, radius=8.5)
        if narrow:
            edges = np.union1d(edges, ladder_edges(breaks[np.abs(breaks) < 6], radius=8.5))
        keep = np.concatenate([[True], np.diff(edges) > 1e-7])
        return edges[keep]


def _keep_off(z: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Move nodes that are closer than 1e-7 to an edge: nearer to a turning point partner roots lose their digits."""
    panel = np.searchsorted(edges, z)
    return np.clip(z, edges[panel - 1] + 1e-7, np.maximum(edges[panel] - 1e-7, edges[panel - 1] + 1e-7))


def _slots(count: int) -> int:
    """The padded number of candidates a row: few distinct values, so that targets share compiled code."""
    return next((s for s in (0, 1, 2, 3, 4, 6, 8, 12, 16) if s >= count), -(-int(count) // 16) * 16)
