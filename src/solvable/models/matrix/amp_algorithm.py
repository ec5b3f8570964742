r"""Message passing for matrix models: the engine's loop with an eigenvalue denoiser.

The unknown is the vector w of the N = d(d+1)/2 entries of $A^* - m I$ (those off the diagonal times $\sqrt 2$), scaled
by $\sqrt{N/(d\,\sigma^2)}$ so that $|w|^2 = N$, with m and $\sigma^2$ the mean and the variance of the law of the
eigenvalues: the trace is known from the law. Each sample is divided by $u_\mu = |G_\mu| \sqrt{d \sigma^2/N}$,

    (y - m Tr G) / u = z + noise of variance noise_mu = noise / u^2,    z = <G/|G|, w>,

so that z has unit variance for every sample. The squared norms of quadratic features vary by a relative $\sqrt{8/d}$;
without the division the iteration is unstable at small d, and where it is stable the fixed point is the same.

- Output: $g_\mu = r_\mu/(noise_\mu + V)$ with residuals $r = y - \Omega$, and $A = \frac1N \sum_\mu 1/(noise_\mu + V)$.
  V is the scatter of the residuals beyond the noise, $\mathrm{mean}(r_\mu^2 - noise_\mu)$, not $1 - |\hat w|^2/N$. The
  norm of a finite teacher differs from that of its law by a relative 1/d, which would hide perfect recovery. And when
  an estimate is too large the scatter says so, while the other V vanishes and locks the error in.
- Signal: B/A is, as a matrix, $A^* - m I + \sqrt D Z$ with $D = \sigma^2 d^2/(2 N A)$. Its eigenvalues are shrunk, and
  the response is the divergence of that map over N A.

With quadratic features the error at size d exceeds the limit's by a relative 2/d to 6/d: the varying norms lose
information where there is noise, and the spectrum of a finite network is wider than its law. A step smaller than the
default (`damping`) may be needed to converge where n/d is below about ten: single features then stand out of the noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.learners import AMP
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.core.status import Status
from solvable.engine.amp import AMPReport, amp
from solvable.engine.sides import OutputStep, SignalStep
from solvable.models.matrix.instance import MatrixData, scores
from solvable.models.matrix.matrix_model import MatrixModel
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.operators import Features
from solvable.models.matrix.quadratic_network import QuadraticNetwork
from solvable.spectra import Law
from solvable.spectra.shrinkage import shrink

_SMALLEST_V = 1e-16
_EDGE = 0.7
"""Width over which the denoiser is smoothed, in units of that of an edge and of its slope inside the bulk."""


class PackedFeatures:
    """Features of unit norm as an operator on vectors of N = d(d+1)/2 entries."""

    def __init__(self, features: Features):
        self._features = features
        d = features.size
        self._place = np.triu_indices(d)
        self._weight = np.where(self._place[0] == self._place[1], 1.0, np.sqrt(2.0))
        self.norms = features.norms()[:, None]

    @property
    def samples(self) -> int:
        return self._features.samples

    @property
    def size(self) -> int:
        """The dimension d."""
        return self._features.size

    @property
    def dimension(self) -> int:
        return len(self._weight)

    def forward(self, signal: np.ndarray) -> np.ndarray:
        return self._features.forward(self.matrix(signal))[:, None] / self.norms

    def adjoint(self, residual: np.ndarray) -> np.ndarray:
        return self.vector(self._features.adjoint((residual / self.norms)[:, 0]))

    def vector(self, S: np.ndarray) -> np.ndarray:
        """A symmetric matrix as a column of the same norm."""
        return (S[self._place] * self._weight)[:, None]

    def matrix(self, signal: np.ndarray) -> np.ndarray:
        """The symmetric matrix of a column."""
        S = np.empty((self.size, self.size))
        S[self._place] = signal[:, 0] / self._weight
        S.T[self._place] = S[self._place]
        return S


class ScatteredLabels:
    """The output denoiser of Gaussian noise, whose variance `noise` (n, 1) differs between samples; it measures V."""

    def __init__(self, y: np.ndarray, noise: np.ndarray):
        self._y, self._noise = y, noise

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        residual = self._y - Omega
        variance = max(float(np.mean(residual**2 - self._noise)), _SMALLEST_V)
        information = 1 / (self._noise + variance)
        return OutputStep(residual * information, np.full((1, 1), np.mean(information)), np.full((1, 1), variance))


class EigenvalueSignal:
    """The signal denoiser of a symmetric matrix of known spectrum; the precision is what the labels found."""

    def __init__(self, law: Law, operator: PackedFeatures):
        self._law, self._operator = law, operator
        self._mean, self._variance = float(law.mean), float(law.variance)
        self._scale = np.sqrt(operator.dimension / (operator.size * self._variance))

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        d, N, A = self._operator.size, self._operator.dimension, float(precision[0, 0])
        D = self.effective_noise(A)
        eigenvalues, vectors = np.linalg.eigh(self._operator.matrix(B / (A * self._scale)))
        # An edge is sqrt(D) d^(-2/3) wide. Inside the bulk the slope is about variance / (variance + D), to which
        # smoothing adds width / sqrt(D): it must stay a small part of it.
        width = _EDGE * d ** (-2 / 3) * np.sqrt(D) * self._variance / (self._variance + D)
        found = shrink(self._law, D, eigenvalues + self._mean, width)
        shrunk = np.asarray(found.values) - self._mean
        estimate = self._scale * self._operator.vector((vectors * shrunk) @ vectors.T)
        return SignalStep(estimate, np.full((1, 1), float(found.divergence) / (N * A)), precision)

    def effective_noise(self, A: float) -> float:
        """D, the variance of the noise on A* at precision A."""
        return self._variance * self._operator.size**2 / (2 * self._operator.dimension * A)

    def estimate(self, signal: np.ndarray) -> np.ndarray:
        """A_hat (d x d) from the loop's w_hat."""
        return self._operator.matrix(signal / self._scale) + self._mean * np.eye(self._operator.size)


@simulation(QuadraticNetwork, AMP, references=("maillard2024bayes", "bun2016rotational"))
@simulation(MatrixSensing, AMP, references=("maillard2024bayes", "bun2016rotational"))
def run_amp(model: MatrixModel, learner: AMP, data: MatrixData, rng: np.random.Generator) -> Outcome:
    """Approximate message passing from the mean of the law; the truth is used for scoring only.

    `details` has `effective_noise`, the variance D of the noise that is left on A*; `expected_error`, the estimation
    error that the residuals imply; and the loop's own checks.
    """
    if learner.start != "noise":
        raise bad_parameter("start", learner.start, "'noise' for matrix models")
    law, d = model.law, data.operator.size
    mean, variance = float(law.mean), float(law.variance)
    if variance <= 1e-12 * mean**2:  # one eigenvalue: nothing is unknown
        details = {"iterations": 0, "status": Status.CONVERGED, "effective_noise": 0.0, "expected_error": 0.0}
        return Outcome(scores(mean * np.eye(d), data.truth), mean * np.eye(d), details=details)
    operator = PackedFeatures(data.operator)
    unit = np.sqrt(d * variance / operator.dimension) * operator.norms
    y = (data.y - mean * data.operator.forward(np.eye(d)))[:, None] / unit
    labels = ScatteredLabels(y, float(model.noise) / unit**2)
    signal = EigenvalueSignal(law, operator)
    report = amp(
        operator,
        labels,
        signal,
        np.zeros((operator.dimension, 1)),
        rng,
        damping=float(learner.damping),
        max_steps=int(learner.max_steps),
        tolerance=float(learner.tolerance),
    )
    estimate = signal.estimate(report.estimate)
    details = _details(report) | {
        "effective_noise": signal.effective_noise(float(report.A[0, 0])),
        "expected_error": variance * float(report.V[0, 0]),
    }
    return Outcome(scores(estimate, data.truth), estimate, report.converged, details=details)


def _details(report: AMPReport) -> dict[str, Any]:
    ratio = float(report.residual_ratios[0]) if report.residual_ratios.size else float("nan")
    return {
        "iterations": report.iterations,
        "status": report.status,
        "residual_ratio": ratio,
        "consistent": report.consistent,
    }
