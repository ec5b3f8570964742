r"""Directions that a batch of n = alpha d samples and a function of one projection make, and their overlaps.

The first step sees $\beta = \frac1n\sum_i y_i x_i$, and the second $\beta_v = \frac1n\sum_i v_i x_i$, v a function of
the label and of $\kappa_i = \beta\cdot x_i$. With $g_1 = E[y z]$, $b^2 = E[y^2]/\alpha$ and z (the projection on the
target's direction $\theta$) and $\xi$ independent N(0, 1), a sample of a fresh batch and one of the batch that made
$\beta$ have

    fresh:   kappa = g1 z + b xi                    reused:   kappa = g1 z + b xi + y / alpha,

the last term being the sample's own share of $\beta$. So v is a function of z, xi and the noise of the label. Then
$\beta = g_1\theta + b e$, |e| = 1, and

    beta_v = S theta + A e + rest,                  S = E[v z],
    fresh:   A = E[v xi],                           <rest_v, rest_w> = E[v w]/alpha,
    reused:  A = E[v xi] + b E[v y]/E[y^2],         <rest_v, rest_w> = (E[v w] - E[v y] E[w y]/E[y^2])/alpha,

all rests being orthogonal to theta and e. To see it write $X = z\theta^T + \tilde X$, condition $\tilde X$ on
$\tilde X^T y$, and repeat with the direction of beta.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from solvable.core.checks import is_traced
from solvable.models.features.two_layer.averages import NODES
from solvable.models.features.two_layer.model import TwoLayer
from solvable.numerics.gaussian import gaussian_panels

_REACH, _COARSE_REACH = 14.0, 11.0
_SAME = 1e-12
"""A combination of directions with less than this share of the largest square is none."""


class Sample(NamedTuple):
    """Nodes for averages over a sample: the projection z, the label y with its noise, xi, and their weights."""

    z: Any
    y: Any
    xi: Any
    weight: Any


class Directions(NamedTuple):
    """Of the first direction and those after it: the component `along` theta, and the inner products of all."""

    along: Any
    gram: Any

    def lengths(self, xp: Any) -> Any:
        """Of the directions; 1 for one that vanishes."""
        square = xp.diagonal(self.gram)
        return xp.sqrt(xp.where(square > 0, square, 1.0))

    def share(self, xp: Any, kept: np.ndarray) -> Any:
        """The share of theta in the span of some of the directions."""
        scale = self.lengths(xp)[kept]
        values, vectors = xp.linalg.eigh(self.gram[np.ix_(kept, kept)] / (scale[:, None] * scale))
        inside = vectors.T @ (self.along[kept] / scale)
        there = values > _SAME * values[-1]
        return xp.sum(xp.where(there, inside**2 / xp.where(there, values, 1.0), 0.0))


def sample_nodes(model: TwoLayer, order: int, noisy: bool, fine: bool = True) -> Sample:
    """Nodes that are exact for polynomials of degree 2 order - 1 in xi and in the noise.

    The coarse ones are half as many in z, and do not reach as far: a label without moments shows.
    """
    z, weight = gaussian_panels(model.target.breaks, NODES if fine else NODES // 2, _REACH if fine else _COARSE_REACH)
    with np.errstate(over="ignore", invalid="ignore"):
        g = np.where(weight > 0, model.target.numpy(z[:, None]), 0.0)
    xi, of_xi = np.polynomial.hermite_e.hermegauss(order)
    zeta, of_zeta = (xi, of_xi) if noisy else (np.zeros(1), np.ones(1))
    z, xi, zeta = (part.ravel() for part in np.meshgrid(z, xi, zeta, indexing="ij"))
    weights = np.einsum("i,j,k->ijk", weight, of_xi / of_xi.sum(), of_zeta / of_zeta.sum()).ravel()
    y = np.repeat(g, len(weights) // len(g))
    root = jnp.sqrt(model.noise) if is_traced(model.noise) else np.sqrt(model.noise)
    return Sample(z, y + root * zeta if noisy else y, xi, weights)


def directions(xp: Any, sample: Sample, alpha: Any, reuse: bool, v: Any) -> Directions:
    """The first direction, and one for each row of v, its values at the nodes; `xp` is numpy or jax.numpy."""
    z, y, xi, weight = sample
    g1, square = weight @ (y * z), weight @ (y * y)
    b = xp.sqrt(square / alpha)
    # Labels that are all zero make no direction.
    inverse = xp.where(square > 0, 1 / xp.where(square > 0, square, 1.0), 0.0)
    S, R, P = (v @ (weight * part) for part in (z, xi, y))
    Q = (v * weight) @ v.T
    A = R + b * P * inverse if reuse else R
    rest = (Q - xp.outer(P, P) * inverse if reuse else Q) / alpha
    along, across = (xp.concatenate([xp.stack([first]), others]) for first, others in ((g1, S), (b, A)))
    gram = xp.outer(along, along) + xp.outer(across, across)
    return Directions(along, gram + xp.pad(rest, ((1, 0), (1, 0))))
