"""A data set as a learner sees it: what parts of it say of the population, and what errors it really makes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from solvable.lab.forecast.learners import KernelRidge, LinearRidge
from solvable.lab.forecast.population import Estimate, estimate, spectrum_of_features, spectrum_of_kernel


class Samples:
    """Inputs and labels with a learner. The kernel is computed once, and its parts are taken from it."""

    def __init__(self, X: np.ndarray, y: np.ndarray, learner: LinearRidge | KernelRidge):
        self.X, self.y = X, y
        linear = isinstance(learner, LinearRidge) or learner.kernel == "linear"
        self._learner = learner
        self.p = math.inf if isinstance(learner, LinearRidge) else float(learner.p)
        # A kernel of few features is as good as its features, and cheaper.
        self._kernel = None if linear else learner.matrix(X, X)  # pyright: ignore[reportAttributeAccessIssue]
        self._most = X.shape[1] if linear else math.inf

    def estimate(self, rows: np.ndarray) -> Estimate:
        """The population as some rows show it."""
        if self._kernel is None:
            return estimate(spectrum_of_features(self.X[rows], self.y[rows]), self._most)
        return estimate(spectrum_of_kernel(self._kernel[np.ix_(rows, rows)], self.y[rows]), self._most)

    def error(self, train: np.ndarray, test: np.ndarray, penalty: float, rng: np.random.Generator) -> float:
        """The mean squared error on some rows of what is learned from others."""
        mean = self.y[train].mean()
        labels = self.y[train] - mean
        if math.isfinite(self.p) or self._kernel is None:
            inputs, fresh = self._features(train, test, rng)
            predicted = _ridge(inputs, fresh, labels, penalty)
        else:
            predicted = _kernel_ridge(self._kernel, train, test, labels, penalty)
        return float(np.mean((self.y[test] - mean - predicted) ** 2))

    @property
    def costly(self) -> bool:
        """Whether it takes a kernel matrix."""
        return self._kernel is not None

    @property
    def measurable(self) -> bool:
        """Whether its errors can be measured: random features of a user's own kernel are not known."""
        return math.isinf(self.p) or not callable(getattr(self._learner, "kernel", None))

    def _features(self, train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Any:
        if math.isinf(self.p):
            return self.X[train], self.X[test]
        features: Any = self._learner.draw(rng, self.X.shape[1])  # pyright: ignore[reportAttributeAccessIssue]
        return features(self.X[train]), features(self.X[test])


def _ridge(F: np.ndarray, G: np.ndarray, labels: np.ndarray, penalty: float) -> np.ndarray:
    """Predictions at G of ridge regression on F, with a constant beside."""
    mean = F.mean(axis=0)
    F, G = F - mean, G - mean
    if F.shape[1] <= len(F):
        return G @ np.linalg.solve(F.T @ F + penalty * np.eye(F.shape[1]), F.T @ labels)
    return G @ (F.T @ np.linalg.solve(F @ F.T + penalty * np.eye(len(F)), labels))


def _kernel_ridge(
    kernel: np.ndarray, train: np.ndarray, test: np.ndarray, labels: np.ndarray, penalty: float
) -> np.ndarray:
    from scipy.linalg import cho_factor, cho_solve

    K, both = kernel[np.ix_(train, train)], np.stack([labels, np.ones(len(train))], axis=1)
    K[np.diag_indices_from(K)] += penalty
    try:
        dual, of_constant = cho_solve(cho_factor(K, check_finite=False), both, check_finite=False).T
    except np.linalg.LinAlgError:  # rows that are equal, and next to no penalty
        dual, of_constant = np.linalg.lstsq(K, both, rcond=None)[0].T
    # The constant that is fitted beside makes the dual variables sum to zero.
    constant = dual.sum() / of_constant.sum()
    return kernel[np.ix_(test, train)] @ (dual - constant * of_constant) + constant
