r"""Averages over contaminated labels: I = E[g^2] and Psi = E[log Z], omega first and then the label,

    I = E_{omega ~ N(0, q)} int dy Z g^2.

Labels of components of very different widths need nodes for each of them. At given omega the line of labels is cut into
panels that are no wider than sqrt(Delta_c), or than half of the distance to what component c says, whichever is larger,
for every c. Where no component has small noise and V is not small, all pairs (y, omega) share one grid (`dense`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component
from solvable.channels.dense import DenseRule, dense_information, dense_label_law, is_broad
from solvable.channels.scalar import NARROW, PosteriorKernel, ScalarInformation, in_chunks
from solvable.numerics.gaussian import gauss_legendre, ladder_edges, normal_density, panels, standard_edges
from solvable.targets.landscape import Landscape

_TAIL = 8.5
_NODES = 10
_GROWTH = 0.5
_BLOCK = 1024
_LARGEST = 2_000_000
_NEGLIGIBLE = 1e-13


class LabelNodes(NamedTuple):
    """A rule over (omega, y): the integral of f Z is the sum of weight * f * Z."""

    omega: Any
    y: Any
    weight: Any


def linear_nodes(components: Sequence[Component], V: float, fineness: float) -> LabelNodes:
    """The rule for the target z, on whose labels component c is N(beta_c omega, Delta_c + beta_c^2 V).

    The mirror image omega, y -> -omega, -y is the same, so omega > 0 is enough; with one slope for all, omega = 0 is.
    """
    _, slope, noise = (np.array(column, float) for column in zip(*components, strict=True))
    q, width = 1 - V, np.sqrt(noise + slope**2 * V)
    omega, weight = np.zeros(1), np.ones(1)
    if np.ptp(slope) > 0 and q > 0:
        # Components part where their distance passes their width, on a scale in omega that can be far below 1.
        finest = np.clip(0.3 * width.min() / (np.ptp(slope) * np.sqrt(q)), 1e-9, 0.5)
        edges = ladder_edges(np.zeros(1), _TAIL, finest)
        x, x_weight = panels(edges[edges >= 0], round(8 * fineness), graded=False)
        omega, weight = np.sqrt(q) * x, 2 * x_weight * normal_density(x)
    reach = np.concatenate([np.arange(9.0), [9.5]])
    ends = (slope * omega[:, None])[..., None] + width[:, None] * np.concatenate([-reach[:0:-1], reach])
    return _on_panels(np.sort(ends.reshape(len(omega), -1), 1), omega, weight, round(8 * fineness))


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
    return _on_panels(np.stack(ends, 1), omega, omega_weight, round(_NODES * fineness))


def _on_panels(ends: np.ndarray, omega: np.ndarray, weight: np.ndarray, nodes: int) -> LabelNodes:
    """Gauss-Legendre nodes on the panels of every omega, ends (omega, panels + 1), without empty panels."""
    t, w = gauss_legendre(nodes)
    length = np.diff(ends, axis=1)
    row, panel = np.nonzero(length > 0)
    size = length[row, panel][:, None]
    y = ends[row, panel][:, None] + size * t
    return LabelNodes(np.repeat(omega[row], nodes), y.ravel(), (weight[row][:, None] * size * w).ravel())


def _values(shape: Landscape, z: np.ndarray) -> np.ndarray:
    inside = np.clip(z, shape.lower[0], shape.upper[-1])
    return np.clip(shape.target.numpy(inside[..., None]), -1e12, 1e12)


class MixtureAverage(NamedTuple):
    """How to average over one channel: the common grid or None, and the rules over (omega, y) made when needed."""

    grid: DenseRule | None
    shape: Landscape
    components: tuple[Component, ...]
    observe: Callable[[np.ndarray], Any]
    fineness: float

    @classmethod
    def of(cls, shape: Landscape, components: tuple[Component, ...], observe: Any, fineness: float) -> MixtureAverage:
        return cls(dense_mixture(shape, components, fineness), shape, components, observe, fineness)

    def label_law(self) -> LabelLaw | None:
        """The law of the label from the common grid, where there is one."""
        return None if self.grid is None else dense_label_law(self.grid)

    def narrow(self) -> LabelNodes:
        """Nodes for every V below NARROW; the density of omega is left out of their weights, since it depends on V."""
        omega, weight = panels(_narrow_edges(self.shape, self.components), round(8 * self.fineness), graded=False)
        weight, keep = weight, normal_density(omega) * weight > _NEGLIGIBLE
        return outer_nodes(self.shape, self.components, omega[keep], weight[keep], NARROW, self.fineness)

    def at(self, V: float) -> LabelNodes:
        """Nodes for one V, again without the density of omega."""
        q = 1 - V
        if q < 1e-300:
            return outer_nodes(self.shape, self.components, np.zeros(1), np.ones(1), V, self.fineness)
        breaks = np.append(self.shape.edges, 0.0) / np.sqrt(q)
        edges = ladder_edges(breaks[np.abs(breaks) < _TAIL], _TAIL, finest=min(0.3, 0.3 * np.sqrt(V / q)))
        x, weight = panels(edges, round(8 * self.fineness), graded=False)
        omega = np.sqrt(q) * x
        return outer_nodes(self.shape, self.components, omega, np.sqrt(q) * weight, V, self.fineness)


def average_over(rule: MixtureAverage, kernel: PosteriorKernel, V: np.ndarray) -> np.ndarray:
    """I and Psi, stacked, at an array of V."""
    found = np.empty((2, len(V)))
    narrow = V < NARROW
    if narrow.any():
        found[:, narrow] = in_chunks(_prepared(rule, rule.narrow(), kernel, NARROW), V[narrow])
    for broad in (True, False):
        here = ~narrow & (is_broad(V) == broad)
        if here.any() and rule.grid is not None:
            found[:, here] = in_chunks(functools.partial(dense_information, rule.grid, rule.fineness), V[here])
    if rule.grid is None:
        for i in np.nonzero(~narrow)[0]:
            found[:, i] = in_chunks(_prepared(rule, rule.at(V[i]), kernel, V[i]), V[i : i + 1])[:, 0]
    return found


def _prepared(rule: MixtureAverage, nodes: LabelNodes, kernel: PosteriorKernel, V: float) -> Callable[[Any], Any]:
    """The average over fixed nodes as a function of V, in blocks of one size: the working set stays in the cache."""
    bound = _density_bound(rule, nodes, V) * nodes.weight
    nodes = LabelNodes(*(a[bound > _NEGLIGIBLE] for a in nodes))
    extra = -len(nodes.y) % (8 * _BLOCK)
    padded = LabelNodes(*(np.concatenate([a, np.repeat(a[-1:], extra)]) for a in nodes))
    padded = padded._replace(weight=np.concatenate([nodes.weight, np.zeros(extra)]))
    blocks = jax.tree.map(lambda a: a.reshape(-1, _BLOCK, *a.shape[1:]), (padded, rule.observe(padded.y)))
    return functools.partial(_average, kernel, *blocks)


def _density_bound(rule: MixtureAverage, nodes: LabelNodes, V: float) -> np.ndarray:
    """A bound on the density of (omega, y) at the nodes, loose by a factor: what is below it all can be left out."""
    omega, inverse = np.unique(nodes.omega, return_inverse=True)
    near = _values(rule.shape, omega[:, None] + _TAIL * np.sqrt(V) * np.linspace(-1, 1, 65))
    lowest, highest = near.min(1)[inverse], near.max(1)[inverse]
    bound = np.zeros(len(nodes.y))
    for p, slope, noise in rule.components:
        low, high = np.sort([slope * lowest, slope * highest], 0)
        outside = np.maximum(0, np.maximum(low - nodes.y, nodes.y - high)) / np.sqrt(noise)
        bound += p * np.exp(-(outside**2) / 2) / np.sqrt(noise)
    return bound * np.exp(-(nodes.omega**2) / 2)


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


def dense_mixture(shape: Landscape, components: Sequence[Component], fineness: float) -> DenseRule | None:
    """One grid of z and y for all components, or None where it would be too large: the smallest noise sets its step."""
    reach = 7.5
    _, slope, noise = (np.array(column, float) for column in zip(*components, strict=True))
    width = np.sqrt(noise)
    edges = standard_edges(shape.edges, reach)
    values = shape.target.numpy(np.stack([edges[:-1] + 1e-9, edges[1:] - 1e-9])[..., None])
    spread = width.min()
    steepest = np.max(np.abs(slope) / width)
    parts = np.ceil(np.maximum(np.diff(edges) / 0.5, np.abs(values[1] - values[0]) * steepest / 4))
    span = np.stack([slope * values.min(), slope * values.max()])
    low, high = np.min(span.min(0) - 6.5 * width), np.max(span.max(0) + 6.5 * width)
    # Where two components say opposite things the posterior switches between them faster than either's width.
    labels = 4 * fineness * (high - low) / spread + 2
    if not np.isfinite(high - low) or parts.sum() * 8 * labels > _LARGEST:
        return None
    ends = zip(edges[:-1], edges[1:], parts, strict=True)
    fine = np.concatenate([np.linspace(low_z, high_z, int(k), endpoint=False) for low_z, high_z, k in ends])
    z, weight = panels(np.append(fine, edges[-1]), round(8 * fineness), graded=False)
    y = np.linspace(low, high, int(labels))
    g = shape.target.numpy(z[:, None])
    likelihood = sum(p * normal_density((y[:, None] - b * g) / np.sqrt(D)) / np.sqrt(D) for p, b, D in components)
    more_z, more_y = -len(z) % 128, -len(y) % 128
    z, weight = np.pad(z, (0, more_z)), np.pad(weight, (0, more_z))
    return DenseRule(z, weight, np.pad(likelihood, ((0, more_y), (0, more_z))), np.float64(y[1] - y[0]))


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
