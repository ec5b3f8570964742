r"""Several attention layers of two directions of tied keys and queries each.

The label shows $u_L$ (T x 2) up to a turn, $u_L = u O$, so that given the earlier layers $z_L = x O$ with
$x = B^{-1} u$: for turns and for reflections O, by an angle theta, the weight is

    exp(kappa cos(theta - theta_0) - alpha cos 2 theta - beta sin 2 theta),

the second part of which vanishes where both directions are known alike. The angle is drawn by the rule of `turns`
around its mode, t = tan((theta - mode) / 2) being the number of a turn of the plane, whose even law is that of Cauchy.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np

from solvable.channels.sequence.drawn_layers import Columns, DrawnLayersChannel
from solvable.channels.sequence.network import last_projections
from solvable.channels.sequence.turned import root_of
from solvable.channels.sequence.turns import EVEN, TAIL

_STEPS = 4


class TurnedLayersChannel(DrawnLayersChannel):
    """Projections on the directions of the first layer, of the second, .., on three tokens or more."""

    shared, turned, mirrored = 1, 2, True

    @property
    def numbers(self) -> int:
        return 2 * self.tokens - 1

    def most_growth(self, directions: np.ndarray) -> float:
        return float(self.tokens * (self.tokens + 1))

    def shown(self, z: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """u_L itself stands for all that are turned."""
        return last_projections(z, self.residual, self.width)

    def observe(self, y: np.ndarray) -> np.ndarray:
        """One u_L (n, T, 2) that has the label, from the logarithms of labels (n, T, T)."""
        return root_of(y - y.mean(axis=-1, keepdims=True), self.width)

    def completed(
        self, shown: Any, inverse: Any, centre: Columns, covariance: Any, precision: Any, draws: Any
    ) -> list[tuple[Columns, Any]]:
        T = self.tokens
        both = inverse([shown[t][:, None] + 0 * draws for t in range(T)])
        x = [[row[k] for row in both] for k in range(2)]
        weighed = [[sum(centre[b][t] * precision[b, j] for b in range(2)) for t in range(T)] for j in range(2)]
        A = [[sum(x[i][t] * weighed[j][t] for t in range(T)) for j in range(2)] for i in range(2)]
        G = [[sum(x[i][t] * x[j][t] for t in range(T)) for j in range(2)] for i in range(2)]
        known = sum(centre[k][t] * weighed[k][t] for k in range(2) for t in range(T))
        # The parts of G and of the precision: of one, of diag(1, -1), and off the diagonal.
        g, p = (((m[0][0] + m[1][1]) / 2, (m[0][0] - m[1][1]) / 2, m[0][1]) for m in (G, precision))
        ways = []
        for sheet in (1.0, -1.0):
            a, b = A[0][0] + sheet * A[1][1], A[1][0] - sheet * A[0][1]
            kappa, mode = jnp.hypot(a, b), jnp.arctan2(b, a)
            alpha, beta = p[1] * g[1] + sheet * p[2] * g[2], p[1] * g[2] - sheet * p[2] * g[1]
            start, most = mode, kappa + 4 * jnp.hypot(alpha, beta) + 1e-12
            for _ in range(_STEPS):
                slope = -kappa * jnp.sin(mode - start) + 2 * (alpha * jnp.sin(2 * mode) - beta * jnp.cos(2 * mode))
                mode = mode + slope / most
            bend = kappa * jnp.cos(mode - start) - 4 * (alpha * jnp.cos(2 * mode) + beta * jnp.sin(2 * mode))
            t, density = _squeezed(draws, 4 * jnp.maximum(bend, 0.0))
            theta = mode + 2 * jnp.arctan(t)
            c, s = jnp.cos(theta), jnp.sin(theta)
            f = a * c + b * s - alpha * jnp.cos(2 * theta) - beta * jnp.sin(2 * theta) - g[0] * p[0]
            last = [[x[0][t] * c + x[1][t] * s for t in range(T)]]
            last.append([sheet * (x[1][t] * c - x[0][t] * s) for t in range(T)])
            ways.append((last, f - 0.5 * known - jnp.log(density) - jnp.log(2.0)))
        return ways


def _squeezed(draws: Any, curvature: Any) -> tuple[Any, Any]:
    """Numbers t of turns of the plane, one in `EVEN` of them even, and their density over that of even ones."""
    even = jnp.arange(len(draws)) < len(draws) // EVEN
    base = jnp.tan(jnp.pi * (special.ndtr(draws) - 0.5))
    width = 1 / jnp.sqrt(1 + curvature / TAIL)
    t, back = jnp.where(even, base, width * base), jnp.where(even, base / width, base)
    return t, (1 - 1 / EVEN) * (1 + t**2) / (1 + back**2) / width + 1 / EVEN
