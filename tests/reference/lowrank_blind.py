"""Runs on spiked data from the definitions alone: NumPy, message passing written again, eigenvectors by `eigh`."""

from __future__ import annotations

import numpy as np


def sparse_matrix_run(d, snr, rho, seed, steps=300):
    """Overlap of message passing from close to a Gauss-Bernoulli spike, and squared overlap of the eigenvector."""
    rng = np.random.default_rng([1, d, seed])
    x = rng.normal(size=d) * (rng.random(d) < rho)
    x *= np.sqrt(d / (x @ x))
    W = rng.normal(size=(d, d))
    Y = snr / d * np.outer(x, x) + (W + W.T) / np.sqrt(2 * d)
    estimate, old, response = 0.3 * x + 0.5 * rng.normal(size=d), np.zeros(d), 0.0
    for _ in range(steps):
        B = snr * Y @ estimate - snr**2 * response * old
        A = snr**2 * (estimate @ estimate / d) + 1e-12
        mean, variance = _posterior(B, A, rho)
        old, estimate, response = estimate, mean, variance.mean()
    v = np.linalg.eigh(Y)[1][:, -1]
    return abs(estimate @ x) / d, (v @ x) ** 2 / d


def _posterior(B, A, rho):
    """Mean and variance of an entry that is N(0, 1/rho) with probability rho, or zero, given its field."""
    spread = A + A * A / rho
    odds = np.log(rho / (1 - rho)) + np.log(A / spread) / 2 + B * B * (1 / A - 1 / spread) / 2
    share = 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    mean, variance = B / (rho + A), 1 / (rho + A)
    return share * mean, share * (variance + mean**2) - (share * mean) ** 2


def covariance_run(d, alpha, snr, seed):
    """Squared overlaps of the principal component with the spike and with a Gaussian latent variable."""
    rng = np.random.default_rng([2, d, seed])
    w, u = rng.normal(size=(1, d))[0], rng.normal(size=(1, round(alpha * d)))[0]
    w *= np.sqrt(d / (w @ w))
    X = rng.normal(size=(len(u), d)) + np.sqrt(snr / d) * np.outer(u, w)
    left, _, right = np.linalg.svd(X, full_matrices=False)
    return (right[0] @ w) ** 2 / d, (left[:, 0] @ u) ** 2 / (u @ u)


def tensor_run(d, noise, q, seed, steps=120):
    """Message passing on a Gaussian spike in a tensor of order three, from an estimate of overlap exactly q.

    The overlap after one step without damping, and that at the end of a damped run. The noise is symmetric as a sum
    over permutations of one array of independent entries, and is never formed: only its contraction is.
    """
    rng = np.random.default_rng([3, d, seed])
    x, z = rng.normal(size=(2, d))
    x *= np.sqrt(d / (x @ x))
    z -= x * (z @ x) / d
    z *= np.sqrt(d / (z @ z))
    G = rng.normal(size=(d, d, d))

    def field(w):
        last, first = (G.reshape(-1, d) @ w).reshape(d, d), (w @ G.reshape(d, -1)).reshape(d, d)
        contracted = 2 / np.sqrt(6) * (last @ w + w @ last + w @ first)
        return (x @ w / d) ** 2 * x / noise + contracted / (np.sqrt(2 * noise) * d)

    estimate, past = q * x + np.sqrt(q * (1 - q)) * z, []
    after_one = field(estimate) @ x / d / (1 + (estimate @ estimate / d) ** 2 / noise)
    for _ in range(steps):
        A = (estimate @ estimate / d) ** 2 / noise
        memory = sum(2 * weight * (estimate @ old / d) * response * old for weight, old, response in past) / noise
        new = (field(estimate) - memory) / (1 + A)
        past = [(weight / 2, old, response) for weight, old, response in past if weight > 1e-10]
        past.append((0.5, estimate, 1 / (1 + A)))
        estimate = (estimate + new) / 2
    return after_one, estimate @ x / d
