r"""A label cut into slices, and what the inputs of each slice look like.

Everything that a spectral method asks of the data is a sum over slices h of labels: for a function T of the slice

    S(T) = (1/d) sum_h T_h C_h,     C_h = sum of x x^T over the samples of slice h,

so that one pass over the data serves every T. Continuous labels are cut at quantiles, classes are slices of their own.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from solvable.numerics.roots import golden_section

_MEMORY = 2**28
"""Bytes that the matrices of all slices may take."""
_FEWEST_ROWS = 20
"""Samples that a slice of a continuous label should have."""
_WAVES = 5


@dataclasses.dataclass(frozen=True)
class Slices:
    """The slice of each sample, whether slices are `ordered`, and the share of samples that each holds."""

    of: np.ndarray
    ordered: bool

    @classmethod
    def cut(cls, y: np.ndarray, most: int, size: int) -> Slices:
        """At most `most` slices of labels of inputs of `size` columns; fewer for few samples or large matrices."""
        values, inside = np.unique(y, return_inverse=True)
        if len(values) <= max(most, 2):
            return cls(inside, False)
        room = max(2, int(_MEMORY / (8 * max(size, 1) ** 2)))
        count = max(2, min(most, len(y) // _FEWEST_ROWS, room))
        # Equal labels stay in one slice.
        edges = np.unique(np.quantile(y, np.arange(1, count) / count))
        slices = np.unique(np.searchsorted(edges, y, side="left"), return_inverse=True)[1]
        return cls(slices, True)

    @functools.cached_property
    def share(self) -> np.ndarray:
        return np.bincount(self.of) / len(self.of)

    @property
    def count(self) -> int:
        return len(self.share)

    def permuted(self, rng: np.random.RandomState) -> Slices:
        """The same slices of shuffled samples, of which inputs say nothing."""
        return Slices(rng.permutation(self.of), self.ordered)

    @functools.cached_property
    def waves(self) -> np.ndarray:
        r"""Functions of the slice of mean 0 and square 1 (k, slices): cosines of the rank, or one class against all.

        For the second moments both signs of a function are tried: of two classes one function is enough.
        """
        w = self.share
        if self.ordered:
            rank = np.cumsum(w) - w / 2
            raw = np.cos(np.pi * np.outer(np.arange(1, min(_WAVES, self.count - 1) + 1), rank))
        else:
            raw = np.eye(self.count)[: 1 if self.count == 2 else None]
        raw = raw - (raw @ w)[:, None]
        return raw / np.sqrt((raw**2) @ w)[:, None]

    def smooth(self, values: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Values on slices with errors of this variance, without what may be noise.

        Of a component c with noise of variance v the share 1 - 2 v / c^2 is kept, where that is positive. Components
        are cosines of the rank where slices are ordered, otherwise there is one, the deviation from the mean.
        """
        w = self.share
        mean = values @ w
        if not self.ordered:
            square = (values - mean) ** 2 @ w
            return mean + (values - mean) * _kept(square, noise @ w)
        rank = np.cumsum(w) - w / 2
        modes = np.sqrt(w)[:, None] * np.cos(np.pi * np.outer(rank, np.arange(self.count)))
        modes = np.linalg.qr(modes)[0]
        parts = modes.T @ (np.sqrt(w) * values)
        # The variance of a coefficient: the root of w times an error of variance v has w v.
        spread = (modes**2).T @ (w * noise)
        kept = np.where(np.arange(self.count) == 0, 1.0, _kept(parts**2, spread))
        return (modes @ (kept * parts)) / np.sqrt(w)


class Moments:
    """The first two moments of inputs X (n x d, whitened) in each slice."""

    def __init__(self, X: np.ndarray, slices: Slices):
        self.slices = slices
        self.n, self.d = X.shape
        self.alpha = self.n / self.d
        order = np.argsort(slices.of, kind="stable")
        ends = np.cumsum(np.bincount(slices.of))[:-1]
        parts = [X[rows] for rows in np.split(order, ends)]
        self.means = np.stack([part.mean(axis=0) for part in parts])
        self._C = np.stack([part.T @ part for part in parts]) / self.d

    def weighted(self, T: np.ndarray) -> np.ndarray:
        """S(T), d x d."""
        return np.tensordot(T, self._C, 1)

    def products(self, u: np.ndarray) -> np.ndarray:
        """The mean of x (x . u) in each slice (slices, d), for a unit vector."""
        return self.d * (self._C @ u) / (self.slices.share * self.n)[:, None]

    def seen(self, left: np.ndarray, right: np.ndarray | None = None) -> np.ndarray:
        """The mean of (x . left)(x . right) in each slice, for unit vectors."""
        right = left if right is None else right
        counts = self.slices.share * self.n
        return self.d * np.einsum("i,hij,j->h", left, self._C, right, optimize=True) / counts


class Edge(NamedTuple):
    """The right end of a bulk, and the scale of the fluctuations of the largest eigenvalue around it."""

    value: float
    scale: float


def bulk_edge(share: np.ndarray, T: np.ndarray, alpha: float, d: int) -> Edge:
    r"""That of S(T) where T says nothing of x: the least $\lambda$ of $\lambda(m) = 1/m + \alpha E[T / (1 - m T)]$.

    m is the resolvent [lu2020phase]. The density vanishes there like the root of the distance to the edge, so that the
    largest eigenvalue fluctuates by $(\lambda''/2)^{1/3} d^{-2/3}$ times the law of Tracy and Widom.
    """
    top = float(T.max())
    if top <= 0:
        return Edge(0.0, 1.0)

    def curve(log_gap: np.ndarray) -> np.ndarray:
        k = top * (1 + np.exp(log_gap))
        return k + alpha * ((T * k[:, None] / (k[:, None] - T)) @ share)

    best = golden_section(curve, np.array([-12.0]), np.array([12.0]), 60).middle
    m = 1 / (top * (1 + np.exp(float(best[0]))))
    bend = 1 / m**3 + alpha * float(share @ (T / (1 - m * T)) ** 3)
    return Edge(float(curve(best)[0]), max(bend, 1e-300) ** (1 / 3) * d ** (-2 / 3))


def _kept(square: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.maximum(1 - 2 * noise / np.maximum(square, 1e-300), 0.0)
