"""The channel of any target with Gaussian label noise: y = g(z) + sqrt(D) xi.

Only the z with |y - g(z)| within reach of the noise and |z - omega| within reach of sqrt(V) matter. On each monotone
piece of g the first condition is an interval that depends on the label alone, and is solved once; its intersection
with the second carries a fixed number of Gauss-Legendre nodes. The cost is the same for every D and V, and nothing is
lost as either goes to zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import REACH, Channel, Posterior, Rows, pad_rows
from solvable.numerics.gaussian import (
    gauss_legendre,
    ladder_edges,
    normal_density,
    normal_trapezoid,
    panels,
    standard_edges,
)
from solvable.targets.landscape import Landscape
from solvable.targets.target import Target


class Intervals(NamedTuple):
    """Labels `y` (rows), and on each piece of g the interval of z that they leave possible, (rows, pieces)."""

    y: Any
    lower: Any
    upper: Any


class NoisyPosterior(eqx.Module):
    """The posterior of z by quadrature on the possible intervals; `noise` is traced, the target compiled in.

    `guarded` handles labels that omega all but excludes: exponents are shifted against underflow, and a row that no
    piece explains within reach keeps its nearest point. Averages over the joint law do without: there such rows have
    no weight, and fall back to the prior.
    """

    target: Target = eqx.field(static=True)
    noise: Any
    guarded: bool = eqx.field(static=True, default=True)

    def __call__(self, observation: Intervals, omega: Any, V: Any) -> Posterior:
        t, w = gauss_legendre(22)
        s = jnp.sqrt(V)
        centre = jnp.asarray(omega)[..., None]
        low = jnp.clip(centre - REACH * s, observation.lower, observation.upper)
        high = jnp.clip(centre + REACH * s, observation.lower, observation.upper)
        length = (high - low)[..., None]
        z = low[..., None] + length * t
        u = (z - centre[..., None]) / s
        residual = observation.y[..., None, None] - self.target(z[..., None])
        exponent = u**2 / 2 + residual**2 / (2 * self.noise)
        least = jnp.min(exponent, (-2, -1), keepdims=True) if self.guarded else jnp.zeros((1,) * exponent.ndim)
        weight = jnp.exp(least - exponent) * w * (jnp.maximum(length, 1e-280) if self.guarded else length)
        total = jnp.sum(weight, (-2, -1))
        total = jnp.where(total > 0, total, 1.0)
        mean = jnp.sum(weight * u, (-2, -1)) / total
        variance = jnp.sum(weight * (u - mean[..., None, None]) ** 2, (-2, -1)) / total
        log_Z = jnp.log(total) - least[..., 0, 0] - jnp.log(2 * jnp.pi) - jnp.log(V * self.noise) / 2
        return Posterior(log_Z, omega + s * mean, V * variance)


class NoisyChannel(Channel):
    """y = g(z) + sqrt(noise) xi for any one-projection target and noise > 0."""

    omega_step = 0.5

    def __init__(self, landscape: Landscape, noise: float):
        self.landscape = landscape
        self.noise = noise
        self.kernel = NoisyPosterior(landscape.target, np.float64(noise))

    @property
    def average_kernel(self) -> NoisyPosterior:
        return NoisyPosterior(self.landscape.target, np.float64(self.noise), guarded=False)

    def observe(self, y: np.ndarray) -> Intervals:
        y = np.asarray(y, float)
        shape, reach = self.landscape, REACH * np.sqrt(self.noise)
        lower = np.repeat(shape.lower[None], len(y), 0)
        upper = np.repeat(shape.upper[None], len(y), 0)
        ends = np.sort(np.stack([shape.inverse(y - reach), shape.inverse(y + reach)]), 0)
        lower[:, ~shape.flat], upper[:, ~shape.flat] = ends[0], ends[1]
        return Intervals(y, lower, upper)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        edges = self._edges(narrow)
        z, weight = panels(edges, round((6 if narrow else 10) * fineness), graded=False)
        # Between the values of two flats the posterior switches faster in y than between two branches.
        xi, xi_weight = normal_trapezoid((0.35 if self.landscape.flat.any() else 0.5) / fineness, 5.6)
        y = self.landscape.target.numpy(z[:, None])[:, None] + np.sqrt(self.noise) * xi
        weight = ((weight * normal_density(z))[:, None] * xi_weight).ravel()
        keep = weight > 1e-11
        rows = Rows(np.repeat(z, len(xi))[keep], weight[keep] / weight[keep].sum(), self.observe(y.ravel()[keep]))
        return pad_rows(rows, multiple=512)

    def _edges(self, narrow: bool) -> np.ndarray:
        """Panel ends: the edges of the pieces, and where the smeared critical values of the label are passed."""
        shape, spread = self.landscape, np.sqrt(self.noise)
        if narrow:
            return ladder_edges(shape.edges[np.abs(shape.edges) < 6], 7.0, finest=1e-4)
        levels = (shape.critical_values[:, None] + spread * np.array([-5.0, -2.0, 0.0, 2.0, 5.0])).ravel()
        root, has_root = shape.preimages(levels)
        edges = standard_edges(np.concatenate([shape.edges, root[has_root]]), 7.0)
        # Ends closer than the smearing resolves are redundant, except the edges of g themselves.
        keep = [edges[0]]
        for end in edges[1:]:
            if end - keep[-1] > 0.05 or np.any(np.abs(end - shape.edges) < 1e-12):
                keep.append(end)
        return np.array(keep)
