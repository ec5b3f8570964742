r"""What the theory needs to know of labels in numbers, and the metrics of an estimate, for theory and runs alike.

A fresh input has the projections z ~ N(0, 1) on the teacher and $\omega = \sqrt q\,x$ on the estimate, with x ~ N(0, 1)
and $E[z x] = c$. A regression loss predicts the label omega. A classification loss predicts sign(omega). For labels of
finitely many values, the class predicted by a regression loss is the value nearest to omega.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from solvable.engine.cosines import cosines
from solvable.engine.outputs.likelihood import Likelihood
from solvable.engine.outputs.proximal import CUTS
from solvable.numerics.gaussian import gauss_legendre, gaussian_panels
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

METRICS = ("cosine", "squared_overlap", "estimation_error", "generalization_error", "classification_error")
_MOMENT_NODES = 48
_ROUNDING = 1e-13
_NODES = 16
_GRID = (-9.0, -5.0, -2.5, -1.0, 0.0, 1.0, 2.5, 5.0, 9.0)


class Facts(NamedTuple):
    """Moments of the labels, and the noiseless label where it takes finitely many values.

    With t the target: `slope` = E[z t] and `power` = E[t^2] of the noiseless label, `label_slope` = E[z y] and
    `label_power` = E[y^2] of the label with its noise and contamination. `edges` and `classes` are the intervals of a
    discrete target with its values on them; None for any other.
    """

    slope: np.float64
    power: np.float64
    label_slope: np.float64
    label_power: np.float64
    edges: np.ndarray | None
    classes: np.ndarray | None

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


def facts(labels: Likelihood) -> Facts:
    """The numbers of a law of labels."""
    shape = labels.landscape
    slope, power = _moments(labels.target)
    edges, classes = (shape.edges, shape.value_lower) if shape.flat.all() else (None, None)
    if labels.chance is not None:
        z, weight = gaussian_panels([0.0], _MOMENT_NODES)
        mean = labels.probabilities(z) @ labels.values
        return Facts(slope, power, np.sum(weight * z * mean), np.float64(1.0), edges, classes)
    p, beta, noise = np.array(labels.components, float).T
    return Facts(slope, power, p @ beta * slope, p @ beta**2 * power + p @ noise, edges, classes)


@functools.lru_cache(maxsize=64)
def _moments(target: Target) -> tuple[np.float64, np.float64]:
    """E[z t] and E[t^2]."""
    z, weight = gaussian_panels(landscape(target).edges, _MOMENT_NODES, 14.0)
    with np.errstate(over="ignore", invalid="ignore"):
        t = np.where(weight > 0, target.numpy(z[:, None]), 0.0)
    return np.sum(weight * z * t), np.sum(weight * t**2)


def estimate_metrics(known: Facts, margin: bool, c: Any, q: Any) -> dict[str, Any]:
    """cosine, squared_overlap, estimation_error, generalization_error and, for discrete labels, classification_error.

    `margin` says that the sign of the output is the prediction.
    """
    root, slope = jnp.sqrt(q), jnp.abs(known.slope)
    # 1 - 2 m + q and E t^2 - 2 m E[z t] + q with m = c sqrt(q), as sums of terms that cannot be negative.
    metrics = cosines(c, jnp.ones_like(c), 1.0) | {"estimation_error": (1 - root) ** 2 + 2 * root * (1 - c)}
    turned = slope - c * known.slope
    metrics["generalization_error"] = known.scatter + (slope - root) ** 2 + 2 * root * turned
    if known.edges is not None:
        wrong = misclassified(known, margin, c, q)
        metrics["classification_error"] = wrong
        if margin:
            metrics["generalization_error"] = 4 * wrong  # both labels are +-1
    return metrics


def misclassified(known: Facts, margin: bool, c: Any, q: Any) -> Any:
    """P(predicted class != noiseless label), elementwise over c and q."""
    assert known.edges is not None and known.classes is not None
    edges, classes = jnp.asarray(known.edges), jnp.asarray(known.classes)

    def one(c: Any, q: Any) -> Any:
        root, s = jnp.sqrt(q), jnp.sqrt(jnp.maximum(1 - c**2, 1e-14))
        steep = (edges[:, None] + s * jnp.array(CUTS)).ravel() / jnp.where(jnp.abs(c) > 1e-6, c, 1e-6)
        middles = _between(known) / jnp.maximum(root, 1e-12)
        ends = jnp.sort(jnp.clip(jnp.concatenate([jnp.array(_GRID), middles, steep]), -9.0, 9.0))
        t, w = (jnp.asarray(part) for part in gauss_legendre(_NODES))
        width = jnp.diff(ends)[:, None]
        x = (ends[:-1, None] + width * t).ravel()
        weight = (width * w).ravel() * jnp.exp(-(x**2) / 2) / jnp.sqrt(2 * jnp.pi)
        # P(z in each interval | x), and whether the class of that interval is the one predicted from x.
        inside = jnp.diff(ndtr((edges - c * x[:, None]) / s), axis=1, prepend=0.0, append=1.0)
        predicted = jnp.where(x > 0, 1.0, -1.0) if margin else _nearest(classes, root * x)
        right = jnp.abs(classes - predicted[:, None]) < 1e-9 * (1 + jnp.abs(classes))
        return 1 - jnp.sum(weight * jnp.sum(inside * right, axis=1))

    shape = jnp.broadcast_shapes(jnp.shape(c), jnp.shape(q))
    flat = [jnp.broadcast_to(part, shape).reshape(-1) for part in (c, q)]
    return jax.vmap(one)(*flat).reshape(shape)


def _between(known: Facts) -> Any:
    """Where the nearest class changes."""
    values = jnp.sort(jnp.asarray(known.classes))
    return (values[1:] + values[:-1]) / 2


def _nearest(classes: Any, omega: Any) -> Any:
    return classes[jnp.argmin(jnp.abs(classes - omega[:, None]), axis=1)]
