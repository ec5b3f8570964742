"""What the simulations of index models share, for any number of projections: teachers, starts and fresh inputs."""

from __future__ import annotations

import numpy as np

from solvable.core.errors import bad_parameter

FRESH_PAIRS = 20_000
"""How many fresh pairs (z, omega) the generalization error is averaged over."""

SMALLEST_V = 1e-6
"""The floor of the posterior variance of z: message passing and predictions go no lower."""


def orthonormal_teacher(rng: np.random.Generator, d: int, r: int) -> np.ndarray:
    """Gaussian weights W* (d x r) made orthogonal, each column of norm sqrt(d): W*^T W* = d I exactly.

    The columns are those of a Gaussian matrix after Gram-Schmidt, so their span is uniformly distributed.
    """
    if d < r:
        raise bad_parameter("d", d, f"at least the number of projections, {r}")
    return np.sqrt(d) * _gram_schmidt(rng.standard_normal((d, r)))


def truthful_start(rng: np.random.Generator, truth: np.ndarray, q: float) -> np.ndarray:
    """An estimate q W* + sqrt(q (1 - q)) N with N orthonormal like W* and orthogonal to it.

    Its overlap with the truth (d x r) and with itself are both q I exactly, and it does not depend on X given the
    truth. With fewer than 2 r dimensions some columns of N find no room, and vanish.
    """
    d, r = truth.shape
    basis = _gram_schmidt(np.hstack([truth, rng.standard_normal((d, r))]))[:, r:]
    noise = np.zeros((d, r))
    noise[:, : basis.shape[1]] = np.linalg.norm(truth) / np.sqrt(r) * basis
    return q * truth + np.sqrt(q * (1 - q)) * noise


def smallest_variance(discrete: bool, n: int, resolution: float = SMALLEST_V) -> float:
    """The floor of V. A discrete label informs only where z is within sqrt(V) of a jump, so at least a few of the n
    samples must stay that close: without any, g and its derivative vanish and a perfect estimate would be forgotten.
    """
    floor = max(SMALLEST_V, resolution)
    return max(floor, min((10 / n) ** 2, 0.01)) if discrete else floor


def fresh_pairs(rng: np.random.Generator, truth: np.ndarray, estimate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draws of z = W*^T x and omega = W_hat^T x for fresh inputs x, each (FRESH_PAIRS, r).

    Given W* and W_hat the two are exactly jointly Gaussian, with covariance [W*, W_hat]^T [W*, W_hat] / d.
    """
    d, r = truth.shape
    both = np.hstack([truth, estimate])
    values, vectors = np.linalg.eigh(both.T @ both / d)
    draws = rng.standard_normal((FRESH_PAIRS, 2 * r)) * np.sqrt(np.maximum(values, 0.0))
    pairs = draws @ vectors.T
    return pairs[:, :r], pairs[:, r:]


def _gram_schmidt(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns with the signs of Gram-Schmidt, which LAPACK's reflections leave open."""
    basis, triangle = np.linalg.qr(columns)
    return basis * np.where(np.diag(triangle) < 0, -1.0, 1.0)
