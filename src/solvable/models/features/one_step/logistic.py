r"""Logistic regression on spiked features with one value of the second layer, and on random features.

Labels are +-1. Given kappa (`grid`) the output on a fresh sample and the rest z of the projection on the target are
Gaussian: $w = \mu_0 m + \kappa\mu_1\zeta + \sqrt Q\,\xi$, $Q = \mu_1^2 Q_1 + \mu_2^2 Q_2$, and z given xi has the mean
$w_0 = \mu_1\psi\xi/\sqrt Q$ and the variance $V_0 = 1 - \mu_1^2\psi^2/Q$. On a training sample the output is
the proximal $\eta = w + V f$, $f(y, w) = -l'(y, \eta)$, with $V = \mu_1^2 V_1 + \mu_2^2 V_2$. With
$Z_y = P(y|\kappa, w_0, V_0)$ the averages over xi and y that the equations take are, at each kappa,

    A = E[sum Z (-df/dw)],   F1 = E[sum Z f],   F2 = E[sum Z f^2],   Fp = E[sum (dZ/dw0) f].

They stand in the equations of `ridge` for 1/(1 + V), res/(1 + V), R/(1 + V)^2 and h1/(1 + V), $\lambda$ the penalty:

    (C, D) = alpha E[(mu1^2, mu2^2) A]/lambda,   lambda V_1 = X,   lambda V_2 = G,
    E[mu0 F1] = 0,   (zeta, psi) = H (alpha E[kappa mu1 F1]/lambda + C zeta,  alpha E[mu1 Fp]/lambda),
    Q = -(d/d(C, D)) [b^T H b + X rho_1 + G rho_2] - (zeta^2, 0),   rho = alpha E[(mu1^2, mu2^2) F2]/lambda^2,

for any bulk. m and zeta move by a weighted least-squares fit to the linearised f, as Newton's method would. Without a
spike this is [gerace2020generalisation], isotropic rows are [cui2024asymptotics]; the exact bulk of the rows after
a step at finite batch is treated by the same equations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from solvable.core.checks import is_traced
from solvable.core.errors import bad_parameter
from solvable.models.features.one_step.grid import Grid
from solvable.models.features.one_step.ridge import (
    Setting,
    effective_penalty,
    fitted_means,
    linear_part,
    parts,
    responses,
    squares,
)
from solvable.numerics.fixed_point import solve_fixed_point
from solvable.numerics.gaussian import gauss_legendre, normal_trapezoid
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

STEP = 0.2
"""Of the trapezoidal rule for xi; every second node shows the error."""
_FEWEST_SAMPLES = 1e-14
"""No samples are the limit of few, and that of this many per dimension."""
_TINY = 1e-30
"""Units that are silent at some kappa leave the output there without a spread: this is its square."""
_GRID = (-8.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 8.0)
_CUT_NODES = 12


class Classes(NamedTuple):
    """A target of labels +-1: the `edges` of its intervals, and for each interval whether its label is +1."""

    edges: Any
    positive: Any


def classes_of(target: Target, noise: Any) -> Classes:
    """The classes of a target, refused unless its labels are -1 and 1 without noise."""
    takes = "one of a single projection with values -1 and 1, such as 'sign(z)', for the logistic loss"
    if target.projections != 1:
        raise bad_parameter("target", str(target), takes)
    if is_traced(noise) or noise != 0:
        raise bad_parameter("noise", noise, "0 for the logistic loss, whose labels are -1 and 1")
    shape = landscape(target)
    if not (shape.flat.all() and np.all(np.abs(np.abs(shape.value_lower) - 1) < 1e-9)):
        raise bad_parameter("target", str(target), takes)
    return Classes(jnp.asarray(shape.edges), jnp.asarray(shape.value_lower > 0, float))


class Averages(NamedTuple):
    """A, F1, F2, Fp and the mean loss, at each kappa."""

    A: Any
    F1: Any
    F2: Any
    Fp: Any
    loss: Any


class Classifier(NamedTuple):
    """What logistic regression on spiked features finds."""

    m: Any
    zeta: Any
    psi: Any
    Q1: Any
    Q2: Any
    V1: Any
    V2: Any
    metrics: dict[str, Any]
    residual: Any
    status: Any
    iterations: Any


def logistic_prox(x: Any, V: Any) -> Any:
    """The u with u - V/(1 + exp(u)) = x: Newton steps that rise or fall onto it, and one more for derivatives."""

    def newton(u: Any, x: Any, V: Any) -> Any:
        chance = jax.nn.sigmoid(-u)
        return u - (u - V * chance - x) / (1 + V * chance * (1 - chance))

    fixed = jax.lax.stop_gradient((x, V))
    low, high = fixed[0] >= -fixed[1] / 2, jnp.minimum(0.0, fixed[0] + fixed[1])
    start = jnp.where(low, jnp.maximum(fixed[0], 0.0), high)

    def body(carry: Any) -> Any:
        u, _, step = carry
        new = newton(u, *fixed)
        return new, jnp.max(jnp.abs(new - u) / (1 + jnp.abs(u))), step + 1

    begin = (start, jnp.asarray(jnp.inf, start.dtype), 0)
    u, *_ = jax.lax.while_loop(lambda carry: (carry[1] > 1e-8) & (carry[2] < 100), body, begin)
    return newton(jax.lax.stop_gradient(u), x, V)


def _chance(classes: Classes, centre: Any, spread: Any) -> tuple[Any, Any]:
    """P(y = +1) for a projection N(centre, spread^2), and its derivative in the centre."""
    t = (classes.edges - centre[..., None]) / spread[..., None]
    inside = jnp.diff(ndtr(t), axis=-1, prepend=0.0, append=1.0)
    bumps = jnp.exp(-(t**2) / 2) / jnp.sqrt(2 * jnp.pi)
    slope = -jnp.diff(bumps, axis=-1, prepend=0.0, append=0.0) / spread[..., None]
    return inside @ classes.positive, slope @ classes.positive


def _projection(grid: Grid, alignment: Any, Q: Any, psi: Any) -> tuple[Any, Any, Any]:
    """The slope in xi, and the spread, of the projection on the target given kappa and xi; and dcentre/dw0."""
    beside = jnp.sqrt(jnp.maximum(1 - jnp.square(alignment), 0.0))
    w0 = grid.mu1[0] * psi / jnp.sqrt(Q)
    spread = beside * jnp.sqrt(jnp.maximum(1 - w0**2, 1e-14))
    return beside * w0, jnp.maximum(spread, 1e-9), beside


def _averages(
    grid: Grid, classes: Classes, alignment: Any, rule: tuple[Any, Any], centre: Any, Q: Any, V: Any, psi: Any
) -> Averages:
    xi, chance = rule
    slope, spread, beside = _projection(grid, alignment, Q, psi)
    w = centre[:, None] + jnp.sqrt(Q)[:, None] * xi
    positive, tilt = _chance(classes, alignment * grid.kappa[:, None] + slope[:, None] * xi, spread[:, None] + 0 * xi)
    V = V[:, None]
    found = [0.0] * 5
    for y, Z, dZ in ((1.0, positive, tilt), (-1.0, 1 - positive, -tilt)):
        u = logistic_prox(y * w, V)
        f = jax.nn.sigmoid(-u)
        curvature = f * (1 - f)
        terms = Z * curvature / (1 + V * curvature), Z * y * f, Z * f**2, beside * dZ * y * f, Z * jax.nn.softplus(-u)
        found = [old + new @ chance for old, new in zip(found, terms, strict=True)]
    return Averages(*found)


def logistic_on_spikes(
    bulk: Any, grid: Grid, classes: Classes, alpha: Any, setting: Setting, alignment: Any, rule: tuple[Any, Any]
) -> Classifier:
    """The errors, loss and overlaps at one alpha."""
    alpha = jnp.maximum(alpha, _FEWEST_SAMPLES)

    def unpacked(x: Any) -> tuple[Any, ...]:
        state = jnp.concatenate([jnp.exp(x["G"]), x["n"]])
        return state, jnp.exp(x["X"]), jnp.exp(x["Q"]), x["means"]

    def averages(x: Any, args: Any) -> tuple[Averages, Any]:
        bulk, grid, setting, alignment, _, classes, rule = args
        state, X, Q, (m, zeta, psi) = unpacked(x)
        phi = squares(grid)
        fit = m * grid.mu0[0] + zeta * grid.kappa * grid.mu1[0]
        V = effective_penalty(phi, bulk.fractions, 0.0, state[:1], X.reshape(1, 1)) / setting.penalty
        return _averages(grid, classes, alignment, rule, fit, jnp.maximum(Q @ phi, _TINY), V, psi), fit

    def image(x: Any, args: Any) -> Any:
        bulk, grid, setting, _, alpha, *_ = args
        state, phi = unpacked(x)[0], squares(grid)
        found, fit = averages(x, args)
        weight = grid.weight / setting.penalty
        C, D = parts(alpha * (phi @ (weight * found.A)), 1)
        state = bulk.image(state, C, D, setting.narrow)
        G, X, H = bulk.traces(state, C)
        h = weight * (found.A * fit + found.F1)
        m, zeta, psi, b = fitted_means(grid, weight * found.A, h, weight * found.Fp, alpha, C, H, jnp.zeros(1))
        dG, dX, dH = responses(bulk, state, C, D, setting.narrow)
        rho = alpha * (phi @ (grid.weight * found.F2)) / setting.penalty**2
        Q = -jnp.einsum("i,ijc,j->c", b, dH, b) - rho @ jnp.concatenate([dX.reshape(1, -1), dG])
        Q = Q - jnp.array([zeta[0] ** 2, 0.0])
        return {
            "G": jnp.log(G),
            "n": state[1:],
            "X": jnp.log(X.ravel()),
            "Q": jnp.log(jnp.maximum(Q, _TINY)),
            "means": jnp.concatenate([m, zeta, psi]),
        }

    state, X = bulk.start()
    start = {
        "G": jnp.log(state[:1]),
        "n": state[1:],
        "X": jnp.log(X.ravel()),
        "Q": jnp.log(jnp.minimum(alpha, 1.0)) * jnp.ones(2),
        "means": jnp.zeros(3),
    }
    args = (bulk, grid, setting, alignment, alpha, classes, rule)
    found = solve_fixed_point(image, start, args, damping=0.6, rtol=1e-10, atol=1e-11, max_steps=600)
    state, X, Q, (m, zeta, psi) = unpacked(found.value)
    last, fit = averages(found.value, args)
    wrong = _misclassified(grid, classes, alignment, fit, jnp.maximum(Q @ squares(grid), _TINY), psi)
    metrics = linear_part(grid, m[None], zeta[None], psi[None], Q[:1].reshape(1, 1), alignment) | {
        "generalization_error": 4 * wrong,
        "classification_error": wrong,
        "training_loss": grid.weight @ last.loss,
    }
    V1, V2 = X[0] / setting.penalty, state[0] / setting.penalty
    return Classifier(m, zeta, psi, Q[0], Q[1], V1, V2, metrics, found.residual, found.status, found.iterations)


def _misclassified(grid: Grid, classes: Classes, alignment: Any, fit: Any, Q: Any, psi: Any) -> Any:
    """P(sign w != y), with the integral over xi cut where w = 0 and around every edge of the classes."""
    slope, spread, _ = _projection(grid, alignment, Q, psi)
    steep = jnp.where(jnp.abs(slope) > 1e-6, slope, 1e-6)
    cuts = (classes.edges - alignment * grid.kappa[:, None]) / steep[:, None]
    near = jnp.concatenate([cuts + k * (spread / jnp.abs(steep))[:, None] for k in (-4.0, -1.0, 0.0, 1.0, 4.0)], 1)
    ends = jnp.broadcast_to(jnp.array(_GRID), (len(fit), len(_GRID)))
    ends = jnp.concatenate([ends, -(fit / jnp.sqrt(Q))[:, None], near], axis=1)
    ends = jnp.sort(jnp.clip(ends, _GRID[0], _GRID[-1]), axis=1)
    t, share = (jnp.asarray(part) for part in gauss_legendre(_CUT_NODES))
    width = jnp.diff(ends, axis=1)[..., None]
    xi = (ends[:, :-1, None] + width * t).reshape(len(fit), -1)
    weight = (width * share).reshape(len(fit), -1) * jnp.exp(-(xi**2) / 2) / jnp.sqrt(2 * jnp.pi)
    positive, _ = _chance(classes, alignment * grid.kappa[:, None] + slope[:, None] * xi, spread[:, None] + 0 * xi)
    said = fit[:, None] + jnp.sqrt(Q)[:, None] * xi > 0
    return grid.weight @ jnp.sum(weight * jnp.where(said, 1 - positive, positive), axis=1)


def xi_rule(fine: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of xi ~ N(0, 1); coarse weights are those of every second node."""
    xi, weight = normal_trapezoid(STEP, 7.0)
    kept = weight * ((np.arange(len(xi)) - len(xi) // 2) % 2 == 0)
    return xi, weight if fine else kept / kept.sum()
