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
    """What two chains say of one data set: the mean over features of the overlaps and the error on fresh inputs.

    `overlap` is that of the mean weights with the truth, `between` that of the mean weights of one chain with those of
    the other, which is equal to it on average over data sets. `error` is half the mean squared difference of the labels
    of a sample of the posterior and of the truth: on average that of the posterior mean, since both are alike. `halves`
    are the overlaps of the first and the second half of the chains: they differ where these have not settled.
    """

    overlap: float
    between: float
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
    width: int,
    activation: str,
    noise: float,
    n: int,
    seed: int,
    steps: int = 200,
    burn: int = 120,
    leaps: int = 10,
    test: int = 4000,
) -> Posterior:
    """One data set of equal features and two chains on it, from the teacher's weights, with momenta of their own."""
    rng = np.random.default_rng([seed, d, width])
    value, amplitudes = ACTIVATIONS[activation][0], np.full(width, width**-0.5)
    truth = rng.standard_normal((d, width))
    truth *= np.sqrt(d) / np.linalg.norm(truth, axis=0)
    X, fresh = (rng.standard_normal((count, d)) / np.sqrt(d) for count in (n, test))
    y = value(X @ truth) @ amplitudes + np.sqrt(noise) * rng.standard_normal(n)
    problem = _Problem(X, y, amplitudes, activation, noise)
    chains = [_chain(problem, truth, rng, steps, burn, leaps) for _ in range(2)]
    clean = value(fresh @ truth) @ amplitudes
    differences = [value(fresh @ w) @ amplitudes - clean for weights, _ in chains for w in weights[::5]]

    def product(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.sum(one * other)) / (d * width)

    half = steps // 2
    halves = [
        np.mean([product(weights[part].mean(axis=0), truth) for weights, _ in chains])
        for part in (slice(0, half), slice(half, None))
    ]
    first, second = (weights.mean(axis=0) for weights, _ in chains)
    return Posterior(
        (product(first, truth) + product(second, truth)) / 2,
        product(first, second),
        float(np.mean(np.square(differences))) / 2,
        (float(halves[0]), float(halves[1])),
        float(np.mean([accepted for _, accepted in chains])),
    )


def _chain(
    problem: _Problem, truth: np.ndarray, rng: np.random.Generator, steps: int, burn: int, leaps: int
) -> tuple[np.ndarray, float]:
    """The weights after each step, and the accepted share.

    The step size is adapted while the chain burns in, towards a share of 0.8, and drawn anew by a fifth for each step.
    """
    g, taken, weights = truth.copy(), 0, []
    energy, slope = problem.energy(g)
    n, d = problem.X.shape
    size = 0.5 / np.sqrt(1 + n / d * np.mean(problem.amplitudes**2) / problem.noise)
    for step in range(burn + steps):
        momentum, stride = rng.standard_normal(g.shape), size * rng.uniform(0.8, 1.2)
        begin = energy + 0.5 * np.sum(momentum**2)
        new, force, now = g, slope, momentum - 0.5 * stride * slope
        for leap in range(leaps):
            new = new + stride * now
            new_energy, force = problem.energy(new)
            now = now - stride * force * (1.0 if leap < leaps - 1 else 0.5)
        lost = new_energy + 0.5 * np.sum(now**2) - begin
        accept = np.log(rng.random()) < -lost if np.isfinite(lost) else False
        if accept:
            g, energy, slope = new, new_energy, force
        if step < burn:
            size *= np.exp(0.1 * ((1.0 if accept else 0.0) - 0.8))
            continue
        taken += bool(accept)
        weights.append(problem.on_spheres(g)[0])
    return np.array(weights), taken / steps
