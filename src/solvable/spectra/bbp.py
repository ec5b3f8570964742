r"""A spike in a random matrix: the eigenvalue that leaves the bulk, and how well its eigenvector points to the spike.

Three kinds, each for any law of the rest of the matrix, whose eigenvectors are uniformly random: a spike added to a
symmetric matrix, a spike in the population of a sample covariance, a spike added to a rectangular matrix. A spike has
an outlier when it is stronger than a threshold; below, the largest eigenvalue stays at the edge of the bulk and the
overlap is zero [baik2005phase], [benaych2011eigenvalues], [benaych2012singular]. All functions are
vectorised by `jax.vmap` and differentiable in the strength and in the law, but for the threshold. They need double
precision: `with jax.enable_x64(True)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from solvable.numerics.roots import halving, logarithmic
from solvable.spectra.law import Law

_HALVINGS = 90
_NEAREST = 1e-12


class Outlier(NamedTuple):
    """`location` of the outlier (the edge of the bulk where there is none), squared `overlap` of its eigenvector with
    the spike, and the `threshold` that the strength has to exceed."""

    location: jax.Array
    overlap: jax.Array
    threshold: jax.Array


class SingularOutlier(NamedTuple):
    """The same for a singular value, with the overlaps of its left and right singular vectors."""

    location: jax.Array
    left: jax.Array
    right: jax.Array
    threshold: jax.Array


@jax.jit
def added_spike(law: Law, theta: Any) -> Outlier:
    r"""$A + \theta u u^T$, |u| = 1: the outlier z solves $g(z) = 1/\theta$, with overlap $-1/(\theta^2 g'(z))$.

    The threshold is 1/g(edge). A negative theta sends an eigenvalue out of the bulk on the left, and the threshold is
    then that of |theta|.
    """
    theta = jnp.asarray(theta, float)
    side, strength = jnp.where(theta < 0, -1.0, 1.0), jnp.abs(theta)
    low, high = law.ends

    def pull(law: Law, z: Any) -> tuple[jax.Array, jax.Array]:
        """|g| and its derivative in the distance from the bulk."""
        return side * jnp.real(law.stieltjes(z + 0j)), jnp.real(law.stieltjes_slope(z + 0j))

    edge = jnp.where(theta < 0, low, high)
    z, threshold, there = _solve(pull, law, edge, side, strength, strength, high - low)
    overlap = -1 / (strength**2 * pull(law, z)[1])
    return Outlier(jnp.where(there, z, edge), jnp.where(there, overlap, 0.0), threshold)


def added_spike_in_noise(theta: Any, D: Any) -> Outlier:
    r"""A spike in Gaussian noise of variance D: $\theta + D/\theta$, $1 - D/\theta^2$, threshold $\sqrt D$."""
    threshold = jnp.sqrt(D)
    there = theta > threshold
    strength = jnp.where(there, theta, threshold)
    return Outlier(strength + D / strength, 1 - D / strength**2, threshold)


@jax.jit
def covariance_spike(law: Law, ell: Any) -> Outlier:
    r"""$\Sigma^{1/2} X \Sigma^{1/2}$ with one population eigenvalue $\ell > 1$ of $\Sigma$, the others 1, X of `law`.

    With $\theta = \ell - 1$ and $T(z) = \int t/(z - t) = z g(z) - 1$ the outlier solves $T(z) = 1/\theta$, the overlap
    is $-(1 + \theta)/(\theta^2 z T'(z))$, and the threshold $1 + 1/T$(edge).
    """
    theta = jnp.asarray(ell, float) - 1

    def pull(law: Law, z: Any) -> tuple[jax.Array, jax.Array]:
        """T and T'."""
        g = jnp.real(law.stieltjes(z + 0j))
        return z * g - 1, g + z * jnp.real(law.stieltjes_slope(z + 0j))

    low, edge = law.ends
    strength = jnp.maximum(theta, 0.0)
    z, threshold, there = _solve(pull, law, edge, 1.0, strength, strength * edge, edge - low)
    overlap = -(1 + theta) / (strength**2 * z * pull(law, z)[1])
    return Outlier(jnp.where(there, z, edge), jnp.where(there, overlap, 0.0), 1 + threshold)


def sample_covariance_spike(ell: Any, ratio: Any) -> Outlier:
    r"""Sample covariance of Gaussian vectors, `ratio` $\gamma$ = dimension over samples, one population eigenvalue ell.

    Location $\ell (1 + \gamma/(\ell - 1))$, overlap $(1 - \gamma/(\ell - 1)^2)/(1 + \gamma/(\ell - 1))$, threshold
    $1 + \sqrt\gamma$.
    """
    threshold = 1 + jnp.sqrt(ratio)
    there = ell > threshold
    excess = jnp.where(there, ell, threshold) - 1
    overlap = (1 - ratio / excess**2) / (1 + ratio / excess)
    return Outlier((1 + excess) * (1 + ratio / excess), overlap, threshold)


@jax.jit
def rectangular_spike(law: Law, ratio: Any, theta: Any) -> SingularOutlier:
    r"""$X + \theta u v^T$ for a d x L matrix X, `law` that of the eigenvalues of $X X^T$, `ratio` $\gamma = d/L \le 1$.

    With $\varphi(z) = z g(z^2)$, $\tilde\varphi = \gamma\varphi + (1 - \gamma)/z$ and $D = \varphi\tilde\varphi$ the
    outlier solves $D(z) = 1/\theta^2$; the overlaps are $-2\varphi/(\theta^2 D')$ (left, in dimension d) and
    $-2\tilde\varphi/(\theta^2 D')$ (right); the threshold is $D(edge)^{-1/2}$.
    """
    theta = jnp.asarray(theta, float)

    def parts(law: Law, z: Any) -> tuple[jax.Array, ...]:
        """phi, its companion, and the derivative of D."""
        g, slope = (jnp.real(f(z**2 + 0j)) for f in (law.stieltjes, law.stieltjes_slope))
        phi, phi_slope = z * g, g + 2 * z**2 * slope
        other, other_slope = ratio * phi + (1 - ratio) / z, ratio * phi_slope - (1 - ratio) / z**2
        return phi, other, phi_slope * other + phi * other_slope

    def pull(law: Law, z: Any) -> tuple[jax.Array, jax.Array]:
        """sqrt(D) and its derivative."""
        phi, other, slope = parts(law, z)
        root = jnp.sqrt(phi * other)
        return root, slope / (2 * root)

    edge = jnp.sqrt(law.ends[1])
    z, threshold, there = _solve(pull, law, edge, 1.0, theta, theta, edge)
    phi, other, slope = parts(law, z)
    left, right = (jnp.where(there, -2 * part / (theta**2 * slope), 0.0) for part in (phi, other))
    return SingularOutlier(jnp.where(there, z, edge), left, right, threshold)


def rectangular_spike_in_noise(theta: Any, ratio: Any) -> SingularOutlier:
    r"""A spike in a d x L matrix of independent Gaussian entries of variance 1/L, `ratio` $\gamma = d/L$.

    Location $\sqrt{(1 + \theta^2)(\gamma + \theta^2)}/\theta$, overlaps $1 - \frac{\gamma (1 + \theta^2)}{\theta^2
    (\theta^2 + \gamma)}$ (left) and $1 - \frac{\gamma + \theta^2}{\theta^2 (\theta^2 + 1)}$ (right), threshold
    $\gamma^{1/4}$.
    """
    threshold = jnp.asarray(ratio, float) ** 0.25
    there = theta > threshold
    square = jnp.where(there, theta, threshold) ** 2
    location = jnp.sqrt((1 + square) * (ratio + square) / square)
    left = 1 - ratio * (1 + square) / (square * (square + ratio))
    return SingularOutlier(location, left, 1 - (ratio + square) / (square * (square + 1)), threshold)


Pull = Callable[[Law, Any], tuple[jax.Array, jax.Array]]


def _solve(
    pull: Pull, law: Law, edge: Any, side: Any, strength: Any, reach: Any, width: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Where `pull`, which falls with the distance from the edge, equals 1 / strength, at most `reach` away.

    Returns that place, the strength that is needed for there to be one, and whether there is.
    """
    known, start, far = jax.lax.stop_gradient((law, edge, reach))
    level = 1 / jnp.where(strength > 0, strength, 1.0)
    threshold = 1 / _limit(lambda distance: pull(known, start + side * distance)[0], jax.lax.stop_gradient(width))
    there = strength > threshold

    def weaker(distance: jax.Array) -> jax.Array:
        return ~(pull(known, start + side * distance)[0] > level)

    # The logarithm of the distance is halved: near the threshold the outlier is very close to the edge.
    safe = jnp.where(there, far, 1.0) * (1 + 1e-9)
    distance = halving(weaker, 1e-18 * safe, safe, _HALVINGS, middle=logarithmic).middle
    z = start + side * jax.lax.stop_gradient(distance)
    value, slope = pull(law, z)
    # One Newton step, whose derivative is that of the root by the implicit function theorem.
    return z - side * (value - level) / jax.lax.stop_gradient(side * slope), threshold, there


def _limit(pull: Callable[[Any], jax.Array], width: Any) -> jax.Array:
    """`pull` at the edge itself, infinite if it grows without bound.

    Near an edge where the density vanishes like a square root so does the deviation from the limit, which is taken out
    by two distances. Growth like a logarithm, or faster, does not slow down.
    """
    scale = _NEAREST * jnp.where(width > 0, width, 1.0)
    first, fourth, second, third = (pull(factor * scale) for factor in (1.0, 4.0, 100.0, 1e4))
    grows = (first - second > 0.5 * (second - third)) & (first - second > 1e-7 * first)
    return jnp.where(grows, jnp.inf, 2 * first - fourth)
