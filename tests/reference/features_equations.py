"""Random features and one giant step, written from their equations with NumPy and SciPy alone: no code of the package.

Averages over the eigenvalues of W W^T are sums over the law of Marchenko and Pastur, not resolvents in closed form; the
unknowns are found by bisection and plain iteration; derivatives are central differences.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

NODES = 160


def gauss(nodes: int = NODES) -> tuple[np.ndarray, np.ndarray]:
    """E f(z), z ~ N(0, 1), f smooth."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    return z, w / w.sum()


def constants(sigma, shift=0.0, c: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """mu0, mu1 and mu2^2 of a smooth activation at each shift."""
    z, w = gauss()
    s = sigma(np.asarray(shift, float)[..., None] + np.sqrt(c) * z)
    mu0, mu1, square = s @ w, (s * z) @ w / np.sqrt(c), (s**2) @ w
    return mu0, mu1, square - mu0**2 - c * mu1**2


def marchenko_pastur(beta: float, c: float = 1.0, nodes: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of W W^T (p x p, entries of variance c/d), with the atom at zero."""
    t = (np.arange(nodes) + 0.5) * np.pi / nodes
    x = c * (1 + beta + 2 * np.sqrt(beta) * np.cos(t))
    weight = 2 * c * np.sin(t) ** 2 / (nodes * x)
    return np.append(x, 0.0), np.append(weight, max(0.0, 1 - 1 / beta))


def random_feature_ridge(sigma, g, alpha: float, beta: float, penalty: float, noise: float) -> tuple[float, float]:
    """Mean squared errors on fresh and on training labels, with their noise, of smooth sigma and g with E sigma = 0."""
    _, mu1, rest = (float(part) for part in constants(sigma))
    z, w = gauss()
    t1 = float((g(z) * z) @ w)
    s2 = float(g(z) ** 2 @ w) - t1**2 + noise
    x, weight = marchenko_pastur(beta)
    a = alpha / beta

    def sums(V: float):
        return penalty + a * (mu1**2 * x + rest) / (1 + V)

    def change(log_V: float) -> float:
        return np.log(weight @ ((mu1**2 * x + rest) / sums(np.exp(log_V)))) - log_V

    V = np.exp(brentq(change, -60, 60, xtol=1e-14))
    S, ph = sums(V), a * mu1 * t1 / (1 + V)
    psi = beta * ph * (weight @ (x / S))
    q1, q2 = (ph**2 * beta * (weight @ (part / S**2)) for part in (x**2, x))
    T = weight @ ((mu1**2 * x + rest) ** 2 / S**2)
    test = (s2 + t1**2 - 2 * t1 * mu1 * psi + mu1**2 * q1 + rest * q2) / (1 - a * T / (1 + V) ** 2)
    return float(test), float(test / (1 + V) ** 2)


def spiked_ridge(
    sigma, g, r: float, c: float, gamma: float, alpha: float, beta: float, penalty: float, noise: float
) -> tuple[float, float]:
    """The same for features with a spike r of alignment gamma on isotropic rows of variance c."""
    kappa, w = gauss()
    mu0, mu1, mu2 = constants(sigma, r * kappa, c)
    z, weight = gauss()
    label = g(gamma * kappa[:, None] + np.sqrt(1 - gamma**2) * z)
    h, h1, hh = label @ weight, (label * z) @ weight, label**2 @ weight
    x, law = marchenko_pastur(beta, c)
    a, V1, V2 = alpha / beta, 1.0, 1.0
    for _ in range(20_000):
        V = mu1**2 * V1 + mu2 * V2
        S = penalty + a * (w @ (mu1**2 / (1 + V))) * x + a * (w @ (mu2 / (1 + V)))
        new = law @ (x / S), law @ (1 / S)
        if max(abs(new[0] - V1), abs(new[1] - V2)) < 1e-14 * (1 + V1 + V2):
            break
        V1, V2 = (V1 + new[0]) / 2, (V2 + new[1]) / 2
    V = mu1**2 * V1 + mu2 * V2
    u, g2 = w / (1 + V), law @ (1 / S)
    # m and zeta: E[mu0 res] = 0, zeta = c beta g a E[kappa mu1 res].
    k = c * beta * g2 * a
    A = np.array(
        [[u @ mu0**2, u @ (mu0 * kappa * mu1)], [k * (u @ (kappa * mu1 * mu0)), 1 + k * (u @ (kappa * mu1) ** 2)]]
    )
    m, zeta = np.linalg.solve(A, [u @ (mu0 * h), k * (u @ (kappa * mu1 * h))])
    ph, zh = a * (u @ (mu1 * h1)), zeta / (c * beta * g2)
    psi = beta * ph * V1
    T11, T12, T22 = (law @ (part / S**2) for part in (x**2, x, np.ones_like(x)))
    fit = m * mu0 + kappa * mu1 * zeta
    R = hh + noise - 2 * fit * h + fit**2 - 2 * psi * mu1 * h1
    R = R + zh**2 * c * beta * (mu1**2 * T12 + mu2 * T22) + ph**2 * beta * (mu1**2 * T11 + mu2 * T12)
    kernel = np.outer(mu1**2, mu1**2) * T11 + np.outer(mu2, mu2) * T22
    kernel = kernel + (np.outer(mu1**2, mu2) + np.outer(mu2, mu1**2)) * T12
    risk = np.linalg.solve(np.eye(len(w)) - a * kernel * (w / (1 + V) ** 2), R)
    return float(w @ risk), float(w @ (risk / (1 + V) ** 2))


def sampled_rows(eta: float, alpha0: float, d: int, rng: np.random.Generator) -> np.ndarray:
    """Lambda of rows after a step of tanh on sin, sampled: 1 + tau A, in the basis of the inputs."""
    z, w = gauss()
    slope = 1 - np.tanh(z) ** 2
    mcheck = float(slope**2 @ w) - float(slope @ w) ** 2
    X = rng.standard_normal((round(alpha0 * d), d))
    y = np.sin(X[:, 0])
    return np.eye(d) + eta**2 * mcheck / alpha0 * (X.T * y**2) @ X / len(y)
