r"""Contaminated labels of any target: with probability p_c, y = beta_c g(z) + sqrt(Delta_c) xi, Delta_c > 0.

Averages run over omega first and then the label, I = E_{omega ~ N(0, q)} int dy Z g^2. Labels of components of very
different widths need nodes for each of them. At given omega the line of labels is cut into panels that are no wider
than sqrt(Delta_c), or than half of the distance to what component c says, whichever is larger, for every c. Where no
component has small noise and V is not small, all pairs (y, omega) share one grid.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component
from solvable.channels.mixture.base import LabelNodes, MixtureChannel, on_panels, shares, unless_erased
from solvable.channels.noisy import (
    DenseRule,
    Intervals,
    NoisyChannel,
    NoisyPosterior,
    compiled_rows,
    dense_information,
    dense_label_law,
    dense_rule,
    is_broad,
)
from solvable.channels.scalar import NARROW, PosteriorKernel, ScalarInformation, ScalarPosterior, averaged
from solvable.numerics.gaussian import ladder_edges, normal_density, panels, standard_edges
from solvable.targets.landscape import Landscape

_REACH = 9.0
_TAIL = 8.5
_NODES = 10
_GROWTH = 0.5
_BLOCK = 1024
_LARGEST = 2_000_000
_NEGLIGIBLE = 1e-13


class Observation(eqx.Module):
    """Labels, and what each component that depends on z makes of them (slope-scaled, as its own channel takes them)."""

    y: Any
    parts: tuple[Any, ...]


class NoisyMixturePosterior(PosteriorKernel):
    """The mixture of the noisy posteriors of y / beta_c with noise Delta_c / beta_c^2, and of plain noise.

    `parts` has a kernel a component of slope other than 0, in the order of `share` and `slope`; `silent` has a
    row (probability, noise) for each of slope 0.
    """

    parts: tuple[NoisyPosterior, ...]
    share: Any
    slope: Any
    silent: Any
    erased: float | None

    def evaluate(self, xp: Any, observation: Observation, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        found = []
        for i, (kernel, seen) in enumerate(zip(self.parts, observation.parts, strict=True)):
            part = kernel.evaluate(xp, seen, omega, V)
            found.append((part.log_Z + xp.log(self.share[i] / xp.abs(self.slope[i])), part.mean, part.variance))
        for i in range(len(self.silent)):
            p, noise = self.silent[i]
            log_weight = xp.log(p / xp.sqrt(2 * xp.pi * noise)) - observation.y**2 / (2 * noise)
            found.append((log_weight, omega, V + xp.zeros_like(omega)))
        log_weight, mean, variance = (xp.stack(column) for column in zip(*found, strict=True))
        log_Z, r = shares(xp, log_weight)
        centre = xp.sum(r * mean, 0)
        spread = xp.sum(r * (variance + (mean - centre) ** 2), 0)
        return unless_erased(xp, self.erased, observation.y, omega, V, ScalarPosterior(log_Z, centre, spread))


class NoisyComponent(NoisyChannel):
    """One component of slope other than 0, as the noisy channel of y / slope.

    A label that is unlikely for one component may be another's, so it has a posterior farther out than labels of a
    channel by itself need: cut there, the posterior would end in a wall that averages see at small V.
    """

    def observe(self, y: np.ndarray) -> Intervals:
        found = super().observe(y)
        curved, reach = ~self.landscape.flat, _REACH * np.sqrt(self.noise)
        ends = np.sort(np.stack([self.landscape.inverse(found.y - reach), self.landscape.inverse(found.y + reach)]), 0)
        found.lower[:, curved], found.upper[:, curved] = ends[0], ends[1]
        return found


class NoisyMixture(MixtureChannel):
    """Contaminated labels of any one-projection target, each component with noise (or erased)."""

    kernel: NoisyMixturePosterior

    def __init__(self, landscape: Landscape, components: Sequence[Component]):
        super().__init__(landscape, components)
        spoken = [part for part in self.dense if part[1] != 0]
        self._parts = [NoisyComponent(landscape, noise / b**2) for _, b, noise in spoken]
        self.kernel = NoisyMixturePosterior(
            tuple(part.kernel for part in self._parts),
            np.array([p for p, _, _ in spoken]),
            np.array([b for _, b, _ in spoken]),
            np.array([(p, noise) for p, b, noise in self.dense if b == 0]).reshape(-1, 2),
            self._erased,
        )

    def observe(self, y: np.ndarray) -> Observation:
        y = np.asarray(y, float)
        parts = zip(self._parts, self.kernel.slope, strict=True)
        return Observation(y, tuple(part.observe(y / beta) for part, beta in parts))

    def scalar_posterior(
        self, observation: Observation, omega: np.ndarray, V: float, evidence: bool = True
    ) -> ScalarPosterior:
        return compiled_rows(self.kernel, observation, omega, V)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - bounded: it keeps its channels
    def _grid(self, fineness: float) -> DenseRule | None:
        """One grid for all pairs (y, omega), where no component has small noise."""
        # Where two components say opposite things the posterior switches between them faster than either's width.
        return dense_rule(self.landscape, self.dense, fineness, 4.0, _LARGEST)

    def _averages(self, V: np.ndarray, fineness: float) -> np.ndarray:
        found = np.empty((2, len(V)))
        grid, narrow = self._grid(fineness), V < NARROW
        if narrow.any():
            found[:, narrow] = averaged(self._prepared(self._narrow_nodes(fineness), NARROW), V[narrow])
        for broad in (True, False):
            here = ~narrow & (is_broad(V) == broad)
            if here.any() and grid is not None:
                found[:, here] = averaged(functools.partial(dense_information, grid, fineness), V[here])
        if grid is None:
            for i in np.nonzero(~narrow)[0]:
                found[:, i] = averaged(self._prepared(self._nodes_at(V[i], fineness), V[i]), V[i : i + 1])[:, 0]
        return found

    def _label_law(self, fineness: float) -> LabelLaw:
        grid = self._grid(fineness)
        if grid is not None:
            return dense_label_law(grid)
        return self._law_at(outer_nodes(self.landscape, self.dense, np.zeros(1), np.ones(1), 1.0, fineness))

    def _narrow_nodes(self, fineness: float) -> LabelNodes:
        """Nodes for every V below NARROW; the density of omega is left out of their weights, since it depends on V."""
        omega, weight = panels(_narrow_edges(self.landscape, self.dense), round(8 * fineness), graded=False)
        keep = normal_density(omega) * weight > _NEGLIGIBLE
        return outer_nodes(self.landscape, self.dense, omega[keep], weight[keep], NARROW, fineness)

    def _nodes_at(self, V: float, fineness: float) -> LabelNodes:
        """Nodes for one V, again without the density of omega."""
        q = 1 - V
        if q < 1e-300:
            return outer_nodes(self.landscape, self.dense, np.zeros(1), np.ones(1), V, fineness)
        breaks = np.append(self.landscape.edges, 0.0) / np.sqrt(q)
        edges = ladder_edges(breaks[np.abs(breaks) < _TAIL], _TAIL, finest=min(0.3, 0.3 * np.sqrt(V / q)))
        x, weight = panels(edges, round(8 * fineness), graded=False)
        return outer_nodes(self.landscape, self.dense, np.sqrt(q) * x, np.sqrt(q) * weight, V, fineness)

    def _prepared(self, nodes: LabelNodes, V: float) -> Callable[[Any], Any]:
        """The average over fixed nodes as a function of V, in blocks of one size: the work stays in the cache."""
        bound = self._density_bound(nodes, V) * nodes.weight
        nodes = LabelNodes(*(a[bound > _NEGLIGIBLE] for a in nodes))
        extra = -len(nodes.y) % (8 * _BLOCK)
        omega, y = (np.concatenate([a, np.repeat(a[-1:], extra)]) for a in nodes[:2])
        padded = LabelNodes(omega, y, np.concatenate([nodes.weight, np.zeros(extra)]))
        blocks = jax.tree.map(lambda a: a.reshape(-1, _BLOCK, *a.shape[1:]), (padded, self.observe(padded.y)))
        return functools.partial(_average, self.kernel, *blocks)

    def _density_bound(self, nodes: LabelNodes, V: float) -> np.ndarray:
        """A bound on the density of (omega, y) at the nodes, loose by a factor: what is far below can be left out."""
        omega, inverse = np.unique(nodes.omega, return_inverse=True)
        near = _values(self.landscape, omega[:, None] + _TAIL * np.sqrt(V) * np.linspace(-1, 1, 65))
        lowest, highest = near.min(1)[inverse], near.max(1)[inverse]
        bound = np.zeros(len(nodes.y))
        for p, slope, noise in self.dense:
            low, high = np.sort([slope * lowest, slope * highest], 0)
            outside = np.maximum(0, np.maximum(low - nodes.y, nodes.y - high)) / np.sqrt(noise)
            bound += p * np.exp(-(outside**2) / 2) / np.sqrt(noise)
        return bound * np.exp(-(nodes.omega**2) / 2)


def outer_nodes(
    shape: Landscape,
    components: Sequence[Component],
    omega: np.ndarray,
    omega_weight: np.ndarray,
    V: float,
    fineness: float,
) -> LabelNodes:
    """The rule for any target at the given omega, fit for variances up to V."""
    _, slope, noise = (np.array(column, float) for column in zip(*components, strict=True))
    width = np.sqrt(noise)
    g = functools.partial(_values, shape)
    near = omega[:, None] + _TAIL * np.sqrt(V) * np.linspace(-1, 1, 65)
    seen = np.concatenate([g(near), g(omega)[:, None]], 1)
    lowest, highest = seen.min(1), seen.max(1)
    special = np.concatenate([shape.critical_values, shape.atoms, shape.value_lower[:1], shape.value_upper[-1:]])
    slack = 1e-9 * (1 + np.abs(special))
    close = (special > lowest[:, None] - slack) & (special < highest[:, None] + slack)
    centre = np.concatenate([g(omega)[:, None], np.where(close, special, np.inf)], 1)
    reach = np.stack([slope * lowest[:, None], slope * highest[:, None]])
    low = np.min(reach.min(0) - _TAIL * width, 1)
    high = np.max(reach.max(0) + _TAIL * width, 1)

    def step(y: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            distance = np.abs(y[:, None, None] - slope[:, None] * centre[:, None, :])
        distance = np.nanmin(np.where(np.isfinite(distance), distance, np.inf), -1)
        return np.min(np.maximum(width, _GROWTH * distance), 1)

    ends = [low]
    while np.any(ends[-1] < high):
        ends.append(np.minimum(ends[-1] + step(ends[-1]), high))
    return on_panels(np.stack(ends, 1), omega, omega_weight, round(_NODES * fineness))


def _values(shape: Landscape, z: np.ndarray) -> np.ndarray:
    inside = np.clip(z, shape.lower[0], shape.upper[-1])
    return np.clip(shape.target.numpy(inside[..., None]), -1e12, 1e12)


@eqx.filter_jit
def _average(kernel: PosteriorKernel, nodes: LabelNodes, observation: Any, V: Any) -> ScalarInformation:
    def at(V):
        q = 1 - V

        def block(part):
            (omega, y, weight), seen = part
            posterior = kernel(seen, omega, V)
            g = (posterior.mean - omega) / V
            density = jnp.where(q > 0, jnp.exp(-(omega**2) / (2 * q)) / jnp.sqrt(2 * jnp.pi * q), 1.0)
            mass = weight * density * jnp.exp(posterior.log_Z)
            return jnp.sum(mass * g**2), jnp.sum(jnp.where(mass > 0, mass * posterior.log_Z, 0.0))

        information, entropy = jax.lax.map(block, (nodes, observation))
        return ScalarInformation(jnp.sum(information), jnp.sum(entropy))

    return jax.lax.map(at, V)


def _narrow_edges(shape: Landscape, components: Sequence[Component]) -> np.ndarray:
    """Panel ends in omega that shrink towards the breaks and turning points of g, and where components meet."""
    breaks, smallest = shape.target.breaks, min(noise for _, _, noise in components)
    inner = shape.edges[np.abs(shape.edges) < 6]
    turning = np.array([e for e in inner if not np.any(np.abs(breaks - e) < 1e-9)])
    places = [
        (breaks[np.abs(breaks) < 6], 5e-7 if shape.flat.any() else 1e-4),
        (turning, min(0.5, 0.3 * smallest**0.25)),
    ]
    if len({slope for _, slope, _ in components}) > 1:
        root, there = shape.preimages(np.zeros(1))
        zeros = root[there]
        if zeros.size:
            steepness = np.maximum(np.abs(shape.target.value_and_slope(zeros)[1]).max(), 1e-3)
            places.append((zeros[np.abs(zeros) < 6], float(np.clip(0.3 * np.sqrt(smallest) / steepness, 1e-5, 0.5))))
    ladders = [standard_edges(inner, 7.0), *(ladder_edges(x, 7.0, finest) for x, finest in places if x.size)]
    edges = np.unique(np.concatenate(ladders))
    return edges[np.concatenate([[True], np.diff(edges) > 1e-7])]
