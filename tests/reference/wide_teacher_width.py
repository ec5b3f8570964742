r"""The overlap of a wide teacher of cubic features at a finite width k, in the limit of infinite dimension.

The theory of the package lets every sample say little of a feature, and lets the noise that others make be the same for
all samples. Here neither is assumed: with omega of variance q and V = 1 - q,

    y = a sigma(z) + N(0, N_mu),   z = omega + sqrt(V) xi,   N_mu = Delta + sum_{i != j} a^2 Var[sigma(z_i) | omega_i],

is a channel of one projection whose information E[g^2], $g = (E[z|y] - \omega)/V$, is averaged over samples, and
$q = \hat q/(1 + \hat q)$ with $\hat q = n/d\; E[g^2]$. Posterior correlations between features vanish by symmetry,
since the mean slope of a cubic feature is zero. NumPy alone; the samples are drawn once.
"""

from __future__ import annotations

import numpy as np

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_STEPS, _TOLERANCE = 60, 1e-7


def cubic(z: np.ndarray) -> np.ndarray:
    return (z**3 - 3 * z) / np.sqrt(6)


def overlap_at_width(width: int, ratio: float, noise: float, samples: int, seed: int = 0, blocks: int = 8):
    """The overlap for n = ratio d width, amplitudes width^-1/2, and its standard error over `blocks` of samples."""
    found = [_solution(width, ratio, noise, samples // blocks, [seed, block]) for block in range(blocks)]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(blocks))


def _solution(width: int, ratio: float, noise: float, samples: int, seed: list[int]) -> float:
    rng = np.random.default_rng(seed)
    omega, xi, eta = (rng.standard_normal((samples, width)) for _ in range(3))
    q = 0.95
    for _ in range(_STEPS):
        information = _information(q, omega, xi, eta, width**-0.5, noise)
        new = ratio * width * information / (1 + ratio * width * information)
        q, moved = new, abs(new - q)
        if moved < _TOLERANCE:
            break
    return q


def _information(q: float, omega: np.ndarray, xi: np.ndarray, eta: np.ndarray, amplitude: float, noise: float) -> float:
    omega, root = np.sqrt(q) * omega, np.sqrt(1 - q)
    labels = amplitude * cubic(omega[..., None] + root * _NODES)
    variance = labels**2 @ _WEIGHTS - (labels @ _WEIGHTS) ** 2
    hidden = noise + variance.sum(axis=1, keepdims=True) - variance
    y = amplitude * cubic(omega + root * xi) + np.sqrt(hidden) * eta
    energy = -((y[..., None] - labels) ** 2) / (2 * hidden[..., None])
    weight = _WEIGHTS * np.exp(energy - energy.max(axis=-1, keepdims=True))
    return float(np.mean((weight @ _NODES / weight.sum(axis=-1)) ** 2)) / (1 - q)
