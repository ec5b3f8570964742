r"""Spikes: an unknown vector in a noisy symmetric matrix, a noisy symmetric tensor, or the covariance of samples.

Every one is a scalar problem for each entry of the unknown x* (unit variance, any separable prior): a field
$B = \gamma x^* + \sqrt\gamma\, z$ whose precision grows with the overlap q of the posterior mean,

    matrix      gamma = snr^2 q
    tensor      gamma = q^(order - 1) / noise
    covariance  gamma = alpha snr overlap_u(snr q),   u the latent variable of a sample

so that the curve of fixed points is explicit, q = overlap(gamma) [lesieur2017statistical, lelarge2019fundamental].
The mutual information of the unknown and the data is, for each entry and with Psi the primitive of the output side,

    i = gain (Psi(1) - Psi(q)) + I_x(gamma) - gamma (1 - q) / 2,        gain = snr^2, 1 / noise or alpha,

I_x that of an entry and its field: its stationary points in q are the fixed points, and the lowest is Bayes-optimal.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.checks import check_count, real_number
from solvable.core.memory import check_memory
from solvable.core.model import Learner
from solvable.core.ranges import UNIT, Range
from solvable.core.results import Prediction
from solvable.engine.amp import AMPReport, uninformed_start
from solvable.engine.cosines import cosines_of
from solvable.engine.erm import ERM
from solvable.engine.interactions import Interaction, SymmetricMatrix, SymmetricTensor
from solvable.engine.operators import Dense
from solvable.engine.outputs.explicit import ExplicitOutput, LatentOutput, SpikeOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.solvers.base import FixedPoints
from solvable.engine.two_sided import Instance, TwoSided
from solvable.models.lowrank.principal import Component, of_rows, of_symmetric, of_unfolding
from solvable.priors import Prior, as_prior

_DEFINITIONS = {
    "overlap": "of a posterior mean x_hat.x*/d = |x_hat|^2/d, up to the sign where the data leave it open",
    "cosine": "x_hat.x* / (|x_hat| |x*|), up to the same sign",
    "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
    "estimation_error": "|x_hat - x*|^2 / d, up to the same sign",
}
LATENT = "latent_squared_overlap"
"""The metric that only samples with latent variables have."""
_LARGEST_ORDER = 30
_STRONGEST = 1e50
_STRENGTH = "a number from 0 to 1e50"
_OF_MACHINES = {
    "squared_norm": "|W|^2/d of a Boltzmann machine, the mean over its hidden units; with several of them the cosine "
    "is that of w* with the span of their weights",
    "log_likelihood": "that of all samples under a Boltzmann machine, relative to zero weights, over d",
    "replicon": "stability of the maximum of a likelihood: the theory describes it where this is below 1",
}


class SpikeData(NamedTuple):
    """The spiked matrix or tensor `Y`, and the spike `truth` (d x 1), for scoring."""

    Y: np.ndarray
    truth: np.ndarray


class SampleData(NamedTuple):
    """Samples `X` (n x d), entries of variance 1/d without the spike; `truth` (d x 1) and `latent` (n) for scoring."""

    X: np.ndarray
    truth: np.ndarray
    latent: np.ndarray


class Spiked(TwoSided):
    """The base of models in which a vector of independent entries is hidden in noise."""

    without = (ERM,)
    definitions: ClassVar[dict[str, str]] = _DEFINITIONS

    prior: eqx.AbstractVar[Prior]

    @abc.abstractmethod
    def output_side(self) -> ExplicitOutput: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    def signal_side(self) -> SeparableSignal:
        return SeparableSignal(self.prior)

    def hides_sign(self) -> bool:
        return True

    @abc.abstractmethod
    def principal(self, data: Any, rng: np.random.Generator) -> Component:
        """The principal component of the data, as a unit vector."""

    @abc.abstractmethod
    def outlier(self, **axes: Any) -> Outlier | None:
        """Its eigenvalue and its squared overlap with the spike at infinite size, and the bulk's end; None if it never
        carries anything."""

    def prediction(self, points: FixedPoints) -> Prediction:
        """The metrics at fixed points, and the mutual information of the unknown and the data, for each entry."""
        found = super().prediction(points)
        if points.gain is None:
            return found
        information = {"mutual_information": self._mutual_information(points, points.gain)}
        return dataclasses.replace(found, order_parameters=found.order_parameters | information)

    def _mutual_information(self, points: FixedPoints, gain: np.ndarray) -> np.ndarray:
        q, V, qhat = (part[:, 0, 0] for part in (points.overlap, points.variance, points.field))
        known = np.isfinite(qhat)
        safe = np.where(known, qhat, 0.0)
        with np.errstate(divide="ignore"):
            labels = gain * self.output_side().missing_entropy(np.log(q) - np.log(V))
        return labels + np.where(known, self.prior.information(safe) - safe * V / 2, self.prior.entropy)


class SelfInteracting(Spiked):
    """A spike seen through an interaction of itself; no axis, the strength of the noise is a field."""

    axes = ()

    @abc.abstractmethod
    def output_side(self) -> SpikeOutput: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    @abc.abstractmethod
    def interaction(self, data: SpikeData) -> Interaction:
        """The data as the map from an estimate to the field of each entry."""

    def instance(self, data: SpikeData) -> Instance:
        operator = self.interaction(data)
        return Instance(
            operator,
            self.output_side().denoiser(operator),
            self.signal_side().denoiser(operator),
            spectral=lambda rng: self._spectral(data, rng),
            details=_self_overlap,
        )

    def spectral_start(self, data: SpikeData, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        r"""$\hat x = \sqrt q\, v$, and the same as its Onsager term; noise, which needs none, where v carries nothing.

        With $Y v = (\lambda + 1/\lambda) v$ the field is then $B = \lambda Y \hat x - \hat x = \lambda^2 \hat x$,
        whose signal and noise are those of a posterior mean: an eigenvector is a fixed point of linear message passing
        [montanari2021estimation].
        """
        if self.output_side().order > 2:
            return super().spectral_start(data, rng)
        start = uninformed_start(rng, len(data.truth), 1)
        return self._spectral(data, rng) or (start, np.zeros_like(start))

    def _spectral(self, data: SpikeData, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
        outlier = self.outlier()
        q = 0.0 if outlier is None else float(outlier.overlap)
        if q == 0:
            return None
        found = self.principal(data, rng)
        start = math.sqrt(q * len(data.truth)) * found.vector[:, None]
        return (start, start) if found.converged else None


class SpikedMatrix(SelfInteracting):
    r"""A spike in a symmetric matrix of noise, $Y = \frac{\lambda}{d} x^* x^{*T} + W/\sqrt d$, $\lambda$ = `snr`.

    W is symmetric with independent N(0, 1) entries (variance 2 on the diagonal), and $|x^*|^2 = d$.

    - `snr`: the strength of the spike; the largest eigenvalue leaves the bulk above 1.
    - `prior`: the law of an entry of x*.
    """

    scaling: ClassVar[str] = "a d x d matrix"
    references = ("deshpande2014information", "barbier2016mutual", "lelarge2019fundamental")
    thresholds_in: ClassVar[str | None] = "snr"

    snr: float
    prior: Prior

    def __init__(self, snr: float, prior: str | Prior = "gaussian"):
        self.snr = real_number("snr", snr, _STRENGTH, lambda x: 0 <= x <= _STRONGEST)
        self.prior = as_prior(prior)

    def output_side(self) -> SpikeOutput:
        return SpikeOutput(2)

    def gain(self, **axes: Any) -> Any:
        return float(self.snr) ** 2

    def at_gain(self, gain: float) -> float:
        return math.sqrt(gain)

    def principal(self, data: SpikeData, rng: np.random.Generator) -> Component:
        return of_symmetric(data.Y, rng)

    def outlier(self, **axes: Any) -> Outlier:
        return matrix_outlier(float(self.snr))

    def interaction(self, data: SpikeData) -> SymmetricMatrix:
        return SymmetricMatrix(data.Y, float(self.snr))

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> SpikeData:
        """A spike with |x*|^2 = d and its matrix."""
        check_memory(16.0 * d * d, f"the matrix, {d} x {d} numbers,", "d", d)
        truth = self.prior.sample(rng, d)
        noise = rng.standard_normal((d, d))
        Y = (noise + noise.T) / np.sqrt(2 * d)
        Y += (float(self.snr) / d) * np.outer(truth, truth)
        return SpikeData(Y, truth[:, None])


class SpikedTensor(SelfInteracting):
    r"""A spike in a symmetric tensor of noise, $Y = \sqrt{(k-1)!}\, d^{-(k-1)/2}\, x^{*\otimes k} + \sqrt\Delta\, W$.

    W is symmetric with N(0, 1) entries, independent up to symmetry, and $|x^*|^2 = d$.

    - `order`: the order k of the tensor, at least 2; a matrix has $\Delta = 1/snr^2$.
    - `noise`: the variance $\Delta$ of the noise of an entry, positive: without noise the spike can be read off.
    - `prior`: the law of an entry of x*.
    """

    scaling: ClassVar[str] = "a tensor of d^order entries"
    references = ("montanari2014statistical", "lesieur2017statistical")
    thresholds_in: ClassVar[str | None] = "noise"

    order: int = eqx.field(static=True)
    noise: float
    prior: Prior

    def __init__(self, order: int, noise: float, prior: str | Prior = "gaussian"):
        self.order = check_count("order", order, least=2, most=_LARGEST_ORDER)
        self.noise = real_number("noise", noise, "a variance: a finite number above 0", lambda x: x > 0)
        self.prior = as_prior(prior)

    def output_side(self) -> SpikeOutput:
        return SpikeOutput(int(self.order))

    def gain(self, **axes: Any) -> Any:
        return 1 / float(self.noise)

    def at_gain(self, gain: float) -> float:
        return 1 / gain if gain > 0 else math.inf

    def principal(self, data: SpikeData, rng: np.random.Generator) -> Component:
        """Of a matrix, in units of its noise; of the unfolding of a tensor."""
        if self.order > 2:
            return of_unfolding(data.Y, rng)
        return of_symmetric(data.Y / math.sqrt(float(self.noise) * len(data.Y)), rng)

    def outlier(self, **axes: Any) -> Outlier | None:
        r"""Of a matrix. From order 3 on the rows of the unfolding are so long that their noise hides the spike, unless
        its variance falls with d, below $(k-1)!\, d^{-(k-2)/2}$ [montanari2014statistical]."""
        return matrix_outlier(1 / math.sqrt(float(self.noise))) if self.order == 2 else None

    def hides_sign(self) -> bool:
        return int(self.order) % 2 == 0

    def interaction(self, data: SpikeData) -> SymmetricTensor:
        return SymmetricTensor(data.Y, float(self.noise))

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> SpikeData:
        """A spike with |x*|^2 = d and its tensor."""
        k = int(self.order)
        check_memory(24.0 * float(d) ** k, f"the tensor, {d}^{k} numbers,", "d", d)
        truth = self.prior.sample(rng, d)
        Y = symmetric_noise(rng, d, k)
        Y *= math.sqrt(float(self.noise))
        Y += math.sqrt(math.factorial(k - 1)) * d ** (-(k - 1) / 2) * outer_power(truth, k)
        return SpikeData(Y, truth[:, None])


class SpikedCovariance(Spiked):
    r"""Samples whose covariance has a spike, $x_\mu = \sqrt{\theta/d}\, u_\mu w^* + z_\mu$, from n = alpha d of them.

    z has independent N(0, 1) entries, $|w^*|^2 = d$, and each sample has a latent u of unit variance.

    - `snr`: $\theta$, by which the largest eigenvalue of the covariance exceeds the others.
    - `prior`: the law of an entry of w*.
    - `latent`: the law of u, `"rademacher"` (two clusters), `"gaussian"`, or any other prior.

    The samples `X` of a data set are divided by $\sqrt d$, as those of every other model.
    """

    scaling: ClassVar[str] = "n = alpha d"
    references = ("baik2005phase", "lesieur2017statistical")
    definitions: ClassVar[dict[str, str]] = (
        _DEFINITIONS | _OF_MACHINES | {LATENT: "squared cosine between the latent variables and their estimates"}
    )

    snr: float
    prior: Prior
    latent: Prior

    def __init__(self, snr: float, prior: str | Prior = "gaussian", latent: str | Prior = "rademacher"):
        self.snr = real_number("snr", snr, _STRENGTH, lambda x: 0 <= x <= _STRONGEST)
        self.prior = as_prior(prior)
        self.latent = as_prior(latent, name="latent")

    def output_side(self) -> LatentOutput:
        return LatentOutput(self.latent, float(self.snr))

    def prediction(self, points: FixedPoints) -> Prediction:
        """With the overlap of the posterior means of the latent variables, whose precision is snr q."""
        found = super().prediction(points)
        q, error = found.metrics["overlap"], found.uncertainty["overlap"]
        latent, moved = self.latent_overlap(np.stack([q, q + error]))
        spread = np.maximum(np.abs(moved - latent), np.finfo(float).eps * latent)
        return dataclasses.replace(
            found,
            metrics=found.metrics | {LATENT: latent},
            uncertainty=found.uncertainty | {LATENT: spread},
        )

    def latent_overlap(self, q: np.ndarray) -> np.ndarray:
        """Of the posterior mean of a latent variable, given an estimate of w* of overlap q."""
        return self.latent.overlap(float(self.snr) * np.minimum(q, 1.0))

    def ranges(self, learner: Learner) -> dict[str, Range]:
        return super().ranges(learner) | {LATENT: UNIT}

    def instance(self, data: SampleData) -> Instance:
        operator, output = Dense(data.X), self.output_side().denoiser()
        return Instance(
            operator,
            output,
            self.signal_side().denoiser(operator),
            spectral=lambda rng: self._spectral(data, rng),
            details=_self_overlap,
            metrics=lambda report: self.latent_scores(output.latent(report.Omega), data),
        )

    def latent_scores(self, estimate: np.ndarray, data: SampleData) -> dict[str, float]:
        """The metric of an estimate (n, 1) of the latent variables."""
        return {LATENT: cosines_of(estimate, data.latent[:, None])["squared_overlap"]}

    def principal(self, data: SampleData, rng: np.random.Generator) -> Component:
        """Of the covariance, in units of its noise."""
        found, d = of_rows(data.X, rng), data.X.shape[1]
        return found._replace(eigenvalue=d * found.eigenvalue, second=d * found.second)

    def outlier(self, **axes: Any) -> Outlier:
        r"""$(1 + \theta)(1 + \gamma/\theta)$ with $\gamma = 1/\alpha$, of $X^T X/n$ in units of its noise, and
        $(1 - \gamma/\theta^2)/(1 + \gamma/\theta)$."""
        theta, alpha = float(self.snr), np.asarray(axes["alpha"], float)
        excess = alpha * theta**2 - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            edge = (1 + 1 / np.sqrt(alpha)) ** 2
            location = np.where(excess > 0, (1 + theta) * (1 + 1 / (alpha * theta)), edge)
            return Outlier(location, np.where(excess > 0, excess / (alpha * theta**2 + theta), 0.0), edge)

    def latent_component(self, alpha: np.ndarray) -> np.ndarray:
        r"""The squared overlap $(1 - \gamma/\theta^2)/(1 + 1/\theta)$ of the principal component of X X^T with u."""
        theta = float(self.snr)
        signal = alpha * theta**2
        return np.maximum(signal - 1, 0.0) / np.maximum(signal + alpha * theta, 1.0)

    def spectral_start(self, data: SampleData, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        r"""$\hat w = \sqrt q\, v$ with its Onsager term $X\hat w\, c/(1 + c)$, $c = \theta (1 - q)/(1 + \theta q)$.

        An eigenvector is a fixed point of message passing for Gaussian u and w, where $g = \theta\,\Omega/(1 +
        \theta q)$, the response is 1 - q, and so $X\hat w - \Omega = c\,\Omega$ [montanari2021estimation]. Where it
        carries nothing the start is noise, which needs no term.
        """
        start = uninformed_start(rng, len(data.truth), 1)
        return self._spectral(data, rng) or (start, np.zeros((len(data.X), 1)))

    def _spectral(self, data: SampleData, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray] | None:
        n, d = data.X.shape
        q, theta = float(self.outlier(alpha=n / d).overlap), float(self.snr)
        if q == 0:
            return None
        found = self.principal(data, rng)
        start, c = math.sqrt(q * d) * found.vector[:, None], theta * (1 - q) / (1 + theta * q)
        return (start, c / (1 + c) * (data.X @ start)) if found.converged else None

    def sample(self, rng: np.random.Generator, d: int, **axes: float) -> SampleData:
        """A spike with |w*|^2 = d, and n = round(alpha d) samples (at least one) with latent variables."""
        count = max(1.0, axes["alpha"] * d)
        check_memory(8.0 * count * d, f"the samples, {count:.4g} x {d} numbers,", "d", d)
        n = round(count)
        truth, latent = self.prior.sample(rng, d), self.latent.sample(rng, n)
        X = rng.standard_normal((n, d))
        X += math.sqrt(float(self.snr) / d) * np.outer(latent, truth)
        X /= np.sqrt(d)
        return SampleData(X, truth[:, None], latent)


class Outlier(NamedTuple):
    """The `location` of the largest eigenvalue, the squared `overlap` of its eigenvector, the `edge` of the bulk."""

    location: Any
    overlap: Any
    edge: Any


def matrix_outlier(snr: float) -> Outlier:
    r"""$\lambda + 1/\lambda$ and $1 - 1/\lambda^2$ above $\lambda = 1$ [baik2005phase]."""
    return Outlier(snr + 1 / snr, (1 - 1 / snr) * (1 + 1 / snr), 2.0) if snr > 1 else Outlier(2.0, 0.0, 2.0)


def symmetric_noise(rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    """A symmetric tensor of order k whose entries with different indices are independent N(0, 1)."""
    total = rng.standard_normal((d,) * k)
    # Over all permutations, as a product of sums over transpositions: each index is exchanged with those before it.
    for last in range(1, k):
        total = sum((total.swapaxes(j, last) for j in range(last)), total)
    return total / math.sqrt(math.factorial(k))


def _self_overlap(report: AMPReport) -> dict[str, Any]:
    """What the overlap of a posterior mean should be equal to."""
    return {"self_overlap": float(np.mean(report.estimate**2))}


def outer_power(x: np.ndarray, k: int) -> np.ndarray:
    """The tensor of order k of all products of entries of x."""
    power = x
    for _ in range(k - 1):
        power = power[..., None] * x
    return power
