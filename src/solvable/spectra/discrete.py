"""Laws made of points: a list of eigenvalues, with weights, and the power law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import check_count, real_array, real_number
from solvable.core.errors import bad_parameter
from solvable.spectra.law import Law

_BLOCK = 4
_MOST = 10**7
"""The most eigenvalues of a power law."""


class Discrete(Law):
    """Point masses at `values`, with `weights` that are made to sum to one (equal ones unless told)."""

    values: Any
    weights: Any

    def __init__(self, values: Any, weights: Any = None):
        values = real_array("values", values)
        weights = np.ones_like(values) if weights is None else real_array("weights", weights)
        if values.ndim != 1 or not values.size or not np.all(np.isfinite(values)):
            raise bad_parameter("values", values, "a list of finite eigenvalues")
        if weights.shape != values.shape or not np.all(np.isfinite(weights) & (weights > 0)):
            raise bad_parameter("weights", weights, "a positive weight for each value")
        places, index = np.unique(values, return_inverse=True)
        masses = np.bincount(index, weights)
        self.values, self.weights = places, masses / masses.sum()

    def stieltjes(self, z: Any) -> jax.Array:
        u, v = _parts(z)
        real, flat = self._sums(lambda away, q: (away / q, 1 / q), u, v**2)
        return jax.lax.complex(real, -v * flat)

    def stieltjes_slope(self, z: Any) -> jax.Array:
        u, v = _parts(z)
        real, cross = self._sums(lambda away, q: ((v**2 - away**2) / q**2, away / q**2), u, v**2)
        return jax.lax.complex(real, 2 * v * cross)

    def spread(self, u: Any) -> jax.Array:
        return self._sums(lambda away, q: (1 / q,), jnp.asarray(u), 0.0)[0]

    def spread_slope(self, u: Any) -> jax.Array:
        return -2 * self._sums(lambda away, q: (1 / (away * q),), jnp.asarray(u), 0.0)[0]

    def smoothed(self, u: Any, s: Any) -> tuple[jax.Array, jax.Array]:
        P, Q = self._sums(lambda away, q: (1 / q, 1 / q**2), jnp.asarray(u), s)
        return P, Q

    def _sums(self, terms: Callable[..., tuple[Any, ...]], u: jax.Array, s: Any) -> tuple[jax.Array, ...]:
        """Sums over the values t of weight x `terms`(u - t, (u - t)^2 + s).

        The values are taken a few at a time and all u at once, so that long sums run in cache and vectorised.
        """

        def add(total: tuple[jax.Array, ...], places: Any, weights: Any) -> tuple[jax.Array, ...]:
            for i in range(len(places)):
                away = u - places[i]
                parts = terms(away, away**2 + s)
                total = tuple(a + weights[i] * part for a, part in zip(total, parts, strict=True))
            return total

        places, weights = jnp.asarray(self.values), jnp.asarray(self.weights)
        head = len(places) % _BLOCK
        total = tuple(jnp.zeros(part.shape, part.dtype) for part in jax.eval_shape(terms, u, u + s))
        total = add(total, places[:head], weights[:head])
        blocks = places[head:].reshape(-1, _BLOCK), weights[head:].reshape(-1, _BLOCK)
        return jax.lax.scan(lambda total, block: (add(total, *block), None), total, blocks)[0]

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

    def __init__(self, gamma: float, size: int = 400):
        takes = "above 1/2, so that the largest eigenvalues carry the norm"
        gamma = real_number("gamma", gamma, takes, lambda x: x > 0.5)
        size = check_count("size", size, least=1, most=_MOST)
        values = np.arange(1.0, size + 1) ** -gamma
        super().__init__(values * np.sqrt(size / np.sum(values**2)))
        self.gamma = gamma

    def eigenvalues(self, d: int) -> np.ndarray:
        size = len(self.values)
        if d % size:
            raise bad_parameter("d", d, f"a multiple of {size}, since this power law has {size} eigenvalues")
        return super().eigenvalues(d)


def _parts(z: Any) -> tuple[jax.Array, jax.Array]:
    z = jnp.asarray(z)
    return jnp.real(z), jnp.imag(z)
