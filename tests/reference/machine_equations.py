r"""A Boltzmann machine with one hidden unit on spiked samples, from the equations alone: NumPy and SciPy, no JAX.

The replica-symmetric equations of a +-1 unit are averaged over z, the unit's field after the proximal step, by the
trapezoidal rule: omega = z - V tanh z, d omega = (1 - V s) dz, which is exact beyond any need for V < 1. Ascent with a
Gaussian unit is a polynomial of X^T X, whose spectral measures at w* and at a random vector are known.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import root

RADEMACHER = ((0.5, 1.0, 0.0), (0.5, -1.0, 0.0))
GAUSSIAN = ((1.0, 0.0, 1.0),)


def averages(theta, m, q, V, mixture=RADEMACHER, points=6001):
    """E[u g], E[g^2], E[h], E[h^2] and E[log cosh z], with h = s/(1 - V s); u of the given mixture of Gaussians."""
    total = np.zeros(5)
    for weight, mean, variance in mixture:
        centre, scale = np.sqrt(theta) * m * mean, np.sqrt(q + theta * m**2 * variance)
        z = np.linspace(centre - 10 * scale - 1, centre + 10 * scale + 1, points)
        g = np.tanh(z)
        s = 1 - g**2
        omega = z - V * g
        density = np.exp(-(((omega - centre) / scale) ** 2) / 2) / np.sqrt(2 * np.pi) / scale
        w = density * (1 - V * s) * (z[1] - z[0])
        # Given omega, u is Gaussian around its regression on omega.
        u = mean + np.sqrt(theta) * m * variance / scale**2 * (omega - centre)
        h = s / (1 - V * s)
        log_cosh = np.logaddexp(z, -z) - np.log(2)
        total += weight * np.array([w @ (u * g), w @ g**2, w @ h, w @ h**2, w @ log_cosh])
    return total


def step(alpha, theta, m, q, V, mixture=RADEMACHER):
    """(m, q, V) once more through the equations."""
    u_g, g_g, h, _, _ = averages(theta, m, q, V, mixture)
    V_new = 1 / (alpha * (1 - h))
    m_hat = alpha * np.sqrt(theta) * u_g
    return m_hat * V_new, (m_hat**2 + alpha * g_g) * V_new**2, V_new


def maximum(alpha, theta, start, mixture=RADEMACHER):
    """m, q, V, squared cosine, replicon and log-likelihood over d, by Powell's method from (m, q, V)."""
    found = root(lambda x: np.array(step(alpha, theta, *x, mixture)) - x, start, tol=1e-14)
    m, q, V = found.x
    *_, h_h, log_cosh = averages(theta, m, q, V, mixture)
    return np.array([m, q, V, m**2 / q, alpha * V**2 * h_h, alpha * (log_cosh - q / 2)])


def gaussian_ascent(alpha, theta, rate, steps, m0, q0, points=20000):
    """M_t and Q_t of gradient ascent with one Gaussian unit, for alpha > 1: w <- (1 - rate Lam_t + rate X^T X) w.

    With g(z) = 1/(alpha/(1 + g) - z) the resolvent of the bulk, that of w* is 1/(alpha (1 + theta)/(1 + g) - z): a
    density, and above the transition a mass at (1 + theta)(alpha + 1/theta).
    """
    angle = (np.arange(points) + 0.5) * np.pi / points
    x = 1 + alpha + 2 * np.sqrt(alpha) * np.cos(angle)
    width = 2 * np.sqrt(alpha) * np.sin(angle) * np.pi / points
    g = (-(x + 1 - alpha) + 1j * np.sqrt(np.maximum(4 * x - (x + 1 - alpha) ** 2, 0.0))) / (2 * x)
    bulk = g.imag / np.pi * width
    spike = (1 / (alpha * (1 + theta) / (1 + g) - x)).imag / np.pi * width
    x = np.append(x, (1 + theta) * (alpha + 1 / theta))
    bulk, spike = np.append(bulk, 0.0), np.append(spike, 1 - spike.sum())
    P, path = np.ones_like(x), []
    for _ in range(steps + 1):
        M, Q = m0 * (spike @ P), m0**2 * (spike @ P**2) + (q0 - m0**2) * (bulk @ P**2)
        path.append((M, Q))
        P = P * (1 - rate * alpha / (1 - Q) + rate * x)
    return np.array(path).T
