r"""Spikes: an unknown vector in a noisy symmetric matrix, a noisy symmetric tensor, or the covariance of samples.

Every one is a scalar problem for each entry of the unknown x* (unit variance, any separable prior): a field
$B = \gamma x^* + \sqrt\gamma\, z$ whose precision grows with the overlap q of the posterior mean,

    matrix      gamma = snr^2 q
    tensor      gamma = q^(order - 1) / noise
    covariance  gamma = alpha snr overlap_u(snr q),   u the latent variable of a sample

so that the curve of fixed points is explicit, q = overlap(gamma) [lesieur2017statistical].
"""

from __future__ import annotations

import abc
import itertools
import math
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from solvable.core.checks import check_count, real_number
from solvable.core.errors import checked_variance
from solvable.core.memory import check_memory
from solvable.engine.erm import ERM
from solvable.engine.interactions import Interaction, SymmetricMatrix, SymmetricTensor
from solvable.engine.operators import Dense
from solvable.engine.outputs.explicit import ExplicitOutput, LatentOutput, SpikeOutput
from solvable.engine.signals.separable import SeparableSignal
from solvable.engine.two_sided import Instance, TwoSided
from solvable.priors import Prior, as_prior

_DEFINITIONS = {
    "overlap": "of a posterior mean x_hat.x*/d = |x_hat|^2/d, up to the sign where the data leave it open",
    "cosine": "x_hat.x* / (|x_hat| |x*|), up to the same sign",
    "squared_overlap": "square of the cosine; the largest that any learner can have is that of BayesOptimal",
    "estimation_error": "|x_hat - x*|^2 / d, up to the same sign",
}
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
    def output(self) -> ExplicitOutput: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    def signal(self) -> SeparableSignal:
        return SeparableSignal(self.prior)

    def hides_sign(self) -> bool:
        return True


class SelfInteracting(Spiked):
    """A spike seen through an interaction of itself; no axis, the strength of the noise is a field."""

    axes = ()

    @abc.abstractmethod
    def output(self) -> SpikeOutput: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    @abc.abstractmethod
    def interaction(self, data: SpikeData) -> Interaction:
        """The data as the map from an estimate to the field of each entry."""

    def instance(self, data: SpikeData) -> Instance:
        operator = self.interaction(data)
        return Instance(operator, self.output().denoiser(operator), self.signal().denoiser(operator))


class SpikedMatrix(SelfInteracting):
    r"""A spike in a symmetric matrix of noise, $Y = \frac{\lambda}{d} x^* x^{*T} + W/\sqrt d$, $\lambda$ = `snr`.

    W is symmetric with independent N(0, 1) entries (variance 2 on the diagonal), and $|x^*|^2 = d$.

    - `snr`: the strength of the spike; the largest eigenvalue leaves the bulk above 1.
    - `prior`: the law of an entry of x*.
    """

    scaling: ClassVar[str] = "a d x d matrix"
    references = ("lesieur2017statistical",)

    snr: float
    prior: Prior

    def __init__(self, snr: float, prior: str | Prior = "gaussian"):
        self.snr = real_number("snr", snr, "finite and not negative", lambda x: x >= 0)
        self.prior = as_prior(prior)

    def output(self) -> SpikeOutput:
        return SpikeOutput(2)

    def gain(self, **axes: Any) -> Any:
        return np.atleast_1d(np.asarray(self.snr, float) ** 2)

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
    - `noise`: the variance $\Delta$ of the noise of an entry.
    - `prior`: the law of an entry of x*.
    """

    scaling: ClassVar[str] = "a tensor of d^order entries"
    references = ("lesieur2017statistical",)

    order: int = eqx.field(static=True)
    noise: float
    prior: Prior

    def __init__(self, order: int, noise: float, prior: str | Prior = "gaussian"):
        self.order = check_count("order", order, least=2, most=12)
        self.noise = checked_variance(noise)
        self.prior = as_prior(prior)

    def output(self) -> SpikeOutput:
        return SpikeOutput(int(self.order))

    def gain(self, **axes: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.atleast_1d(1 / np.asarray(self.noise, float))

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
    references = ("lesieur2017statistical",)
    definitions: ClassVar[dict[str, str]] = _DEFINITIONS | _OF_MACHINES

    snr: float
    prior: Prior
    latent: Prior

    def __init__(self, snr: float, prior: str | Prior = "gaussian", latent: str | Prior = "rademacher"):
        self.snr = real_number("snr", snr, "finite and not negative", lambda x: x >= 0)
        self.prior = as_prior(prior)
        self.latent = as_prior(latent, name="latent")

    def output(self) -> LatentOutput:
        return LatentOutput(self.latent, float(self.snr))

    def instance(self, data: SampleData) -> Instance:
        operator = Dense(data.X)
        return Instance(operator, self.output().denoiser(), self.signal().denoiser(operator))

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


def symmetric_noise(rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    """A symmetric tensor of order k whose entries with different indices are independent N(0, 1)."""
    noise = rng.standard_normal((d,) * k)
    total = np.zeros((d,) * k)
    for order in itertools.permutations(range(k)):
        total += noise.transpose(order)
    total /= math.sqrt(math.factorial(k))
    return total


def outer_power(x: np.ndarray, k: int) -> np.ndarray:
    """The tensor of order k of all products of entries of x."""
    power = x
    for _ in range(k - 1):
        power = power[..., None] * x
    return power
