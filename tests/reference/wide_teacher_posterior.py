r"""Samples of the posterior of a wide teacher by Hamiltonian Monte Carlo, from the definition of the model alone.

The weights are $w_j = \sqrt d\, g_j/|g_j|$ with g standard normal, which is the uniform law on the sphere: the chain
moves g, whose posterior has the energy

    |g|^2 / 2 + |y - sum_j a_j sigma(X w_j)|^2 / (2 noise).

Nothing here is taken from the package: neither the sampler nor the activations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ACTIVATIONS = {
    "he3(z)/sqrt(6)": (lambda z: (z * z * z - 3 * z) / np.sqrt(6), lambda z: (3 * z * z - 3) / np.sqrt(6)),
    "tanh(2*z)": (lambda z: np.tanh(2 * z), lambda z: 2 - 2 * np.tanh(2 * z) ** 2),
}


class Posterior(NamedTuple):
    """What the chain says: overlaps w_hat_j.w_j/d, the error of the mean label on fresh inputs, the accepted share.

    `halves` are the errors of the first and the second half of the chain: they differ where it has not settled.
    """

    overlaps: np.ndarray
    error: float
    halves: tuple[float, float]
    accepted: float


class _Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    amplitudes: np.ndarray
    activation: str
    noise: float

    def on_spheres(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        norm = np.linalg.norm(g, axis=0)
        return np.sqrt(len(g)) * g / norm, norm

    def energy(self, g: np.ndarray) -> tuple[float, np.ndarray]:
        """The energy and its gradient."""
        value, slope = ACTIVATIONS[self.activation]
        w, norm = self.on_spheres(g)
        z = self.X @ w
        left = value(z) @ self.amplitudes - self.y
        of_w = self.X.T @ (left[:, None] * slope(z) * self.amplitudes) / self.noise
        # The derivative of w in g: sqrt(d)/|g| times the projection across g.
        across = of_w - w * np.sum(of_w * w, axis=0) / len(g)
        return 0.5 * np.sum(g**2) + left @ left / (2 * self.noise), g + np.sqrt(len(g)) / norm * across


def sample_posterior(
    d: int,
    amplitudes: np.ndarray,
    activation: str,
    noise: float,
    n: int,
    seed: int,
    steps: int = 300,
    burn: int = 150,
    leaps: int = 12,
    informed: bool = True,
    test: int = 4000,
) -> Posterior:
    """One data set and one chain on it, from the teacher's weights or from random ones.

    The step size is adapted while the chain burns in, towards a share of 0.8 accepted.
    """
    rng = np.random.default_rng(seed)
    value, k = ACTIVATIONS[activation][0], len(amplitudes)
    truth = rng.standard_normal((d, k))
    truth *= np.sqrt(d) / np.linalg.norm(truth, axis=0)
    X, fresh = (rng.standard_normal((count, d)) / np.sqrt(d) for count in (n, test))
    y = value(X @ truth) @ amplitudes + np.sqrt(noise) * rng.standard_normal(n)
    problem = _Problem(X, y, amplitudes, activation, noise)
    g = truth.copy() if informed else rng.standard_normal((d, k))
    energy, slope = problem.energy(g)
    size, taken, labels, weights = 0.5 / np.sqrt(1 + n / d * np.mean(amplitudes**2) / noise), 0, [], []
    for step in range(burn + steps):
        momentum = rng.standard_normal(g.shape)
        begin = energy + 0.5 * np.sum(momentum**2)
        new, force, now = g, slope, momentum - 0.5 * size * slope
        for leap in range(leaps):
            new = new + size * now
            new_energy, force = problem.energy(new)
            now = now - size * force * (1.0 if leap < leaps - 1 else 0.5)
        lost = new_energy + 0.5 * np.sum(now**2) - begin
        accept = np.log(rng.random()) < -lost if np.isfinite(lost) else False
        if accept:
            g, energy, slope = new, new_energy, force
        if step < burn:
            size *= np.exp(0.1 * ((1.0 if accept else 0.0) - 0.8))
            continue
        taken += bool(accept)
        w = problem.on_spheres(g)[0]
        weights.append(w)
        labels.append(value(fresh @ w) @ amplitudes)
    clean = value(fresh @ truth) @ amplitudes

    def error(part: list[np.ndarray]) -> float:
        return float(np.mean((np.mean(part, axis=0) - clean) ** 2))

    half = len(labels) // 2
    overlaps = np.sum(np.mean(weights, axis=0) * truth, axis=0) / d
    return Posterior(overlaps, error(labels), (error(labels[:half]), error(labels[half:])), taken / steps)
