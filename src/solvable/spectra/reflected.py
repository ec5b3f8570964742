"""The law of the eigenvalues of -A."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.spectra.law import Law


class Reflected(Law):
    """The law of -A: its part above -u is that of A below u."""

    law: Law

    def stieltjes(self, z: Any) -> jax.Array:
        return -jnp.conj(self.law.stieltjes(-jnp.conj(jnp.asarray(z) + 0j)))

    def stieltjes_slope(self, z: Any) -> jax.Array:
        return jnp.conj(self.law.stieltjes_slope(-jnp.conj(jnp.asarray(z) + 0j)))

    def spread(self, u: Any) -> jax.Array:
        return self.law.spread(-jnp.asarray(u))

    def spread_slope(self, u: Any) -> jax.Array:
        return -self.law.spread_slope(-jnp.asarray(u))

    def smoothed(self, u: Any, s: Any) -> tuple[jax.Array, jax.Array]:
        return self.law.smoothed(-jnp.asarray(u), s)

    @property
    def ends(self) -> tuple[Any, Any]:
        low, high = self.law.ends
        return -high, -low

    @property
    def gaps(self) -> jax.Array:
        return -self.law.gaps[::-1, ::-1]

    @property
    def mean(self) -> Any:
        return -self.law.mean

    @property
    def second_moment(self) -> Any:
        return self.law.second_moment

    @property
    def atoms(self) -> tuple[jax.Array, jax.Array]:
        places, weights = self.law.atoms
        return -places, weights

    def eigenvalues(self, d: int) -> Any:
        return -np.asarray(self.law.eigenvalues(d))[::-1]
