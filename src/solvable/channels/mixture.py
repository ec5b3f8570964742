r"""Channels of contaminated labels: with probability p_c, y = beta_c g(z) + sqrt(Delta_c) xi.

The evidence and the posterior of a mixture are those of its components, weighed by what each says of the label:

    Z = sum_c p_c Z_c,    E[z|y] = sum_c r_c E_c[z|y],    r_c = p_c Z_c / Z.

A component of slope 0 says nothing about z, but its density counts in r_c. One without noise as well (an erasure) gives
labels that are exactly 0, which no other component does: those are known to say nothing.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component, contaminate
from solvable.channels.mixture_average import LabelNodes, MixtureAverage, average_over, linear_nodes, outer_nodes
from solvable.channels.noisy import Intervals, NoisyChannel, NoisyPosterior
from solvable.channels.scalar import (
    PosteriorKernel,
    Rows,
    ScalarChannel,
    ScalarInformation,
    ScalarPosterior,
    pad_rows,
    scalar_law,
)
from solvable.core.precision import float64
from solvable.numerics.gaussian import normal_density, normal_trapezoid, panels, standard_edges
from solvable.targets.landscape import Landscape

_PADDING = 512
_REACH = 9.0


class LinearMixturePosterior(PosteriorKernel):
    """y = beta_c z + sqrt(Delta_c) xi: g_c = beta_c (y - beta_c omega) / S_c with S_c = Delta_c + beta_c^2 V.

    `share`, `slope` and `noise` have an entry a component; `erased` is the probability of a label
    that is exactly 0, None if there is no such.
    """

    share: Any
    slope: Any
    noise: Any
    erased: float | None

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        log_Z, g, variance = self.steps(xp, observation, omega, V)
        return _unless_erased(xp, self.erased, observation, omega, V, ScalarPosterior(log_Z, omega + V * g, variance))

    def steps(self, xp: Any, y: Any, omega: Any, V: Any) -> tuple[Any, Any, Any]:
        """log Z, g and the posterior variance; g itself, since (mean - omega) / V has no digits left at small V."""
        # Components along the first axis: sums over a short last axis are slow.
        share, slope, noise = (a.reshape(-1, *[1] * omega.ndim) for a in (self.share, self.slope, self.noise))
        total = noise + slope**2 * V
        residual = y - slope * omega
        step = slope * residual / total
        log_Z, r = _shares(xp, xp.log(share / xp.sqrt(2 * xp.pi * total)) - residual**2 / (2 * total))
        g = xp.sum(r * step, 0)
        variance = V * xp.sum(r * noise / total, 0) + V**2 * xp.sum(r * (step - g) ** 2, 0)
        return log_Z, g, variance


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
        log_Z, r = _shares(xp, log_weight)
        centre = xp.sum(r * mean, 0)
        spread = xp.sum(r * (variance + (mean - centre) ** 2), 0)
        return _unless_erased(xp, self.erased, observation.y, omega, V, ScalarPosterior(log_Z, centre, spread))


def _shares(xp: Any, log_weight: Any) -> tuple[Any, Any]:
    """The logarithm of the sum of the weights, and each one's share of it."""
    largest = xp.max(log_weight, 0)
    weight = xp.exp(log_weight - largest)
    total = xp.sum(weight, 0)
    return xp.log(total) + largest, weight / total


def _unless_erased(xp: Any, erased: Any, y: Any, omega: Any, V: Any, otherwise: ScalarPosterior) -> ScalarPosterior:
    if erased is None:
        return otherwise
    nothing = ScalarPosterior(xp.log(erased) + xp.zeros_like(omega), omega, V + xp.zeros_like(omega))
    return ScalarPosterior(*(xp.where(y == 0, a, b) for a, b in zip(nothing, otherwise, strict=True)))


class MixtureChannel(ScalarChannel):
    """What both mixtures share: a label law that is a density, and perhaps an atom of erased labels at 0.

    Averages run over omega first, then over labels on panels that resolve every component.
    """

    keeps_exponent = False

    def __init__(self, landscape: Landscape, components: Sequence[Component]):
        self.landscape = landscape
        self._components = tuple(components)
        self.dense = tuple((p, b, noise) for p, b, noise in components if b != 0 or noise > 0)
        self.erased = float(sum(p for p, b, noise in components if b == 0 and noise == 0))

    @property
    def definition(self) -> dict[str, Any]:
        return {"target": self.target, "components": self.components}

    @property
    def components(self) -> tuple[Component, ...]:
        return self._components

    @property
    def labels(self) -> None:
        return None

    @property
    def _erased(self) -> Any:
        return np.float64(self.erased) if self.erased else None

    @property
    def continuous_mass(self) -> float:
        return float(sum(p for p, b, noise in self.components if b != 0 and noise == 0))

    @property
    def deterministic(self) -> bool:
        return False

    @property
    def sharp(self) -> bool:
        # Where a share of the labels is exact, enough of them pin the weights down whatever the others say. And next to
        # a jump of g even noisy labels tell the two sides apart.
        shape = self.landscape
        jumps = np.abs(shape.value_upper[:-1] - shape.value_lower[1:]) > 1e-9 * (1 + np.abs(shape.value_lower[1:]))
        return self.continuous_mass > 0 or bool(jumps.any())

    @functools.cached_property
    def settled_entropy(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.continuous_mass > 0 or not self.sharp:
            return 0.0
        return float(self.scalar_information(np.array([1e-11])).entropy[0])

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return contaminate(self.target.numpy(np.asarray(z, float)), self.components, rng)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        """The rules of the components one after the other: right for functions as smooth as each of them."""
        z, weight = panels(standard_edges(self.landscape.edges, 8.5), round(24 * fineness))
        xi, xi_weight = normal_trapezoid(0.4 / fineness, 6.2)
        g = self.landscape.target.numpy(z[:, None])
        y = np.concatenate([(b * g[:, None] + np.sqrt(noise) * xi).ravel() for _, b, noise in self.components])
        each = ((weight * normal_density(z))[:, None] * xi_weight).ravel()
        share = np.concatenate([p * each for p, _, _ in self.components])
        return pad_rows(Rows(np.tile(np.repeat(z, len(xi)), len(self.components)), share, self.observe(y)))

    def scalar_information(self, V: np.ndarray, fineness: float = 1.0) -> ScalarInformation:
        flat = np.ravel(np.asarray(V, float))
        information, entropy = self._averages(flat, fineness)
        if self.erased:
            entropy = entropy + self.erased * np.log(self.erased)
        return ScalarInformation(information.reshape(np.shape(V)), entropy.reshape(np.shape(V)))

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        weight, mean, G = self._label_law(fineness)
        if not self.erased:
            return LabelLaw(weight, mean, G)
        nothing = np.zeros((1, 1))
        return LabelLaw(
            np.append(weight, self.erased), np.concatenate([mean, nothing]), np.concatenate([G, nothing[None]])
        )

    @abc.abstractmethod
    def _averages(self, V: np.ndarray, fineness: float) -> np.ndarray:
        """The information and the entropy of the labels that are not erased, at every V."""

    @abc.abstractmethod
    def _label_law(self, fineness: float) -> LabelLaw:
        """The law of the labels that are not erased."""

    def _law_at(self, nodes: LabelNodes) -> LabelLaw:
        """The law of the labels that are not erased, from nodes at omega = 0 and V = 1."""
        found = self.scalar_posterior(self.observe(nodes.y), np.zeros(len(nodes.y)), 1.0)
        return scalar_law(nodes.weight * np.exp(found.log_Z), found.mean, found.variance + found.mean**2)

    def __repr__(self) -> str:
        parts = "+".join(f"{p:g}:{b:g}:{noise:g}" for p, b, noise in self.components)
        return f"{type(self).__name__}({self.landscape.target.name!r}, '{parts}')"


class LinearMixture(MixtureChannel):
    """Contaminated labels of the target z, in closed form; components without noise are allowed."""

    kernel: LinearMixturePosterior

    def __init__(self, landscape: Landscape, components: Sequence[Component]):
        super().__init__(landscape, components)
        share, slope, noise = (np.array(column) for column in zip(*self.dense, strict=True))
        self.kernel = LinearMixturePosterior(share, slope, noise, self._erased)

    @property
    def deepest(self) -> float:
        return 40.0

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def _averages(self, V: np.ndarray, fineness: float) -> np.ndarray:
        found = np.empty((2, len(V)))
        for i, v in enumerate(V):
            nodes = linear_nodes(self.dense, float(v), fineness)
            log_Z, g, _ = self.kernel.steps(np, nodes.y, nodes.omega, v)
            weight = nodes.weight * np.exp(log_Z)
            found[:, i] = np.sum(weight * g**2), np.sum(weight * log_Z)
        return found

    def _label_law(self, fineness: float) -> LabelLaw:
        return self._law_at(linear_nodes(self.dense, 1.0, fineness))


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

    @float64
    def scalar_posterior(
        self, observation: Observation, omega: np.ndarray, V: float, evidence: bool = True
    ) -> ScalarPosterior:
        rows, extra = len(omega), -len(omega) % _PADDING
        padded, omega = _repeat_last(observation, extra), _repeat_last(omega, extra)
        found = _compiled_posterior(self.kernel, padded, omega, jnp.asarray(V, float))
        return ScalarPosterior(*(np.asarray(a)[:rows] for a in found))

    @functools.cache  # noqa: B019 - a channel lives as long as its rules
    def _rule(self, fineness: float) -> MixtureAverage:
        return MixtureAverage.of(self.landscape, self.dense, self.observe, fineness)

    def _averages(self, V: np.ndarray, fineness: float) -> np.ndarray:
        return average_over(self._rule(fineness), self.kernel, V)

    def _label_law(self, fineness: float) -> LabelLaw:
        return self._rule(fineness).label_law() or self._law_at(
            outer_nodes(self.landscape, self.dense, np.zeros(1), np.ones(1), 1.0, fineness)
        )


def _repeat_last(tree: Any, extra: int) -> Any:
    return jax.tree.map(lambda a: np.concatenate([a, np.repeat(a[-1:], extra, 0)]), tree)


@eqx.filter_jit
def _compiled_posterior(kernel: NoisyMixturePosterior, observation: Observation, omega: Any, V: Any) -> ScalarPosterior:
    return kernel(observation, omega, V)
