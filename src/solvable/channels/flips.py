"""Contaminated labels that stay discrete: flipped binary labels, and mixtures of the classes of any discrete target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import entr, ndtr

from solvable.channels.closed.logit import Logit
from solvable.channels.closed.probit import Probit
from solvable.channels.contamination import Component
from solvable.channels.finite import FiniteChannel
from solvable.channels.levelset import LevelSetPosterior, LevelSets
from solvable.channels.scalar import PosteriorKernel, ScalarPosterior
from solvable.core.errors import bad_parameter
from solvable.numerics.gaussian import RADIUS
from solvable.targets.landscape import Landscape

_FAR = 100.0


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

    def __init__(self, channel: Probit | Logit, flip: float):
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

    @property
    def settled_entropy(self) -> float:
        # Only where the channel itself is exact is it asked for.
        return float(-entr([self.flip, 1 - self.flip]).sum()) if self.sharp else 0.0

    def __repr__(self) -> str:
        return f"FlippedLabels({self.channel!r}, {self.flip:g})"


class ClassMixture(FiniteChannel):
    """Noiseless labels beta_c g(z) of a discrete target: on each piece of g every label has a fixed probability."""

    keeps_exponent = False
    kernel = LevelSetPosterior()

    def __init__(self, landscape: Landscape, components: Sequence[Component]):
        self.landscape, self._components = landscape, tuple(components)
        values = np.concatenate([slope * landscape.atoms for _, slope, _ in components]) + 0.0
        self.labels = _distinct(values)
        self._likelihood = np.zeros((len(self.labels), len(landscape.lower)))
        for p, slope, _ in components:
            label = self._label_of(slope * landscape.value_lower)
            self._likelihood[label, np.arange(len(label))] += p

    @property
    def definition(self) -> dict[str, Any]:
        return {"target": self.target, "components": self.components}

    @property
    def components(self) -> tuple[Component, ...]:
        return self._components

    def observe(self, y: np.ndarray) -> LevelSets:
        y = np.asarray(y, float)
        label = self._label_of(y)
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

    @property
    def settled_entropy(self) -> float:
        shape = self.landscape
        ends = np.concatenate([[-np.inf], shape.edges, [np.inf]])
        return float(-entr(self._likelihood).sum(0) @ np.diff(ndtr(ends)))

    def _label_of(self, y: np.ndarray) -> np.ndarray:
        """The index of each label, -1 where it is none."""
        nearest = np.abs(y[..., None] - self.labels).argmin(-1)
        return np.where(np.abs(y - self.labels[nearest]) <= 1e-9 * (1 + np.abs(y)), nearest, -1)

    def __repr__(self) -> str:
        parts = "+".join(f"{p:g}:{slope:g}:0" for p, slope, _ in self.components)
        return f"ClassMixture({self.landscape.target.name!r}, '{parts}')"


def _distinct(values: np.ndarray) -> np.ndarray:
    values = np.sort(values)
    return values[np.concatenate([[True], np.diff(values) > 1e-9 * (1 + np.abs(values[1:]))])]
