"""Which law labels have given their projection z, and the form of its averages that is cheapest for a loss.

Labels are y = slope g(z) + sqrt(noise) xi, by a mixture of components, or +-1 at random by a channel that is no such
mixture. Averages over a continuous label are over rows of (z, y), by a nested rule that tells its own error: the panels
are cut at the edges of the target and halved until functions of the residual y - m z, steep at the scale of the noise
or a tenth of the label's, are integrated to 1e-9. The rule with every second node is the coarse one.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from solvable.channels.base import Channel, TargetChannel
from solvable.channels.closed import Logit, Probit
from solvable.channels.contamination import Component
from solvable.channels.finite import FlippedLabels, class_shares
from solvable.channels.losses import Loss
from solvable.channels.losses.base import name_of
from solvable.channels.scalar import ScalarChannel
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.engine.outputs.proximal import (
    ClassLabels,
    CurvedLabels,
    LabelModel,
    LinearLabels,
    LogisticClasses,
    PiecewiseClasses,
    ProximalOutput,
)
from solvable.numerics.gaussian import nested_fejer, normal_density, normal_trapezoid, standard_edges
from solvable.targets.landscape import Landscape, landscape
from solvable.targets.target import Target

_RADIUS = 7.5
_ENOUGH = 1e-9
_MOST_PANELS = 48
_SLOPES = (0.0, 0.5, 1.0)
_LINEAR = np.array([-4.0, -2.3, -1.0, -0.4, 0.3, 1.7, 3.1])
_BINARY = (-1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Likelihood:
    """P(y|z), the law of labels of one projection, which a loss needs; it may have no posterior that is known here.

    `components` are the (probability, slope, noise) of y = slope g(z) + sqrt(noise) xi, with g the target. With
    `chance` labels are those of that channel instead, +-1 at random given z, and the target is the clean label.
    """

    target: Target
    components: tuple[Component, ...] = ((1.0, 1.0, 0.0),)
    chance: ScalarChannel | None = None

    @classmethod
    def of(cls, channel: Channel) -> Likelihood:
        """The law of the labels of a channel of one projection."""
        if not isinstance(channel, ScalarChannel):
            name = repr(channel.target.name) if isinstance(channel, TargetChannel) else repr(channel)
            raise NotSolvable(
                f"ERM is solved for one projection, and the target {name} has {channel.projections}; "
                "learners that take several are BayesOptimal, AMP and Spectral."
            )
        parts = channel.components
        return cls(channel.target, chance=channel) if parts is None else cls(channel.target, parts)

    @property
    def landscape(self) -> Landscape:
        """The pieces of the target."""
        return landscape(self.target)

    @functools.cached_property
    def values(self) -> np.ndarray | None:
        """The values that a label can take, in increasing order; None where there are infinitely many."""
        if self.chance is not None:
            return self.chance.labels
        if not self.landscape.flat.all() or any(noise > 0 for _, _, noise in self.components):
            return None
        return class_shares(self.landscape, self.components)[0]

    @functools.cached_property
    def share(self) -> np.ndarray:
        """The probability of each of `values` on each piece of the target."""
        return class_shares(self.landscape, self.components)[1]

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """P(y|z) of each of `values` along a new last axis."""
        if self.chance is not None:
            return self.chance.probabilities(z)
        return self.share.T[np.searchsorted(self.landscape.edges, z)]

    @property
    def binary(self) -> bool:
        """Whether labels are +-1."""
        return self.values is not None and tuple(self.values) == _BINARY

    @property
    def slope(self) -> float | None:
        """a if the target is a z, else None."""
        return _linear_slope(self.target)

    @property
    def noiseless_linear(self) -> bool:
        """Whether every label is the same multiple of its projection."""
        return self.chance is None and self.components == ((1.0, 1.0, 0.0),) and self.slope is not None

    def check(self, loss: Loss) -> None:
        """Refuse a classification loss for labels other than +-1."""
        if loss.margin and not self.binary:
            given = "infinitely many" if self.values is None else ", ".join(f"{y:g}" for y in self.values)
            raise bad_parameter(
                "loss",
                name_of(loss),
                f"for regression here, such as Huber: it takes the labels -1 and 1, and these are {given}",
            )

    def with_loss(self, loss: Loss) -> ProximalOutput:
        """These labels seen by a learner with a loss."""
        self.check(loss)
        return ProximalOutput(loss, _averaged(self, loss.residual, loss.mirrored))


@functools.lru_cache(maxsize=64)
def _averaged(labels: Likelihood, residual: bool, mirrored: bool) -> LabelModel:
    """The law in the form that is cheapest for losses of the residual, or others; `mirrored` if l(-y, -z) = l(y, z)."""
    if labels.chance is not None:
        return ClassLabels(np.array(_BINARY[::-1]), class_law(labels.chance), mirrored)
    if labels.values is not None:
        edges, share = labels.landscape.edges, labels.share[::-1]
        even = labels.binary and np.allclose(edges, -edges[::-1]) and np.allclose(share, share[::-1, ::-1])
        law = PiecewiseClasses(edges, share, np.float64(0.0))
        return ClassLabels(labels.values[::-1].copy(), law, mirrored and bool(even))
    if labels.slope is not None and residual:
        p, beta, noise = (np.array(column, float) for column in zip(*labels.components, strict=True))
        return LinearLabels(p, labels.slope * beta, noise)
    return _curved(labels.target, labels.components, residual)


@functools.lru_cache(maxsize=256)
def _linear_slope(target: Target) -> float | None:
    clean = target.numpy(_LINEAR[:, None])
    slope = float(clean @ _LINEAR / (_LINEAR @ _LINEAR))
    return slope if np.all(np.abs(clean - slope * _LINEAR) <= 1e-13 * (1 + np.abs(clean))) else None


def class_law(channel: ScalarChannel) -> PiecewiseClasses | LogisticClasses:
    """P(y | omega*) of labels +-1, y = 1 first, that are drawn at random by a channel."""
    if isinstance(channel, FlippedLabels):
        return class_law(channel.channel).flip(np.float64(channel.flip))
    if isinstance(channel, Logit):
        return LogisticClasses(np.float64(channel.gain), np.float64(0.0))
    if isinstance(channel, Probit):
        return PiecewiseClasses(np.zeros(1), np.array([[0.0, 1.0], [1.0, 0.0]]), np.float64(channel.label_noise))
    raise NotImplementedError(f"averages of a loss over the random labels of {channel!r} are not known.")


class Line(NamedTuple):
    """Nodes on the line with the weights of N(0, 1) by the nested rule: all nodes, and every second one."""

    z: np.ndarray
    weight: np.ndarray
    coarse: np.ndarray


def _curved(target: Target, parts: tuple[Component, ...], residual: bool) -> CurvedLabels:
    """Rows of z, and of the noise too for a loss that is not of the residual."""
    line = _line(target, float(min(noise for _, _, noise in parts)))
    label = target.numpy(line.z[:, None])
    rows = []
    for p, beta, noise in parts:
        if residual or noise == 0:
            rows.append((p * line.weight, p * line.coarse, line.z, beta * label, np.full_like(line.z, noise)))
            continue
        xi, xi_weight = normal_trapezoid(0.5, 6.0)
        y = (beta * label[:, None] + np.sqrt(noise) * xi).ravel()
        weight, coarse = ((p * part[:, None] * xi_weight).ravel() for part in (line.weight, line.coarse))
        kept = weight > 1e-13
        rows.append(tuple(a[kept] for a in (weight, coarse, np.repeat(line.z, len(xi)), y, np.zeros(y.size))))
    weight, coarse, z, y, noise = (np.concatenate(column) for column in zip(*rows, strict=True))
    return CurvedLabels(weight / weight.sum(), coarse / coarse.sum(), z, y, noise)


@functools.lru_cache(maxsize=64)
def _line(target: Target, noise: float) -> Line:
    edges = list(standard_edges(landscape(target).edges, _RADIUS))
    panels = list(zip(edges[:-1], edges[1:], strict=True))
    z = np.linspace(-4.0, 4.0, 801)
    spread = float(np.std(target.numpy(z[:, None]) * np.sqrt(normal_density(z) / normal_density(z).mean())))
    scale = np.hypot(np.sqrt(noise), 0.1 * spread) or 1.0
    errors = [_error(target, panel, scale) for panel in panels]
    while max(errors) > _ENOUGH and len(panels) < _MOST_PANELS:
        worst = int(np.argmax(errors))
        low, high = panels.pop(worst)
        errors.pop(worst)
        for half in ((low, (low + high) / 2), ((low + high) / 2, high)):
            panels.append(half)
            errors.append(_error(target, half, scale))
    parts = [_nodes(panel) for panel in sorted(panels)]
    z, weight, coarse = (np.concatenate(column) for column in zip(*parts, strict=True))
    kept = weight > 1e-15
    return Line(z[kept], weight[kept], coarse[kept])


def _nodes(panel: tuple[float, float]) -> Line:
    t, w, coarse = nested_fejer()
    low, width = panel[0], panel[1] - panel[0]
    z = low + width * t
    density = normal_density(z)
    return Line(z, width * w * density, width * coarse * density)


def _error(target: Target, panel: tuple[float, float], scale: float) -> float:
    """The largest difference of the two rules on one panel."""
    z, weight, coarse = _nodes(panel)
    label = target.numpy(z[:, None])
    tests = [np.tanh((label - slope * z) / scale) for slope in _SLOPES]
    return max(abs(float((weight - coarse) @ f)) for test in tests for f in (test, test**2))
