r"""Bilinear sequence regression: labels that are linear in each entry of a sequence, through a low-rank matrix.

The posterior mean of S* given n = alpha d L labels is as good as that given $S^* + \sqrt\kappa Z$, Z of independent
N(0, 1) entries, whose effective noise solves

    kappa = (Delta + mmse(kappa)) / alpha,        estimation error = mmse(kappa) = alpha kappa - Delta.

Without noise mmse(kappa)/kappa tends to the number of unknowns over d L as kappa falls, so that kappa = 0, perfect
recovery, is the only solution from there on. mmse(kappa)/kappa decreases with kappa wherever we looked: the solution is
unique, there is no hard phase, and message passing reaches it. [erba2024bilinear]
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from solvable.core.axis import Axis
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.results import Prediction
from solvable.engine.amp import AMPReport
from solvable.engine.cosines import cosines_of
from solvable.engine.erm import ERM
from solvable.engine.operators import DenseOnMatrices
from solvable.engine.outputs.gaussian import GaussianOutput
from solvable.engine.signals.singular_values import SingularValueSignal
from solvable.engine.solvers.base import FixedPoints
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.matrix.model import checked_ratio, posterior_mean


class BilinearData(NamedTuple):
    """Inputs `X` (n x d L), each a sequence of L tokens as one row; labels `y` (n); the teacher's matrix `truth`
    (d x L) for scoring; and its `rank` r, which is known."""

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    rank: int


class BilinearSequence(TwoSided):
    r"""The labels of sequences of L = beta d tokens of dimension d, from n = alpha d L of them.

    $y = \frac{1}{\sqrt{dL}} \sum_{ij} X_{ij} S^*_{ij} + \sqrt{noise}\,\xi$ with $S^* = A B/\sqrt r$, A of d x r and B
    of r x L entries, r = rho d; the entries of X, A and B are independent N(0, 1).

    - `rho`: rank over dimension. Above min(1, beta) the matrix has full rank.
    - `beta`: length of the sequence over the dimension.
    - `noise`: variance of the Gaussian noise added to the label.

    Simulated teachers are normalised, $|S^*|^2 = dL$.
    """

    axes = (Axis("alpha", "n/(dL)"),)
    without = (ERM,)
    references = ("erba2024bilinear",)
    scaling: ClassVar[str] = "n = alpha d L, L = beta d"
    definitions: ClassVar[dict[str, str]] = {
        "cosine": "<S_hat, S*> / (|S_hat|_F |S*|_F) over all entries",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|S_hat - S*|_F^2 / (d L), the mean square error of an entry",
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless "
        "label: equal to the estimation error",
    }

    rho: float
    beta: float
    noise: float

    def __init__(self, rho: float, beta: float = 1.0, noise: float = 0.0):
        self.rho = checked_ratio("rho", rho, "the rank over the dimension")
        self.beta = checked_ratio("beta", beta, "the length of the sequence over the dimension")
        self.noise = checked_variance(noise)

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> BilinearData:
        """A teacher with |S*|^2 = dL, n = round(alpha d L) inputs (at least one) and their labels."""
        L, r = (round(float(ratio) * d) for ratio in (self.beta, self.rho))
        if min(L, r) < 1:
            least = 1 / min(float(self.beta), float(self.rho))
            raise bad_parameter("d", d, f"at least {least:g}, so that there is a token and a rank of one")
        count = max(1.0, axes["alpha"] * d * L)
        check_memory(8.0 * count * d * L, f"the inputs, {count:.4g} x {d * L} numbers,", "d", d)
        n = round(count)
        S = rng.standard_normal((d, r)) @ rng.standard_normal((r, L))
        S *= np.sqrt(S.size / np.sum(S**2))
        X = rng.standard_normal((n, d * L))
        X /= np.sqrt(d * L)
        y = X @ S.ravel() + np.sqrt(float(self.noise)) * rng.standard_normal(n)
        return BilinearData(X, y, S, r)

    def output_side(self) -> GaussianOutput:
        return GaussianOutput(float(self.noise))

    def signal_side(self) -> SingularValueSignal:
        return SingularValueSignal(float(self.rho), float(self.beta))

    def prediction(self, points: FixedPoints) -> Prediction:
        return posterior_mean(points, 1.0, 1.0, {"estimation_error": 1.0, "generalization_error": 1.0})

    def instance(self, data: BilinearData) -> Instance:
        """A run adds to its `details` the `effective_noise` kappa that is left on an entry, and its `self_overlap`."""
        d, L = data.truth.shape
        operator = DenseOnMatrices(data.X, (d, L))

        def details(report: AMPReport) -> dict[str, Any]:
            return {
                "effective_noise": float(1 / report.A[0, 0]),
                "self_overlap": float(np.mean(report.estimate**2)),
            }

        return Instance(
            operator,
            self.output_side().denoiser(data.y),
            SingularValueSignal(data.rank / d, L / d).denoiser(operator),
            start=lambda rng: np.zeros((d * L, 1)),
            estimate=lambda w: w.reshape(d, L),
            details=details,
        )

    def scores(self, estimate: np.ndarray, data: BilinearData, rng: np.random.Generator) -> dict[str, float]:
        """The mean square error of an entry; that of a predicted label, for inputs of unit variance, is the same."""
        error = float(np.mean((estimate - data.truth) ** 2))
        return {**cosines_of(estimate, data.truth), "estimation_error": error, "generalization_error": error}
