"""The semicircle law of Gaussian symmetric matrices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_number
from solvable.spectra.law import Law


class Semicircle(Law):
    r"""Density $\sqrt{4 s - (x - c)^2} / (2 \pi s)$ with s = `scale` the variance and c = `centre`."""

    scale: Any = 1.0
    centre: Any = 0.0

    def __check_init__(self):
        real_number("scale", self.scale, "a positive variance", lambda x: x > 0)
        real_number("centre", self.centre, "a finite number")

    def stieltjes(self, z: Any) -> jax.Array:
        w = jnp.asarray(z) + 0j - self.centre
        reach = 2 * jnp.sqrt(self.scale)
        s = jnp.sqrt(w - reach) * jnp.sqrt(w + reach)
        return 2 / (w + s)

    def stieltjes_slope(self, z: Any) -> jax.Array:
        g = self.stieltjes(z)
        return 1 / (self.scale - 1 / g**2)

    def spread_slope(self, u: Any) -> jax.Array:
        g = jnp.real(self.stieltjes(jnp.asarray(u) + 0j))
        return 2 / g**3 / (self.scale - 1 / g**2) ** 3

    @property
    def ends(self) -> tuple[Any, Any]:
        reach = 2 * jnp.sqrt(self.scale)
        return self.centre - reach, self.centre + reach

    @property
    def gaps(self) -> jax.Array:
        return jnp.zeros((0, 2))

    @property
    def mean(self) -> Any:
        return jnp.asarray(self.centre)

    @property
    def second_moment(self) -> Any:
        return self.centre**2 + self.scale

    @property
    def atoms(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(0), jnp.zeros(0)

    def eigenvalues(self, d: int) -> np.ndarray:
        phi = np.linspace(0, np.pi, 20001)
        mass = (phi - np.sin(2 * phi) / 2) / np.pi
        angles = np.interp((np.arange(d) + 0.5) / d, mass, phi)
        return float(self.centre) - 2 * np.sqrt(float(self.scale)) * np.cos(angles)
