r"""The optimal eigenvalue denoiser for matrices of finite size: the limit's, smoothed at the edges and bounded.

In the limit an eigenvalue y of $Y = A + \sqrt D Z$ is mapped to $f(y) = y - 2 D\, \mathrm{Re}\, g_Y(y)$
[bun2016rotational], which has an infinite slope just outside each edge of the bulk. At size d an edge is $\sqrt D
d^{-2/3}$ wide, and a slope that large is an artefact that makes iterations oscillate along single eigenvectors. Here
$g_Y$ is taken at $y + i\eta$ instead, which averages the slope over a width $\eta$; the error that this adds is of
order $\eta^2$. And an eigenvalue that fluctuates far out of the bulk is not mapped outside the support of A.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from solvable.spectra.law import Law

_AVERAGED, _ROUND = 2, 15
"""How many iterates of a round are averaged ones, before Newton's; where one does not end it another round follows."""
_MOST = 60


class ShrunkEigenvalues(NamedTuple):
    r"""The shrunk eigenvalues f (d,), and the divergence of $Y \mapsto \hat A$ over symmetric matrices:
    $\sum_{i<j} (f_i - f_j)/(y_i - y_j) + \sum_i f'(y_i)$."""

    values: jax.Array
    divergence: jax.Array


@jax.jit
def shrink(law: Law, D: Any, y: Any, width: Any) -> ShrunkEigenvalues:
    r"""f at the eigenvalues `y`, with $\eta$ = `width` > 0, clipped to the support of A.

    $g_Y(z) = g_A(w)$ where w is the root of $w + D g_A(w) = z$ in the upper half-plane, so that
    $f = 2\, \mathrm{Re}\, w - y$ and $f' = 2\, \mathrm{Re}\, (1 + D g_A'(w))^{-1} - 1$.
    """
    y = jnp.asarray(y)
    w = subordinate(law, D, y + 1j * width)
    low, high = law.ends
    values = 2 * jnp.real(w) - y
    slopes = 2 * jnp.real(1 / (1 + D * law.stieltjes_slope(w))) - 1
    slopes = jnp.where((values > low) & (values < high), slopes, 0.0)
    values = jnp.clip(values, low, high)
    gaps = y[:, None] - y
    close = jnp.abs(gaps) < 1e-6 * width
    ratios = jnp.where(close, (slopes[:, None] + slopes) / 2, (values[:, None] - values) / jnp.where(close, 1.0, gaps))
    return ShrunkEigenvalues(values, (jnp.sum(ratios) + jnp.sum(slopes)) / 2)


def subordinate(law: Law, D: Any, z: jax.Array) -> jax.Array:
    r"""The root w of $w + D g_A(w) = z$ in the upper half-plane, for z in it.

    The map $w \mapsto z - D g_A(w)$ sends the half-plane into itself, and its iterates converge to the only root there.
    Two averaged ones come close enough for Newton's method.
    """
    accuracy = 1e-12 * jnp.sqrt(D) + 1e-15 * jnp.max(jnp.abs(z))

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, excess, steps = state
        return (steps < _MOST) & (excess > accuracy)

    def step(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        w, _, steps = state
        excess = w + D * law.stieltjes(w) - z
        newton = w - excess / (1 + D * law.stieltjes_slope(w))
        newton = jnp.real(newton) + 1j * jnp.abs(jnp.imag(newton))
        return jnp.where(steps % _ROUND < _AVERAGED, w - excess / 2, newton), jnp.max(jnp.abs(excess)), steps + 1

    start = z + 1j * jnp.sqrt(D)
    return jax.lax.while_loop(unfinished, step, (start, jnp.asarray(jnp.inf), jnp.asarray(0)))[0]
