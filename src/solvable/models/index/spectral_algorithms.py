r"""The two optimal spectral methods of a single-index model, on one instance.

Both come from message passing linearised around its uninformed fixed point, where a label acts through
$G(y) = E[z^2|y] - 1$ alone.

- symmetric: the top eigenvector of $S = X^T \mathrm{diag}(T) X$ with $T = G/(1+G) = 1 - 1/E[z^2|y]$; above the weak
  recovery threshold its eigenvalue is 1.
- asymmetric: the top eigenvector $\Omega$ of $L = (X X^T - I)\,\mathrm{diag}(G)$ on $R^n$, giving
  $\hat w \propto X^T G\,\Omega$; above the threshold its eigenvalue is alpha / alpha_weak.

An eigenvector has no length and no sign. The length is the predicted one, $|\hat w|^2/d = q$ with q the squared cosine
that theory gives at this n/d, which makes the estimate a posterior mean at large d; the sign is the one under which the
labels are more likely.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from solvable.core.learners import Spectral
from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.index.algorithms import ChannelOutput, scores
from solvable.models.index.multi_index import MultiIndex

_SMALLEST_SECOND_MOMENT = 1e-12
_ARNOLDI_TOLERANCE = 1e-8
_DENSE_BELOW = 40


class Leading(NamedTuple):
    """A leading eigenvector as a direction in R^d, its eigenvalue, the next one, and whether they were found."""

    direction: np.ndarray
    eigenvalue: float
    second: float
    converged: bool = True


@simulation(MultiIndex, Spectral, references=("mondelli2017fundamental", "maillard2020phase", "defilippis2025optimal"))
def run_spectral(model: MultiIndex, learner: Spectral, data: Data, rng: np.random.Generator) -> Outcome:
    """The leading eigenvector of `learner.kind`, scaled to its predicted length.

    `overlap` is the absolute cosine with the truth and `squared_overlap` its square; the other metrics are those of
    the scaled estimate.
    """
    from solvable.models.index.spectral_theory import squared_overlap

    if model.target.projections > 1:
        from solvable.models.index.multi_spectral_algorithms import run_multi_spectral

        return run_multi_spectral(model, learner, data, rng)
    n, d = data.X.shape
    output = ChannelOutput(model.channel, data.y)
    leading = {"symmetric": symmetric, "asymmetric": asymmetric}[learner.kind](data.X, second_moments(output, n), rng)
    q = float(np.clip(squared_overlap(model, learner.kind, n / d), 0.0, 1.0))
    estimate = np.sqrt(d * q) * leading.direction
    if not model.hides_sign():
        estimate = likelier_sign(output, data.X, estimate, 1 - q) * estimate
    cosine = abs(float(leading.direction @ data.truth[:, 0])) / np.linalg.norm(data.truth)
    metrics = scores(model, estimate, data.truth[:, 0], rng)
    metrics |= {"overlap": float(cosine), "squared_overlap": float(cosine**2)}
    details = {"eigenvalue": leading.eigenvalue, "second_eigenvalue": leading.second, "self_overlap": q}
    return Outcome(metrics, estimate[:, None], leading.converged, details=details)


def second_moments(output: ChannelOutput, n: int) -> np.ndarray:
    """E[z^2|y] of each label, from the posterior at omega = 0, V = 1; kept above 1e-12, where T is unbounded."""
    return np.maximum(output.second_moment(np.zeros((n, 1)), np.eye(1)), _SMALLEST_SECOND_MOMENT)


class _Linearised(scipy.sparse.linalg.LinearOperator):
    """Omega -> (X X^T - I) G Omega, without forming the n x n matrix."""

    def __init__(self, X: np.ndarray, G: np.ndarray):
        super().__init__(np.dtype(float), (len(G), len(G)))
        self._X, self._G = X, G

    def _matvec(self, omega: np.ndarray) -> np.ndarray:
        weighted = self._G * np.ravel(omega)
        return self._X @ (self._X.T @ weighted) - weighted


def symmetric(X: np.ndarray, moments: np.ndarray, rng: np.random.Generator) -> Leading:
    """The top of $X^T \\mathrm{diag}(T) X$, by dense reduction: T is unbounded below, so Lanczos converges slowly."""
    d = X.shape[1]
    T = 1 - 1 / moments
    S = X.T @ (T[:, None] * X)
    if not np.isfinite(S).all():
        return _missing(d)
    eigenvalues, vectors = scipy.linalg.eigh(S, subset_by_index=[max(d - 2, 0), d - 1], overwrite_a=True)
    return Leading(vectors[:, -1], float(eigenvalues[-1]), float(eigenvalues[0]) if d > 1 else float("nan"))


def asymmetric(X: np.ndarray, moments: np.ndarray, rng: np.random.Generator) -> Leading:
    """The eigenvalue of largest real part of $(X X^T - I)\\,\\mathrm{diag}(G)$, by Arnoldi with two products a step.

    Below the threshold the leading eigenvalue lies in the bulk and may be complex: its real part is reported.
    """
    n, d = X.shape
    G = moments - 1
    if not (np.isfinite(G).all() and np.isfinite(X).all() and np.any(np.abs(G) > 1e-9)):
        return _missing(d)
    operator = _Linearised(X, G)
    if n <= _DENSE_BELOW:
        values, vectors = np.linalg.eig(operator.matmat(np.eye(n)))
    else:
        options = {"v0": rng.standard_normal(n), "ncv": min(n, 60), "tol": _ARNOLDI_TOLERANCE}
        try:
            found: Any = scipy.sparse.linalg.eigs(operator, k=2, which="LR", **options)
            values, vectors = found
        except scipy.sparse.linalg.ArpackNoConvergence as error:
            values, vectors = error.eigenvalues, error.eigenvectors
    if not len(values):
        return _missing(d)
    real = np.real(values)
    order = np.argsort(-real)
    direction = X.T @ (G * _real_part(vectors[:, order[0]]))
    norm = np.linalg.norm(direction)
    if norm == 0:
        return _missing(d)
    second = float(real[order[1]]) if len(real) > 1 else float("nan")
    return Leading(direction / norm, float(real[order[0]]), second, converged=len(real) > 1 or n == 1)


def likelier_sign(output: ChannelOutput, X: np.ndarray, estimate: np.ndarray, V: float) -> float:
    """The sign of the estimate under which the labels have the larger mean log evidence."""
    omega, variance = (X @ estimate)[:, None], np.array([[max(V, 1e-12)]])
    plus, minus = (float(np.mean(output.log_Z(sign * omega, variance))) for sign in (1.0, -1.0))
    return 1.0 if plus >= minus else -1.0


def _real_part(vector: np.ndarray) -> np.ndarray:
    """The real part after the phase that makes the vector as real as possible, so that the result is reproducible."""
    phase = np.sum(vector**2)
    return np.real(vector * np.exp(-0.5j * np.angle(phase)))


def _missing(d: int) -> Leading:
    """The answer where no eigenvector was found: no direction at all, marked as not converged."""
    return Leading(np.zeros(d), float("nan"), float("nan"), converged=False)
