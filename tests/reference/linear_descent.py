r"""Gradient descent of a linear neuron on linear labels, exactly: polynomials of the Marchenko-Pastur eigenvalues.

w <- (1 - eta lam) w + eta X^T (y - X w), y = X w* + sqrt(noise) xi, X of n = alpha d rows of variance 1/d. With x an
eigenvalue of X^T X, P_t = (1 - eta lam - eta x)^t and S_t = eta (P_0 + .. + P_{t-1}),

    M_t = E[S_t x] + m0 E[P_t],   Q_t = q0 E[P_t^2] + 2 m0 E[P_t S_t x] + E[(S_t x)^2] + noise E[S_t^2 x].
"""

from __future__ import annotations

import numpy as np


def linear_descent(alpha, eta, steps, noise=0.0, lam=0.0, m0=0.0, q0=1.0, points=4000):
    """M_t and Q_t for t = 0 .. steps."""
    angle = (np.arange(points) + 0.5) * np.pi / points
    x = 1 + alpha + 2 * np.sqrt(alpha) * np.cos(angle)
    weight = (2 * np.sqrt(alpha) * np.sin(angle)) ** 2 / (2 * np.pi * x) * np.pi / points
    if alpha < 1:
        x, weight = np.append(x, 0.0), np.append(weight, 1 - alpha)
    factor = 1 - eta * lam - eta * x
    P, S, found = np.ones_like(x), np.zeros_like(x), []
    for _ in range(steps + 1):
        q = q0 * P**2 + 2 * m0 * P * S * x + (S * x) ** 2 + noise * S**2 * x
        found.append((weight @ (S * x + m0 * P), weight @ q))
        S, P = S + eta * P, P * factor
    return np.array(found).T
