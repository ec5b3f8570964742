r"""The eigenvalues of $S S^T/L$ for a product $S = A B/\sqrt r$ of two Gaussian matrices, d x r and r x L."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_number
from solvable.spectra.law import LowRank, ratio

_POLISH = 3


class ProductWishart(LowRank):
    r"""With $\rho = r/d$ and $\beta = L/d \ge 1$, $\tau(z) = \int t/(z - t) = z g(z) - 1$ solves the cubic

    $(1 + \tau)(\rho + \tau)(\beta + \tau) = \rho\beta z \tau$.

    Among its roots $\tau(z)$ is the one in the region of the lower half-plane over the real interval $[\tau_b, \tau_+]$
    that the curve $(\mathrm{Im}\,\tau)^2 = \rho\beta/(1 + \rho + \beta + 2\,\mathrm{Re}\,\tau) - (\mathrm{Re}\,\tau)^2$
    bounds: this curve is the image of the support, on the interval z is off it. $\tau_b < 0 < \tau_+$ are the two
    largest roots of $2\tau^3 + (1 + \rho + \beta)\tau^2 = \rho\beta$, where $dz/d\tau = 0$: the ends of the support.
    The mean is 1, the second moment $1 + 1/\rho + 1/\beta$, and there is an atom of $(1 - \rho)_+$ at 0.
    """

    rho: Any
    beta: Any
    critical: tuple[Any, Any]

    def __init__(self, rho: Any, beta: Any = 1.0):
        for name, value, least in (("rho", rho, 0), ("beta", beta, 1)):
            takes = "a positive number" if least == 0 else "a number of at least 1"
            real_number(name, value, takes, lambda x, least=least: x > 0 and x >= least)
        self.rho, self.beta = rho, beta
        self.critical = _critical(rho, beta)

    def stieltjes(self, z: Any) -> jax.Array:
        z = jnp.asarray(z) + 0j
        tau = self._tau(z)
        product = self.rho * self.beta
        # Without an atom at 0 the second form has nothing that cancels there.
        top = jnp.where(self.rho < 1, 1 + tau, product * tau)
        return ratio(top, jnp.where(self.rho < 1, z, (self.rho + tau) * (self.beta + tau)))

    def stieltjes_slope(self, z: Any) -> jax.Array:
        z = jnp.asarray(z) + 0j
        tau = self._tau(z)
        product, total = self.rho * self.beta, 1 + self.rho + self.beta
        square = tau * tau
        slope = ratio(product * square, (2 * tau + total) * square - product)  # d tau / dz
        below = (self.rho + tau) * (self.beta + tau)
        top = jnp.where(self.rho < 1, z * slope - (1 + tau), product * (product - square) * slope)
        return ratio(top, jnp.where(self.rho < 1, z * z, below * below))

    def spread_slope(self, u: Any) -> jax.Array:
        z = jnp.asarray(u)
        tau = jnp.real(self._tau(z + 0j))
        product = self.rho * self.beta
        _, first, second = self._place(tau)
        slope, bend = 1 / first, -second / first**3
        with_atom = (bend - 2 * (slope - (1 + tau) / z) / z) / z
        # g = product tau / below, and its derivatives in tau.
        below, below_slope = (self.rho + tau) * (self.beta + tau), self.rho + self.beta + 2 * tau
        g_slope = product * (product - tau**2) / below**2
        g_bend = -2 * product * tau / below**2 - 2 * g_slope * below_slope / below
        return -jnp.where(self.rho < 1, with_atom, g_bend * slope**2 + g_slope * bend)

    def _place(self, tau: Any) -> tuple[Any, Any, Any]:
        """z(tau) and its first two derivatives."""
        product, total = self.rho * self.beta, 1 + self.rho + self.beta
        z = (1 + tau) * (self.rho + tau) * (self.beta + tau) / (product * tau)
        return z, (2 * tau + total) / product - 1 / tau**2, 2 / product + 2 / tau**3

    def _tau(self, z: jax.Array) -> jax.Array:
        """The root of the cubic, by Cardano's formula and Newton's steps."""
        product, total = self.rho * self.beta, 1 + self.rho + self.beta
        linear = self.rho + self.beta + product - product * z
        P = linear - total**2 / 3
        Q = 2 * total**3 / 27 - total * linear / 3 + product
        root = jnp.sqrt(Q * Q / 4 + P * P * P / 27)
        cube = jnp.where(jnp.real(Q * jnp.conj(root)) > 0, -Q / 2 - root, -Q / 2 + root)
        size, angle = jnp.cbrt(jnp.abs(cube)), jnp.angle(cube) / 3
        first = size * (jnp.cos(angle) + 1j * jnp.sin(angle))
        second = ratio(-P, jnp.where(first == 0, 1.0, 3 * first))
        roots = [first * turn + second * np.conj(turn) - total / 3 for turn in np.exp(2j * np.pi / 3 * np.arange(3))]
        tau, least = roots[0], self._outside(roots[0])
        for other in roots[1:]:
            outside = self._outside(other)
            tau, least = jnp.where(outside < least, other, tau), jnp.minimum(outside, least)
        for _ in range(_POLISH):
            value = (1 + tau) * (self.rho + tau) * (self.beta + tau) - product * z * tau
            slope = 3 * tau * tau + 2 * total * tau + linear
            step = ratio(value, jnp.where(slope == 0, 1.0, slope))
            # At an end of the support the root is double, and rounding could send Newton's step far away.
            tau = tau - jnp.where(jnp.abs(step) < 0.1 * jnp.abs(tau), step, 0.0)
        return tau

    def _outside(self, root: jax.Array) -> jax.Array:
        """How far a root of the cubic is from the half-strip that only tau(z) lies in."""
        low, high = self.critical
        along = jnp.real(root)
        return jnp.maximum(jnp.imag(root), 0) + jnp.maximum(low - along, 0) + jnp.maximum(along - high, 0)

    @property
    def ends_of_density(self) -> tuple[Any, Any]:
        """The ends of the continuous part."""
        low, high = (self._place(tau)[0] for tau in self.critical)
        return jnp.where((self.rho == 1) | (self.beta == 1) & (self.rho > 1), 0.0, jnp.maximum(low, 0.0)), high

    @property
    def mean(self) -> Any:
        return jnp.ones(())

    @property
    def second_moment(self) -> Any:
        return 1 + 1 / self.rho + 1 / self.beta

    def eigenvalues(self, d: int) -> np.ndarray:
        with jax.enable_x64(True):
            low, high = (float(end) for end in self.critical)
            product, total = float(self.rho * self.beta), float(1 + self.rho + self.beta)
            along = (low + high) / 2 - (high - low) / 2 * np.cos(np.linspace(0, np.pi, 40001))
            tau = along - 1j * np.sqrt(np.maximum(product / (total + 2 * along) - along**2, 0.0))
            t = np.maximum.accumulate(np.real(self._place(tau)[0]))
        density = -np.imag(tau) / (np.pi * np.maximum(t, 1e-300))
        mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(t))])
        levels, atom = (np.arange(d) + 0.5) / d, max(1 - float(self.rho), 0.0)
        return np.where(levels < atom, 0.0, np.interp((levels - atom) / (1 - atom), mass / mass[-1], t))


def _critical(rho: Any, beta: Any) -> tuple[Any, Any]:
    """tau_b and tau_+, by the trigonometric formula and Newton's steps; numpy if the parameters are plain numbers."""
    xp: Any = np if isinstance(rho, (int, float)) and isinstance(beta, (int, float)) else jnp
    product, total = rho * beta, 1 + rho + beta
    angle = xp.arccos(xp.clip(54 * product / total**3 - 1, -1, 1)) / 3
    found = total / 3 * xp.cos(angle - xp.array([2 * np.pi / 3, 0.0])) - total / 6
    for _ in range(_POLISH):
        slope = 6 * found**2 + 2 * total * found
        step = (2 * found**3 + total * found**2 - product) / xp.where(slope == 0, 1.0, slope)
        found = found - xp.where(xp.abs(step) < 1e-3 * xp.abs(found), step, 0.0)
    return found[0], found[1]
