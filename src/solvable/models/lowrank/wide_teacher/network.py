r"""Networks of extensive width whose activation has a quadratic part, from n = alpha d^2 samples.

The quadratic part of all neurons together is a linear function of one matrix, $S = W^T W/\sqrt{pd}$ without its mean,

    y = (linear part, known) + (c_2 / sqrt 2) Tr[G S] + (degrees three and more) + noise,      G = (x x^T - I)/sqrt d,

which is learned as a whole. As long as no neuron is learned by itself the higher degrees act as noise of variance g(1):
the network is a quadratic one with the noise $\Delta + g(1)$, whatever its activation ("universal"). That is what
message passing on S reaches. `specialised.py` has the other solution. [barbier2025optimal, maillard2024bayes]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.core.axis import Axis
from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter, checked_variance
from solvable.core.memory import check_memory
from solvable.core.model import Data, Learner
from solvable.core.precision import float64
from solvable.core.ranges import UNIT, Range
from solvable.core.results import Prediction
from solvable.engine.cosines import cosine_error
from solvable.engine.dynamics.student import read_activation
from solvable.engine.erm import ERM
from solvable.engine.operators import PackedFeatures, QuadraticFeatures
from solvable.engine.outputs.gaussian import GaussianLabels, GaussianOutput
from solvable.engine.signals.eigenvalues import EigenvalueDenoiser, EigenvalueSignal
from solvable.engine.solvers.base import FixedPoints
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.lowrank.wide_teacher.kernel import Kernel, kernels_of
from solvable.spectra import MarchenkoPastur
from solvable.targets.admissible import check_admissible
from solvable.targets.target import Target

_ZERO = 1e-6
"""A Hermite coefficient below this, relative to the standard deviation, is none."""
_TEST = 20_000
"""Fresh inputs on which the errors of a run are measured."""


class WideNetwork(TwoSided):
    r"""The labels of a network of p = rho d neurons, from n = alpha d^2 samples.

    $y = \frac{1}{\sqrt p}\sum_{j\le p} \sigma(w_j\cdot x) + \sqrt{noise}\,\xi$. Inputs have N(0, 1/d) entries, weights
    are independent with $|w_j|^2 = d$.

    - `rho`: width of the network over the dimension.
    - `activation`: $\sigma$, a formula in z, the name of a function, or a function written with `jax.numpy`; with a
      quadratic part, $E[\sigma(z)(z^2 - 1)] \ne 0$.
    - `noise`: variance of the Gaussian noise added to the label.
    """

    axes = (Axis("alpha", "n/d^2"),)
    scaling: ClassVar[str] = "n = alpha d^2"
    without = (ERM,)
    references = ("barbier2025optimal",)
    definitions: ClassVar[dict[str, str]] = {
        "generalization_error": "mean squared error of the predicted label on fresh inputs against the noiseless label",
        "cosine": "correlation of the predicted with the noiseless label, each without its mean, on fresh inputs",
        "squared_overlap": "square of it: of a posterior mean the share of the label's variance that it explains",
        "overlap": "q_2, of the posterior mean of S = W^T W / sqrt(p d) without its mean: Tr[S_hat S] / d",
        "overlap_weights": "q_w, that of single neurons: w_hat_j.w_j/d",
        "estimation_error": "|S_hat - S|_F^2 / d",
    }

    rho: float
    activation: Target = eqx.field(static=True)
    noise: float

    def __init__(self, rho: float, activation: str | Target | Callable[..., Any] = "relu", noise: float = 0.0):
        self.rho = real_number("rho", rho, "a positive number, the width over the dimension", lambda x: x > 0)
        self.activation = read_activation(activation)
        self.noise = checked_variance(noise)
        _check_kernel(self.activation)

    @property
    def kernel(self) -> Kernel:
        """g of the activation."""
        return kernels_of(self.activation).fine

    @property
    def variance(self) -> float:
        """That of the noiseless label; the mean of S, a multiple of the identity, adds rho to its quadratic part."""
        kernel = self.kernel
        return kernel.linear + kernel.quadratic * (1 + float(self.rho)) + kernel.total

    def gain(self, **axes: Any) -> Any:
        """Samples for each of the d^2/2 unknowns."""
        return 2 * axes["alpha"]

    def output_side(self) -> GaussianOutput:
        """The variance of the quadratic part is the unit of the noise."""
        return GaussianOutput((float(self.noise) + self.kernel.total) / self.kernel.quadratic)

    def signal_side(self) -> EigenvalueSignal:
        return signal_of(float(self.rho))

    def prediction(self, points: FixedPoints) -> Prediction:
        """The universal solution."""
        kernel, V = self.kernel, points.variance[:, 0, 0]
        error = kernel.quadratic * V + kernel.total
        tail = 2 * np.abs(kernels_of(self.activation).coarse.total - kernel.total)
        return self.metrics(
            points.overlap[:, 0, 0],
            np.zeros(len(V)),
            error,
            V,
            (points.uncertainty, kernel.quadratic * points.uncertainty + tail),
            status=points.status,
            residual=points.residual,
            iterations=points.iterations,
        )

    def metrics(
        self,
        q_2: np.ndarray,
        q_w: np.ndarray,
        error: np.ndarray,
        V: np.ndarray,
        uncertainty: tuple[np.ndarray, np.ndarray],
        **rest: Any,
    ) -> Prediction:
        """A prediction from both overlaps, the error of labels and V = 1 - q_2; uncertainties of overlaps and error."""
        squared = np.clip(1 - error / self.variance, 0.0, 1.0)
        of_overlaps, of_error = uncertainty
        return Prediction(
            {
                "generalization_error": error,
                "cosine": np.sqrt(squared),
                "squared_overlap": squared,
                "overlap": q_2,
                "overlap_weights": q_w,
                "estimation_error": V,
            },
            order_parameters={"effective_noise": float(self.noise) + error},
            uncertainty={
                "generalization_error": of_error,
                "cosine": cosine_error(squared, of_error / self.variance),
                "squared_overlap": of_error / self.variance,
                "overlap": of_overlaps,
                "overlap_weights": np.where(q_w > 0, of_overlaps, 0.0),
                "estimation_error": of_overlaps,
            },
            **rest,
        )

    def ranges(self, learner: Learner) -> dict[str, Range]:
        return super().ranges(learner) | {"overlap_weights": UNIT}

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> Data:
        """Weights (d x p), n = round(alpha d^2) inputs (at least one) and their labels."""
        p, count = round(float(self.rho) * d), max(1.0, axes["alpha"] * float(d) ** 2)
        if p < 1:
            raise bad_parameter("d", d, f"at least 1/rho = {1 / float(self.rho):g}, so that the network has a neuron")
        check_memory(8.0 * count * (d + p), f"{count:.4g} samples of {d} numbers and {p} neurons", "d", d)
        truth = rng.standard_normal((d, p))
        truth *= np.sqrt(d) / np.linalg.norm(truth, axis=0)
        X = rng.standard_normal((round(count), d)) / np.sqrt(d)
        return Data(X, self.labels(X, truth) + np.sqrt(float(self.noise)) * rng.standard_normal(len(X)), truth)

    def labels(self, X: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """The noiseless labels of inputs."""
        return self.activation.numpy((X @ truth)[..., None]).sum(-1) / np.sqrt(truth.shape[1])

    def instance(self, data: Data) -> Instance:
        """The constant and the mean of S are known, the linear part is fitted first: then labels are linear in S.

        The estimate is S_hat with its mean, and the linear part.
        """
        (n, d), signal = data.X.shape, self.signal_side()
        features = QuadraticFeatures(np.sqrt(d) * data.X)
        scale = self.kernel.low[2] / np.sqrt(2)
        left = data.y - self._mean(data) - scale * signal.mean * features.forward(np.eye(d))
        linear = np.linalg.lstsq(data.X, left, rcond=None)[0] if n > d else np.zeros(d)
        operator = PackedFeatures(features)
        unit = operator.unit(signal.variance)
        y = (left - data.X @ linear)[:, None] / (scale * unit)
        noise = (float(self.noise) + self.kernel.total) / (scale * unit) ** 2
        denoiser = EigenvalueDenoiser(signal, operator, by_norm=False)
        return Instance(
            operator,
            GaussianLabels(y, noise, scattered=True),
            denoiser,
            start=lambda rng: np.zeros((operator.dimension, 1)),
            estimate=lambda w: (denoiser.matrix(w), linear),
        )

    def scores(self, estimate: Any, data: Data, rng: np.random.Generator) -> dict[str, float]:
        S, linear = estimate
        d, p = data.truth.shape
        X = rng.standard_normal((_TEST, d)) / np.sqrt(d)
        y = self.labels(X, data.truth)
        quadratic = QuadraticFeatures(np.sqrt(d) * X).forward(S)
        predicted = self._mean(data) + X @ linear + self.kernel.low[2] / np.sqrt(2) * quadratic
        truth, mean = data.truth @ data.truth.T / np.sqrt(p * d), self.signal_side().mean * np.eye(d)
        cosine = float(np.corrcoef(y, predicted)[0, 1])
        return {
            "generalization_error": float(np.mean((y - predicted) ** 2)),
            "cosine": cosine,
            "squared_overlap": cosine**2,
            "overlap": float(np.sum((S - mean) * (truth - mean)) / d),
            "overlap_weights": 0.0,
            "estimation_error": float(np.sum((S - truth) ** 2) / d),
        }

    def _mean(self, data: Data) -> float:
        return np.sqrt(data.truth.shape[1]) * self.kernel.low[0]


@functools.lru_cache(maxsize=64)
def signal_of(rho: float) -> EigenvalueSignal:
    """What is known of S: its eigenvalues are those of a Wishart matrix."""
    return EigenvalueSignal(MarchenkoPastur(rho))


@float64
def _check_kernel(activation: Target) -> None:
    """Refuse an activation without a quadratic part."""
    check_admissible(activation)
    kernel = kernels_of(activation).fine
    if kernel.quadratic <= _ZERO**2 * (kernel.linear + kernel.quadratic + kernel.total):
        takes = (
            "a function with a quadratic part, E[sigma(z) (z^2 - 1)] != 0; without one neurons are learned one by one "
            "from n of the order of d times their number, which is what WideTeacher solves"
        )
        raise bad_parameter("activation", str(activation), takes)
