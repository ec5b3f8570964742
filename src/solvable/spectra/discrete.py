"""Laws made of points: a list of eigenvalues, with weights, and the power law."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import bad_parameter
from solvable.spectra.law import Law


class Discrete(Law):
    """Point masses at `values`, with `weights` that are made to sum to one (equal ones unless told)."""

    values: Any
    weights: Any

    def __init__(self, values: Any, weights: Any = None):
        values = np.asarray(values, float)
        weights = np.ones_like(values) if weights is None else np.asarray(weights, float)
        if values.ndim != 1 or not values.size or not np.all(np.isfinite(values)):
            raise bad_parameter("values", values, "a list of finite eigenvalues")
        if weights.shape != values.shape or not np.all(np.isfinite(weights) & (weights > 0)):
            raise bad_parameter("weights", weights, "a positive weight for each value")
        places, index = np.unique(values, return_inverse=True)
        masses = np.bincount(index, weights)
        self.values, self.weights = places, masses / masses.sum()

    def stieltjes(self, z: Any) -> jax.Array:
        return jnp.sum(self.weights / (jnp.asarray(z)[..., None] + 0j - self.values), -1)

    def stieltjes_slope(self, z: Any) -> jax.Array:
        return -jnp.sum(self.weights / (jnp.asarray(z)[..., None] + 0j - self.values) ** 2, -1)

    def spread_slope(self, u: Any) -> jax.Array:
        return -2 * jnp.sum(self.weights / (jnp.asarray(u)[..., None] - self.values) ** 3, -1)

    @property
    def ends(self) -> tuple[Any, Any]:
        return self.values[0], self.values[-1]

    @property
    def gaps(self) -> jax.Array:
        return jnp.stack([jnp.asarray(self.values[:-1]), jnp.asarray(self.values[1:])], -1)

    @property
    def mean(self) -> Any:
        return jnp.sum(self.weights * self.values)

    @property
    def second_moment(self) -> Any:
        return jnp.sum(self.weights * self.values**2)

    @property
    def atoms(self) -> tuple[jax.Array, jax.Array]:
        return jnp.asarray(self.values), jnp.asarray(self.weights)

    def eigenvalues(self, d: int) -> np.ndarray:
        levels = (np.arange(d) + 0.5) / d
        return np.asarray(self.values)[np.searchsorted(np.cumsum(np.asarray(self.weights)), levels, side="right")]


class PowerLaw(Discrete):
    r"""`size` eigenvalues $t_k = C k^{-\gamma}$, k = 1, 2, .., with C such that their mean square is one."""

    gamma: float = 1.0

    def __init__(self, gamma: float, size: int):
        if not (np.isfinite(gamma) and gamma > 0.5):
            raise bad_parameter("gamma", gamma, "above 1/2, so that the largest eigenvalues carry the norm")
        if size < 1:
            raise bad_parameter("size", size, "a positive number of eigenvalues")
        values = np.arange(1.0, size + 1) ** -gamma
        super().__init__(values * np.sqrt(size / np.sum(values**2)))
        self.gamma = float(gamma)
