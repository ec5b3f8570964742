r"""A symmetric matrix found by least squares over positive semidefinite matrices under a penalty on the trace.

Seen as $R = A^* + \delta Z$, Z a Gaussian symmetric matrix, A* is estimated by $(R - \theta)_+$: the eigenvalues are
lowered by theta and cut at 0. With mu the law of the eigenvalues of R, h its Hilbert transform, $f(x) = (x - \theta)_+$
and $D = \delta^2$,

    rank = int_{x > theta} mu,    K = int f mu,    Df = 2 int f h mu,
    mse = |S - A*|_F^2 / d = D (2 Df - 1) + int_{x < theta} x^2 mu + theta^2 rank.

The minimiser S of $\frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d}\mathrm{Tr}\,S$ is so
related to A* for d to infinity, with delta and theta that solve

    (E1)  2 theta (2 alpha - Df) = lambda,        (E2)  2 alpha D = mse + Delta / 2,

the sum of squared residuals over d^2 being $D (2\alpha - Df)^2$. These are the fixed points of state evolution with the
square loss: V_hat = 2 alpha - Df, q_hat = D V_hat^2 [erba2025nuclear]. A matrix of limited rank keeps only the largest
eigenvalues [girardin2026width].

Every integral is taken over x < theta, where nothing cancels as D falls: those over x > theta follow, since the
integrals of mu, x mu, h mu, 2 x h mu over the whole line are 1, E A, 0, 1, and that of $(h^2 - \pi^2\mu^2/3)\mu$ is 0.
The cut is given by Biane's u (`solvable.spectra.convolution`), of which theta is an explicit function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.numerics.batches import BATCH, in_batches
from solvable.spectra.convolution import free_sum, height
from solvable.spectra.law import Law
from solvable.spectra.reflected import Reflected

NODES = 100
"""Quadrature nodes on each interval of the bulk (fewer where there are many intervals)."""

_MANY = 16


class Thresholded(NamedTuple):
    r"""Integrals over the law of $(R - \theta)_+$ at given D and cut u, and how they change.

    `theta` and its derivatives in u and in D (at fixed u); `rank`, `K`, `Df`, `mse`; `H` = int_{x > theta} h mu and
    `G` = int_{x > theta} (h^2 - pi^2 mu^2 / 3) mu, which give the derivatives of the others:

        d Df = 2 G dD - 2 H dtheta,    dK = H dD - rank dtheta,
        d mse = (Df - 2 theta H + 4 D G) dD + (2 theta rank - 4 D H) dtheta.

    They follow from d mu / dD = -(h mu)' and d(h mu)/dD = (pi^2 mu^3 / 3 - h^2 mu)'. `density` is mu(theta).
    """

    theta: Any
    theta_in_u: Any
    theta_in_D: Any
    rank: Any
    K: Any
    Df: Any
    mse: Any
    H: Any
    G: Any
    density: Any


def thresholded(law: Law, D: np.ndarray, u: np.ndarray, nodes: int = NODES) -> Thresholded:
    """The integrals at arrays of D and u."""
    found = _in_batches(law, D, u, nodes)
    beyond = (found.density == 0) & (u >= float(law.ends[1]))  # no eigenvalue lies above the cut
    nothing = {name: np.where(beyond, 0.0, getattr(found, name)) for name in ("rank", "K", "Df", "H", "G")}
    return found._replace(mse=np.where(beyond, float(law.second_moment), found.mse), **nothing)


def quadrature_error(law: Law, D: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The relative error of integrals over the whole spectrum, where they are known: an estimate of that of others.

    They are those of mu, h mu, 2 x h mu and x^2 mu, here taken from the integrals at a cut beyond the spectrum. h is
    large where mu is, so that its own integral may be far off, but it only ever comes with theta, in 2 (x - theta) h.
    """
    square = float(law.second_moment) + D
    found = _in_batches(law, D, float(law.ends[1]) + 3 * np.sqrt(D), NODES)
    cross = found.Df + 2 * found.theta * found.H
    second = found.mse - float(law.second_moment) - found.theta**2 * found.rank - 2 * D * found.Df
    return np.max(np.abs([found.rank, 2 * theta * found.H, cross, second / square]), axis=0)


def overlap_and_square(
    power: float, mse: Any, D: Any, Df: Any, theta: Any, K: Any, rank: Any
) -> tuple[np.ndarray, np.ndarray]:
    r"""$\langle S, A^*\rangle/d = E A^2 - mse + e$ and $|S|_F^2/d = E A^2 - mse + 2 e$, with $e = D\,Df - \theta K$.

    For the eigenvalues of S are f(x) = x - theta or 0, also where its rank is limited, so that
    int x f = int f^2 + theta K, and E[A*|R] = x - 2 D h.
    """
    with np.errstate(invalid="ignore"):
        known, more = power - mse, D * Df - theta * K
        m, q = (np.where(rank > 0, np.maximum(known + part, 0.0), 0.0) for part in (more, 2 * more))
    return m, q


def _in_batches(law: Law, D: np.ndarray, u: np.ndarray, nodes: int) -> Thresholded:
    # A law with many intervals keeps the processor busy alone; a batch would only wait for its slowest member.
    batch = BATCH if len(law.gaps) < _MANY else 1
    return Thresholded(*in_batches(lambda D, u: _thresholded(law, D, u, nodes), D, u, batch=batch))


@jax.jit(static_argnames="nodes")
def _thresholded(law: Law, D: Any, u: Any, nodes: int) -> Thresholded:
    if len(D) == 1:  # compiles faster
        return Thresholded(*(part[None] for part in _at(law, D[0], u[0], nodes)))
    return jax.vmap(lambda D, u: _at(law, D, u, nodes))(D, u)


def _at(law: Law, D: Any, u: Any, nodes: int) -> Thresholded:
    below = free_sum(Reflected(law), D, nodes, above=-u)
    mass = jnp.where((below.weight > 0) & jnp.isfinite(below.weight), below.weight, 0.0)
    inside = D * law.smoothed(u, 1e-14 * D)[0] > 1  # whether there are eigenvalues at the cut
    v = jnp.where(inside, height(law, D, u[None])[0], 0.0)
    w = u + 1j * v
    g, c = law.stieltjes(w), 1 + D * law.stieltjes_slope(w)
    theta = u + D * jnp.real(g)
    x = jnp.where(mass > 0, -below.x, theta)  # nodes without mass lie anywhere
    h = jnp.where(mass > 0, -below.hilbert, 0.0)
    density = jnp.where(mass > 0, below.density, 0.0)
    steep = jnp.where(jnp.real(c) > 0, jnp.real(c), 1.0)  # 0 where two parts of the bulk just meet
    theta_in_u = jnp.where(inside, jnp.abs(c) ** 2 / steep, jnp.real(c))
    # With u fixed, c i dv + g dD is real.
    theta_in_D = jnp.real(g) - jnp.where(inside, jnp.imag(c) * v / (D * steep), 0.0)
    rank = 1 - jnp.sum(mass)
    Df = 1 - 2 * jnp.sum(mass * (x - theta) * h)
    return Thresholded(
        theta=theta,
        theta_in_u=theta_in_u,
        theta_in_D=theta_in_D,
        rank=rank,
        K=law.mean - theta + jnp.sum(mass * (theta - x)),
        Df=Df,
        mse=D * (2 * Df - 1) + jnp.sum(mass * x**2) + theta**2 * rank,
        H=-jnp.sum(mass * h),
        G=-jnp.sum(mass * (h**2 - jnp.pi**2 / 3 * density**2)),
        density=v / (jnp.pi * D),
    )
