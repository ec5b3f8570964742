"""Channels whose labels take finitely many values: flipped binary labels, and mixtures of the classes of a target.

Averages run over omega first; what is left is a plain sum over the labels.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import entr, ndtr

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component
from solvable.channels.levels.levelset import LevelSetPosterior, LevelSets
from solvable.channels.scalar import (
    PosteriorKernel,
    Rows,
    ScalarChannel,
    ScalarInformation,
    ScalarPosterior,
    pad_rows,
    scalar_law,
)
from solvable.core.errors import bad_parameter
from solvable.numerics.gaussian import RADIUS, ladder_edges, normal_density, panels, standard_edges
from solvable.targets.landscape import Landscape

_REACH = 8.5
_FAR = 100.0


class FiniteChannel(ScalarChannel):
    """P(y|z) for y in `labels`.

    At each omega I = E_omega sum_y Z g^2 and Psi = E_omega sum_y Z log Z are sums over the labels, so only omega is
    integrated over, on panels that shrink towards the breaks of the target to the scale sqrt(V).
    """

    labels: np.ndarray = np.zeros(0)  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def components(self) -> tuple[Component, ...] | None:
        return None

    @abc.abstractmethod
    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """P(y|z) of each label along a new last axis."""

    @property
    def deterministic(self) -> bool:
        return False

    @property
    def continuous_mass(self) -> float:
        return 0.0

    @property
    def discrete(self) -> bool:
        return True

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        z = np.asarray(z, float)[..., 0]
        below = np.cumsum(self.probabilities(z), -1)
        drawn = np.sum(rng.random(np.shape(z))[..., None] * below[..., -1:] >= below, -1)
        return self.labels[np.minimum(drawn, len(self.labels) - 1)]

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        breaks = self.landscape.edges
        edges = ladder_edges(breaks, _REACH) if narrow else standard_edges(breaks, _REACH)
        z, weight = panels(edges, round((8 if narrow else 24) * fineness), graded=not narrow)
        share = (weight * normal_density(z))[:, None] * self.probabilities(z)
        y = np.broadcast_to(self.labels, share.shape)
        return pad_rows(Rows(np.repeat(z, len(self.labels)), share.ravel(), self.observe(y.ravel())))

    def scalar_information(self, V: np.ndarray, fineness: float = 1.0) -> ScalarInformation:
        V = np.asarray(V, float)
        found = np.array([self._average(float(v), fineness) for v in V.ravel()]).T
        return ScalarInformation(*found.reshape(2, *V.shape))

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        found = self.scalar_posterior(self.observe(self.labels), np.zeros(len(self.labels)), 1.0)
        return scalar_law(np.exp(found.log_Z), found.mean, found.variance + found.mean**2)

    def _average(self, V: float, fineness: float) -> tuple[float, float]:
        q = max(1 - V, 0.0)
        scaled = self.landscape.edges / np.sqrt(max(q, 1e-300))
        finest = min(0.1, 0.02 * np.sqrt(V / max(q, 1e-300)))
        edges = ladder_edges(scaled[np.abs(scaled) < _REACH], _REACH, finest)
        x, weight = panels(edges, round(12 * fineness), graded=False)
        weight = weight * normal_density(x)
        count = len(self.labels)
        omega = np.repeat(np.sqrt(q) * x, count)
        log_Z, g = steps(self.kernel, self.observe(np.tile(self.labels, len(x))), omega, V)
        share = np.repeat(weight, count) * np.exp(log_Z)
        return float(np.sum(share * g**2)), float(np.sum(np.where(share > 0, share * log_Z, 0.0)))


def steps(kernel: PosteriorKernel, observation: Any, omega: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
    """log Z and g; directly where the kernel has them, since (mean - omega) / V loses its digits at small V."""
    direct = getattr(kernel, "steps", None)
    if direct is not None:
        return direct(np, observation, omega, V)[:2]
    found = kernel.evaluate(np, observation, omega, V)
    return found.log_Z, (found.mean - omega) / V


class FlippedPosterior(PosteriorKernel):
    """Z(y) = (1 - flip) Z_0(y) + flip Z_0(-y), and the posterior mixed accordingly."""

    inner: PosteriorKernel
    flip: Any

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        kept = self.inner.evaluate(xp, observation, omega, V)
        turned = self.inner.evaluate(xp, -observation, omega, V)
        log_kept, log_turned = kept.log_Z + xp.log1p(-self.flip), turned.log_Z + xp.log(self.flip)
        log_Z = xp.logaddexp(log_kept, log_turned)
        r = xp.exp(log_turned - log_Z)
        mean = (1 - r) * kept.mean + r * turned.mean
        spread = (1 - r) * kept.variance + r * turned.variance
        return ScalarPosterior(log_Z, mean, spread + r * (1 - r) * (kept.mean - turned.mean) ** 2)


class FlippedLabels(FiniteChannel):
    """The labels of a binary channel, each turned into its opposite with probability `flip`, 0 < flip < 1."""

    labels = np.array([-1.0, 1.0])
    keeps_exponent = False

    def __init__(self, channel: ScalarChannel, flip: float):
        self.channel, self.flip = channel, flip
        self.landscape = channel.landscape
        self.kernel = FlippedPosterior(channel.kernel, np.float64(flip))

    @property
    def definition(self) -> dict[str, Any]:
        return {"labels_of": self.channel, "flip": self.flip}

    @property
    def components(self) -> tuple[Component, ...] | None:
        return ((1 - self.flip, 1.0, 0.0), (self.flip, -1.0, 0.0)) if self.channel.deterministic else None

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        kept = self.channel.probabilities(z)
        return (1 - self.flip) * kept + self.flip * kept[..., ::-1]

    @property
    def sharp(self) -> bool:
        return self.channel.deterministic

    @functools.cached_property
    def settled_entropy(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not self.sharp:
            return super().settled_entropy
        return float(-entr([self.flip, 1 - self.flip]).sum())

    def __repr__(self) -> str:
        return f"FlippedLabels({self.channel!r}, {self.flip:g})"


class ClassMixture(FiniteChannel):
    """Noiseless labels beta_c g(z) of a discrete target: on each piece of g every label has a fixed probability."""

    keeps_exponent = False
    kernel = LevelSetPosterior()

    def __init__(self, landscape: Landscape, components: Sequence[Component]):
        self.landscape, self._components = landscape, tuple(components)
        self.labels, self._likelihood = class_shares(landscape, components)

    @property
    def definition(self) -> dict[str, Any]:
        return {"target": self.target, "components": self.components}

    @property
    def components(self) -> tuple[Component, ...]:
        return self._components

    def observe(self, y: np.ndarray) -> LevelSets:
        y = np.asarray(y, float)
        label = _place(y, self.labels)
        if np.any(unknown := label < 0):
            takes = f"one of the labels {', '.join(f'{v:g}' for v in self.labels)}"
            raise bad_parameter("y", float(y[unknown][0]), takes)
        shape, none = self.landscape, np.zeros((len(y), 0))
        lower = np.where(shape.lower <= -RADIUS, -_FAR, shape.lower)
        upper = np.where(shape.upper >= RADIUS, _FAR, shape.upper)
        with np.errstate(divide="ignore"):
            log_present = np.log(self._likelihood)[label]
        rows = (len(y), len(lower))
        return LevelSets(none, none, np.broadcast_to(lower, rows), np.broadcast_to(upper, rows), log_present)

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        return self._likelihood.T[np.searchsorted(self.landscape.edges, np.asarray(z, float))]

    @property
    def sharp(self) -> bool:
        return True

    @functools.cached_property
    def settled_entropy(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        shape = self.landscape
        ends = np.concatenate([[-np.inf], shape.edges, [np.inf]])
        return float(-entr(self._likelihood).sum(0) @ np.diff(ndtr(ends)))

    def __repr__(self) -> str:
        parts = "+".join(f"{p:g}:{slope:g}:0" for p, slope, _ in self.components)
        return f"ClassMixture({self.landscape.target.name!r}, '{parts}')"


def class_shares(landscape: Landscape, components: Sequence[Component]) -> tuple[np.ndarray, np.ndarray]:
    """The values of labels beta_c g(z) of a discrete g, in increasing order, and the probability of each of them on
    each piece of g."""
    values = np.sort(np.concatenate([slope * landscape.atoms for _, slope, _ in components]) + 0.0)
    values = values[np.concatenate([[True], np.diff(values) > 1e-9 * (1 + np.abs(values[1:]))])]
    share = np.zeros((len(values), len(landscape.lower)))
    for p, slope, _ in components:
        label = _place(slope * landscape.value_lower, values)
        share[label, np.arange(len(label))] += p
    return values, share


def _place(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The index of each y among the labels, -1 where it is none."""
    nearest = np.abs(y[..., None] - labels).argmin(-1)
    return np.where(np.abs(y - labels[nearest]) <= 1e-9 * (1 + np.abs(y)), nearest, -1)
