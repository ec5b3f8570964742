"""The channel of any target with Gaussian label noise: y = g(z) + sqrt(D) xi.

Only the z with |y - g(z)| within reach of the noise and |z - omega| within reach of sqrt(V) matter. On each monotone
piece of g the first condition is an interval that depends on the label alone, and is solved once; its intersection
with the second carries a fixed number of Gauss-Legendre nodes. The cost is the same for every D and V, and nothing is
lost as either goes to zero.

Averages at noise and V that are not small are cheaper on one grid of z, y and omega, as matrix products (`DenseRule`).
With noise of variance D, Z(y, omega) = int dz N(z; omega, V) N(y - g(z); D) is smooth in y at the scale sqrt(D) and in
omega at the scale sqrt(V), so uniform grids (trapezoidal rules) converge exponentially in both, and the integrals over
z of all pairs (y, omega) are the two matrix products P N and P (u N) with P = N(y - g(z); D) fixed. The cost does not
grow with the number of pieces of g, only with its total variation in units of sqrt(D).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component
from solvable.channels.scalar import (
    NARROW,
    REACH,
    PosteriorKernel,
    Rows,
    ScalarChannel,
    ScalarInformation,
    ScalarPosterior,
    averaged,
    pad_rows,
    scalar_law,
)
from solvable.numerics.batches import in_batches, rounded_up
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
_DENSE_REACH = 7.5
_ROWS_REACH, _LEAST_WEIGHT = 5.6, 1e-11
_LAW_REACH, _LEAST_OF_LAW = 8.0, 1e-18
"""How many standard deviations the noise reaches, and which weights count: of rows for averages, and for the law."""
_BROAD = 0.15
_LARGEST = 500_000


class Intervals(NamedTuple):
    """Labels `y` (rows), and on each piece of g the interval of z that they leave possible, (rows, pieces)."""

    y: Any
    lower: Any
    upper: Any


class NoisyPosterior(PosteriorKernel):
    """The posterior of z by quadrature on the possible intervals; `noise` is traced, the target compiled in.

    `guarded` handles labels that omega all but excludes: exponents are shifted against underflow, and a row that no
    piece explains within reach keeps its nearest point. Averages over the joint law do without: there such rows have
    no weight, and fall back to the prior. z counts up to `reach` standard deviations from omega.
    """

    target: Target = eqx.field(static=True)
    noise: Any
    nodes: int = eqx.field(static=True)
    guarded: bool = eqx.field(static=True, default=True)
    reach: float = eqx.field(static=True, default=REACH)

    def evaluate(self, xp: Any, observation: Intervals, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        g = self.target.numpy if xp is np else self.target
        t, w = gauss_legendre(self.nodes)
        s = xp.sqrt(V)
        centre = omega[..., None]
        low = xp.clip(centre - self.reach * s, observation.lower, observation.upper)
        high = xp.clip(centre + self.reach * s, observation.lower, observation.upper)
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


def compiled_rows(kernel: PosteriorKernel, observation: Any, omega: np.ndarray, V: float) -> ScalarPosterior:
    """The posterior of all rows in one call of compiled code, their number rounded up."""

    def evaluate(observation: Any, omega: Any) -> ScalarPosterior:
        return _posterior(kernel, observation, omega, jnp.asarray(V, float))

    return in_batches(evaluate, observation, omega, batch=rounded_up(len(omega), _PADDING), alone=False)


@eqx.filter_jit
def _posterior(kernel: PosteriorKernel, observation: Any, omega: Any, V: Any) -> ScalarPosterior:
    return kernel(observation, omega, V)


class NoisyChannel(ScalarChannel):
    """y = g(z) + sqrt(noise) xi for any one-projection target and noise > 0."""

    kernel: NoisyPosterior
    omega_step = 0.5

    def __init__(self, landscape: Landscape, noise: float):
        self.landscape = landscape
        self.noise = noise
        self.kernel = self._kernel(self._enough_nodes((0.8, 0.5, 0.2, 0.07, 0.02)))

    @property
    def settled_entropy(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        return -(1 + float(np.log(2 * np.pi * self.noise))) / 2

    def scalar_posterior(
        self, observation: Intervals, omega: np.ndarray, V: float, evidence: bool = True
    ) -> ScalarPosterior:
        # Hundreds of nodes a row are worth compiling; padding keeps data sets of similar size on the same code.
        return compiled_rows(self.kernel, observation, omega, V)

    def rule_average(self, V: np.ndarray, fineness: float, narrow: bool) -> np.ndarray:
        rule = None if narrow else self._dense(fineness)
        if rule is None:
            return super().rule_average(V, fineness, narrow)
        result = np.empty((2, *V.shape))
        for broad in (True, False):
            here = is_broad(V) == broad
            if here.any():
                result[:, here] = averaged(functools.partial(dense_information, rule, fineness), V[here])
        return result

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        rule = self._dense(fineness)
        if rule is not None:
            return dense_label_law(rule)
        # E[G^2] is a fourth moment of z, to which tails add more than their mass: 1e-7 where averages cut them off.
        rows = self._label_rows(fineness, False, _LAW_REACH, _LEAST_OF_LAW, _LAW_REACH)
        kernel = dataclasses.replace(self.kernel, nodes=round(2 * fineness * self.kernel.nodes), reach=_LAW_REACH)
        found = compiled_rows(kernel, rows.observation, np.zeros(len(rows.z)), 1.0)
        return scalar_law(rows.weight, found.mean, found.variance + found.mean**2)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - bounded: it keeps its channels
    def _dense(self, fineness: float) -> DenseRule | None:
        return dense_rule(self.landscape, ((1.0, 1.0, self.noise),), fineness, 2.0, _LARGEST)

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
        return self._intervals(np.asarray(y, float), REACH)

    def _intervals(self, y: np.ndarray, reach: float) -> Intervals:
        """The intervals that labels leave possible, with the noise cut at `reach` standard deviations."""
        shape, reach = self.landscape, reach * np.sqrt(self.noise)
        lower = np.repeat(shape.lower[None], len(y), 0)
        upper = np.repeat(shape.upper[None], len(y), 0)
        ends = np.sort(np.stack([shape.inverse(y - reach), shape.inverse(y + reach)]), 0)
        lower[:, ~shape.flat], upper[:, ~shape.flat] = ends[0], ends[1]
        return Intervals(y, lower, upper)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        return self._label_rows(fineness, narrow, _ROWS_REACH, _LEAST_WEIGHT, REACH)

    def _label_rows(self, fineness: float, narrow: bool, noise_reach: float, least: float, reach: float) -> Rows:
        edges = self._narrow_edges() if narrow else self._wide_edges(max(7.0, reach))
        z, weight = panels(edges, round((5 if narrow else 10) * fineness), graded=False)
        # Between the values of two flats the posterior switches faster in y than between two branches.
        step = 0.35 if self.landscape.flat.any() else 0.65 if narrow else 0.5
        xi, xi_weight = normal_trapezoid(step / fineness, noise_reach)
        y = self.landscape.target.numpy(z[:, None])[:, None] + np.sqrt(self.noise) * xi
        weight = ((weight * normal_density(z))[:, None] * xi_weight).ravel()
        keep = weight > least / fineness**2  # finer rules have more rows, of smaller weight
        z, weight, labels = (
            np.repeat(z, len(xi))[keep],
            weight[keep] / weight[keep].sum(),
            self._intervals(y.ravel()[keep], reach),
        )
        return pad_rows(Rows(z, weight, _within(labels, z) if narrow else labels), multiple=512)

    def _wide_edges(self, radius: float) -> np.ndarray:
        """Panel ends: the edges of the pieces, and where the smeared critical values of the label are passed."""
        shape, spread = self.landscape, np.sqrt(self.noise)
        levels = (shape.critical_values[:, None] + spread * np.array([-5.0, -2.0, 0.0, 2.0, 5.0])).ravel()
        root, has_root = shape.preimages(levels)
        edges = standard_edges(np.concatenate([shape.edges, root[has_root]]), radius)
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


class DenseRule(NamedTuple):
    """Nodes z with weights for plain integrals, the likelihood of every label node at every z, and the label step."""

    z: Any
    weight: Any
    likelihood: Any
    step: Any


def dense_rule(
    shape: Landscape, components: Sequence[Component], fineness: float, density: float, largest: int
) -> DenseRule | None:
    """One grid of z and y for all components, or None where it would be too large: the smallest noise sets its step.

    `density` is the number of labels a standard deviation, `largest` the most pairs (z, y).
    """
    _, slope, noise = (np.array(column, float) for column in zip(*components, strict=True))
    width = np.sqrt(noise)
    edges = standard_edges(shape.edges, _DENSE_REACH)
    values = shape.target.numpy(np.stack([edges[:-1] + 1e-9, edges[1:] - 1e-9])[..., None])
    # Eight nodes a panel resolve half a unit of z and four standard deviations of the label.
    steepest = np.max(np.abs(slope) / width)
    parts = np.ceil(np.maximum(np.diff(edges) / 0.5, np.abs(values[1] - values[0]) * steepest / 4))
    span = np.stack([slope * values.min(), slope * values.max()])
    low, high = np.min(span.min(0) - 6.5 * width), np.max(span.max(0) + 6.5 * width)
    labels = density * (high - low) / width.min()
    # Rules of all finenesses are of one kind: what they differ by is then the error of the coarser one.
    if not np.isfinite(high - low) or parts.sum() * 8 * (labels + 1) > largest:
        return None
    labels = np.ceil(fineness * labels) + 1
    ends = zip(edges[:-1], edges[1:], parts, strict=True)
    fine = np.concatenate([np.linspace(low_z, high_z, int(k), endpoint=False) for low_z, high_z, k in ends])
    z, weight = panels(np.append(fine, edges[-1]), round(8 * fineness), graded=False)
    y = np.linspace(low, high, int(labels))
    g = shape.target.numpy(z[:, None])
    likelihood = sum(p * normal_density((y[:, None] - b * g) / np.sqrt(D)) / np.sqrt(D) for p, b, D in components)
    # Nodes of weight zero and labels of likelihood zero fill up the arrays, so that targets share compiled code.
    more_z, more_y = -len(z) % 128, -len(y) % 128
    likelihood = np.pad(likelihood, ((0, more_y), (0, more_z)))
    return DenseRule(np.pad(z, (0, more_z)), np.pad(weight, (0, more_z)), likelihood, np.float64(y[1] - y[0]))


def dense_information(rule: DenseRule, fineness: float, V: np.ndarray) -> ScalarInformation:
    """I(V) and Psi(V) for variances that all lie on one side of `_BROAD`."""
    step = (0.15 if V.min() >= _BROAD else 0.045) / fineness
    return _dense_information(rule, *normal_trapezoid(step, 6.2), jnp.asarray(V))


def is_broad(V: np.ndarray) -> np.ndarray:
    """Whether a coarser grid of omega serves."""
    return _BROAD <= V


def dense_label_law(rule: DenseRule) -> LabelLaw:
    """The law of the label at omega = 0, V = 1."""
    prior = rule.weight * normal_density(rule.z)
    Z = rule.likelihood @ prior
    keep = Z > 1e-300
    mean = (rule.likelihood @ (prior * rule.z))[keep] / Z[keep]
    second = (rule.likelihood @ (prior * rule.z**2))[keep] / Z[keep]
    return scalar_law(rule.step * Z[keep], mean, second)


@eqx.filter_jit
def _dense_information(rule: DenseRule, x, x_weight, V) -> ScalarInformation:
    def at(V):
        omega = jnp.sqrt(1 - V) * x
        u = (rule.z[:, None] - omega) / jnp.sqrt(V)
        density = rule.weight[:, None] * jnp.exp(-(u**2) / 2) / jnp.sqrt(2 * jnp.pi * V)
        Z, first = rule.likelihood @ density, rule.likelihood @ (density * u)
        safe = jnp.where(Z > 1e-290, Z, 1.0)
        squared = jnp.where(Z > 1e-290, first**2 / safe, 0.0)
        information = rule.step * jnp.sum(squared, 0) / V
        entropy = rule.step * jnp.sum(Z * jnp.log(safe), 0)
        return ScalarInformation(x_weight @ information, x_weight @ entropy)

    return jax.lax.map(at, V)
