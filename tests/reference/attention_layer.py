r"""Message passing for an attention layer of rank rho d, from the equations alone: softmax and hardmax labels.

Nothing of the package is used. Scores are had from the definition, posteriors of hardmax labels from a Gibbs sampler of
the scores under their label (the package has sequential draws), and the denoiser of eigenvalues from the roots of the
cubic equation of the law of $S + Z/\sqrt{\hat q}$. [boncoraglio2025bayes]
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

SMOOTHING = 0.02
CHAINS, BURN, SWEEPS = 32, 3, 8


def scores(X, S):
    """h (n, T, T)."""
    d, T = X.shape[2], X.shape[1]
    return (np.einsum("nai,ij,nbj->nab", X, S, X, optimize=True) - np.trace(S) * np.eye(T)) / np.sqrt(d)


def stieltjes(x, rho, Delta, eta):
    """g at x - i eta: the root of the cubic in the upper half-plane."""
    z, r = x - 1j * eta, np.sqrt(rho)
    companion = np.zeros((len(x), 3, 3), complex)
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    companion[:, 0, 2] = r / Delta
    companion[:, 1, 2] = -(z * r - rho + 1) / Delta
    companion[:, 2, 2] = (z + Delta * r) / Delta
    roots = np.linalg.eigvals(companion)
    return roots[np.arange(len(x)), np.argmax(roots.imag, axis=1)]


def left_over(qhat, rho):
    """The error V of the best estimate at precision qhat."""
    Delta, r = 1 / qhat, np.sqrt(rho)
    low, high = -2.2 * np.sqrt(Delta) - 0.1, (1 + r) ** 2 / r + 2.2 * np.sqrt(Delta) + 0.1
    x = np.linspace(low, high, 6000)
    density = np.maximum(stieltjes(x, rho, Delta, 1e-5).imag, 0) / np.pi
    return Delta - 4 * np.pi**2 / 3 * Delta**2 * np.sum(density**3) * (x[1] - x[0])


def denoised(R, qhat, rho):
    d, (values, vectors) = len(R), np.linalg.eigh(R)
    eta = SMOOTHING / np.sqrt(qhat) * (100 / d) ** (2 / 3)
    return (vectors * (values - 2 / qhat * stieltjes(values, rho, 1 / qhat, eta).real)) @ vectors.T


class Softmax:
    """g of softmax labels, whose inversion shows h up to a multiple of 11^T."""

    def __init__(self, h, beta):
        y = np.exp(beta * h - np.max(beta * h, axis=-1, keepdims=True))
        logs = np.log(y / y.sum(axis=-1, keepdims=True)) / beta
        rows = logs - logs[:, :, :1]
        self.h = rows + rows[:, :1, :].transpose(0, 2, 1)  # h - h_11 11^T
        self.scale = np.sqrt(1 + np.eye(h.shape[1]))
        self.count = h.shape[1] * (h.shape[1] + 1) // 2 - 1

    def __call__(self, omega, V):
        left = (self.h - omega) / self.scale
        hidden = np.triu(1 / self.scale)
        upper = np.triu(left)
        upper = upper - np.sum(upper * hidden, axis=(1, 2))[:, None, None] * hidden / np.sum(hidden**2)
        # The V that labels show: at small d the norm of an estimate says too little of its error.
        V = np.mean(np.sum(upper**2, axis=(1, 2))) / self.count
        g = np.triu(upper / self.scale) / V
        return g, np.sum(g**2 * np.triu(self.scale**2))


class Hardmax:
    """g of the largest score of each row, by Gibbs sampling; the chains go on from step to step."""

    def __init__(self, h, rng):
        n, T = h.shape[:2]
        self.labels, self.rng, self.T = h.argmax(axis=-1), rng, T
        self.state = np.zeros((n, CHAINS, T, T))
        todo = np.ones((n, CHAINS), bool)
        while todo.any():
            pool = rng.standard_normal((4096, T, T))
            pool = np.triu(pool, 1) + np.triu(pool, 1).transpose(0, 2, 1) + np.sqrt(2) * pool * np.eye(T)
            seen = pool.argmax(axis=-1)
            for label in np.unique(self.labels, axis=0):
                found = np.flatnonzero((seen == label).all(axis=1))
                rows = np.flatnonzero((self.labels == label).all(axis=1))
                where = np.argwhere(todo[rows])
                if len(found) and len(where):
                    i, k = rows[where[:, 0]], where[:, 1]
                    self.state[i, k] = pool[rng.choice(found, len(i))]
                    todo[i, k] = False

    def __call__(self, omega, V):
        n, T = omega.shape[:2]
        total = np.zeros((n, CHAINS, T, T))
        for sweep in range(BURN + SWEEPS):
            for a in range(T):
                for b in range(a, T):
                    mean = self._draw(a, b, omega, V)
                    if sweep >= BURN:
                        total[:, :, a, b] += mean / SWEEPS
        weight = np.triu(1 / (1 + np.eye(T)))
        halves = [(total[:, part].mean(axis=1) - omega) * weight / V for part in (slice(0, None, 2), slice(1, None, 2))]
        g = (halves[0] + halves[1]) / 2
        return g, np.sum(halves[0] * halves[1] * np.triu(1 + np.eye(T)))

    def _draw(self, a, b, omega, V):
        h, y = self.state, self.labels
        low, high = np.full(h.shape[:2], -np.inf), np.full(h.shape[:2], np.inf)
        for row, column in {(a, b), (b, a)}:
            picked = y[:, row] == column
            others = np.delete(h[:, :, row], column, axis=-1).max(axis=-1)
            top = np.take_along_axis(h[:, :, row], y[:, row][:, None, None], axis=-1)[..., 0]
            low = np.where(picked[:, None], np.maximum(low, others), low)
            high = np.where(picked[:, None], high, np.minimum(high, top))
        centre, width = omega[:, None, a, b], np.sqrt((1 + (a == b)) * V)
        lower, upper = (low - centre) / width, (high - centre) / width
        mirrored = lower > 0  # where both ends are far up, the lower tail has the digits
        lower, upper = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
        P = ndtr(lower), ndtr(upper)
        mass = np.maximum(P[1] - P[0], 1e-300)
        z = ndtri(np.clip(P[0] + mass * self.rng.random(mass.shape), 1e-300, 1 - 1e-16))
        z = np.clip(z, lower, upper)
        density = [np.exp(-np.minimum(end**2, 1400) / 2) / np.sqrt(2 * np.pi) for end in (lower, upper)]
        mean = np.clip((density[0] - density[1]) / mass, lower, upper)
        sign = np.where(mirrored, -1.0, 1.0)
        self.state[:, :, a, b] = self.state[:, :, b, a] = centre + width * sign * z
        return centre + width * sign * mean


def error_of_message_passing(rho, tokens, output, alpha, d, seed, steps=60, beta=1.0):
    """|S_hat - S|^2 / d at the end of one run."""
    rng = np.random.default_rng([seed, d, tokens])
    p, n, T = round(rho * d), round(alpha * d**2), tokens
    W = rng.standard_normal((d, p))
    S, X = W @ W.T / np.sqrt(p * d), rng.standard_normal((n, T, d))
    h = scores(X, S)
    labels = Softmax(h, beta) if output == "softmax" else Hardmax(h, rng)
    estimate, V, g = np.sqrt(rho) * np.eye(d), 1.0, np.zeros((n, T, T))
    omega = None
    for _ in range(steps):
        new = scores(X, estimate) - V * (g + g.transpose(0, 2, 1))
        omega = new if omega is None else (omega + new) / 2
        g, total = labels(omega, V)
        qhat = 2 / d**2 * max(total, 1e-6 * n)
        symmetric = (g + g.transpose(0, 2, 1)) / 2
        R = np.einsum("nai,nab,nbj->ij", X, symmetric, X, optimize=True) / np.sqrt(d)
        R -= np.trace(symmetric, axis1=1, axis2=2).sum() / np.sqrt(d) * np.eye(d)
        estimate = denoised(estimate + 2 / (d * qhat) * (R + R.T) / 2, qhat, rho)
        V = (V + left_over(qhat, rho)) / 2
    return float(np.sum((estimate - S) ** 2) / d)
