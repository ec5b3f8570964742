r"""The spectrum of a label-weighted covariance: its bulk, its outliers, and how well they point to the features.

With $\delta = n/D$, Z the centred preprocessed label and $C = \frac1n\sum_i Z_i \varphi_i \varphi_i^T$,

    R(ell) = E[(Z/(ell - Z))^2],        A_k(ell) = E[(h_k^2 - 1) Z/(ell - Z)],

for ell above every Z. The bulk ends at the ell_e with $\delta R = 1$. Feature k has an outlier if $\delta A_k > 1$
there, from the ell at which $\delta A_k = 1$, and its eigenvector has

    eigenvalue = ell (1/delta + E[Z/(ell - Z)]),
    squared overlap = (1 - delta R)/(1 + delta E[(h_k^2 - 1) (Z/(ell - Z))^2])

[lu2020phase, mondelli2017fundamental].

Features do not mix: changing the sign of one leaves the labels as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.numerics.roots import halving, logarithmic, regula_falsi

_NEAREST, _FARTHEST = 1e-13, 1e9
"""How close ell comes to the largest Z, and how far from it, relative to the width of Z."""
_STEPS = 80


class Averages:
    """Averages over the labels: `y` with `weight`, preprocessed to `T`.

    A run has its own labels in the place of all; then there are no features to be told apart.
    """

    def __init__(self, T: np.ndarray, weight: np.ndarray):
        mean = float(weight @ T)
        self.Z, self.weight = T - mean, weight
        self.top = float(self.Z.max())
        self.width = float(np.ptp(self.Z))

    def ratio(self, ell: np.ndarray) -> np.ndarray:
        """Z/(ell - Z), (ell, y)."""
        return self.Z / (np.asarray(ell, float)[:, None] - self.Z)

    def R(self, ell: np.ndarray) -> np.ndarray:
        return self.ratio(ell) ** 2 @ self.weight

    def A(self, ell: np.ndarray, second: np.ndarray) -> np.ndarray:
        """At one ell for each feature; `second` (features, y) is weight times E[h^2|y] - 1."""
        return np.sum(self.ratio(ell) * second, axis=1)

    def eigenvalue(self, ell: np.ndarray, delta: float) -> np.ndarray:
        """Where an eigenvalue of that ell lies."""
        ell = np.asarray(ell, float)
        return ell / delta + ell * (self.ratio(ell) @ self.weight)

    def edge(self, delta: np.ndarray) -> np.ndarray:
        """The ell at which the bulk ends for each delta; the largest Z where the bulk reaches as far as that allows."""
        low, high = (np.full(np.shape(delta), factor * self.width) for factor in (_NEAREST, _FARTHEST))
        beyond = halving(lambda x: delta * self.R(self.top + x) < 1, low, high, _STEPS, middle=logarithmic)
        return self.top + beyond.middle

    def outlier(self, delta: float, edge: float, second: np.ndarray) -> np.ndarray:
        """The ell of each feature, all of which have an outlier."""
        if not len(second):
            return np.empty(0)
        most = self.top + delta * np.max(np.abs(self.Z) @ np.abs(second).T) + edge
        low, high = np.full(len(second), edge), np.full(len(second), most)
        order = np.arange(len(second))

        def missing(ell: np.ndarray, which: np.ndarray) -> np.ndarray:
            """1/A - delta, nearly linear in ell."""
            found = self.A(ell, second[which.astype(int)])
            return 1 / np.maximum(found, 1e-300) - delta

        return regula_falsi(missing, low, high, order, tolerance=1e-13 * delta, precision=1e-15).x

    def overlap(self, ell: np.ndarray, delta: float, second: np.ndarray) -> np.ndarray:
        """The squared overlap of each outlier's eigenvector with its feature."""
        squares = self.ratio(ell) ** 2
        return (1 - delta * (squares @ self.weight)) / (1 + delta * np.sum(squares * second, axis=1))

    def threshold(self, second: np.ndarray) -> np.ndarray:
        """The delta from which on each feature has an outlier: where R = A."""
        low, high = (np.full(len(second), factor * self.width) for factor in (_NEAREST, _FARTHEST))
        place = halving(
            lambda x: self.R(self.top + x) < self.A(self.top + x, second), low, high, _STEPS, middle=logarithmic
        )
        A = self.A(self.top + place.middle, second)
        with np.errstate(divide="ignore"):
            return np.where(A > 0, 1 / A, np.inf)


class Found(NamedTuple):
    """What an eigendecomposition finds at one delta: the edge of the bulk, the outlier of the strongest feature (the
    edge where there is none), overlaps of the strongest features, how many are learned, and 2 sum lambda_k^2 o_k^2."""

    edge: float
    outlier: float
    overlaps: np.ndarray
    learned: float
    explained: float
