"""The losses that have names: functions of the residual r = y - z, or of the margin y z of labels +-1 and scores z."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from solvable.channels.losses.base import Kinks, Loss, ResidualLoss, checked_scale

LADDER = (0.5, 2.0, 5.0, 12.0, 30.0)
"""Distances from the origin at which quadrature over a score is cut: the width of a sigmoid, and its tails."""


class Square(ResidualLoss):
    """r^2 / 2."""

    def profile(self, u: Any, y: Any) -> Any:
        return u**2 / 2

    def slope(self, u: Any, y: Any) -> Any:
        return u

    def curvature(self, u: Any, y: Any) -> Any:
        return jnp.ones_like(u)

    def prox(self, x: Any, V: Any, y: Any) -> Any:
        return x / (1 + V)


class Huber(ResidualLoss):
    """r^2 / 2 up to |r| = a, then a |r| - a^2 / 2, with a = `scale`: large residuals count linearly."""

    scale: float = eqx.field(default=1.0, converter=checked_scale)

    def profile(self, u: Any, y: Any) -> Any:
        inner = jnp.clip(u, -self.scale, self.scale)
        return inner**2 / 2 + self.scale * jnp.abs(u - inner)

    def slope(self, u: Any, y: Any) -> Any:
        return jnp.clip(u, -self.scale, self.scale)

    def curvature(self, u: Any, y: Any) -> Any:
        return jnp.where(jnp.abs(u) < self.scale, 1.0, 0.0)

    def splits(self, y: Any) -> Any:
        return self.scale * jnp.array([-1.0, 1.0])

    def prox(self, x: Any, V: Any, y: Any) -> Any:
        return jnp.where(jnp.abs(x) < self.scale * (1 + V), x / (1 + V), x - self.scale * V * jnp.sign(x))


class Absolute(ResidualLoss):
    """|r|."""

    def profile(self, u: Any, y: Any) -> Any:
        return jnp.abs(u)

    def slope(self, u: Any, y: Any) -> Any:
        return jnp.sign(u)

    def curvature(self, u: Any, y: Any) -> Any:
        return jnp.zeros_like(u)

    def kinks(self, y: Any) -> Kinks:
        return Kinks(jnp.zeros(1), -jnp.ones(1), jnp.ones(1))

    def prox(self, x: Any, V: Any, y: Any) -> Any:
        return jnp.sign(x) * jnp.maximum(jnp.abs(x) - V, 0.0)


class Tukey(ResidualLoss):
    """Tukey's biweight, c^2/6 (1 - (1 - (r/c)^2)^3) up to |r| = c, then c^2/6, with c = `scale`: outliers are ignored.

    Not convex: f'' = (1 - s)(1 - 5 s) with s = (r/c)^2 is as low as -4/5.
    """

    scale: float = eqx.field(default=3.0, converter=checked_scale)

    def profile(self, u: Any, y: Any) -> Any:
        return self.scale**2 / 6 * (1 - self._rest(u) ** 3)

    def slope(self, u: Any, y: Any) -> Any:
        return u * self._rest(u) ** 2

    def curvature(self, u: Any, y: Any) -> Any:
        rest = self._rest(u)
        return rest * (5 * rest - 4)

    @property
    def lowest_curvature(self) -> Any:
        return -0.8

    def splits(self, y: Any) -> Any:
        # The ends, and where f'' is lowest: there 1 + V f'' is nearly zero if V is large.
        return self.scale * jnp.array([-1.0, -(0.6**0.5), 0.6**0.5, 1.0])

    def _rest(self, u: Any) -> Any:
        return jnp.maximum(1 - (u / self.scale) ** 2, 0.0)


class Cosine(ResidualLoss):
    """Andrews' loss, c^2 (1 - cos(r/c)) up to |r| = pi c, then 2 c^2, with c = `scale`: outliers are ignored.

    Not convex: f'' = cos(r/c) is as low as -1.
    """

    scale: float = eqx.field(default=1.0, converter=checked_scale)

    def profile(self, u: Any, y: Any) -> Any:
        return self.scale**2 * (1 - jnp.cos(self._angle(u)))

    def slope(self, u: Any, y: Any) -> Any:
        return self.scale * jnp.sin(self._angle(u)) * (jnp.abs(u) < jnp.pi * self.scale)

    def curvature(self, u: Any, y: Any) -> Any:
        return jnp.where(jnp.abs(u) < jnp.pi * self.scale, jnp.cos(u / self.scale), 0.0)

    @property
    def lowest_curvature(self) -> Any:
        return -1.0

    def splits(self, y: Any) -> Any:
        return self.scale * jnp.pi * jnp.array([-1.0, -0.5, 0.5, 1.0])

    def _angle(self, u: Any) -> Any:
        return jnp.clip(u / self.scale, -jnp.pi, jnp.pi)


def ladder() -> Any:
    """The cuts on both sides of the origin, and the origin."""
    steps = jnp.array(LADDER)
    return jnp.concatenate([-steps[::-1], jnp.zeros(1), steps])


class MarginLoss(Loss):
    """A loss of y z; the sign of the score z is the predicted label."""

    margin: ClassVar[bool] = True


class Logistic(MarginLoss):
    """log(1 + exp(-y z))."""

    def profile(self, u: Any, y: Any) -> Any:
        return jnp.logaddexp(0.0, -y * u)

    def slope(self, u: Any, y: Any) -> Any:
        return -y * jax.nn.sigmoid(-y * u)

    def curvature(self, u: Any, y: Any) -> Any:
        return y**2 * jax.nn.sigmoid(u * y) * jax.nn.sigmoid(-u * y)

    def splits(self, y: Any) -> Any:
        return ladder()


class Hinge(MarginLoss):
    """max(0, 1 - y z)."""

    def profile(self, u: Any, y: Any) -> Any:
        return jnp.maximum(0.0, 1 - y * u)

    def slope(self, u: Any, y: Any) -> Any:
        return jnp.where(y * u < 1, -y, 0.0)

    def curvature(self, u: Any, y: Any) -> Any:
        return jnp.zeros_like(u)

    def kinks(self, y: Any) -> Kinks:
        y = jnp.reshape(y, (1,))
        return Kinks(y, jnp.minimum(-y, 0.0), jnp.maximum(-y, 0.0))

    def prox(self, x: Any, V: Any, y: Any) -> Any:
        score = y * x
        return jnp.where(score < 1 - V, x + y * V, jnp.where(score <= 1, y, x))
