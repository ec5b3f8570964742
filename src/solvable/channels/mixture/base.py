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
from typing import Any, NamedTuple

import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component, contaminate
from solvable.channels.scalar import Rows, ScalarChannel, ScalarInformation, ScalarPosterior, pad_rows, scalar_law
from solvable.numerics.gaussian import gauss_legendre, normal_density, normal_trapezoid, panels, standard_edges
from solvable.targets.landscape import Landscape


class LabelNodes(NamedTuple):
    """A rule over (omega, y): the integral of f Z is the sum of weight * f * Z."""

    omega: Any
    y: Any
    weight: Any


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
        return 0.0 if self.continuous_mass > 0 else super().settled_entropy

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


def on_panels(ends: np.ndarray, omega: np.ndarray, weight: np.ndarray, nodes: int) -> LabelNodes:
    """Gauss-Legendre nodes on the panels of every omega, ends (omega, panels + 1), without empty panels."""
    t, w = gauss_legendre(nodes)
    length = np.diff(ends, axis=1)
    row, panel = np.nonzero(length > 0)
    size = length[row, panel][:, None]
    y = ends[row, panel][:, None] + size * t
    return LabelNodes(np.repeat(omega[row], nodes), y.ravel(), (weight[row][:, None] * size * w).ravel())


def shares(xp: Any, log_weight: Any) -> tuple[Any, Any]:
    """The logarithm of the sum of the weights, and each one's share of it."""
    largest = xp.max(log_weight, 0)
    weight = xp.exp(log_weight - largest)
    total = xp.sum(weight, 0)
    return xp.log(total) + largest, weight / total


def unless_erased(xp: Any, erased: Any, y: Any, omega: Any, V: Any, otherwise: ScalarPosterior) -> ScalarPosterior:
    if erased is None:
        return otherwise
    nothing = ScalarPosterior(xp.log(erased) + xp.zeros_like(omega), omega, V + xp.zeros_like(omega))
    return ScalarPosterior(*(xp.where(y == 0, a, b) for a, b in zip(nothing, otherwise, strict=True)))
