r"""Penalties on the weights: what they make of a noisy observation, and its averages over the teacher's weights.

A weight is seen through the field $b = \hat m\, w^* + \sqrt{\hat q}\, x$, x ~ N(0, 1), and becomes
$w = \arg\min_w [\hat V w^2/2 - b w + r(w)]$. State evolution needs
[thrampoulidis2018precise]

    m = E[w* w],    q = E[w^2],    V = E[dw/db],    E[(dw/db)^2],    E[r(w)],    and the share of weights not zero.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter

_TINY = 1e-300


def _any_strength(value: Any) -> Any:
    return real_number("strength", value, "a finite number; it may be negative")


def _positive_strength(value: Any) -> Any:
    return real_number("strength", value, "a finite number, zero or positive", lambda x: x >= 0)


class Shrinkage(NamedTuple):
    """The averages of the module's docstring; `margin` is positive where the minimum over w exists."""

    m: Any
    q: Any
    V: Any
    stiffness: Any
    cost: Any
    active: Any
    margin: Any


class Penalty(eqx.Module):
    """A separable penalty r(w) on each weight, of the given strength."""

    strength: eqx.AbstractVar[float]

    @abc.abstractmethod
    def average(self, m_hat: Any, q_hat: Any, V_hat: Any, mixture: Any) -> Shrinkage:
        """The averages over weights from a mixture of Gaussians: arrays of (weight, mean, variance)."""

    @abc.abstractmethod
    def denoise(self, b: np.ndarray, A: float) -> tuple[np.ndarray, float]:
        """w at each field b and precision A, and the mean of dw/db."""

    @abc.abstractmethod
    def value(self, w: np.ndarray) -> float:
        """The sum of r over the weights."""


class Ridge(Penalty):
    """r(w) = (strength / 2) w^2. The strength may be zero, the limit of a vanishing one, or negative."""

    strength: float = eqx.field(default=1.0, converter=_any_strength)

    def average(self, m_hat: Any, q_hat: Any, V_hat: Any, mixture: Any) -> Shrinkage:
        margin = self.strength + V_hat
        V = 1 / jnp.maximum(margin, 1e-9 * V_hat + _TINY)
        q = (jnp.sum(m_hat**2) + q_hat) * V**2  # m_hat may have several directions
        return Shrinkage(m_hat * V, q, V, V**2, self.strength * q / 2, 1.0, margin)

    def denoise(self, b: np.ndarray, A: float) -> tuple[np.ndarray, float]:
        return b / (self.strength + A), 1 / (self.strength + A)

    def value(self, w: np.ndarray) -> float:
        return float(self.strength) / 2 * float(np.vdot(w, w))


class Lasso(Penalty):
    """r(w) = strength |w|: weights whose field is below the strength are zero."""

    strength: float = eqx.field(default=1.0, converter=_positive_strength)

    def average(self, m_hat: Any, q_hat: Any, V_hat: Any, mixture: Any) -> Shrinkage:
        weight, mean, variance = mixture
        centre, S = m_hat * mean, jnp.sqrt(m_hat**2 * variance + q_hat + _TINY)
        upper, lower = (centre - self.strength) / S, (-centre - self.strength) / S
        density = [jnp.exp(-(t**2) / 2) / jnp.sqrt(2 * jnp.pi) for t in (upper, lower)]
        # E[(t + x)_+] and E[(t + x)_+^2] for x ~ N(0, 1).
        first = [_far(t, ndtr(t) * t + p, p / t**2) for t, p in zip((upper, lower), density, strict=True)]
        second = [
            _far(t, (1 + t**2) * ndtr(t) + t * p, -2 * p / t**3) for t, p in zip((upper, lower), density, strict=True)
        ]
        active = ndtr(upper) + ndtr(lower)
        soft, size = S * (first[0] - first[1]), S * (first[0] + first[1])
        total = [
            jnp.sum(weight * part)
            for part in (mean * soft + m_hat * variance * active, S**2 * (second[0] + second[1]), active, size)
        ]
        m, q, P, absolute = total[0] / V_hat, total[1] / V_hat**2, total[2], total[3] / V_hat
        return Shrinkage(m, q, P / V_hat, P / V_hat**2, self.strength * absolute, P, V_hat)

    def denoise(self, b: np.ndarray, A: float) -> tuple[np.ndarray, float]:
        shrunk = np.sign(b) * np.maximum(np.abs(b) - self.strength, 0.0)
        return shrunk / A, float(np.count_nonzero(shrunk)) / b.size / A

    def value(self, w: np.ndarray) -> float:
        return float(self.strength) * float(np.abs(w).sum())


def as_penalty(penalty: Penalty | str | float) -> Penalty:
    """A penalty from an instance, a number (ridge of that strength), or text: `ridge:0.1`, `lasso:0.3`."""
    takes = "a penalty, a number (the strength of a ridge), 'ridge:STRENGTH' or 'lasso:STRENGTH'"
    if isinstance(penalty, Penalty):
        return penalty
    if not isinstance(penalty, str):
        return Ridge(real_number("penalty", penalty, takes))
    name, _, strength = penalty.strip().lower().partition(":")
    kind = {"ridge": Ridge, "lasso": Lasso, "l2": Ridge, "l1": Lasso}.get(name)
    try:
        if kind is not None:
            return kind(float(strength)) if strength else kind()
        return Ridge(float(penalty))
    except ValueError:
        raise bad_parameter("penalty", penalty, takes) from None


def _far(t: Any, exact: Any, tail: Any) -> Any:
    """The exact form, or its leading tail where t is so negative that the exact form cancels."""
    return jnp.where(t > -30.0, jnp.maximum(exact, 0.0), tail)
