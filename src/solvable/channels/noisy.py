"""The channel of any target with Gaussian label noise: y = g(z) + sqrt(D) xi.

Only the z with |y - g(z)| within reach of the noise and |z - omega| within reach of sqrt(V) matter. On each monotone
piece of g the first condition is an interval that depends on the label alone, and is solved once; its intersection
with the second carries a fixed number of Gauss-Legendre nodes. The cost is the same for every D and V, and nothing is
lost as either goes to zero.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.dense import DenseRule, dense_information, dense_label_law, dense_rule, is_broad
from solvable.channels.scalar import (
    NARROW,
    REACH,
    PosteriorKernel,
    Rows,
    ScalarChannel,
    ScalarPosterior,
    in_chunks,
    pad_rows,
)
from solvable.core.precision import float64
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

_LEAST_NODES, _MOST_NODES = 22, 352
_PADDING = 512


class Intervals(NamedTuple):
    """Labels `y` (rows), and on each piece of g the interval of z that they leave possible, (rows, pieces)."""

    y: Any
    lower: Any
    upper: Any


class NoisyPosterior(PosteriorKernel):
    """The posterior of z by quadrature on the possible intervals; `noise` is traced, the target compiled in.

    `guarded` handles labels that omega all but excludes: exponents are shifted against underflow, and a row that no
    piece explains within reach keeps its nearest point. Averages over the joint law do without: there such rows have
    no weight, and fall back to the prior.
    """

    target: Target = eqx.field(static=True)
    noise: Any
    nodes: int = eqx.field(static=True)
    guarded: bool = eqx.field(static=True, default=True)

    def evaluate(self, xp: Any, observation: Intervals, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        g = self.target.numpy if xp is np else self.target
        t, w = gauss_legendre(self.nodes)
        s = xp.sqrt(V)
        centre = omega[..., None]
        low = xp.clip(centre - REACH * s, observation.lower, observation.upper)
        high = xp.clip(centre + REACH * s, observation.lower, observation.upper)
        length = (high - low)[..., None]
        z = low[..., None] + length * t
        u = (z - centre[..., None]) / s
        residual = observation.y[..., None, None] - g(z[..., None])
        exponent = u**2 / 2 + residual**2 / (2 * self.noise)
        least = xp.min(exponent, (-2, -1), keepdims=True) if self.guarded else xp.zeros((1,) * exponent.ndim)
        weight = xp.exp(least - exponent) * w * (xp.maximum(length, 1e-280) if self.guarded else length)
        total = xp.sum(weight, (-2, -1))
        total = xp.where(total > 0, total, 1.0)
        mean = xp.sum(weight * u, (-2, -1)) / total
        variance = xp.sum(weight * (u - mean[..., None, None]) ** 2, (-2, -1)) / total
        log_Z = xp.log(total) - least[..., 0, 0] - xp.log(2 * xp.pi) - xp.log(V * self.noise) / 2
        return ScalarPosterior(log_Z, omega + s * mean, V * variance)


@eqx.filter_jit
def _compiled_posterior(kernel: NoisyPosterior, observation: Intervals, omega: Any, V: Any) -> ScalarPosterior:
    return kernel(observation, omega, V)


class NoisyChannel(ScalarChannel):
    """y = g(z) + sqrt(noise) xi for any one-projection target and noise > 0."""

    kernel: NoisyPosterior
    omega_step = 0.5

    def __init__(self, landscape: Landscape, noise: float):
        self.landscape = landscape
        self.noise = noise
        self.kernel = self._kernel(self._enough_nodes((0.8, 0.5, 0.2, 0.07, 0.02)))

    @float64
    def scalar_posterior(
        self, observation: Intervals, omega: np.ndarray, V: float, evidence: bool = True
    ) -> ScalarPosterior:
        # Hundreds of nodes a row are worth compiling; padding keeps data sets of similar size on the same code.
        rows, extra = len(omega), -len(omega) % _PADDING
        padded = [np.concatenate([a, np.repeat(a[-1:], extra, 0)]) for a in (*observation, omega)]
        found = _compiled_posterior(self.kernel, Intervals(*padded[:3]), padded[3], jnp.asarray(V, float))
        return ScalarPosterior(*(np.asarray(a)[:rows] for a in found))

    def rule_average(self, V: np.ndarray, fineness: float, narrow: bool) -> np.ndarray:
        rule = None if narrow else self._dense(fineness)
        if rule is None:
            return super().rule_average(V, fineness, narrow)
        result = np.empty((2, *V.shape))
        for broad in (True, False):
            here = is_broad(V) == broad
            if here.any():
                result[:, here] = in_chunks(functools.partial(dense_information, rule, fineness), V[here])
        return result

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        rule = self._dense(fineness)
        return super().label_law(fineness) if rule is None else dense_label_law(rule)

    @functools.cache  # noqa: B019 - a channel lives as long as its rules
    def _dense(self, fineness: float) -> DenseRule | None:
        return dense_rule(self.landscape, self.noise, fineness)

    def average_kernel(self, fineness: float, narrow: bool) -> NoisyPosterior:
        nodes = self._narrow_nodes if narrow else self.kernel.nodes
        return self._kernel(round(nodes * (1 + fineness) / 2), guarded=False)

    def _kernel(self, nodes: int, guarded: bool = True) -> NoisyPosterior:
        return NoisyPosterior(self.landscape.target, np.float64(self.noise), nodes, guarded)

    @property
    def deepest(self) -> float:
        # I levels off only once V is far below the noise; jumps between flats keep it growing like V^(-1/2) instead.
        return 24.0 if self.landscape.flat.any() else 40.0

    @functools.cached_property
    def _narrow_nodes(self) -> int:
        return self._enough_nodes((0.01, 0.001, 0.0001))

    def _enough_nodes(self, variances: tuple[float, ...]) -> int:
        """The number of nodes a piece, doubled until the posterior means of typical rows stop moving.

        The least suffices where the posterior is bell-shaped on every piece; where g saturates the noise cuts a sharp
        edge into a wide posterior, which takes more.
        """
        rng = np.random.default_rng(0)
        z = rng.standard_normal(300)
        observation = self.observe(self.sample(z[:, None], rng))
        x = rng.standard_normal(300)

        def steps(nodes: int) -> np.ndarray:
            kernel, rows = self._kernel(nodes), []
            for V in variances:
                omega = (1 - V) * z + np.sqrt(V * (1 - V)) * x
                rows.append((kernel.evaluate(np, observation, omega, V).mean - omega) / V)
            return np.array(rows)

        nodes, now = _LEAST_NODES, steps(_LEAST_NODES)
        while nodes < _MOST_NODES:
            finer = steps(2 * nodes)
            if np.all(np.mean((finer - now) ** 2, 1) <= 1e-10 * np.mean(finer**2, 1)):
                break
            nodes, now = 2 * nodes, finer
        return nodes

    def observe(self, y: np.ndarray) -> Intervals:
        y = np.asarray(y, float)
        shape, reach = self.landscape, REACH * np.sqrt(self.noise)
        lower = np.repeat(shape.lower[None], len(y), 0)
        upper = np.repeat(shape.upper[None], len(y), 0)
        ends = np.sort(np.stack([shape.inverse(y - reach), shape.inverse(y + reach)]), 0)
        lower[:, ~shape.flat], upper[:, ~shape.flat] = ends[0], ends[1]
        return Intervals(y, lower, upper)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        edges = self._narrow_edges() if narrow else self._wide_edges()
        z, weight = panels(edges, round((5 if narrow else 10) * fineness), graded=False)
        # Between the values of two flats the posterior switches faster in y than between two branches.
        step = 0.35 if self.landscape.flat.any() else 0.65 if narrow else 0.5
        xi, xi_weight = normal_trapezoid(step / fineness, 5.6)
        y = self.landscape.target.numpy(z[:, None])[:, None] + np.sqrt(self.noise) * xi
        weight = ((weight * normal_density(z))[:, None] * xi_weight).ravel()
        keep = weight > 1e-11
        z, weight, labels = (
            np.repeat(z, len(xi))[keep],
            weight[keep] / weight[keep].sum(),
            self.observe(y.ravel()[keep]),
        )
        return pad_rows(Rows(z, weight, _within(labels, z) if narrow else labels), multiple=512)

    def _wide_edges(self) -> np.ndarray:
        """Panel ends: the edges of the pieces, and where the smeared critical values of the label are passed."""
        shape, spread = self.landscape, np.sqrt(self.noise)
        levels = (shape.critical_values[:, None] + spread * np.array([-5.0, -2.0, 0.0, 2.0, 5.0])).ravel()
        root, has_root = shape.preimages(levels)
        edges = standard_edges(np.concatenate([shape.edges, root[has_root]]), 7.0)
        # Ends closer than the smearing resolves are redundant, except the edges of g themselves.
        keep = [edges[0]]
        for end in edges[1:]:
            if end - keep[-1] > 0.05 or np.any(np.abs(end - shape.edges) < 1e-12):
                keep.append(end)
        return np.array(keep)

    def _narrow_edges(self) -> np.ndarray:
        """Panel ends that shrink towards kinks and jumps to the scale sqrt(V), and less towards turning points."""
        shape = self.landscape
        breaks = shape.target.breaks
        turning = shape.edges[np.abs(shape.edges) < 6]
        smooth = np.array([e for e in turning if not np.any(np.abs(breaks - e) < 1e-9)])
        ladders = [standard_edges(turning, 7.0)]
        # At a turning point the branches merge within the noise at a distance of order noise^(1/4).
        kinks = 5e-7 if shape.flat.any() else 1e-4
        for places, finest in ((breaks[np.abs(breaks) < 6], kinks), (smooth, min(0.5, 0.3 * self.noise**0.25))):
            if places.size:
                ladders.append(ladder_edges(places, 7.0, finest))
        edges = np.unique(np.concatenate(ladders))
        return edges[np.concatenate([[True], np.diff(edges) > 1e-7])]


def _within(labels: Intervals, z: np.ndarray) -> Intervals:
    """Keep the pieces within reach of the true z at V < NARROW, the same number in every row."""
    reach = 14 * np.sqrt(NARROW)
    near = (labels.lower < z[:, None] + reach) & (labels.upper > z[:, None] - reach)
    order = np.argsort(~near, axis=1, kind="stable")[:, : max(1, int(near.sum(1).max()))]
    present = np.take_along_axis(near, order, 1)
    lower, upper = (np.take_along_axis(a, order, 1) for a in (labels.lower, labels.upper))
    return Intervals(labels.y, lower, np.where(present, upper, lower))
