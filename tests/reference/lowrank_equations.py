"""Spiked matrices, tensors and covariances from their equations alone: SciPy, and nothing of the package.

The scalar problem of an entry x with the field B = g x + sqrt(g) z is integrated from its definition, with Bayes' rule
for the posterior mean. A prior is a list of Gaussian parts (weight, mean, variance).

    q = F(g) = E[x E[x|B]],        matrix g = snr^2 q,   tensor g = q^(k-1)/noise,   covariance g = alpha snr F_u(snr q)

Thresholds come from the curve noise(g) = F(g)^(k-1)/g: the spinodal is its maximum, and at the information-theoretic
one the mutual information i = (1 - k q^(k-1) + (k-1) q^k)/(2 k noise) + I(g) is that of q = 0, 1/(2 k noise).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp

GAUSSIAN = [(1.0, 0.0, 1.0)]
RADEMACHER = [(0.5, 1.0, 0.0), (0.5, -1.0, 0.0)]


def sparse(rho):
    """Zero with probability 1 - rho, otherwise N(0, 1/rho)."""
    return [(1 - rho, 0.0, 0.0), (rho, 0.0, 1 / rho)]


def _parts(prior, B, g):
    """Log weight and posterior mean of each part, given B at precision g; the weights sum to the marginal of B."""
    logs, means = [], []
    for weight, mean, variance in prior:
        spread = g + g * g * variance
        logs.append(np.log(weight) - (B - g * mean) ** 2 / (2 * spread) - np.log(2 * np.pi * spread) / 2)
        means.append((mean + variance * B) / (1 + variance * g))
    return np.array(logs), np.array(means)


def _average(prior, g, function):
    """The integral over the marginal of B of a function of (log marginal, posterior mean)."""
    ends = {0.0}
    for _, mean, variance in prior:
        width = np.sqrt(g + g * g * variance)
        ends |= {g * mean + s * width for s in (-14, -6, -3, -1, 1, 3, 6, 14)}
    # Where two parts are equally likely the posterior switches between them.
    for a in prior:
        for b in prior:
            if b[2] > a[2]:
                odds = lambda B, a=a, b=b: np.subtract(*_parts([b, a], B, g)[0])  # noqa: E731
                top = 14 * np.sqrt(g + g * g * b[2])
                if odds(0.0) < 0 < odds(top):
                    switch = brentq(odds, 0.0, top)
                    ends |= {s * switch for s in (-1.3, -1.1, -1, -0.9, -0.7, 0.7, 0.9, 1, 1.1, 1.3)}
    ends = sorted(ends)

    def integrand(B):
        logs, means = _parts(prior, B, g)
        total = logsumexp(logs)
        return np.exp(total) * function(total, np.exp(logs - total) @ means)

    return sum(quad(integrand, *pair, epsabs=1e-14, epsrel=1e-12, limit=200)[0] for pair in pairwise(ends))


def overlap(prior, g):
    """F(g)."""
    return _average(prior, g, lambda _, mean: mean**2) if g > 0 else 0.0


def information(prior, g):
    """I(g) = h(B) - h(B|x), in nats."""
    return (
        _average(prior, g, lambda log_marginal, _: -log_marginal) - np.log(2 * np.pi * np.e * g) / 2 if g > 0 else 0.0
    )


def matrix_overlap(prior, snr, start=1.0):
    """The fixed point of q -> F(snr^2 q) that an iteration from `start` reaches, polished by a root."""
    return tensor_overlap(prior, 2, 1 / snr**2, start)


def tensor_overlap(prior, k, noise, start=1.0):
    """That of q -> F(q^(k-1)/noise)."""
    q = start
    for _ in range(12):
        q = overlap(prior, q ** (k - 1) / noise)
    gap = lambda x: overlap(prior, x ** (k - 1) / noise) - x  # noqa: E731
    width = 1e-3
    while width < 0.5 and gap(max(q - width, 1e-9)) * gap(min(q + width, 1.0)) > 0:
        width *= 1.5
    return brentq(gap, max(q - width, 1e-9), min(q + width, 1.0), xtol=1e-13)


def covariance_overlap(prior, latent, snr, alpha):
    """The fixed point of q -> F(alpha snr F_u(snr q)), as a root away from zero."""
    gap = lambda q: overlap(prior, alpha * snr * overlap(latent, snr * q)) - q  # noqa: E731
    return brentq(gap, 1e-3, 1.0, xtol=1e-12)


def noise_at(prior, k, g):
    """The noise whose fixed point has precision g."""
    return overlap(prior, g) ** (k - 1) / g


def spinodal(prior, k, low=1e-2, high=30.0):
    """The largest noise with an informative fixed point, and its g: the highest point of a scan, refined."""
    grid = np.geomspace(low, high, 60)
    best = int(np.argmax([noise_at(prior, k, g) for g in grid]))
    found = minimize_scalar(
        lambda x: -noise_at(prior, k, np.exp(x)),
        bracket=tuple(np.log(grid[[best - 1, best, best + 1]])),
        method="brent",
        options={"xtol": 1e-8},
    )
    return -found.fun, float(np.exp(found.x))


def mutual_information(prior, k, noise, q):
    """i(q) of the replica formula."""
    scale = (1 / k - q ** (k - 1) + (1 - 1 / k) * q**k) / (2 * noise)
    return scale + information(prior, q ** (k - 1) / noise)


def information_theoretic(prior, k):
    """The noise at which the informative fixed point, beyond the spinodal, has the mutual information of q = 0."""
    _, g = spinodal(prior, k)

    def excess(g):
        noise = noise_at(prior, k, g)
        return mutual_information(prior, k, noise, overlap(prior, g)) - 1 / (2 * k * noise)

    return noise_at(prior, k, brentq(excess, g * (1 + 1e-6), 40 * g, xtol=1e-12))
