r"""Inputs as the theory has them: of mean zero, with uncorrelated columns of variance one.

Columns are centred and divided by their standard deviations; the matrix of correlations R is then estimated by linear
shrinkage, $\hat R = (1-\rho) R + \rho I$ with the intensity of [ledoit2004well]. That matters where there are few
samples for each input: independent inputs stay as they are ($\rho = 1$), while dividing by their own correlations
would throw away as much as one sample for each input holds.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

_CONSTANT, _KEPT = 1e-12, 1e-6
"""Spreads below this share of the largest number of a column are rounding; smaller eigenvalues are not divided by."""
_COLLINEAR = 1e-3
_HEAVY, _LONGEST = 12.0, 5.0
"""Fourth moments and squared lengths, in units of what is usual, from which inputs count as heavy-tailed."""


class Whitening(NamedTuple):
    """The map x -> (x - mean) map, with `map` (d x k); columns that are constant take no part.

    `shrinkage` is rho, `smallest` the smallest eigenvalue of the correlations over the largest, as they are.
    """

    mean: np.ndarray
    map: np.ndarray
    shrinkage: float
    smallest: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The whitened inputs (n x k)."""
        return (X - self.mean) @ self.map


def whitening(X: np.ndarray) -> Whitening:
    """That of inputs X (n x d)."""
    # Scaled first, so that the squares of very large or very small numbers are numbers.
    size = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    scaled = X / size
    mean, spread = scaled.mean(axis=0), scaled.std(axis=0)
    varies = spread > _CONSTANT
    standard = (scaled[:, varies] - mean[varies]) / spread[varies]
    if not varies.any():
        return Whitening(mean * size, np.zeros((X.shape[1], 0)), 1.0, 1.0)
    rho = float(ledoit_wolf_shrinkage(standard, assume_centered=True)) if standard.shape[1] > 1 else 0.0
    values, vectors = np.linalg.eigh(standard.T @ standard / len(X))
    smallest = float(values[0] / values[-1])
    values = (1 - rho) * values + rho * values.mean()
    kept = values > _KEPT * values[-1]
    root = (vectors[:, kept] / np.sqrt(values[kept])) @ (vectors[:, kept].T if kept.all() else np.eye(int(kept.sum())))
    turn = np.zeros((X.shape[1], root.shape[1]))
    turn[varies] = root / (spread * size)[varies, None]
    return Whitening(mean * size, turn, rho, smallest)


def doubts(X: np.ndarray, whitened: np.ndarray, found: Whitening) -> list[str]:
    """In what the data are far from Gaussian inputs in proportion to their dimension, in sentences."""
    n, d = whitened.shape
    said = []
    if n < 2 * d:
        said.append(f"there are few samples: {n} for {d} inputs, and directions that need more are not seen")
    elif found.smallest < _COLLINEAR:
        said.append("inputs are strongly collinear: what a direction owes to single columns means little")
    constant = int(np.sum(~found.map.any(axis=1)))
    if constant:
        said.append(f"{constant} of the inputs {'is' if constant == 1 else 'are'} constant")
    if d and n:
        kurtosis = float(
            np.median(np.mean(whitened**4, axis=0) / np.maximum(np.mean(whitened**2, axis=0), 1e-300) ** 2)
        )
        lengths = np.sum(whitened**2, axis=1) / d
        if kurtosis > _HEAVY or lengths.max() > _LONGEST * (1 + 5 / np.sqrt(d)):
            said.append(
                f"inputs have heavy tails (fourth moments about {kurtosis:.2g} times the squared variance, 3 for a "
                f"Gaussian; the longest row has {lengths.max():.2g} times the mean squared length): a few rows may "
                "make directions of their own"
            )
    return said


def warn_of(name: str, said: list[str]) -> None:
    """One warning for all doubts."""
    if said:
        warnings.warn(f"{name}: {'; '.join(said)}.", UserWarning, stacklevel=3)
