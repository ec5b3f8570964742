r"""Recovering a symmetric matrix A of known spectrum from $Y = A + \sqrt D Z$: keep eigenvectors, shrink eigenvalues.

The best rotation-invariant estimator maps an eigenvalue y of Y to $f(y) = y - 2 D h(y) = 2u - y$ (u Biane's parameter)
[bun2016rotational], and its error per dimension, $\|\hat A - A\|_F^2/d$, is [maillard2022perturbative]

    mmse(D) = D - (4 pi^2 / 3) D^2 int mu_Y^3 = E A^2 - E f(Y)^2.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from solvable.spectra.convolution import NODES, FreeSum, free_sum
from solvable.spectra.law import Law


@functools.partial(jax.jit, static_argnames="nodes")
def mmse(law: Law, D: Any, nodes: int = NODES) -> jax.Array:
    """The error of the optimal estimator; 0 at D = 0, the variance of the law as D grows."""
    noisy = jnp.asarray(D) > 0
    return jnp.where(noisy, mmse_of(law, free_sum(law, jnp.where(noisy, D, 1.0), nodes)), 0.0)


def mmse_of(law: Law, found: FreeSum) -> jax.Array:
    """The same where the law of Y is at hand; of the two formulas the one in which less cancels."""
    by_cube, by_square = mmse_forms(law, found)
    return jnp.where(law.variance > found.D, by_cube, by_square)


def mmse_forms(law: Law, found: FreeSum) -> tuple[jax.Array, jax.Array]:
    """The error by both formulas; their difference is the numerical error of the worse one."""
    D = found.D
    by_cube = D - 4 * jnp.pi**2 / 3 * D**2 * jnp.sum(found.weight * found.density**2)
    centred = 2 * found.u - found.x - law.mean
    return by_cube, law.variance - jnp.sum(found.weight * centred**2)
