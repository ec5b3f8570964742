r"""The metrics of an estimate of given cosine c and squared norm q, for theory and runs alike.

A fresh input has the projections z ~ N(0, 1) on the teacher and $\omega = \sqrt q\,x$ on the estimate, with x ~ N(0, 1)
and $E[z x] = c$. A regression loss predicts the label omega. A classification loss predicts sign(omega). For labels of
finitely many values, the class predicted by a regression loss is the value nearest to omega.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr

from solvable.models.index.erm_labels import Facts
from solvable.numerics.gaussian import gauss_legendre

METRICS = ("overlap", "squared_overlap", "estimation_error", "generalization_error", "classification_error")
_NODES = 16
_CUTS = (-8.0, -4.0, -1.5, 0.0, 1.5, 4.0, 8.0)
_GRID = (-9.0, -5.0, -2.5, -1.0, 0.0, 1.0, 2.5, 5.0, 9.0)


def estimate_metrics(known: Facts, margin: bool, c: Any, q: Any) -> dict[str, Any]:
    """overlap, squared_overlap, estimation_error, generalization_error and, for discrete labels, classification_error.

    `margin` says that the sign of the output is the prediction.
    """
    root, slope = jnp.sqrt(q), jnp.abs(known.slope)
    # 1 - 2 m + q and E t^2 - 2 m E[z t] + q with m = c sqrt(q), as sums of terms that cannot be negative.
    metrics = {"overlap": c, "squared_overlap": c**2, "estimation_error": (1 - root) ** 2 + 2 * root * (1 - c)}
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
        steep = (edges[:, None] + s * jnp.array(_CUTS)).ravel() / jnp.where(jnp.abs(c) > 1e-6, c, 1e-6)
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
