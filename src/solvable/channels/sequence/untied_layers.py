r"""Several attention layers with directions of their own for queries and for keys.

The label shows $Y = u_Q v^T$, $v = u_K - \bar u_K$, of the last layer: with unit vectors q, k and the size P,
$u_Q = Z q$, $u_K = (P/Z) k + m$ for any Z of either sign and any m, evenly in both. Rows of B have the sum
$(1 + c)^{L-1}$, so that given the earlier layers $z_Q = Z B^{-1} q$ and $z_K = (P/Z) B^{-1} k + m'$: m' is Gaussian,
and Z is drawn from what the query alone, or the key alone, says of it, half and half.

For $c \ge 1$ each factor of B has a positive determinant; below, a matrix of attention can take two tokens to one.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from solvable.channels.sequence.drawn_layers import Columns, DrawnLayersChannel
from solvable.channels.sequence.network import last_projections
from solvable.channels.sequence.untied import Product, product_of, split_matrix

LEAST_RESIDUAL = 1.0


class UntiedLayersChannel(DrawnLayersChannel):
    """Projections (query, key) of the first layer, of the second, .."""

    shared, tied = 2, False

    @property
    def numbers(self) -> int:
        return 2 * self.tokens - 2

    @property
    def mirrors(self) -> np.ndarray:
        """The signs of each layer, and that of the last key: with Y, -Y is a label as well, of the same law."""
        return np.vstack([super().mirrors, np.where(np.arange(self.projections) == self.projections - 1, -1.0, 1.0)])

    def most_growth(self, directions: np.ndarray) -> float:
        """That of a query and a key which are seen as such: T (2 T + 1)."""
        return float(self.tokens * (2 * self.tokens + 1))

    def shown(self, z: np.ndarray, noise: np.ndarray | None = None) -> Product:
        return product_of(split_matrix(last_projections(z, self.residual, 2, tied=False)))

    def observe(self, y: np.ndarray) -> Product:
        """From the logarithms of labels (n, T, T)."""
        return product_of(y - y.mean(axis=-1, keepdims=True))

    def common(self, precision: np.ndarray) -> np.ndarray:
        return np.diag([0.0, 1 / (precision[1, 1] * self.tokens)])

    def completed(
        self, shown: Product, inverse: Any, centre: Columns, covariance: Any, precision: Any, draws: Any
    ) -> list[tuple[Columns, Any]]:
        T, size = self.tokens, shown.size
        both = inverse([jnp.stack([shown.query[t] + 0 * draws, shown.key[t] + 0 * draws]) for t in range(T)])
        q, k = [row[0] for row in both], [row[1] for row in both]
        k_mean, key_mean, query_mean = sum(k) / T, sum(centre[1]) / T, sum(centre[0]) / T
        aside = [part - k_mean for part in k]
        # What the query alone says of Z, and the key alone of P/Z: means and standard deviations.
        qq, kk = sum(part**2 for part in q), sum(part**2 for part in aside)
        Z_mean, Z_width = sum(q[t] * centre[0][t] for t in range(T)) / qq, jnp.sqrt(covariance[0, 0] / qq)
        U_mean, U_width = sum(aside[t] * centre[1][t] for t in range(T)) / kk, jnp.sqrt(covariance[1, 1] / kk)
        first = jnp.arange(len(draws)) < len(draws) // 2
        drawn = jnp.where(first, Z_mean + Z_width * draws, U_mean + U_width * draws)
        drawn = jnp.where(jnp.abs(drawn) < 1e-100, 1e-100, drawn)
        other = size / drawn
        Z, U = jnp.where(first, drawn, other), jnp.where(first, other, drawn)
        of_Z = -0.5 * ((Z - Z_mean) / Z_width) ** 2 - jnp.log(Z_width)
        of_U = -0.5 * ((U - U_mean) / U_width) ** 2 - jnp.log(U_width) + jnp.log(size) - 2 * jnp.log(jnp.abs(Z))
        log_density = jnp.logaddexp(of_Z, of_U) - 0.5 * jnp.log(2 * jnp.pi) - jnp.log(2.0)
        a, b, c = precision[0, 0], precision[0, 1], precision[1, 1]
        z_mean = Z * sum(q) / T
        mean = key_mean - U * k_mean - b / c * (z_mean - query_mean)
        z_Q, z_K = [Z * part for part in q], [U * part + mean for part in k]
        off_Q, off_K = ([x - y for x, y in zip(*pair, strict=True)] for pair in ((z_Q, centre[0]), (z_K, centre[1])))
        distance = sum(a * x**2 + 2 * b * x * y + c * y**2 for x, y in zip(off_Q, off_K, strict=True))
        log_w = -0.5 * distance - log_density + 0.5 * jnp.log(2 * jnp.pi / (c * T)) + (T - 2) * jnp.log(size)
        return [([z_Q, z_K], log_w)]
