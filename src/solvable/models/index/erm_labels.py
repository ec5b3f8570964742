"""A one-projection model as the theory of empirical risk minimisation sees it: its law of labels, and their moments."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from solvable.channels.closed import Logit, Probit
from solvable.channels.label_models import (
    ClassLabels,
    LabelModel,
    LinearLabels,
    LogisticClasses,
    PiecewiseClasses,
)
from solvable.channels.losses import Loss
from solvable.channels.losses.base import name_of
from solvable.core.errors import NotSolvable, bad_parameter
from solvable.models.index.label_rows import curved_labels
from solvable.models.index.multi_index import MultiIndex
from solvable.numerics.gaussian import gaussian_panels
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

_MOMENT_NODES = 48
_ROUNDING = 1e-13
BINARY = (Probit, Logit)
"""Channels whose labels are +-1 at random given z."""
_LINEAR = np.array([-4.0, -2.3, -1.0, -0.4, 0.3, 1.7, 3.1])


class Facts(NamedTuple):
    """Moments of the labels, and the noiseless label where it takes finitely many values.

    With t the target: `slope` = E[z t] and `power` = E[t^2] of the noiseless label, `label_slope` = E[z y] and
    `label_power` = E[y^2] of the label with its noise and contamination. `edges` and `classes` are the intervals of a
    discrete target with its values on them; None for any other. `labels` are the values that the label itself can take,
    None where there are infinitely many.
    """

    slope: np.float64
    power: np.float64
    label_slope: np.float64
    label_power: np.float64
    edges: np.ndarray | None
    classes: np.ndarray | None
    labels: tuple[float, ...] | None

    @property
    def scatter(self) -> Any:
        """E[t^2] - E[z t]^2, what no linear function of z explains of the target."""
        return _difference(self.power, self.slope)

    @property
    def label_scatter(self) -> Any:
        """E[y^2] - E[z y]^2."""
        return _difference(self.label_power, self.label_slope)


def _difference(power: Any, slope: Any) -> Any:
    """power - slope^2, zero where that is rounding."""
    rest = power - slope**2
    return jnp.where(rest > _ROUNDING * power, rest, 0.0)


def facts(model: MultiIndex) -> Facts:
    """The moments of a one-projection model."""
    if model.projections > 1:
        raise NotSolvable(
            f"ERM is solved for one projection, and the target {model.target.name!r} has {model.projections}; "
            "learners that take several are BayesOptimal, AMP and Spectral."
        )
    shape, parts, channel = landscape(model.target), _parts(model), model.named_channel
    slope, power = _moments(model.target)
    turned = sum(p * beta for p, beta, _ in parts)
    edges, classes = (shape.edges, shape.value_lower) if shape.flat.all() else (None, None)
    if isinstance(channel, BINARY):
        return Facts(
            slope, power, np.float64(turned * _agreement(channel)), np.float64(1.0), edges, classes, (-1.0, 1.0)
        )
    noise = sum(p * D for p, _, D in parts)
    labels = None
    if classes is not None and noise == 0:
        labels = tuple(sorted({float(beta * value) + 0.0 for _, beta, _ in parts for value in classes}))
    stretched = sum(p * beta**2 for p, beta, _ in parts)
    return Facts(
        slope, power, np.float64(turned * slope), np.float64(stretched * power + noise), edges, classes, labels
    )


def check_loss(loss: Loss, known: Facts) -> None:
    """Refuse a classification loss for labels other than +-1."""
    if loss.margin and known.labels != (-1.0, 1.0):
        given = "infinitely many" if known.labels is None else ", ".join(f"{y:g}" for y in known.labels)
        raise bad_parameter(
            "loss",
            name_of(loss),
            f"for regression here, such as Huber: it takes the labels -1 and 1, and these are {given}",
        )


def label_model(model: MultiIndex, loss: Loss, known: Facts) -> LabelModel:
    """The law of labels in the form that is cheapest for this loss."""
    check_loss(loss, known)
    channel, parts = model.named_channel, _parts(model)
    if isinstance(channel, BINARY):
        flipped = sum(p for p, beta, _ in parts if beta < 0)
        if isinstance(channel, Logit):
            law = LogisticClasses(np.float64(channel.gain), np.float64(flipped))
        else:
            share = np.array([[flipped, 1 - flipped], [1 - flipped, flipped]])
            law = PiecewiseClasses(np.zeros(1), share, np.float64(channel.label_noise))
        return ClassLabels(np.array([1.0, -1.0]), law, loss.mirrored)
    if known.labels is not None and known.edges is not None and known.classes is not None:
        return _classes(known.edges, known.classes, known.labels, parts, loss)
    gradient = _linear_slope(model.target)
    if gradient is not None and loss.residual:
        p, beta, noise = (np.array(column, float) for column in zip(*parts, strict=True))
        return LinearLabels(p, gradient * beta, noise)
    return curved_labels(model.target, parts, loss)


def _parts(model: MultiIndex) -> list[tuple[float, float, float]]:
    """The components of the labels that have a share; a named channel brings its own noise."""
    if model.named_channel is not None and not isinstance(model.named_channel, BINARY):
        return [(1.0, 1.0, model.named_channel.noise)]
    return [part for part in model.components if part[0] > 0]


def is_noiseless_linear(model: MultiIndex) -> bool:
    """Whether every label is the same multiple of its projection."""
    parts = _parts(model)
    return parts == [(1.0, 1.0, 0.0)] and model.target.projections == 1 and _linear_slope(model.target) is not None


def _classes(edges: np.ndarray, classes: np.ndarray, labels: tuple[float, ...], parts: list, loss: Loss) -> ClassLabels:
    values = np.array(labels[::-1])
    share = np.zeros((len(values), len(classes)))
    for p, beta, _ in parts:
        share += p * (np.abs(values[:, None] - beta * classes) <= 1e-9 * (1 + np.abs(values[:, None])))
    even = labels == (-1.0, 1.0) and np.allclose(edges, -edges[::-1]) and np.allclose(share, share[::-1, ::-1])
    return ClassLabels(values, PiecewiseClasses(edges, share, np.float64(0.0)), loss.mirrored and bool(even))


@functools.lru_cache(maxsize=64)
def _moments(target: Target) -> tuple[np.float64, np.float64]:
    """E[z t] and E[t^2]."""
    z, weight = gaussian_panels(landscape(target).edges, _MOMENT_NODES, 14.0)
    with np.errstate(over="ignore", invalid="ignore"):
        t = np.where(weight > 0, target.numpy(z[:, None]), 0.0)
    return np.sum(weight * z * t), np.sum(weight * t**2)


def _linear_slope(target: Target) -> float | None:
    """a if the target is a z, else None."""
    values = target.numpy(_LINEAR[:, None])
    slope = float(values @ _LINEAR / (_LINEAR @ _LINEAR))
    return slope if np.all(np.abs(values - slope * _LINEAR) <= 1e-13 * (1 + np.abs(values))) else None


def _agreement(channel: Probit | Logit) -> np.float64:
    """E[z y] for labels +-1."""
    z, weight = gaussian_panels([0.0], _MOMENT_NODES)
    return np.sum(weight * z * (2 * probability_of_one(channel, z) - 1))


def probability_of_one(channel: Probit | Logit, z: np.ndarray) -> np.ndarray:
    """P(y = 1 | z) of a channel with labels +-1."""
    if isinstance(channel, Logit):
        from scipy.special import expit

        return expit(channel.gain * z)
    if channel.label_noise == 0:
        return (z > 0).astype(float)
    return ndtr(z / np.sqrt(channel.label_noise))
