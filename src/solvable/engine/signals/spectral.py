r"""What matrices of known spectrum share: the error of the best estimate from a noisy sight, and its integral.

At qhat the unknown, scaled to unit variance, is seen with Gaussian noise of variance 1/qhat. What is left unknown of it
is had from a law of eigenvalues or of singular values, at some cost (`measured`). A curve of fixed points asks for
thousands of values: these are read off a table in log qhat, which is made at the first question and whose panels are
halved until it is true to $10^{-10}$ (the error has kinks where gaps of the spectrum close).
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from solvable.engine.sides import BayesSignal
from solvable.numerics.batches import in_batches
from solvable.numerics.interpolation import PiecewiseChebyshev, chebyshev_nodes, fit

_LEAST = 1e-5
"""For a bend of order one the overlap is qhat (1 + bend qhat) below, to 1e-10."""
_MOST = 1e12
"""mmse = dimension / qhat above, to 1e-6 at worst."""
_LIMIT_ERROR = 1e-6
_PANELS, _DEGREE, _ROUNDS = 5, 12, 10
_TRUNCATION = 1e-10


class SpectralSignal(BayesSignal):
    """A matrix with uniformly random eigenvectors or singular vectors, scaled to entries of unit variance."""

    @abc.abstractmethod
    def _denoised(self, qhat: np.ndarray) -> tuple[np.ndarray, ...]:
        """mmse, overlap = 1 - mmse without cancellation, and the numerical error; compiled for few lengths only."""

    @property
    @abc.abstractmethod
    def _bend(self) -> float:
        """The overlap is qhat (1 + bend qhat) as qhat falls."""

    def measured(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        qhat = np.asarray(qhat, float)
        V, error = np.ones(len(qhat)), np.zeros(len(qhat))
        near, far = (qhat > 0) & (qhat < _LEAST), qhat > _MOST
        if near.any():
            near &= qhat < self._least
            V[near] = 1 - self._near(qhat[near])
        inside = (qhat > 0) & ~near & ~far
        if inside.any():
            V[inside], _, error[inside] = in_batches(self._denoised, qhat[inside])
        V[far] = self._far(qhat[far])
        error[far] = _LIMIT_ERROR * V[far]
        return V, error

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        return self._read(qhat, lambda x: np.exp(self._table.log_mmse(x)), lambda q: 1 - self._near(q), self._far)

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        return self._read(qhat, lambda x: np.exp(self._table.log_overlap(x)), self._near, lambda q: 1 - self._far(q))

    def slope(self, qhat: np.ndarray) -> np.ndarray:
        """The derivative of the overlap."""

        def inside(x: np.ndarray) -> np.ndarray:
            # Each form where its logarithm is not flat: the overlap is flat where almost all is known.
            known = np.exp(self._table.log_overlap(x) - x) * self._table.log_overlap.derivative(x)
            left = -np.exp(self._table.log_mmse(x) - x) * self._table.log_mmse.derivative(x)
            return np.where(x > 0, left, known)

        return self._read(qhat, inside, lambda q: 1 + 2 * self._bend * q, lambda q: self.dimension / q**2)

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        # Up to qhat = 1 the integral of the table is that of the overlap, beyond it that of the error.
        def inside(x: np.ndarray) -> np.ndarray:
            return np.where(x > 0, np.exp(x) - self._table.integral(x), self._table.integral(x)) / 2

        return self._read(qhat, inside, lambda q: q * self._near(q) / 4, lambda q: q / 2 - self._far_information(q))

    def information(self, qhat: np.ndarray) -> np.ndarray:
        def inside(x: np.ndarray) -> np.ndarray:
            return np.where(x > 0, self._table.integral(x), np.exp(x) - self._table.integral(x)) / 2

        return self._read(qhat, inside, lambda q: q / 2 - q * self._near(q) / 4, self._far_information)

    def _far_information(self, qhat: np.ndarray) -> np.ndarray:
        return (float(self._table.integral(np.log(_MOST))) + self.dimension * np.log(qhat / _MOST)) / 2

    def _far(self, qhat: np.ndarray) -> np.ndarray:
        """mmse where almost all is known."""
        return self.dimension / qhat

    def _near(self, qhat: np.ndarray) -> np.ndarray:
        """The overlap where almost nothing is known."""
        return qhat * (1 + self._bend * qhat)

    @functools.cached_property
    def _table(self) -> _Table:
        rough = 10 * (self._bend * self._least) ** 2
        return _Table.of(
            lambda x: in_batches(self._denoised, np.exp(x))[:2], np.log(self._least), max(_TRUNCATION, rough)
        )

    @functools.cached_property
    def _least(self) -> float:
        """Where the limit of a small qhat is as true as what is left of the overlap by rounding, about 1e-16/qhat."""
        return _LEAST / (1 + abs(self._bend)) ** (2 / 3)

    def _read(
        self,
        qhat: np.ndarray,
        inside: Callable[[np.ndarray], np.ndarray],
        near: Callable[[np.ndarray], np.ndarray],
        far: Callable[[np.ndarray], np.ndarray],
    ) -> np.ndarray:
        qhat = np.asarray(qhat, float)
        value = inside(np.log(np.clip(qhat, self._least, _MOST)))
        value = np.where(qhat < self._least, near(np.minimum(qhat, self._least)), value)
        return np.where(qhat > _MOST, far(np.maximum(qhat, _MOST)), value)


@dataclasses.dataclass(frozen=True)
class _Table:
    """log mmse and log overlap over x = log qhat, and the integral over qhat of the overlap (x < 0) or else of the
    error, plus a constant such that half the integral of the overlap is (qhat - integral)/2 for x > 0."""

    log_mmse: PiecewiseChebyshev
    log_overlap: PiecewiseChebyshev
    integral: PiecewiseChebyshev

    @classmethod
    def of(
        cls, function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], low: float, truncation: float
    ) -> _Table:
        """The table of a function that gives (mmse, overlap) at an array of x, from `low` on."""
        done: list[tuple[np.ndarray, np.ndarray]] = []  # the edges of a panel; log mmse and log overlap at its nodes
        high = np.log(_MOST)
        edges = np.concatenate([np.linspace(low, 0, _PANELS), np.linspace(0, high, 2 * _PANELS)[1:]])
        panels = np.stack([edges[:-1], edges[1:]], -1)
        for rounds in reversed(range(_ROUNDS)):
            nodes = np.concatenate([chebyshev_nodes(panel, _DEGREE) for panel in panels])
            values = np.log(np.maximum(np.stack(function(nodes.ravel())).reshape(2, *nodes.shape), 1e-300))
            error = np.max([np.abs(fit(edges, _DEGREE, part).coefficients[:, -2:]).max(1) for part in values], 0)
            rough = (error > truncation) & (rounds > 0)
            done += zip(panels[~rough], values[:, ~rough].swapaxes(0, 1), strict=True)
            halved = np.insert(panels[rough], 1, panels[rough].mean(1), axis=1)
            panels = np.concatenate([halved[:, :2], halved[:, 1:]])
            if not len(panels):
                break
        done.sort(key=lambda one: one[0][0])
        edges = np.array([panel[0] for panel, _ in done] + [high])
        log_mmse, log_overlap = np.stack([part for _, part in done], 1)
        nodes = chebyshev_nodes(edges, _DEGREE)
        rate = np.exp(nodes + np.where(nodes < 0, log_overlap, log_mmse))
        return cls(fit(edges, _DEGREE, log_mmse), fit(edges, _DEGREE, log_overlap), _integral(edges, rate))


def _integral(edges: np.ndarray, rate: np.ndarray) -> PiecewiseChebyshev:
    """The integral of `rate` (at the nodes of each panel) over x, with the constants of `_Table`."""
    half = np.diff(edges)[:, None] / 2
    series = half * chebyshev.chebint(fit(edges, _DEGREE, rate).coefficients, lbnd=-1, axis=1)
    whole = series.sum(1)
    start = np.concatenate([[np.exp(2 * edges[0]) / 2], whole]).cumsum()[:-1]
    turn = np.searchsorted(edges, -1e-12)  # the panel that starts at x = 0, where overlap + error integrates to qhat
    start[turn:] += 1 - 2 * start[turn]
    series[:, 0] += start
    return PiecewiseChebyshev(edges, series)
