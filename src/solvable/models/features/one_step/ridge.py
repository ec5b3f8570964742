r"""Ridge regression on spiked features, exactly in the proportional limit, for any bulk of the rows (`bulk`).

Averages E are over the nodes of kappa (`grid`), a, b run over the values of the second layer, $\lambda$ is the penalty,
`narrow` = d/p and alpha = n/d. First the effective penalty of a sample, which depends on its kappa:

    kappa_eff(k) = lambda + sum_ab mu1_a mu1_b X_ab + sum_a pi_a mu2_a^2 G_a,
    C_ab = alpha E[mu1_a mu1_b / kappa_eff],   D_a = alpha E[mu2_a^2 / kappa_eff],     (G, X) of the bulk at (C, D):

increasing concave maps, so that Newton steps from above fall onto the one solution. Then the overlaps m = 1.b,
zeta = (W v).b and psi = (W theta_perp).b of the weights b of the features, by a linear system,

    E[mu0_a res / kappa_eff] = 0,   res = h - sum mu0 m - k sum mu1 zeta,
    (zeta, psi) = H (alpha E[k mu1 res / kappa_eff] + C zeta,  alpha E[mu1 h1 / kappa_eff]) =: H b,

and the risk at each kappa, $R(k) = R_{det}(k) + \sum \mu_1\mu_1 Q_1 + \sum\mu_2^2 Q_2$, where
$Q_1 = |\Pi_\perp W^T b|^2$ and $Q_2 = |b|^2$ are the responses of (X, G) to the loss of all samples, again linear:

    Q = -(d/d(C, D)) [b^T H b + sum_ab X_ab rho_ab + sum_a pi_a G_a rho_a] - (zeta zeta^T, 0),
    rho_ab = alpha E[mu1_a mu1_b R / kappa_eff^2],   rho_a = alpha E[mu2_a^2 R / kappa_eff^2].

The test error is E R, with the noise of the labels, the training error $\lambda^2 E[R/\kappa_{eff}^2]$.

At a finite number p of units the direction of the mean of the features, fitted for free in the limit, has a stiffness
1/(p pi_a g_a), which is kept if p is given. It matters where several mu0_a(k) are nearly parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from solvable.engine.cosines import cosines
from solvable.models.features.one_step.grid import Grid
from solvable.numerics.fixed_point import FixedPoint, solve_fixed_point

_RTOL = 1e-11
_FLAT = 1e-20


class Setting(NamedTuple):
    """The numbers of a problem: `penalty`, `narrow` = d/p, `noise`, and 1/p or 0 for the limit."""

    penalty: Any
    narrow: Any
    noise: Any
    per_unit: Any


class Solution(NamedTuple):
    """What the linear fit of spiked features looks like; `test` and `train` are mean squared errors on noisy labels."""

    test: Any
    train: Any
    m: Any
    zeta: Any
    psi: Any
    G: Any
    X: Any
    Q1: Any
    Q2: Any
    metrics: dict[str, Any]
    residual: Any
    status: Any
    iterations: Any


def squares(grid: Grid) -> Any:
    """phi on the nodes: the products mu1_a mu1_b and the mu2_a^2, by which C, D, X and G enter everything."""
    return jnp.concatenate([(grid.mu1[:, None] * grid.mu1).reshape(-1, grid.mu1.shape[1]), grid.mu2])


def parts(vector: Any, K: int) -> tuple[Any, Any]:
    """A K x K matrix and K numbers from one vector."""
    return vector[: K * K].reshape(K, K), vector[K * K :]


def effective_penalty(phi: Any, fractions: Any, penalty: Any, G: Any, X: Any) -> Any:
    """kappa_eff on the nodes."""
    return penalty + jnp.concatenate([X.ravel(), fractions * G]) @ phi


def resolvent(bulk: Any, grid: Grid, alpha: Any, setting: Setting) -> FixedPoint:
    """The state of the bulk and X, solved jointly."""

    def image(unknown: Any, args: Any) -> Any:
        (state, X), (bulk, weight, phi, setting) = unknown, args
        kappa = effective_penalty(phi, bulk.fractions, setting.penalty, state[: len(X)], X)
        C, D = parts(phi @ (weight / kappa), len(X))
        return bulk.image(state, C, D, setting.narrow), bulk.traces(state, C)[1]

    start, args = bulk.start(), (bulk, alpha * grid.weight, squares(grid), setting)
    if len(start[0]) > len(start[1]):  # equations of its own, which Newton's method finds only from nearby
        near = solve_fixed_point(image, start, jax.lax.stop_gradient(args), damping=0.5, memory=0, rtol=1e-3)
        start = jax.lax.stop_gradient(near.value)
    step = newton_map(image, start)
    return solve_fixed_point(step, start, args, memory=0, rtol=_RTOL, atol=1e-14, max_steps=100)


def newton_map(image: Callable[[Any, Any], Any], like: Any, holomorphic: bool = False) -> Callable[[Any, Any], Any]:
    """The step of Newton's method for x = image(x, args) on a pytree, of complex numbers if `holomorphic`."""
    unravel = ravel_pytree(like)[1]

    def flat(x: Any, args: Any) -> Any:
        return ravel_pytree(image(unravel(x), args))[0]

    def step(unknown: Any, args: Any) -> Any:
        x = ravel_pytree(unknown)[0]
        jacobian = jax.jacfwd(flat, holomorphic=holomorphic)(x, args)
        return unravel(x + jnp.linalg.solve(jnp.eye(len(x)) - jacobian, flat(x, args) - x))

    return step


def responses(bulk: Any, state: Any, C: Any, D: Any, narrow: Any) -> tuple[Any, Any, Any]:
    """The derivatives of G, X and H in (C, D), by the implicit function theorem: along the last axis."""
    K = len(D)

    def image(y: Any, c: Any) -> Any:
        return bulk.image(y, *parts(c, K), narrow)

    def traces(y: Any, c: Any) -> Any:
        return bulk.traces(y, parts(c, K)[0])

    c = jnp.concatenate([C.ravel(), D])
    inner, outer = jax.jacfwd(image, argnums=(0, 1))(state, c)
    moved = jnp.linalg.solve(jnp.eye(len(state)) - inner, outer)
    G, X, H = (by_state @ moved + by_c for by_state, by_c in jax.jacfwd(traces, argnums=(0, 1))(state, c))
    return G, X, H


def ridge_on_spikes(bulk: Any, grid: Grid, alpha: Any, setting: Setting, alignment: Any) -> Solution:
    """The errors and overlaps at one alpha; alpha = 0 is the limit of few samples."""
    found = resolvent(bulk, grid, alpha, setting)
    state, X = found.value
    K, fractions, narrow, phi = len(X), bulk.fractions, setting.narrow, squares(grid)
    kappa = effective_penalty(phi, fractions, setting.penalty, state[:K], X)
    C, D = parts(phi @ (alpha * grid.weight / kappa), K)
    G, X, H = bulk.traces(state, C)
    limp = setting.per_unit == 0
    stiffness = jnp.where(limp, 0.0, setting.per_unit / jnp.where(limp, 1.0, alpha * narrow * fractions * G))
    weight = grid.weight / kappa
    m, zeta, psi, b = fitted_means(grid, weight, weight * grid.h, weight * grid.h1, alpha, C, H, stiffness)
    own = jnp.square(m) * setting.per_unit / (fractions * jnp.where(limp, 1.0, narrow) * G**2)
    dG, dX, dH = responses(bulk, state, C, D, narrow)
    fit = m @ grid.mu0 + grid.kappa * (zeta @ grid.mu1)
    Rdet = grid.hh + setting.noise - 2 * fit * grid.h + fit**2 - 2 * (psi @ grid.mu1) * grid.h1
    # Q = first - P rho, rho = phi (alpha R / kappa_eff^2), R = Rdet + Q.phi.
    P = jnp.concatenate([dX.reshape(K * K, -1), fractions[:, None] * dG])
    first = -jnp.einsum("i,ijc,j->c", b, dH, b) - own @ dG
    first = first - jnp.concatenate([jnp.outer(zeta, zeta).ravel(), jnp.zeros(K)])
    charge = phi * (alpha * grid.weight / kappa**2)
    Q = jnp.linalg.solve(jnp.eye(len(first)) + P @ (charge @ phi.T), first - P @ (charge @ Rdet))
    R = Rdet + Q @ phi
    test, train = grid.weight @ R, setting.penalty**2 * (grid.weight @ (R / kappa**2))
    Q1, Q2 = parts(Q, K)
    metrics = linear_part(grid, m, zeta, psi, Q1, alignment) | {
        "generalization_error": test - setting.noise,
        "training_error": train,
    }
    return Solution(test, train, m, zeta, psi, G, X, Q1, Q2, metrics, found.residual, found.status, found.iterations)


def fitted_means(
    grid: Grid, weight: Any, h: Any, h1: Any, alpha: Any, C: Any, H: Any, stiffness: Any
) -> tuple[Any, Any, Any, Any]:
    """m, zeta, psi, and the argument b of H, by least squares with a weight on the nodes; h and h1 come with it."""
    K, tilted = len(C), grid.kappa * grid.mu1
    A00, A01, A11 = ((x * weight) @ y.T for x, y in ((grid.mu0, grid.mu0), (grid.mu0, tilted), (tilted, tilted)))
    b0, b1, b2 = grid.mu0 @ h, tilted @ h, grid.mu1 @ h1
    # Means that vanish, as those of an odd activation without a step, are not fitted.
    scale = jnp.sum(weight * grid.mu2, axis=1) + jnp.diag(A00)
    flat = jnp.diag(A00) <= _FLAT * scale
    A00 = A00 + jnp.diag(stiffness + jnp.where(flat, 1.0, 0.0))
    Hv, Hp, zero = H[:, :K], H[:, K:], jnp.zeros((K, K))
    own = alpha * A11 - C
    top = jnp.concatenate([A00, A01, zero], 1)
    bottom = jnp.eye(2 * K, 3 * K, K) + Hv @ jnp.concatenate([alpha * A01.T, own, zero], 1)
    right = jnp.concatenate([b0, alpha * (Hv @ b1 + Hp @ b2)])
    m, zeta, psi = jnp.linalg.solve(jnp.concatenate([top, bottom]), right).reshape(3, K)
    inner = alpha * (b1 - A01.T @ m - A11 @ zeta) + C @ zeta
    return m, zeta, psi, jnp.concatenate([inner, alpha * b2])


def linear_part(grid: Grid, m: Any, zeta: Any, psi: Any, Q1: Any, alignment: Any) -> dict[str, Any]:
    """The cosine of E[f x] with the direction of the target: along v, along theta_perp, and elsewhere.

    Zero where the features have no linear part, as those of an even activation without a spike.
    """
    weighted = grid.weight * grid.kappa
    along = m @ (grid.mu0 @ weighted) + zeta @ (grid.mu1 @ (weighted * grid.kappa))
    slope = grid.mu1 @ grid.weight
    beside = jnp.sqrt(jnp.maximum(1 - jnp.square(alignment), 0.0))
    linear = jnp.any(grid.mu1**2 @ grid.weight > _FLAT * ((grid.mu0**2 + grid.mu2) @ grid.weight))
    square = jnp.where(linear, along**2 + slope @ Q1 @ slope, 0.0)
    return cosines(alignment * along + beside * (slope @ psi), square, 1.0)
