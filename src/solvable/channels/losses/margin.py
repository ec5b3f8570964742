"""Classification losses: functions of the margin y z, for labels y = +-1."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from solvable.channels.losses.base import Kinks, Loss

LADDER = (0.5, 2.0, 5.0, 12.0, 30.0)
"""Distances from the origin at which quadrature over a score is cut: the width of a sigmoid, and its tails."""


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
