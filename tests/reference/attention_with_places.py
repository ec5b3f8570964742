"""Attention with places without the package: state evolution by random scores, and the risk of weights at size d.

The averages are over random z and eta, and the proximal step is the lowest end of descents from many starts.
"""

from __future__ import annotations

import numpy as np


def diagonal(x: np.ndarray) -> np.ndarray:
    """The diagonal of softmax(x x^T) for rows of two scores."""
    return 1 / (1 + np.exp(-x * (x - x[:, ::-1])))


def labels(z: np.ndarray, model) -> np.ndarray:
    """The diagonal of the teacher's attention at projections of unit variance."""
    own, omega = diagonal(np.sqrt(model.variance) * z), model.positional
    return (1 - omega) * own + omega / (1 + np.exp(-2 * model.place**2))


def cost(x, omega, T, V, s2):
    return np.sum((x - omega) ** 2, axis=1) / (2 * V) + s2 * np.sum((T - diagonal(x)) ** 2, axis=1)


def slope(x, omega, T, V, s2):
    S = diagonal(x)
    pull = -2 * s2 * (T - S) * S * (1 - S)
    return (x - omega) / V + pull * (2 * x - x[:, ::-1]) - pull[:, ::-1] * x[:, ::-1]


def proximal(omega: np.ndarray, T: np.ndarray, V: float, s2: float, steps: int = 1500) -> np.ndarray:
    """By gradient steps with momentum from eight starts on a circle and omega, the lowest end of each row."""
    best, lowest = omega.copy(), np.full(len(omega), np.inf)
    angles = np.arange(8) * np.pi / 4 + 0.1
    rate = 1 / (1 / V + 1.5 * s2)
    for start in [omega, *([0.8 * np.cos(a), 0.8 * np.sin(a)] + 0 * omega for a in angles)]:
        x, v = start.copy(), np.zeros_like(omega)
        for _ in range(steps):
            g = slope(x + 0.9 * v, omega, T, V, s2)
            v = 0.9 * v - rate * g
            x = x + v
            if np.abs(g).max() < 1e-9:
                break
        value = cost(x, omega, T, V, s2)
        better = value < lowest - 1e-13
        best[better], lowest[better] = x[better], value[better]
    return best


def image(model, penalty: float, alpha: float, order: dict[str, float], samples: int, seed: int):
    """One step of the equations of the sheet from (theta, m, q, V), by `samples` draws: the image and its errors.

    In units of scores: theta is the covariance with z* of variance sigma^2, V the response of a score.
    """
    rng = np.random.default_rng(seed)
    s2 = rho = model.variance
    theta, m, q, V = (order[name] for name in ("theta", "m", "q", "V"))
    z, xi = rng.standard_normal((2, samples, 2))
    # Exchange of tokens with the sign of the scores, and both noises with their signs: averages that vanish do so.
    s = np.sqrt(q - theta**2 / rho)
    mean = theta / np.sqrt(rho) * z + m * np.array([1.0, -1.0])
    parts = []
    for sign in (1.0, -1.0):
        eta = sign * xi
        omega, T = mean + s * eta, labels(z, model)
        f = (proximal(omega, T, V, s2) - omega) / V
        parts.append([np.sum(f * z, 1), f[:, 0] - f[:, 1], np.sum(f**2, 1), -np.sum(f * eta, 1) / s])
    each = np.mean(parts, axis=0)
    average, error = each.mean(axis=1), each.std(axis=1, ddof=1) / np.sqrt(samples)

    def step(a):
        semantic, places, power, response = a
        V_hat = alpha * response
        theta_hat = alpha * semantic / np.sqrt(rho) + theta / rho * V_hat
        D = penalty + V_hat * s2
        q_new = s2 * (alpha * power * s2 + (alpha * places) ** 2 + theta_hat**2 * s2 * rho) / D**2
        return np.array([s2 * rho * theta_hat / D, alpha * places / D, q_new, s2 / D])

    value = step(average)
    moves = [step(average + error * np.eye(4)[k]) - value for k in range(4)]
    return value, np.sqrt(np.sum(np.square(moves), axis=0))


def risk(model, penalty: float, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """The risk of weights, sample by sample."""
    d, total = len(w), penalty * float(w @ w) / 2
    for tokens, label in zip(X, y, strict=True):
        h = tokens @ w / np.sqrt(d)
        weights = np.exp(np.outer(h, h))
        S = weights / weights.sum(axis=1, keepdims=True)
        total += float(np.sum((label - S @ tokens) ** 2)) / (2 * d)
    return total
