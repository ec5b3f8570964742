r"""Minimising the risk on one data set by methods of optimisation that know nothing of message passing.

- Square loss with a ridge: a linear system; without penalty the solution of least norm.
- A loss without kinks, with a ridge: L-BFGS from w = 0.
- Square loss with an l1 penalty: the path of least angles, which is exact; checked, and else as the next.
- A loss without kinks, with an l1 penalty: proximal gradient steps with momentum, restarted where the risk rises.
- A loss of straight pieces, such as the absolute or the hinge loss, with an l1 penalty, or without any: a linear
  programme.
- Any other kink: the alternating direction method on z = X w, w = v with multipliers. With s the multiplier of z
  and t that of v, both scaled, and penalty parameter k, a step is

      w = (X^T X + I)^-1 [X^T (z - s) + v - t],   z = prox_{l/k}(X w + s),   v = prox_{r/k}(w + t),   s += X w - z, ...

A strength of zero is the limit of a vanishing one. Few labels are fitted exactly by a loss with its only minimum at
residual zero, with the least norm: a linear system, or a linear programme for the l1 norm. If another loss can be made
as small as it gets on every sample, such as the hinge loss on separable classes, the alternating direction method finds
the least norm with every output among the minima of its loss: a proximal step with a very large V goes to the nearest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from solvable.channels.losses import Loss, Square, has_single_minimum
from solvable.channels.losses.samples import SampleLoss
from solvable.numerics.proximal_gradient import proximal_gradient
from solvable.priors.penalties import Lasso, Penalty, Ridge

_MAX_STEPS = 20_000
_TOLERANCE = 1e-8
_ESCAPED = 1e6
_OVERSHOOT = 1.6
_BALANCE = 10.0
_CHECK = 20
_FITTED = 1e-6
_WIDE = 1e6
_ATTAINED = 1e-3
_SLIGHT = 1e-6


class Minimum(NamedTuple):
    """A minimiser of the risk, whether the method reached it, and its number of iterations."""

    estimate: np.ndarray
    converged: bool
    iterations: int


def minimise(X: np.ndarray, y: np.ndarray, loss: Loss, penalty: Penalty) -> Minimum:
    """The minimum of the summed loss plus penalty, by the method that fits them."""
    if penalty.strength != 0 or float(loss.lowest_curvature) < 0:
        return _by_method(X, y, loss, penalty)
    if has_single_minimum(loss):
        if len(y) <= X.shape[1]:
            return _least_squares(X, y, 0.0) if isinstance(penalty, Ridge) else _least_l1_norm(X, y)
        return _by_method(X, y, loss, Ridge(0.0))  # the samples determine the minimum
    if isinstance(penalty, Lasso) and _has_straight_pieces(loss):
        return _linear_programme(X, SampleLoss(loss, y), _SLIGHT)  # its vertex is that of any cost this small
    return _of_least_norm(X, SampleLoss(loss, y), type(penalty)(1.0))


def _of_least_norm(X: np.ndarray, samples: SampleLoss, penalty: Penalty) -> Minimum:
    """Among the minima of the summed loss that with the least penalty, for a loss that may be flat."""
    nearest, farther = (samples.step(np.zeros(len(X)), V)[0] for V in (_WIDE, 100 * _WIDE))
    attained = np.abs(farther - nearest).max(initial=0.0) < _ATTAINED
    least = np.sum(samples.value(nearest))

    def fits(found: Minimum) -> bool:
        return bool(np.sum(samples.value(X @ found.estimate)) - least < _FITTED * len(X))

    if attained and samples.loss.kinks(1.0).place.size and not _has_straight_pieces(samples.loss):
        # Without a penalty the method for losses with kinks is slow: look first whether it is needed.
        found = _alternating(X, samples, penalty, _WIDE, _MAX_STEPS // 4)
        return found if found.converged and fits(found) else _by_method(X, samples.y, samples.loss, Ridge(0.0))
    found = _by_method(X, samples.y, samples.loss, Ridge(0.0))
    if not fits(found):
        return found
    # A loss that falls for ever, on labels that can be fitted, has its minimum at infinity.
    return _alternating(X, samples, penalty, _WIDE) if attained else found._replace(converged=False)


def _by_method(X: np.ndarray, y: np.ndarray, loss: Loss, penalty: Penalty) -> Minimum:
    if isinstance(penalty, Ridge):
        if isinstance(loss, Square):
            return _least_squares(X, y, float(penalty.strength))
        if not loss.kinks(1.0).place.size:
            return _smooth(X, SampleLoss(loss, y), float(penalty.strength), float(np.mean(y**2)))
        if penalty.strength < 0:
            return Minimum(np.zeros(X.shape[1]), False, 0)  # a loss of straight pieces holds no negative ridge
    elif not loss.kinks(1.0).place.size:
        found = _least_angles(X, y, float(penalty.strength)) if isinstance(loss, Square) else None
        return found or _proximal_gradient(X, SampleLoss(loss, y), penalty)
    if (isinstance(penalty, Lasso) or penalty.strength == 0) and _has_straight_pieces(loss):
        return _linear_programme(X, SampleLoss(loss, y), float(penalty.strength))
    return _alternating(X, SampleLoss(loss, y), penalty)


def _least_squares(X: np.ndarray, y: np.ndarray, strength: float) -> Minimum:
    n, d = X.shape
    if strength == 0:
        return Minimum(scipy.linalg.lstsq(X, y)[0], True, 1)  # pyright: ignore[reportOptionalSubscript]
    if n < d and strength > 0:
        kernel = scipy.linalg.cho_factor(X @ X.T + strength * np.eye(n))
        return Minimum(X.T @ scipy.linalg.cho_solve(kernel, y), True, 1)
    try:
        factor = scipy.linalg.cho_factor(X.T @ X + strength * np.eye(d))
    except np.linalg.LinAlgError:  # a negative strength below the spectrum: no minimum
        return Minimum(np.zeros(d), False, 1)
    return Minimum(scipy.linalg.cho_solve(factor, X.T @ y), True, 1)


def _smooth(X: np.ndarray, samples: SampleLoss, strength: float, scale: float) -> Minimum:
    d = X.shape[1]

    def risk(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = samples.value_and_slope(X @ w)
        return (value.sum() + strength / 2 * (w @ w)) / d, (X.T @ slope + strength * w) / d

    options = {"maxiter": _MAX_STEPS, "maxfun": 2 * _MAX_STEPS, "ftol": 1e-15, "gtol": 1e-11, "maxcor": 20}
    found = scipy.optimize.minimize(risk, np.zeros(d), jac=True, method="L-BFGS-B", options=options)
    w = found.x
    gradient = np.linalg.norm(risk(w)[1]) * np.sqrt(d)
    size = np.linalg.norm(risk(np.zeros(d))[1]) * np.sqrt(d)
    inside = w @ w / d < _ESCAPED * (1 + scale)
    # A strength of zero may leave the minimum at infinity: the steps then end without a small gradient.
    return Minimum(w, bool(inside and gradient <= 1e-5 * max(size, 1e-300)), int(found.nit))


def _least_angles(X: np.ndarray, y: np.ndarray, strength: float) -> Minimum | None:
    from sklearn.linear_model import LassoLars

    fitted = LassoLars(alpha=strength / len(y), fit_intercept=False, max_iter=10 * sum(X.shape)).fit(X, y)
    w = np.ravel(fitted.coef_)
    slope = X.T @ (y - X @ w)
    excess = np.where(w != 0, np.abs(slope - strength * np.sign(w)), np.maximum(np.abs(slope) - strength, 0.0))
    right = excess.max(initial=0.0) <= 1e-7 * np.abs(X.T @ y).max(initial=1e-300)
    return Minimum(w, True, int(np.max(fitted.n_iter_))) if right else None


def _proximal_gradient(X: np.ndarray, samples: SampleLoss, penalty: Penalty) -> Minimum:
    d = X.shape[1]
    total, slope = 0.0, np.zeros(len(X))  # of the loss, where its gradient was taken last

    def gradient(output: np.ndarray) -> np.ndarray:
        nonlocal total, slope
        value, slope = samples.value_and_slope(output)
        total = value.sum()
        return X.T @ slope

    def divergence(new: np.ndarray, old: np.ndarray) -> float:
        return samples.value(new).sum() - total - slope @ (new - old) - 1e-12 * abs(total)

    def shrunk(v: np.ndarray, L: float) -> np.ndarray:
        return penalty.denoise(L * v, L)[0]

    bound = float(scipy.linalg.svdvals(X)[0]) ** 2  # times the largest curvature: the inverse step
    w = np.zeros(d)
    steps = proximal_gradient(lambda w: X @ w, gradient, shrunk, divergence, w, bound)
    for step, found in zip(range(1, _MAX_STEPS + 1), steps, strict=False):
        w, size = found.x, 1e-12 + np.linalg.norm(found.x)
        if found.change <= 1e-11 * size and found.move <= 1e-9 * size:
            return Minimum(w, True, step)
    return Minimum(w, False, _MAX_STEPS)


def _linear_programme(X: np.ndarray, samples: SampleLoss, strength: float) -> Minimum:
    """A loss of straight pieces, f(u) = a + b u + sum_k j_k (u - p_k)_+, plus strength |w|_1, by the dual programme.

    With u_i = s_i + c x_i.w it maximises sum_ik t_ik (s_i - p_ik) over 0 <= t_ik <= j_ik such that no entry of
    X^T (b + sum_k t_k) exceeds the strength; the weights are c times the multipliers of these d conditions.
    """
    loss, y = samples.loss, samples.y
    n, d = X.shape
    place, left, right = (np.asarray(part) for part in loss.kinks_of(y))
    push = X.T @ left[np.arange(n), np.argmin(place, axis=1)]
    c, s = (-1.0, y) if loss.residual else (1.0, np.zeros(n))
    rows = np.repeat(X, place.shape[1], axis=0).T
    cost, box = (place - s[:, None]).ravel(), np.stack([np.zeros(place.size), (right - left).ravel()], axis=1)
    if strength == 0:
        found = scipy.optimize.linprog(cost, A_eq=rows, b_eq=-push, bounds=box, method="highs-ipm")
        w = c * found.eqlin.marginals if found.success else np.zeros(d)
    else:
        both, ends = np.vstack([rows, -rows]), np.concatenate([strength - push, strength + push])
        found = scipy.optimize.linprog(cost, A_ub=both, b_ub=ends, bounds=box, method="highs-ipm")
        w = c * (found.ineqlin.marginals[:d] - found.ineqlin.marginals[d:]) if found.success else np.zeros(d)
    return Minimum(w, bool(found.success), int(found.nit))


def _has_straight_pieces(loss: Loss) -> bool:
    """Whether the loss is convex and has kinks, but no curvature between them."""
    u = np.linspace(-50.0, 50.0, 4001) + 1e-3
    return bool(loss.kinks(1.0).place.size) and all(
        not np.any(np.asarray(loss.curvature(u, np.full_like(u, y)))) for y in (-1.0, 1.0)
    )


def _least_l1_norm(X: np.ndarray, y: np.ndarray) -> Minimum:
    """min |w|_1 with X w = y, with w as a difference of two positive vectors."""
    d = X.shape[1]
    found = scipy.optimize.linprog(np.ones(2 * d), A_eq=np.hstack([X, -X]), b_eq=y, method="highs-ds")
    if found.x is None:
        return Minimum(np.zeros(d), False, int(found.nit))
    return Minimum(found.x[:d] - found.x[d:], bool(found.success), int(found.nit))


def _alternating(
    X: np.ndarray, samples: SampleLoss, penalty: Penalty, V: float | None = None, max_steps: int = _MAX_STEPS
) -> Minimum:
    """The alternating direction method; with a very large `V` every loss is at its minimum, and the penalty least."""
    n, d = X.shape
    factor = scipy.linalg.cho_factor(X.T @ X + np.eye(d))
    # Below twice the lowest curvature the proximal operator of a loss that is not convex would have several values.
    least = max(1e-6, -2.5 * float(samples.loss.lowest_curvature))
    k = max(1.0, least)
    z, v, s, t = np.zeros(n), np.zeros(d), np.zeros(n), np.zeros(d)
    for step in range(1, max_steps + 1):
        w = scipy.linalg.cho_solve(factor, X.T @ (z - s) + v - t, check_finite=False)
        output = X @ w
        old = z, v
        mixed, mixed_w = (_OVERSHOOT * new + (1 - _OVERSHOOT) * was for new, was in ((output, z), (w, v)))
        z = samples.step(mixed + s, 1 / k if V is None else V)[0]
        v = penalty.denoise(k * (mixed_w + t), k)[0]
        s, t = s + mixed - z, t + mixed_w - v
        if step % _CHECK:
            continue
        primal = np.hypot(np.linalg.norm(output - z), np.linalg.norm(w - v))
        dual = np.hypot(np.linalg.norm(z - old[0]), np.linalg.norm(v - old[1]))
        scale = max(np.hypot(np.linalg.norm(z), np.linalg.norm(v)), 1e-12)
        multiplier = max(np.hypot(np.linalg.norm(s), np.linalg.norm(t)), 1e-12)
        if primal <= _TOLERANCE * scale and dual <= _TOLERANCE * multiplier:
            return Minimum(v, True, step)
        ratio = (primal / scale) / max(dual / multiplier, 1e-300)
        change = 2.0 if ratio > _BALANCE else 0.5 if ratio < 1 / _BALANCE else 1.0
        # Changes that become rarer leave the method convergent.
        if change != 1.0 and k * change >= least and step < 40 * _CHECK * (1 + step // 2000):
            k, s, t = k * change, s / change, t / change
    return Minimum(v, False, max_steps)
