r"""A law of eigenvalues: what every family needs to know of a random matrix with rotation-invariant eigenvectors.

The Stieltjes transform here is $g(z) = \int \mu(dt) / (z - t)$.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


class Law(eqx.Module):
    """A probability law on the line, with its Stieltjes transform off the support.

    A subclass gives the transform and its derivative, the ends of the support, and the gaps inside it. A gap that some
    parameters close is kept, with equal ends at a point where the support is best cut in two, so that the number of
    gaps does not depend on traced values.
    """

    @abc.abstractmethod
    def stieltjes(self, z: Any) -> jax.Array:
        """g(z) for complex z in the upper half-plane, or real z (with zero imaginary part) off the support."""

    @abc.abstractmethod
    def stieltjes_slope(self, z: Any) -> jax.Array:
        r"""$g'(z) = -\int \mu(dt)/(z - t)^2$, at the same z."""

    @abc.abstractmethod
    def spread_slope(self, u: Any) -> jax.Array:
        r"""$-2\int \mu(dt)/(u - t)^3 = -g''(u)$ for real u off the support: it changes sign once in each gap."""

    @property
    @abc.abstractmethod
    def ends(self) -> tuple[Any, Any]:
        """The smallest and the largest point of the support."""

    @property
    @abc.abstractmethod
    def gaps(self) -> jax.Array:
        """The gaps in the support, m x 2, from left to right."""

    @property
    @abc.abstractmethod
    def mean(self) -> Any:
        """The first moment."""

    @property
    @abc.abstractmethod
    def second_moment(self) -> Any:
        """The second moment."""

    @property
    @abc.abstractmethod
    def atoms(self) -> tuple[jax.Array, jax.Array]:
        """Places and weights of the point masses."""

    @abc.abstractmethod
    def eigenvalues(self, d: int) -> Any:
        """d eigenvalues that have this law as closely as d points can, in increasing order."""

    def __str__(self) -> str:
        from solvable.spectra.named import law_text  # the texts of all laws are kept together there

        return law_text(self)

    @property
    def variance(self) -> Any:
        """The second moment about the mean."""
        return self.second_moment - self.mean**2

    def spread(self, u: Any) -> jax.Array:
        r"""$\int \mu(dt)/(u - t)^2 = -g'(u)$ for real u off the support."""
        return -jnp.real(self.stieltjes_slope(jnp.asarray(u) + 0j))

    def smoothed(self, u: Any, s: Any) -> tuple[jax.Array, jax.Array]:
        r"""$P = \int \mu(dt)/((u - t)^2 + s)$ and $Q = \int \mu(dt)/((u - t)^2 + s)^2 = -dP/ds$ for s > 0."""
        v = jnp.sqrt(s)
        w = u + 1j * v
        P = -jnp.imag(self.stieltjes(w)) / v
        return P, (P + jnp.real(self.stieltjes_slope(w))) / (2 * s)


def ratio(a: Any, b: Any) -> jax.Array:
    """a / b for complex numbers of ordinary size: a few real operations, where the general quotient compiles slowly."""
    return a * jnp.conj(b) / (jnp.real(b) ** 2 + jnp.imag(b) ** 2)


def root_between(z: Any, low: Any, high: Any) -> jax.Array:
    r"""$\sqrt{z - low} \sqrt{z - high}$ with principal roots, for z in the closed upper half-plane: like z far out."""
    u, v = jnp.real(z), jnp.imag(z)
    middle = u - (low + high) / 2
    real, half = (u - low) * (u - high) - v**2, jnp.abs(v * middle)  # the square is real + 2i half up to sign
    large = jnp.sqrt((jnp.sqrt(real**2 + 4 * half**2) + jnp.abs(real)) / 2)
    safe = jnp.where(large > 0, large, 1.0)
    small = half / safe
    return jax.lax.complex(jnp.sign(middle) * jnp.where(real > 0, large, small), jnp.where(real > 0, small, large))


class LowRank(Law):
    """A law with a continuous part on positive numbers and, for a rank `rho` below one, an atom of 1 - rho at zero."""

    rho: eqx.AbstractVar[Any]

    @property
    @abc.abstractmethod
    def ends_of_density(self) -> tuple[Any, Any]:
        """The ends of the continuous part."""

    @property
    def ends(self) -> tuple[Any, Any]:
        low, high = self.ends_of_density
        return jnp.where(self.rho < 1, 0.0, low), high

    @property
    def gaps(self) -> jax.Array:
        low, _ = self.ends_of_density
        return jnp.stack([jnp.where(self.rho < 1, 0.0, low), low])[None]

    @property
    def atoms(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros(1), jnp.maximum(1 - jnp.asarray(self.rho), 0.0)[None]
