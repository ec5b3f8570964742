"""Averages over a noisy channel on one grid of z, y and omega, as matrix products.

With noise of variance D and V not small, Z(y, omega) = int dz N(z; omega, V) N(y - g(z); D) is smooth in y at the scale
sqrt(D) and in omega at the scale sqrt(V), so uniform grids (trapezoidal rules) converge exponentially in both, and the
integrals over z of all pairs (y, omega) are the two matrix products P N and P (u N) with P = N(y - g(z); D) fixed.
The cost does not grow with the number of pieces of g, only with its total variation in units of sqrt(D).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.scalar import ScalarInformation, scalar_law
from solvable.numerics.gaussian import normal_density, normal_trapezoid, panels, standard_edges
from solvable.targets.landscape import Landscape

_REACH = 7.5
_BROAD = 0.15
_LARGEST = 500_000


class DenseRule(NamedTuple):
    """Nodes z with weights for plain integrals, the likelihood of every label node at every z, and the label step."""

    z: Any
    weight: Any
    likelihood: Any
    step: Any


def dense_rule(shape: Landscape, noise: float, fineness: float = 1.0) -> DenseRule | None:
    """The rule of a noisy target, or None where the noise is so small that the grids would be too large."""
    spread = np.sqrt(noise)
    edges = standard_edges(shape.edges, _REACH)
    values = shape.target.numpy(np.stack([edges[:-1] + 1e-9, edges[1:] - 1e-9])[..., None])
    # Eight nodes a panel resolve half a unit of z and four standard deviations of the label.
    parts = np.ceil(np.maximum(np.diff(edges) / 0.5, np.abs(values[1] - values[0]) / (4 * spread)))
    low, high = values.min() - 6.5 * spread, values.max() + 6.5 * spread
    labels = int(np.ceil(2 * fineness * (high - low) / spread)) + 1
    if not np.isfinite(high - low) or parts.sum() * 8 * labels > _LARGEST:
        return None
    ends = zip(edges[:-1], edges[1:], parts, strict=True)
    fine = np.concatenate([np.linspace(low_z, high_z, int(k), endpoint=False) for low_z, high_z, k in ends])
    z, weight = panels(np.append(fine, edges[-1]), round(8 * fineness), graded=False)
    y = np.linspace(low, high, labels)
    residual = (y[:, None] - shape.target.numpy(z[:, None])) / spread
    z, weight, likelihood = _pad(z, weight, normal_density(residual) / spread)
    return DenseRule(z, weight, likelihood, np.float64(y[1] - y[0]))


def dense_information(rule: DenseRule, fineness: float, V: np.ndarray) -> np.ndarray:
    """I(V) and Psi(V), stacked, for variances that all lie on one side of `_BROAD`."""
    step = (0.15 if V.min() >= _BROAD else 0.045) / fineness
    return np.asarray(_information(rule, *normal_trapezoid(step, 6.2), jnp.asarray(V)))


def is_broad(V: np.ndarray) -> np.ndarray:
    """Whether a coarser grid of omega serves."""
    return _BROAD <= V


def dense_label_law(rule: DenseRule) -> LabelLaw:
    """The law of the label at omega = 0, V = 1."""
    prior = rule.weight * normal_density(rule.z)
    Z = rule.likelihood @ prior
    keep = Z > 1e-300
    mean = (rule.likelihood @ (prior * rule.z))[keep] / Z[keep]
    second = (rule.likelihood @ (prior * rule.z**2))[keep] / Z[keep]
    return scalar_law(rule.step * Z[keep], mean, second)


@eqx.filter_jit
def _information(rule: DenseRule, x, x_weight, V) -> ScalarInformation:
    def at(V):
        omega = jnp.sqrt(1 - V) * x
        u = (rule.z[:, None] - omega) / jnp.sqrt(V)
        density = rule.weight[:, None] * jnp.exp(-(u**2) / 2) / jnp.sqrt(2 * jnp.pi * V)
        Z, first = rule.likelihood @ density, rule.likelihood @ (density * u)
        safe = jnp.where(Z > 1e-290, Z, 1.0)
        squared = jnp.where(Z > 1e-290, first**2 / safe, 0.0)
        information = rule.step * jnp.sum(squared, 0) / V
        entropy = rule.step * jnp.sum(Z * jnp.log(safe), 0)
        return ScalarInformation(x_weight @ information, x_weight @ entropy)

    return jax.lax.map(at, V)


def _pad(z: np.ndarray, weight: np.ndarray, likelihood: np.ndarray, multiple: int = 128) -> tuple[np.ndarray, ...]:
    """Fill up with nodes of weight zero and labels of likelihood zero, so that targets share compiled code."""
    more_z, more_y = -len(z) % multiple, -len(likelihood) % multiple
    return (
        np.pad(z, (0, more_z)),
        np.pad(weight, (0, more_z)),
        np.pad(likelihood, ((0, more_y), (0, more_z))),
    )
