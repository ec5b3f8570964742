r"""Message passing for bilinear sequence regression: the engine's loop with a denoiser of singular values.

The unknown is the vector of the N = d L entries of S*, of unit variance, and the operator the inputs over $\sqrt N$.

- Output: labels with Gaussian noise, $g = (y - \omega)/(\Delta + V)$.
- Signal: $B/A = S^* + \sqrt\kappa Z$ with $\kappa = 1/A$. Its singular values are shrunk, and the response is
  mmse(kappa), the mean posterior variance of an entry.
"""

from __future__ import annotations

import math

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.learners import AMP
from solvable.core.precision import float64
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.amp import amp, precision_from_norm
from solvable.engine.operators import Dense
from solvable.engine.sides import OutputStep, SignalStep
from solvable.models.matrix.bilinear_sequence import BilinearData, BilinearSequence, upright
from solvable.spectra.rectangular import RectangularSum, rectangular_sums
from solvable.spectra.rectangular_denoising import optimal_singular_values_of, rectangular_mmse_forms

_LEAST_PRECISION = 1e-9
_SHORTEST = 64


class GaussianLabels:
    """The output denoiser of labels with Gaussian noise."""

    def __init__(self, y: np.ndarray, noise: float):
        self._y, self._noise = y[:, None], noise

    def __call__(self, Omega: np.ndarray, V: np.ndarray) -> OutputStep:
        variance = self._noise + V[0, 0]
        residual = self._y - Omega

        def log_Z() -> np.ndarray:
            return -0.5 * (residual[:, 0] ** 2 / variance + np.log(2 * np.pi * variance))

        return OutputStep(residual / variance, np.full((1, 1), 1 / variance), log_Z=log_Z)


class SingularValueSignal:
    """The signal denoiser of a d x L product of Gaussian matrices of rank r."""

    def __init__(self, d: int, L: int, rank: int):
        self._shape = (d, L)
        self._law, self._beta = upright(rank / d, L / d)

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        A = max(float(precision_from_norm(B)[0][0]), _LEAST_PRECISION)
        left, values, right = np.linalg.svd(B.reshape(self._shape) / A, full_matrices=False)
        unit = np.sqrt(max(self._shape))
        shrunk, mmse = self._denoise(1 / A, values / unit)
        estimate = (left * (shrunk * unit)) @ right
        return SignalStep(estimate.reshape(-1, 1), np.full((1, 1), mmse), np.full((1, 1), A))

    @float64
    def _denoise(self, kappa: float, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The shrunk singular values and mmse(kappa)."""
        batch = rectangular_sums(self._law, self._beta, np.array([kappa]))
        found = RectangularSum(*(np.asarray(part)[0] for part in batch))
        # Filled up to a power of two, so that few sizes are ever compiled.
        padded = np.pad(x, (0, _SHORTEST * 2 ** math.ceil(math.log2(max(len(x) / _SHORTEST, 1))) - len(x)), "edge")
        shrunk = np.asarray(optimal_singular_values_of(self._law, self._beta, found, padded))[: len(x)]
        by_score, by_square = rectangular_mmse_forms(1.0, found)
        return shrunk, float(by_score if kappa < 1 else by_square)


@simulation(BilinearSequence, AMP, references=("erba2024bilinear", "troiani2022optimal"))
def run_amp(model: BilinearSequence, learner: AMP, data: BilinearData, rng: np.random.Generator) -> Outcome:
    """Approximate message passing from zero; the truth is used for scoring only.

    `details` has `effective_noise`, the variance kappa of the noise left on an entry, and the loop's own checks.
    """
    if learner.start != "noise":
        raise bad_parameter("start", learner.start, "'noise' for bilinear sequence regression")
    d, L = data.truth.shape
    report = amp(
        Dense(data.X),
        GaussianLabels(data.y, float(model.noise)),
        SingularValueSignal(d, L, data.rank),
        np.zeros((d * L, 1)),
        rng,
        damping=float(learner.damping),
        max_steps=int(learner.max_steps),
        tolerance=float(learner.tolerance),
    )
    estimate = report.estimate.reshape(d, L)
    details = {
        "iterations": report.iterations,
        "status": report.status,
        "effective_noise": float(1 / report.A[0, 0]),
        "self_overlap": float(np.mean(estimate**2)),
        "consistent": report.consistent,
        "log_likelihood": report.log_likelihood,
    }
    return Outcome(scores(estimate, data.truth), estimate, report.converged, details=details)


def scores(estimate: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """The mean square error of an entry; that of a predicted label, for inputs of unit variance, is the same."""
    error = float(np.mean((estimate - truth) ** 2))
    return {"estimation_error": error, "generalization_error": error}
