r"""The law of $A = W^T W / \sqrt{p d}$ with W of p x d independent N(0, 1) entries and p = rho d: free Poisson
[marchenko1967distribution]."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_number
from solvable.spectra.law import LowRank, ratio, root_between


class MarchenkoPastur(LowRank):
    r"""Rate rho and jumps $1/\sqrt\rho$: mean $\sqrt\rho$, second moment $1 + \rho$, an atom of $(1 - \rho)_+$ at 0.

    The rest has density $\sqrt\rho \sqrt{(x - x_-)(x_+ - x)} / (2 \pi x)$ between
    $x_\pm = (1 \pm \sqrt\rho)^2/\sqrt\rho$. The transform solves $w = 1/g + \rho/(\sqrt\rho - g)$.
    """

    rho: Any

    def __check_init__(self):
        real_number("rho", self.rho, "a positive number", lambda x: x > 0)

    def stieltjes(self, z: Any) -> jax.Array:
        low, high = self.ends_of_density
        r = jnp.sqrt(self.rho)
        z = jnp.asarray(z) + 0j
        b = z * r + 1 - self.rho
        s = r * root_between(z, low, high)
        # g = 2 r / (b + s) = (b - s) / (2 z): the form in which nothing cancels.
        same = jnp.real(b * jnp.conj(s)) >= 0
        total = jnp.where(same, b + s, b - s)
        return ratio(jnp.where(same, 2 * r, total), jnp.where(same, total, 2 * z))

    def stieltjes_slope(self, z: Any) -> jax.Array:
        g = self.stieltjes(z)
        square, gap = g * g, jnp.sqrt(self.rho) - g
        return ratio(square * gap * gap, self.rho * square - gap * gap)

    def spread_slope(self, u: Any) -> jax.Array:
        g = jnp.real(self.stieltjes(jnp.asarray(u) + 0j))
        # With w(g) the inverse of g: g'' = -w''/w'^3.
        gap = jnp.sqrt(self.rho) - g
        return (2 / g**3 + 2 * self.rho / gap**3) / (self.rho / gap**2 - 1 / g**2) ** 3

    @property
    def ends_of_density(self) -> tuple[Any, Any]:
        """The ends of the continuous part."""
        r = jnp.sqrt(self.rho)
        return (1 - r) ** 2 / r, (1 + r) ** 2 / r

    @property
    def mean(self) -> Any:
        return jnp.sqrt(self.rho)

    @property
    def second_moment(self) -> Any:
        return 1 + self.rho

    def eigenvalues(self, d: int) -> np.ndarray:
        rho = float(self.rho)
        r = np.sqrt(rho)
        # x = mid - half cos(phi): the distribution function is smooth in phi up to both ends.
        low, high = (1 - r) ** 2 / r, (1 + r) ** 2 / r
        phi = np.linspace(0, np.pi, 20001)
        x = (low + high) / 2 - (high - low) / 2 * np.cos(phi)
        density = r * ((high - low) / 2 * np.sin(phi)) ** 2 / (2 * np.pi * np.maximum(x, 1e-300))
        mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2) * (phi[1] - phi[0])])
        levels = (np.arange(d) + 0.5) / d
        atom = max(1 - rho, 0.0)
        return np.where(levels < atom, 0.0, np.interp((levels - atom) / (1 - atom), mass / mass[-1], x))
