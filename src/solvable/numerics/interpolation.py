"""Piecewise Chebyshev interpolation: a smooth function of one variable, tabulated once, then evaluated for nothing."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.polynomial import chebyshev


@dataclasses.dataclass(frozen=True)
class PiecewiseChebyshev:
    """Chebyshev expansions on consecutive panels, continued linearly outside of them.

    `coefficients` has shape (panels, degree + 1); their last two estimate the truncation error.
    """

    edges: np.ndarray
    coefficients: np.ndarray

    def error(self, x: np.ndarray) -> np.ndarray:
        """The truncation estimate of the panel that each x lies in."""
        return np.abs(self.coefficients[:, -2:]).max(1)[self._panel(np.asarray(x, float))]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, float)
        inside = np.clip(x, self.edges[0], self.edges[-1])
        value = self._evaluate(inside, self.coefficients)
        outside = x != inside
        if np.any(outside):
            value = value + np.where(outside, (x - inside) * self.derivative(inside), 0.0)
        return value

    def derivative(self, x: np.ndarray) -> np.ndarray:
        """The derivative, constant outside the panels."""
        inside = np.clip(np.asarray(x, float), self.edges[0], self.edges[-1])
        return self._evaluate(inside, self._slopes)

    @functools.cached_property
    def _slopes(self) -> np.ndarray:
        return chebyshev.chebder(self.coefficients, axis=1) * (2 / np.diff(self.edges))[:, None]

    def antiderivative(self) -> PiecewiseChebyshev:
        """The integral from the first edge, as an expansion of one degree more."""
        half = np.diff(self.edges)[:, None] / 2
        series = half * chebyshev.chebint(self.coefficients, lbnd=-1, axis=1)
        series[1:, 0] += np.cumsum(series.sum(1))[:-1]
        return PiecewiseChebyshev(self.edges, series)

    def _panel(self, x: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.edges) - 2)

    def _evaluate(self, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        panel = self._panel(x)
        low, high = self.edges[panel], self.edges[panel + 1]
        return chebyshev.chebval(
            (2 * x - low - high) / (high - low), np.moveaxis(coefficients[panel], -1, 0), tensor=False
        )


def chebyshev_nodes(edges: np.ndarray, degree: int) -> np.ndarray:
    """The interpolation nodes of every panel, shape (panels, degree + 1)."""
    x = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    low, high = edges[:-1, None], edges[1:, None]
    return (low + high) / 2 + (high - low) / 2 * x


def fit(edges: np.ndarray, degree: int, values: np.ndarray) -> PiecewiseChebyshev:
    """The interpolant of `values` at `chebyshev_nodes(edges, degree)`."""
    x = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    basis = chebyshev.chebvander(x, degree)
    return PiecewiseChebyshev(np.asarray(edges, float), np.linalg.solve(basis, values.T).T)
