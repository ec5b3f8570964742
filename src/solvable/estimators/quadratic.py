r"""A wide network of quadratic neurons under weight decay, fitted to one's own data by its convex problem.

A network of p neurons $\sum_k a_k (w_k\cdot x)^2$ with weight decay on all of its weights computes $x^T S x$, and at
a width of d or more the best one solves [erba2025nuclear]

$$\min_{S,\beta,b}\ \sum_i \left(y_i - b - \beta\cdot x_i - x_i^T S x_i\right)^2 + \lambda |S|_* + \mu |\beta|^2 ,$$

$|S|_*$ the sum of the absolute eigenvalues of a symmetric S; with all $a_k = 1$ eigenvalues are not negative. Inputs
are centred. Intercept and linear part are eliminated: with X = U s V^T they leave the residual $P (y - \mathcal F S)$,
$P = I - 11^T/n - U \frac{s^2}{s^2 + \mu} U^T$, and S is found by accelerated proximal gradient until the duality gap

$$v^T P v + \lambda |S|_* - \max_\theta \left( 2\theta\, v^T P y - \theta^2 v^T P v \right), \qquad
  2 \theta\, |\mathcal F^* P v|_{op} \le \lambda, \quad v = y - \mathcal F S ,$$

is small against the objective.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted, validate_data

from solvable.core.checks import check_count, real_number
from solvable.engine.operators import QuadraticFeatures
from solvable.numerics.proximal_gradient import proximal_gradient

_PATH = np.geomspace(1.0, 3e-3, 9)
"""Penalties tried, as shares of the smallest one for which S = 0."""
_RISES = 2
"""How often in a row the error may rise before smaller penalties are not tried."""
_ROUGH = 1e-3
_RIDGES = np.geomspace(1e-4, 1e4, 17)
_CHECK_EVERY = 5


class QuadraticRegressor(RegressorMixin, BaseEstimator):
    """Regression by a wide network of quadratic neurons with weight decay, by its convex problem.

    - `penalty`: lambda, on the sum of the absolute eigenvalues of S; None for the best in cross-validation.
    - `linear_penalty`: mu, on the linear part; None for the best linear ridge regression, by leaving one out.
    - `linear`: whether there is a linear part.
    - `semidefinite`: whether S has no negative eigenvalues: all neurons of the network count positively.
    - `cv`: how many parts of the training data the penalty is chosen by.
    - `tolerance`: of the duality gap over the objective. `max_steps`: of proximal gradient.

    After `fit`: `quadratic_` S (d x d), `spectrum_` its eigenvalues that are not zero, largest first by size, with
    `components_` (rank x d) and `rank_`; `coef_` and `intercept_` of x - mean_; `penalty_`, `linear_penalty_`;
    `duality_gap_` and `converged_`.
    """

    def __init__(
        self,
        penalty: float | None = None,
        linear_penalty: float | None = None,
        linear: bool = True,
        semidefinite: bool = False,
        cv: int = 5,
        tolerance: float = 1e-5,
        max_steps: int = 5000,
    ):
        self.penalty = penalty
        self.linear_penalty = linear_penalty
        self.linear = linear
        self.semidefinite = semidefinite
        self.cv = cv
        self.tolerance = tolerance
        self.max_steps = max_steps

    def fit(self, X: Any, y: Any) -> QuadraticRegressor:
        """Fit labels y (n) on inputs X (n x d)."""
        self._check()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        mu = self._linear_penalty(X, y)
        problem = _Problem.of(X, y, mu, self.semidefinite)
        if self.penalty is None:
            self.penalty_ = _chosen(X, y, mu, self.semidefinite, self.cv, problem.largest, int(self.max_steps))
        else:
            self.penalty_ = float(self.penalty)
        found = problem.solve(self.penalty_, float(self.tolerance), int(self.max_steps))
        self.linear_penalty_ = mu
        self.duality_gap_, self.converged_, self.n_iter_ = found.gap, found.converged, found.steps
        if not found.converged:
            warnings.warn(
                f"QuadraticRegressor: the duality gap is {found.gap:.1e} of the objective after {found.steps} steps: "
                "raise max_steps, or the penalty.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.mean_ = problem.mean
        self.quadratic_, self.coef_, self.intercept_ = problem.unscaled(found.S)
        values, vectors = np.linalg.eigh(self.quadratic_)
        order = np.argsort(-np.abs(values))
        kept = order[np.abs(values[order]) > 1e-9 * max(np.abs(values).max(), np.finfo(float).tiny)]
        self.spectrum_, self.components_, self.rank_ = values[kept], vectors[:, kept].T, len(kept)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """x^T S x + coef . x + intercept of x - mean_."""
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, reset=False, dtype=np.float64)) - self.mean_
        return np.einsum("ij,ij->i", X @ self.quadratic_, X) + X @ self.coef_ + self.intercept_

    def _check(self) -> None:
        for name in ("penalty", "linear_penalty"):
            if getattr(self, name) is not None:
                real_number(name, getattr(self, name), "a number above zero, or None", lambda x: x > 0)
        check_count("cv", self.cv, least=2)
        check_count("max_steps", self.max_steps, least=1)
        real_number("tolerance", self.tolerance, "a number between 0 and 1", lambda x: 0 < x < 1)

    def _linear_penalty(self, X: np.ndarray, y: np.ndarray) -> float:
        """mu; infinite without a linear part."""
        if not self.linear:
            return np.inf
        if self.linear_penalty is not None:
            return float(self.linear_penalty)
        size = max(float(np.sum(X.var(axis=0))), np.finfo(float).tiny) * len(X) / X.shape[1]
        return float(np.asarray(RidgeCV(alphas=size * _RIDGES).fit(X, y).alpha_))


class _Solution(NamedTuple):
    """S in scaled inputs, the duality gap over the objective, whether it is small enough, and the steps taken."""

    S: np.ndarray
    gap: float
    converged: bool
    steps: int


class _Problem:
    """The problem in inputs of mean zero and mean squared entry one, without intercept and linear part."""

    def __init__(self, X: np.ndarray, y: np.ndarray, mu: float, semidefinite: bool, mean: np.ndarray, scale: float):
        self.mean, self.scale, self.semidefinite = mean, scale, semidefinite
        self._features, self._y = QuadraticFeatures(X), y
        self._d = X.shape[1]
        self._S = np.zeros((self._d, self._d))
        self._L: float | None = None
        self._mu = mu / scale**2
        if np.isfinite(mu):
            self._U, s, self._Vt = np.linalg.svd(X, full_matrices=False)
            self._shrink = s**2 / np.maximum(s**2 + self._mu, np.finfo(float).tiny)
            self._inverse = s / np.maximum(s**2 + self._mu, np.finfo(float).tiny)
        else:
            self._U, self._Vt = np.zeros((len(X), 0)), np.zeros((0, self._d))
            self._shrink = self._inverse = np.zeros(0)

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, mu: float, semidefinite: bool) -> _Problem:
        mean = X.mean(axis=0)
        centred = X - mean
        scale = float(np.sqrt(np.mean(centred**2))) or 1.0
        return cls(centred / scale, np.asarray(y, float), mu, semidefinite, mean, scale)

    @property
    def largest(self) -> float:
        """The smallest penalty for which S = 0."""
        return 2 * self._top(self._adjoint(self._y)) * self.scale**2

    def solve(self, penalty: float, tolerance: float, max_steps: int) -> _Solution:
        """From where the last solution ended."""
        weight = penalty / self.scale**2
        y, steps = self._y, 0
        if self._L is None:
            self._L = 2.1 * self._largest_square()
        if self._L == 0:
            return _Solution(self._S, 0.0, True, 0)
        iterates = proximal_gradient(
            self._features.forward,
            lambda image: -2 * self._adjoint(y - image),
            lambda S, L: self._shrunk(S, weight / L),
            lambda a, b: float((a - b) @ self._residual(a - b)),
            self._S,
            self._L,
            linear=True,
        )
        gap = np.inf
        for steps, found in enumerate(iterates, 1):
            last = steps == max_steps
            if steps % _CHECK_EVERY == 0 or last:
                assert found.gradient is not None  # it is linear
                gap = self._gap(found.x, found.image, found.gradient / -2, weight)
                if gap <= tolerance or last:
                    self._S, self._L = found.x, found.L
                    break
        return _Solution(self._S, gap, gap <= tolerance, steps)

    def unscaled(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """S, coef and intercept in the inputs as they came."""
        features = self._features.forward(S)
        left = self._y - features
        left = left - left.mean()
        coef = self._Vt.T @ (self._inverse * (self._U.T @ left))
        S = S / np.sqrt(self._d)
        # Features have the trace of S taken off.
        intercept = float(np.mean(self._y - features) - np.trace(S))
        return S / self.scale**2, coef / self.scale, intercept

    def _residual(self, v: np.ndarray) -> np.ndarray:
        """P v."""
        v = v - v.mean()
        return v - self._U @ (self._shrink * (self._U.T @ v))

    def _adjoint(self, v: np.ndarray) -> np.ndarray:
        return self._features.adjoint(self._residual(v))

    def _top(self, matrix: np.ndarray) -> float:
        values = np.linalg.eigvalsh(matrix)
        top = values[-1] if self.semidefinite else np.abs(values).max()
        # Features are divided by the root of d, and S multiplied by it.
        return float(max(top, 0.0)) * np.sqrt(self._d)

    def _shrunk(self, S: np.ndarray, by: float) -> np.ndarray:
        """The prox of `by` times the nuclear norm, on positive matrices if these are asked for."""
        values, vectors = np.linalg.eigh(S)
        by = by / np.sqrt(self._d)
        size = (values if self.semidefinite else np.abs(values)) - by
        kept = size > 0
        return (vectors[:, kept] * (np.sign(values) * size)[kept]) @ vectors[:, kept].T

    def _gap(self, S: np.ndarray, image: np.ndarray, adjoint: np.ndarray, weight: float) -> float:
        v = self._y - image
        Pv = self._residual(v)
        fit, along, top = float(v @ Pv), float(Pv @ self._y), self._top(adjoint)
        primal = fit + weight / np.sqrt(self._d) * float(np.abs(np.linalg.eigvalsh(S)).sum())
        largest = weight / (2 * top) if top > 0 else np.inf
        share = max(min(largest, along / fit), 0.0) if fit > 0 else 0.0
        return (primal - 2 * share * along + share**2 * fit) / primal if primal > 0 else 0.0

    def _largest_square(self, steps: int = 20) -> float:
        """The largest eigenvalue of F* P F, by power iteration from below."""
        S = np.random.default_rng(0).standard_normal((self._d, self._d))
        S, value = S + S.T, 0.0
        for _ in range(steps):
            norm = np.linalg.norm(S)
            if norm == 0:
                return 0.0
            S = S / norm
            image = self._adjoint(self._features.forward(S))
            value, S = float(np.sum(S * image)), image
        return value


def _chosen(
    X: np.ndarray, y: np.ndarray, mu: float, semidefinite: bool, cv: int, largest: float, max_steps: int
) -> float:
    """The penalty of least squared error on parts left out, from those along a path."""
    if largest == 0:
        return 1.0
    folds = list(KFold(min(cv, len(y)), shuffle=True, random_state=0).split(X))
    problems = [_Problem.of(X[train], y[train], mu * len(train) / len(y), semidefinite) for train, _ in folds]
    best, errors = largest, []
    for share in _PATH:
        error = 0.0
        for problem, (train, test) in zip(problems, folds, strict=True):
            penalty = share * largest * len(train) / len(y)
            S, coef, intercept = problem.unscaled(problem.solve(penalty, _ROUGH, max_steps).S)
            left = X[test] - problem.mean
            predicted = np.einsum("ij,ij->i", left @ S, left) + left @ coef + intercept
            error += float(np.sum((y[test] - predicted) ** 2))
        if not errors or error < min(errors):
            best = share * largest
        errors.append(error)
        if len(errors) > _RISES and all(errors[-k] > errors[-k - 1] for k in range(1, _RISES + 1)):
            break
    return best
