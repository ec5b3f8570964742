"""A loss on the samples of one data set: values, slopes and proximal steps of many labels at once, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from solvable.channels.losses.base import Loss
from solvable.numerics.batches import in_batches

_CHUNK = 2048
"""Compiled functions see this many samples at a time, padded."""


class SampleLoss:
    """The loss at the labels `y`, as functions of the outputs of all samples (n,)."""

    def __init__(self, loss: Loss, y: np.ndarray):
        self.loss = eqx.tree_at(_numbers, loss, replace_fn=np.float64)
        self.y = np.asarray(y, float)

    def value(self, z: np.ndarray) -> np.ndarray:
        """l(y, z)."""
        return self.value_and_slope(z)[0]

    def value_and_slope(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """l(y, z) and its derivative in z."""
        value, slope = self._rows(_value_and_slope, z)
        return value, slope

    def step(self, omega: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The proximal output z, g = (z - omega) / V, and h = -dg / domega."""
        z, g, h = self._rows(_step, omega, V)
        return z, g, h

    def responses(self, z: np.ndarray, V: float) -> np.ndarray:
        """h = l'' / (1 + V l'') at outputs z of the proximal operator; 1 / V at a kink."""
        return self._rows(_responses, z, V)[0]

    def lowest_curvature(self, z: np.ndarray) -> float:
        """The least l'' over the samples."""
        return float(self._rows(_curvature, z)[0].min())

    def _rows(self, function: Callable, z: np.ndarray, *more: float) -> tuple[np.ndarray, ...]:
        numbers = [np.float64(number) for number in more]
        return in_batches(lambda y, z: function(self.loss, y, z, *numbers), self.y, z, batch=_CHUNK, alone=False)


def _numbers(loss: Loss) -> Any:
    return [getattr(loss, name) for name in ("scale",) if hasattr(loss, name)]


@eqx.filter_jit
def _value_and_slope(loss: Loss, y: Any, z: Any) -> tuple[Any, Any]:
    slope = loss.slope(loss.coordinate(y, z), y)
    return loss(y, z), -slope if loss.residual else slope


@eqx.filter_jit
def _step(loss: Loss, y: Any, omega: Any, V: Any) -> tuple[Any, Any, Any]:
    u = loss.prox(loss.coordinate(y, omega), V, y)
    z = loss.coordinate(y, u)
    return z, (z - omega) / V, _response(loss, y, u, V)


@eqx.filter_jit
def _curvature(loss: Loss, y: Any, z: Any) -> tuple[Any]:
    return (loss.curvature(loss.coordinate(y, z), y),)


@eqx.filter_jit
def _responses(loss: Loss, y: Any, z: Any, V: Any) -> tuple[Any]:
    return (_response(loss, y, loss.coordinate(y, z), V),)


def _response(loss: Loss, y: Any, u: Any, V: Any) -> Any:
    curvature = loss.curvature(u, y)
    smooth = curvature / (1 + V * curvature)
    kinks = loss.kinks_of(y).place
    at_kink = jnp.any(jnp.abs(u[:, None] - kinks) <= 1e-6 * (1 + jnp.abs(kinks)), axis=1)
    return jnp.where(at_kink, 1 / V, smooth)
