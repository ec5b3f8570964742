r"""Empirical risks whose minimiser is known without the iteration of `solvers.anderson`.

**The square loss with a ridge.** With $\gamma = E[zy]$ and $\Delta = E[y^2] - \gamma^2$, for any law of labels, weights
are as good as $S(\gamma w^* + \sqrt D x)$, x ~ N(0, 1), with S in (0, 1) for a positive strength the smaller root of
$\lambda S = (\alpha - S)(1 - S)$, and with $T = \sqrt{(1 + \alpha + \lambda)^2 - 4\alpha} = (\alpha - S^2)/S$

    D = (gamma^2 (1 - S)^2 + Delta) / (S T),    V_hat = alpha - S,    V = S / V_hat,    R = S^2/alpha,

and the sum of squared residuals is D (alpha - S)^2 d. A strength of zero is the limit of a vanishing one:
S = min(1, alpha), and below alpha = 1 every convex loss with its only minimum at residual zero has the same limit, the
solution of least norm that fits all labels. [hastie2022surprises]

**The least l1 norm that fits all labels**, the limit of a vanishing lasso for the same losses, alpha < 1. There V is
infinite and g = (y - omega)/V, so that a weight is the soft threshold of $\gamma w^* + \tau x$ at $\theta$, where

    P(w != 0) = alpha,      alpha tau^2 = E[y^2] - 2 gamma m + q.

Without noise on a linear target tau may vanish: the weights are then found exactly, and with the ratio t of theta to
tau, now both of order lambda, $\alpha = \rho (1 + t^2) + 2 (1 - \rho) E[(x - t)_+^2]$ for a share rho of weights that
are not zero, $P = \rho + 2 (1 - \rho) P(x > t)$, $V = P/(\alpha - P)$ and R = P/alpha. [donoho2009message]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr

from solvable.core.status import Status
from solvable.engine.solvers.anderson import ProximalPoint
from solvable.numerics.roots import halving
from solvable.priors.penalties import Lasso

_WIDEST = 40.0
"""Thresholds of more than so many widths leave no weight."""
_HALVINGS = 90
_LOWEST, _HIGHEST = -9.0, 12.0
"""The range of log tau, in units of the label; without noise errors below 1e-8 are not told from zero."""


class RidgeRegression(NamedTuple):
    """Least squares with a ridge: weights are as good as S (gamma w* + sqrt(D) x), with x ~ N(0, 1).

    `S`, and `D`, which is infinite where interpolation amplifies noise without bound and zero without samples; `T` of
    the module's docstring, and `stable`, whether the risk has a minimum.
    """

    S: Any
    D: Any
    T: Any
    stable: Any


def ridge_regression(power: Any, noise: Any, strength: Any, alpha: Any) -> RidgeRegression:
    """Ridge regression at every alpha of labels with gamma^2 = `power` and Delta = `noise`.

    The risk is half of the sum of squared residuals plus strength |w|^2 / 2, with alpha samples for each weight.
    """
    total = 1 + alpha + strength
    room = (1 - alpha) ** 2 + strength * (2 + 2 * alpha + strength)
    T = jnp.where(room > 0, jnp.sqrt(jnp.where(room > 0, room, 1.0)), 0.0)
    S = 2 * alpha / (total + T)
    rest = power * (1 - S) ** 2 + noise
    # Labels that can be fitted exactly, without penalty, are at any alpha.
    far = jnp.where(rest > 0, jnp.inf, 0.0)
    regular = (alpha > 0) & (T > 0)
    D = jnp.where(regular, rest / jnp.where(regular, S * T, 1.0), jnp.where(alpha > 0, far, 0.0))
    fitted = (alpha > S) | (strength == 0) | (alpha == 0)
    stable = (room >= 0) & (total > 0) & fitted & ((strength >= 0) | (alpha > 1))
    return RidgeRegression(S, D, T, stable)


@jax.jit
def least_squares(moments: tuple[Any, Any], strength: Any, alpha: Any) -> ProximalPoint:
    """The square loss with a ridge, from gamma = E[z y] and Delta = E[y^2] - gamma^2, at every alpha."""
    gamma, Delta = moments
    S, D, _, stable = ridge_regression(gamma**2, Delta, strength, alpha)
    sampled = alpha > 0
    some, left = jnp.where(sampled, alpha, 1.0), alpha - S
    q = S**2 * (gamma**2 + D)
    unseen = (gamma**2 + Delta) * (strength / (1 + strength)) ** 2
    # Where the labels are fitted the residuals vanish, however large D is.
    loss = jnp.where(sampled, jnp.where(left == 0, 0.0, D * left**2) / some, unseen) / 2
    c = gamma * S / jnp.sqrt(jnp.where(q > 0, q, 1.0))
    status = jnp.where(stable, int(Status.CONVERGED), int(Status.OUT_OF_DOMAIN))
    status = jnp.where(stable & ~jnp.isfinite(q), int(Status.DIVERGED), status)
    V = jnp.where(left > 0, S / jnp.where(left > 0, left, 1.0), jnp.inf)
    V = jnp.where((alpha == 0) & (strength != 0), 1 / jnp.where(strength == 0, 1.0, strength), V)
    replicon = jnp.where(sampled, S * (S / some), 0.0)
    return _point(c, q, V, replicon, loss, jnp.ones_like(q), status)._replace(
        m_hat=gamma * left,
        q_hat=2 * alpha * loss,
        V_hat=left,
        energy=alpha * loss + strength * q / 2,
    )


@eqx.filter_jit
def least_l1_norm(moments: tuple[Any, Any], mixture: Any, alpha: Any) -> ProximalPoint:
    """The weights of least l1 norm that fit all labels, at every alpha in (0, 1], from the moments as above."""
    gamma, Delta = moments
    size = jnp.sqrt(gamma**2 + Delta)
    inside = jnp.clip(alpha, 1e-300, 1 - 1e-15)
    weight, mean, variance = mixture
    nothing = jnp.zeros_like(alpha)

    def shrunk(theta: Any, tau: Any) -> Any:
        return jax.vmap(lambda theta, tau: Lasso(theta).average(gamma, tau**2, 1.0, mixture))(theta, tau)

    def threshold(tau: Any) -> Any:
        """theta with a share alpha of weights above it."""
        highest = jnp.max(jnp.abs(gamma * mean) + _WIDEST * jnp.sqrt(gamma**2 * variance + tau[:, None] ** 2), axis=1)
        return halving(lambda theta: shrunk(theta, tau).active < inside, nothing, highest, _HALVINGS).middle

    def too_wide(log_tau: Any) -> Any:
        tau = size * jnp.exp(log_tau)
        back = shrunk(threshold(tau), tau)
        return Delta + gamma**2 - 2 * gamma * back.m + back.q < inside * tau**2

    # alpha tau^2 is at least Delta.
    lowest = jnp.where(Delta > 0, jnp.log(jnp.where(Delta > 0, Delta, 1.0) / size**2) / 2 - 1, _LOWEST)
    # Halving compiles one evaluation where a faster method has three. It ends at the lowest tau where none is right.
    log_tau = halving(too_wide, lowest + nothing, _HIGHEST + nothing, _HALVINGS).middle
    tau = size * jnp.exp(jnp.where(log_tau < _HIGHEST - 1e-6, log_tau, jnp.nan))
    back = shrunk(threshold(tau), tau)
    fitted = _point(back.m / jnp.sqrt(back.q), back.q, jnp.inf + nothing, 1.0 + nothing, nothing, alpha, nothing)
    P = _active_after_recovery(jnp.sum(jnp.where((mean != 0) | (variance > 0), weight, 0.0)), inside)
    # As many samples as weights determine them, whatever the penalty.
    P = jnp.where((alpha >= 1) & jnp.isnan(P), 1.0, P)
    exact = _point(jnp.sign(gamma), gamma**2, P / jnp.maximum(alpha - P, 0.0), P / alpha, nothing, P, nothing)
    unknown = jnp.nan + nothing
    lost = _point(unknown, unknown, unknown, unknown, unknown, unknown, nothing + int(Status.DIVERGED))
    known = jax.tree.map(lambda a, b: _where(jnp.isfinite(tau), a, b), fitted, lost)
    return jax.tree.map(lambda a, b: _where((Delta == 0) & jnp.isfinite(P), a, b), exact, known)


def _active_after_recovery(rho: Any, alpha: Any) -> Any:
    """The share of weights that a vanishing lasso leaves where it finds them exactly; NaN where it does not."""

    def density(t: Any) -> Any:
        return jnp.exp(-(t**2) / 2) / jnp.sqrt(2 * jnp.pi)

    def rises(t: Any) -> Any:
        """Whether the derivative of `needed` is positive."""
        return rho * t > 2 * (1 - rho) * (density(t) - t * ndtr(-t))

    def needed(t: Any) -> Any:
        return rho * (1 + t**2) + 2 * (1 - rho) * ((1 + t**2) * ndtr(-t) - t * density(t))

    least = halving(rises, jnp.zeros_like(alpha), jnp.full_like(alpha, _WIDEST), _HALVINGS).middle
    t = halving(lambda t: needed(t) > alpha, least, jnp.full_like(alpha, 1e8), _HALVINGS).middle
    return jnp.where(needed(least) <= alpha, rho + 2 * (1 - rho) * ndtr(-t), jnp.nan)


def _point(c: Any, q: Any, V: Any, replicon: Any, loss: Any, active: Any, status: Any) -> ProximalPoint:
    """A point without numerical error; the fields that are zero wherever V is infinite are zero."""
    c, q, V, replicon, loss, active = jnp.broadcast_arrays(*map(jnp.asarray, (c, q, V, replicon, loss, active)))
    nothing = jnp.zeros_like(q)
    return ProximalPoint(
        c=c,
        q=q,
        V=V,
        m_hat=nothing,
        q_hat=nothing,
        V_hat=nothing,
        replicon=replicon,
        loss=loss,
        energy=nothing,
        active=active,
        status=jax.lax.stop_gradient(status).astype(int),
        residual=nothing,
        iterations=jnp.zeros(q.shape, int),
        coarse=(c, q, V, replicon, loss, active),
        slope=jnp.full((*q.shape, 3, 3), jnp.nan),
    )


def _where(condition: Any, here: Any, there: Any) -> Any:
    return jnp.where(condition.reshape(condition.shape + (1,) * (here.ndim - 1)), here, there)
