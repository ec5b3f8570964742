"""The equations of empirical risk minimisation evaluated from their definitions, apart from the library's own code.

A loss is a profile f(u): of the residual u = y - z, of the margin u = y z (`margin`), or of the output u = z at a given
label. Its proximal operator, u + V f'(u) = x, is inverted by bisection. Averages are composite Gauss-Legendre sums over
the field x, cut where the operator has corners. The push of the labels is taken as the equations have it,
E[(z - omega*)/V* g], without integration by parts; the response V_hat by parts where that avoids f''. Where a loss is
so far from convex that 1 + V f'' nearly vanishes, h^2 is too sharp in x for these sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr

_T, _W = np.polynomial.legendre.leggauss(64)


class Profile(NamedTuple):
    """f, f', f'' of u; `corners(V)`, fields x at which the proximal operator has corners; `kink`, where f' jumps."""

    value: Callable
    slope: Callable
    curvature: Callable
    corners: Callable = lambda V: []
    kink: float | None = None


class Averages(NamedTuple):
    push: float
    power: float
    response: float
    stiffness: float
    loss: float


SQUARE = Profile(lambda r: r**2 / 2, lambda r: r, lambda r: np.ones_like(r))
ABSOLUTE = Profile(np.abs, np.sign, np.zeros_like, lambda V: [-V, V], 0.0)
HINGE = Profile(
    lambda s: np.maximum(0, 1 - s), lambda s: np.where(s < 1, -1.0, 0.0), np.zeros_like, lambda V: [1 - V, 1.0], 1.0
)
LOGISTIC = Profile(lambda s: np.logaddexp(0, -s), lambda s: -expit(-s), lambda s: expit(s) * expit(-s))
QUARTIC = Profile(lambda r: r**4 / 4 + r**2 / 2, lambda r: r**3 + r, lambda r: 3 * r**2 + 1)


def huber(a: float) -> Profile:
    return Profile(
        lambda r: np.where(np.abs(r) < a, r**2 / 2, a * np.abs(r) - a**2 / 2),
        lambda r: np.clip(r, -a, a),
        lambda r: np.where(np.abs(r) < a, 1.0, 0.0),
        lambda V: [-a * (1 + V), a * (1 + V)],
    )


def tukey(c: float) -> Profile:
    def rest(r):
        return np.where(np.abs(r) < c, 1 - (r / c) ** 2, 0.0)

    return Profile(
        lambda r: c**2 / 6 * (1 - rest(r) ** 3),
        lambda r: r * rest(r) ** 2,
        lambda r: rest(r) * (1 - 5 * (r / c) ** 2),
        lambda V: [-c, c],
    )


def cosine(c: float) -> Profile:
    def inside(r):
        return np.abs(r) < np.pi * c

    return Profile(
        lambda r: np.where(inside(r), c**2 * (1 - np.cos(r / c)), 2 * c**2),
        lambda r: np.where(inside(r), c * np.sin(r / c), 0.0),
        lambda r: np.where(inside(r), np.cos(r / c), 0.0),
        lambda V: [-np.pi * c, np.pi * c],
    )


def prox(profile: Profile, x: np.ndarray, V: float) -> np.ndarray:
    """u with u + V f'(u) = x, or the kink whose interval holds x, by bisection."""
    reach = np.full_like(x, 1.0)
    low, high = x - 1.0, x + 1.0
    for _ in range(60):
        below, above = low + V * profile.slope(low) > x, high + V * profile.slope(high) < x
        if not (below.any() or above.any()):
            break
        reach *= 2
        low, high = np.where(below, x - reach, low), np.where(above, x + reach, high)
    for _ in range(110):
        middle = (low + high) / 2
        right = middle + V * profile.slope(middle) < x
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return (low + high) / 2


def response(profile: Profile, u: np.ndarray, V: float) -> np.ndarray:
    """h = f''/(1 + V f''), and 1/V on a kink."""
    smooth = profile.curvature(u) / (1 + V * profile.curvature(u))
    return smooth if profile.kink is None else np.where(np.abs(u - profile.kink) < 1e-9, 1 / V, smooth)


def nodes(cuts, mean=0.0, scale=1.0, reach=9.0, steps=9) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for an average over N(mean, scale^2), cut at the given places."""
    ends = mean + scale * np.linspace(-reach, reach, steps)
    inner = [cut for cut in cuts if ends[0] < cut < ends[-1]]
    ends = np.unique(np.concatenate([ends, inner]))
    half = np.diff(ends)[:, None] / 2
    x = (ends[:-1, None] + half * (1 + _T)).ravel()
    return x, (half * _W).ravel() * np.exp(-(((x - mean) / scale) ** 2) / 2) / np.sqrt(2 * np.pi) / scale


def linear_labels(profile: Profile, components, m: float, q: float, V: float, rho: float = 1.0) -> Averages:
    """y = beta z + sqrt(Delta) xi with probability p; `components` are (p, beta, Delta), and z has variance rho."""
    total = np.zeros(5)
    for p, beta, Delta in components:
        s = np.sqrt(Delta + q - 2 * beta * m + beta**2 * rho)
        R, weight = nodes(profile.corners(V), 0.0, s)
        r = prox(profile, R, V)
        g = (R - r) / V
        mean_response = weight @ (R * g) / s**2
        parts = beta * mean_response, weight @ g**2, mean_response, weight @ response(profile, r, V) ** 2
        total += p * np.array([*parts, weight @ profile.value(r)])
    return Averages(*total)


def curved_labels(
    profile: Profile, target: Callable, noise: float, m: float, q: float, V: float, breaks=()
) -> Averages:
    """y = target(z) + sqrt(noise) xi and a loss of the residual: z first, then R = y - omega, which is Gaussian."""
    z, z_weight = nodes(breaks, reach=8.0, steps=11)
    s2, V_star = q - m**2, 1 - m**2 / q
    total = np.zeros(5)
    for z_k, w_k in zip(z, z_weight, strict=True):
        mean, variance = target(z_k) - m * z_k, s2 + noise
        R, weight = nodes(profile.corners(V), mean, np.sqrt(variance))
        r = prox(profile, R, V)
        g, h = (R - r) / V, response(profile, r, V)
        omega = m * z_k - s2 * (R - mean) / variance  # its mean at given z and R
        score = (z_k - m / q * omega) / V_star
        total += w_k * np.array([weight @ part for part in (score * g, g**2, h, h**2, profile.value(r))])
    return Averages(*total)


def class_labels(profile: Profile, law: Callable, m: float, q: float, V: float, margin: bool = True) -> Averages:
    """Labels +-1, y = -1 the mirror image of y = 1: `law(omega*, V*)` is P(y = 1 | omega*) with its derivative.

    With `margin` the profile is of s = z, else of the residual 1 - z.
    """
    c, V_star = m / np.sqrt(q), 1 - m**2 / q
    corners = profile.corners(V) if margin else [1 - x for x in profile.corners(V)]
    steep = np.sqrt(q) / c * np.sqrt(V_star) * np.array([-6, -3, -1, 0, 1, 3, 6])
    omega, weight = nodes([*corners, *steep], 0.0, np.sqrt(q), steps=13)
    x = omega if margin else 1 - omega
    u = prox(profile, x, V)
    g = (u - x) / V if margin else (x - u) / V
    h = response(profile, u, V)
    Z, dZ = law(c * omega / np.sqrt(q), V_star)
    parts = dZ * g, Z * g**2, Z * h, Z * h**2, Z * profile.value(u)
    return Averages(*(2 * weight @ part for part in parts))


def probit_law(blur: float):
    def law(omega, V_star):
        s = np.sqrt(V_star + blur)
        return ndtr(omega / s), np.exp(-((omega / s) ** 2) / 2) / np.sqrt(2 * np.pi) / s

    return law


def logit_law(gain: float):
    def law(omega, V_star):
        x, weight = nodes([], reach=8.5, steps=21)
        z = omega[:, None] + np.sqrt(V_star) * x
        return expit(gain * z) @ weight, expit(gain * z) @ (weight * x) / np.sqrt(V_star)

    return law


def general_labels(
    value: Callable, slope: Callable, curvature: Callable, beta: float, noise: float, m: float, q: float, V: float
) -> Averages:
    """y = beta z + sqrt(noise) xi and any smooth convex loss l(y, z): y at given omega is Gaussian."""
    V_star = 1 - m**2 / q
    omega, omega_weight = nodes([], 0.0, np.sqrt(q), reach=8.5)
    total = np.zeros(5)
    for om, w in zip(omega, omega_weight, strict=True):
        mean, variance = beta * m / q * om, noise + beta**2 * V_star
        y, weight = nodes([], mean, np.sqrt(variance), steps=4)
        profile = Profile(lambda z, y=y: value(y, z), lambda z, y=y: slope(y, z), lambda z, y=y: curvature(y, z))
        z = prox(profile, np.full_like(y, om), V)
        g, h = (z - om) / V, response(profile, z, V)
        score = beta * (y - mean) / variance
        total += w * np.array([weight @ part for part in (score * g, g**2, h, h**2, profile.value(z))])
    return Averages(*total)


class Weights(NamedTuple):
    m: float
    q: float
    V: float
    stiffness: float
    cost: float


def ridge(strength: float, rho: float = 1.0):
    def weights(m_hat: float, q_hat: float, V_hat: float) -> Weights:
        V = 1 / (strength + V_hat)
        q = (rho * m_hat**2 + q_hat) * V**2
        return Weights(rho * m_hat * V, q, V, V**2, strength * q / 2)

    return weights


def lasso(strength: float, mixture):
    """`mixture`: (share, mean, variance) of the teacher's weights; the field b is Gaussian for each."""

    def weights(m_hat: float, q_hat: float, V_hat: float) -> Weights:
        total = np.zeros(5)
        for share, mean, variance in mixture:
            S = np.sqrt(m_hat**2 * variance + q_hat)
            b, weight = nodes([-strength, strength], m_hat * mean, S)
            w = np.sign(b) * np.maximum(np.abs(b) - strength, 0) / V_hat
            truth = mean + m_hat * variance * (b - m_hat * mean) / S**2
            active = weight @ (np.abs(b) > strength) / V_hat
            total += share * np.array(
                [weight @ (truth * w), weight @ w**2, active, active / V_hat, strength * (weight @ np.abs(w))]
            )
        return Weights(*total)

    return weights


def image(averages: Averages, weights: Callable, alpha: float) -> Weights:
    """(m, q, V) after one step from the labels' averages."""
    return weights(alpha * averages.push, alpha * averages.power, alpha * averages.response)


def damped_fixed_point(labels: Callable, weights: Callable, alpha: float, start=(0.5, 0.8, 0.5), damping=0.5):
    """(m, q, V) where the plain damped iteration of `labels(m, q, V)` and `weights` stops."""
    x = np.array(start)
    for _ in range(1000):
        new = np.array(image(labels(*x), weights, alpha)[:3])
        if np.max(np.abs(new - x)) < 1e-13:
            return tuple(new)
        x = damping * new + (1 - damping) * x
    raise AssertionError("the damped iteration did not settle")
