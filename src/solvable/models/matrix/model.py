r"""Labels that are linear in a hidden symmetric matrix: what quadratic networks and matrix sensing share.

The posterior mean of A* given n = alpha d^2 labels is as good as that given $A^* + \sqrt D Z$, Z a Gaussian symmetric
matrix, whose effective noise D solves

    D = (Delta + 2 mmse(D)) / (4 alpha),        estimation error = mmse(D) = 2 alpha D - Delta / 2.

Without noise mmse(D)/D tends to $1 - \sum_i w_i^2$ as D falls, w the weights of the atoms of the law of eigenvalues, so
that D = 0, perfect recovery, is the only solution from $\alpha = (1 - \sum_i w_i^2)/2$ on. For every law that we tried
mmse(D)/D decreases with D: the solution is unique, there is no hard phase, and message passing reaches it.

With quadratic features the error of message passing at size d exceeds the limit's by a relative 2/d to 6/d: the varying
norms of features lose information where there is noise, and the spectrum of a finite network is wider than its law. A
step smaller than the default (`damping`) may be needed to converge where n/d is below about ten: single features then
stand out of the noise. [maillard2024bayes, xu2025fundamental]
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis
from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.results import Prediction
from solvable.engine.amp import AMPReport
from solvable.engine.cosines import cosine_error, cosines, cosines_of
from solvable.engine.erm import ERM
from solvable.engine.operators import Features, GaussianFeatures, PackedFeatures, QuadraticFeatures
from solvable.engine.outputs.gaussian import GaussianLabels, GaussianOutput
from solvable.engine.signals.eigenvalues import EigenvalueDenoiser, EigenvalueSignal
from solvable.engine.solvers.base import FixedPoints
from solvable.engine.two_sided import Instance, TwoSided
from solvable.numerics.subspaces import orthonormal
from solvable.spectra import Law, MarchenkoPastur
from solvable.spectra.named import as_law

FEATURES = {"quadratic": QuadraticFeatures.draw, "gaussian": GaussianFeatures.draw}


class MatrixData(NamedTuple):
    """Features as an operator S -> (Tr[G_mu S])_mu, labels `y` (n), the teacher's matrix (d x d) for scoring, and the
    `width` of a network that computes it."""

    operator: Features
    y: np.ndarray
    truth: np.ndarray
    width: int


class MatrixModel(TwoSided):
    """y = Tr[G A*] + sqrt(noise) xi with n = alpha d^2 samples, A* a symmetric d x d matrix with random eigenvectors.

    `features` says what G is: `"quadratic"`, (x x^T - I) / sqrt(d) with x of d independent N(0, 1) entries; or
    `"gaussian"`, a symmetric Gaussian matrix with entries of variance 1/d, 2/d on the diagonal. Both have the same
    limit of infinite dimension.
    """

    axes = (Axis("alpha", "n/d^2"),)
    without = (ERM,)
    references = ("maillard2024bayes", "xu2025fundamental")
    scaling: ClassVar[str] = "n = alpha d^2"
    definitions: ClassVar[dict[str, str]] = {
        "cosine": "Tr[A_hat A*] / (|A_hat|_F |A*|_F)",
        "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
        "estimation_error": "|A_hat - A*|_F^2 / d",
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless "
        "label: twice the estimation error",
        "training_error": "mean over the samples of (y - y_hat)^2",
        "training_loss": "what the learner minimises: sum of (y - y_hat)^2 / d^2, plus its penalty",
        "rank": "share of the eigenvalues of A_hat that are positive",
    }

    noise: eqx.AbstractVar[float]
    features: eqx.AbstractVar[str]

    @property
    @abc.abstractmethod
    def law(self) -> Law:
        """The law of the eigenvalues of A*."""

    @abc.abstractmethod
    def teacher(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, int]:
        """A matrix A* of size d, and the width of a network that computes it."""

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> MatrixData:
        """A teacher, n = round(alpha d^2) features (at least one) and their labels."""
        count = max(1.0, axes["alpha"] * float(d) ** 2)
        # Gaussian features are drawn again when they are needed, a block at a time.
        kept = count * (d if self.features == "quadratic" else 1)
        check_memory(8.0 * (kept + 4.0 * d * d), f"{count:.4g} samples of matrices of size {d}", "d", d)
        n = round(count)
        truth, width = self.teacher(rng, d)
        operator = FEATURES[self.features](rng, n, d)
        labels = operator.forward(truth) + np.sqrt(float(self.noise)) * rng.standard_normal(n)
        return MatrixData(operator, labels, truth, width)

    def gain(self, **axes: Any) -> Any:
        """Samples for each of the d^2/2 unknowns."""
        return 2 * axes["alpha"]

    def signal_side(self) -> EigenvalueSignal:
        return _kept(EigenvalueSignal(self.law))

    def output_side(self) -> GaussianOutput:
        r"""The variance of $\mathrm{Tr}[G (A^* - m I)]$ is $2\sigma^2$, which is the unit of the noise."""
        return GaussianOutput(float(self.noise) / (2 * self.signal_side().variance))

    def prediction(self, points: FixedPoints) -> Prediction:
        factors = {"estimation_error": 1.0, "generalization_error": 2.0}
        return posterior_mean(points, self.signal_side().variance, float(self.law.second_moment), factors)

    def instance(self, data: MatrixData) -> Instance:
        """Each sample is divided by $u_\\mu$, so that z has unit variance: (y - m Tr G)/u = z + noise of noise/u^2.

        A run adds to its `details` the `effective_noise` D that is left on A*, and the `expected_error` that its
        residuals imply.
        """
        signal, d = self.signal_side(), data.operator.size
        operator = PackedFeatures(data.operator)
        unit = operator.unit(signal.variance)
        y = (data.y - signal.mean * data.operator.forward(np.eye(d)))[:, None] / unit
        denoiser = EigenvalueDenoiser(signal, operator, by_norm=False)

        def details(report: AMPReport) -> dict[str, Any]:
            expected = 0.0 if signal.known else signal.variance * float(report.V[0, 0])
            return {"effective_noise": denoiser.effective_noise(float(report.A[0, 0])), "expected_error": expected}

        return Instance(
            operator,
            GaussianLabels(y, float(self.noise) / unit**2, scattered=True),
            denoiser,
            start=lambda rng: np.zeros((operator.dimension, 1)),
            estimate=lambda w: signal.mean * np.eye(d) if signal.known else denoiser.matrix(w),
            details=details,
        )

    def scores(self, estimate: np.ndarray, data: MatrixData, rng: np.random.Generator) -> dict[str, float]:
        return errors(estimate, data.truth)


@functools.lru_cache(maxsize=64)
def _kept(signal: EigenvalueSignal) -> EigenvalueSignal:
    """The first of equal signals, which knows the moments of its law and has its table."""
    return signal


def posterior_mean(points: FixedPoints, variance: float, power: float, factors: dict[str, float]) -> Prediction:
    """Its cosines, and the metrics that are multiples of the error of an unknown of this variance and mean square."""
    V, error, qhat = points.variance[:, 0, 0], points.uncertainty, points.field[:, 0, 0]
    with np.errstate(divide="ignore"):
        effective_noise = variance / qhat
    q = power - variance * V
    metrics = cosines(q, q, power)
    squared_error = variance * error / power if power > 0 else np.zeros_like(error)
    uncertainty = {
        "cosine": cosine_error(metrics["squared_overlap"], squared_error),
        "squared_overlap": squared_error,
    }
    return Prediction(
        metrics=metrics | {name: factor * variance * V for name, factor in factors.items()},
        order_parameters={"effective_noise": effective_noise},
        status=points.status,
        residual=points.residual,
        iterations=points.iterations,
        uncertainty=uncertainty | {name: factor * variance * error for name, factor in factors.items()},
    )


def errors(estimate: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    r"""The cosines, the estimation_error $\|\hat A - A^*\|_F^2/d$ and the error of predicted labels.

    The last is exactly twice that: $\mathrm{Var}\,\mathrm{Tr}[G M] = 2\|M\|_F^2/d$ for both kinds of features.
    """
    error = float(np.sum((estimate - truth) ** 2) / len(truth))
    return {**cosines_of(estimate, truth), "estimation_error": error, "generalization_error": 2 * error}


def checked_features(features: object) -> str:
    """`features`, or a `ValueError` unless it is one of the names."""
    if features not in FEATURES:
        raise bad_parameter("features", features, " or ".join(repr(name) for name in FEATURES))
    return str(features)


class QuadraticNetwork(MatrixModel):
    r"""The labels of a network of p = rho d units with quadratic activation, from n = alpha d^2 samples.

    $y = \frac{1}{\sqrt p} \sum_{i=1}^p \frac{(w_i\cdot x)^2 - |w_i|^2}{d} + \sqrt{noise}\,\xi
    = \mathrm{Tr}[G A^*] + \sqrt{noise}\,\xi$ with $A^* = W^T W/\sqrt{pd}$ and $G = (x x^T - I)/\sqrt d$; weights and
    inputs have independent N(0, 1) entries. The variance of the noiseless label is 2 (1 + rho).

    - `rho`: width of the network over the dimension.
    - `noise`: variance of the Gaussian noise added to the label.
    - `features`: `"quadratic"`, or `"gaussian"` for symmetric Gaussian matrices in place of G.
    """

    rho: float
    noise: float
    features: str = eqx.field(static=True)

    def __init__(self, rho: float, noise: float = 0.0, features: str = "quadratic"):
        self.rho = checked_ratio("rho", rho, "the width over the dimension")
        self.noise = checked_variance(noise)
        self.features = checked_features(features)

    @property
    def law(self) -> Law:
        return MarchenkoPastur(self.rho)

    def teacher(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, int]:
        p = round(float(self.rho) * d)
        if p < 1:
            raise bad_parameter("d", d, f"at least 1/rho = {1 / float(self.rho):g}, so that the network has a unit")
        W = rng.standard_normal((p, d))
        return W.T @ W / np.sqrt(p * d), p


def checked_ratio(name: str, value: object, meaning: str) -> float:
    """A positive number, or a `ValueError` that says what it means."""
    return real_number(name, value, f"a positive number, {meaning}", lambda x: x > 0)


class MatrixSensing(MatrixModel):
    """y = Tr[G A*] + sqrt(noise) xi for a symmetric A* of known eigenvalues and unknown eigenvectors, n = alpha d^2.

    - `spectrum`: the law of the eigenvalues: `sv.spectra.MarchenkoPastur(rho)`, `Semicircle(scale)`,
      `Discrete(values, weights)`, `PowerLaw(gamma)`, `Density(function, low, high)`; a list of eigenvalues; or a text
      such as `"power-law:1.25"`.
    - `noise`: variance of the Gaussian noise added to the label.
    - `features`: `"quadratic"` for G = (x x^T - I)/sqrt(d), or `"gaussian"` for symmetric Gaussian matrices.

    Simulated teachers have eigenvalues at the quantiles of the law and uniformly random eigenvectors.
    """

    spectrum: Law
    noise: float
    features: str = eqx.field(static=True)

    def __init__(self, spectrum: Law | str | Sequence[float], noise: float = 0.0, features: str = "quadratic"):
        self.spectrum = as_law(spectrum)
        self.noise = checked_variance(noise)
        self.features = checked_features(features)

    @property
    def law(self) -> Law:
        return self.spectrum

    def teacher(self, rng: np.random.Generator, d: int) -> tuple[np.ndarray, int]:
        values = np.asarray(self.spectrum.eigenvalues(d))
        basis = orthonormal(rng.standard_normal((d, d)))
        width = int(np.sum(np.abs(values) > 1e-12 * np.max(np.abs(values))))
        return (basis * values) @ basis.T, max(width, 1)
