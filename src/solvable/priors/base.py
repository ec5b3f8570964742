"""Separable priors of the teacher's weights: zero mean, unit variance, and the denoisers they give."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from scipy.special import expit

from solvable.core.checks import real_number
from solvable.core.errors import NotSolvable
from solvable.numerics.gaussian import gauss_legendre


class Prior(eqx.Module):
    """The law P of one weight w, E w = 0 and E w^2 = 1, and its scalar denoising problem.

    The posterior of w given the field B at precision A has density proportional to P(w) exp(B w - A w^2 / 2). In the
    state evolution B = qhat w + sqrt(qhat) x with x ~ N(0, 1) and A = qhat; then

        overlap(qhat) = E[E[w|B]^2] = 1 - mmse(qhat),      potential(qhat) = E log Z(B, qhat),
        d potential / d qhat = overlap / 2.

    `dimension` is the information dimension of P: mmse ~ dimension / qhat as qhat grows.
    """

    entropy: ClassVar[float] = float("nan")
    """The Shannon entropy of a discrete prior: potential - qhat * overlap / 2 tends to minus this."""

    @property
    @abc.abstractmethod
    def dimension(self) -> float:
        """The information dimension of P."""

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw weights, normalised so that their squares sum to `size` exactly."""

    @abc.abstractmethod
    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of w, elementwise."""

    @abc.abstractmethod
    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        """log of the integral of P(w) exp(B w - A w^2 / 2), elementwise."""

    @abc.abstractmethod
    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        """The minimal mean squared error of the scalar problem, with small values kept to relative precision."""

    @abc.abstractmethod
    def potential(self, qhat: np.ndarray) -> np.ndarray:
        """E log Z of the scalar problem."""

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        """P as a mixture of Gaussians, (weight, mean, variance) each, for penalties that do not know P."""
        raise NotSolvable(f"the prior {self} is not known as a mixture of Gaussians: define `mixture` on it.")

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        """E[E[w|B]^2] = 1 - mmse."""
        return 1 - self.mmse(qhat)

    def moments(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """overlap and mmse, both to relative precision; at once where that is cheaper."""
        return self.overlap(qhat), self.mmse(qhat)

    def information(self, qhat: np.ndarray) -> np.ndarray:
        """The mutual information of w and B in nats, I(qhat) = qhat / 2 - potential(qhat)."""
        return np.asarray(qhat, float) / 2 - self.potential(qhat)


def normalised(weights: np.ndarray) -> np.ndarray:
    """Rescale so that the squares sum to the number of weights: finite-size scatter of the norm is not the model's."""
    norm = np.sqrt(np.mean(weights**2))
    return weights / norm if norm > 0 else weights


class Gaussian(Prior):
    """w ~ N(0, 1): posterior mean B / (1 + A), overlap qhat / (1 + qhat)."""

    @property
    def dimension(self) -> float:
        return 1.0

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return normalised(rng.standard_normal(size))

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        return ((1.0, 0.0, 1.0),)

    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return B / (1 + A), np.full_like(B, 1 / (1 + A))

    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        return B**2 / (2 * (1 + A)) - np.log1p(A) / 2

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.asarray(qhat, float))

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        return qhat / (1 + np.asarray(qhat, float))

    def moments(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        whole = 1 + np.asarray(qhat, float)
        return qhat / whole, 1 / whole

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        return (qhat - np.log1p(qhat)) / 2

    def information(self, qhat: np.ndarray) -> np.ndarray:
        return np.log1p(np.asarray(qhat, float)) / 2


class Rademacher(Prior):
    """w = +-1 with equal probability: posterior mean tanh B.

    With a = sqrt(qhat), mmse = exp(-qhat/2) E[1 / cosh(a t)], t ~ N(0, 1): exact, and free of cancellation.
    """

    entropy: ClassVar[float] = float(np.log(2))

    @property
    def dimension(self) -> float:
        return 0.0

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return rng.choice(np.array([-1.0, 1.0]), size)

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        return ((0.5, 1.0, 0.0), (0.5, -1.0, 0.0))

    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = np.tanh(B)
        return mean, 1 - mean**2

    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        return _log_cosh(B) - A / 2

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        return _binary_mmse(np.asarray(qhat, float))

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        return self.moments(qhat)[0]

    def moments(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # E tanh(qhat + sqrt(qhat) x)^2 where qhat is small, which keeps its relative precision.
        qhat = np.asarray(qhat, float)
        mmse = _binary_mmse(qhat)
        overlap = np.asarray(1 - mmse)
        small = qhat < 0.1
        few = qhat[small][:, None]
        overlap[small] = np.tanh(few + np.sqrt(few) * _X) ** 2 @ _X_WEIGHT
        return overlap, mmse

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        qhat = np.asarray(qhat, float)
        return qhat / 2 - _binary_information(qhat)

    def information(self, qhat: np.ndarray) -> np.ndarray:
        return _binary_information(np.asarray(qhat, float))


_X = np.linspace(-8.0, 8.0, 321)
_X_WEIGHT = np.exp(-(_X**2) / 2) / np.exp(-(_X**2) / 2).sum()
_TAU_STEP = 0.1
_TAU = _TAU_STEP * np.arange(-390, 391)


def _binary_mmse(qhat: np.ndarray) -> np.ndarray:
    t, weight, a = _scaled_nodes(qhat)
    with np.errstate(over="ignore"):
        return np.exp(-qhat / 2) * np.sum(weight / np.cosh(a * t), -1)


def _binary_information(qhat: np.ndarray) -> np.ndarray:
    # E log cosh(qhat + a x) = qhat + E log((1 + exp(-2 (qhat + a x))) / 2): x shifted to where the last term lives.
    t, weight, a = _scaled_nodes(qhat)
    with np.errstate(over="ignore"):
        tail = np.exp(a * t - qhat[..., None] / 2) * np.logaddexp(0.0, -2 * a * t)
    tail = np.where(np.isfinite(tail), tail, 0.0)
    return np.log(2) - np.sum(weight * tail, -1)


def _log_cosh(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, -x) - np.log(2)


def _scaled_nodes(qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes t and weights for E f(t), t ~ N(0, 1), resolving functions of a t, a = sqrt(qhat), with width 1/a."""
    a = np.sqrt(qhat)[..., None]
    scale = np.maximum(1.0, a)
    t = _TAU / scale
    return t, _TAU_STEP / scale * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi), a


_TINY = 1e-300


def _checked_share(rho: Any) -> Any:
    return real_number("rho", rho, "in (0, 1]", lambda x: 0 < x <= 1)


class GaussBernoulli(Prior):
    """w = 0 with probability 1 - rho, otherwise w ~ N(0, 1/rho).

    With slab variance tau = 1/rho the slab's posterior has variance v = tau / (1 + A tau), mean v B, and log odds
    log(rho / (1 - rho)) - log(1 + A tau) / 2 + v B^2 / 2 against the spike.
    """

    rho: float = eqx.field(converter=_checked_share)

    @property
    def dimension(self) -> float:
        return self.rho

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        present = rng.random(size) < self.rho
        # A small system can draw no weight at all; it gets one, since a teacher of norm zero has nothing to teach.
        present[rng.integers(size)] |= not present.any()
        return normalised(rng.standard_normal(size) * present)

    def mixture(self) -> tuple[tuple[float, float, float], ...]:
        return ((1 - self.rho, 0.0, 0.0), (self.rho, 0.0, 1 / self.rho))

    def denoise(self, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _sparse_posterior(self.rho, B, A)

    def log_partition(self, B: np.ndarray, A: float | np.ndarray) -> np.ndarray:
        rho = self.rho
        _, _, log_odds = _slab(rho, B, A)
        with np.errstate(divide="ignore"):
            return np.where(rho < 1, np.logaddexp(0.0, log_odds) + np.log1p(-min(rho, 1 - 1e-16)), log_odds)

    def mmse(self, qhat: np.ndarray) -> np.ndarray:
        return self.moments(qhat)[1]

    def overlap(self, qhat: np.ndarray) -> np.ndarray:
        return self.moments(qhat)[0]

    def moments(self, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rho = self.rho
        B, weight, A = _sparse_fields(rho, np.asarray(qhat, float))
        mean, variance = _sparse_posterior(rho, B, A)
        return np.sum(weight * mean**2, -1), np.sum(weight * variance, -1)

    def potential(self, qhat: np.ndarray) -> np.ndarray:
        B, weight, A = _sparse_fields(self.rho, np.asarray(qhat, float))
        return np.sum(weight * self.log_partition(B, A), -1)

    def information(self, qhat: np.ndarray) -> np.ndarray:
        # h(B) - h(noise) where the terms of qhat / 2 - potential, of order qhat, would cancel.
        qhat = np.asarray(qhat, float)
        much = np.maximum(qhat, 1.0)
        B, weight, _ = _sparse_fields(self.rho, much)
        entropy = -np.sum(weight * np.log(np.maximum(_sparse_density(self.rho, B, much[..., None]), _TINY)), -1)
        known = entropy - np.log(2 * np.pi * np.e * much) / 2
        return np.where(qhat < 1, super().information(np.minimum(qhat, 1.0)), known)


def _sparse_posterior(rho: Any, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    slab, v, _ = _slab(rho, B, A)
    mean = slab * v * B
    return mean, slab * v + slab * (1 - slab) * (v * B) ** 2


def _slab(rho: Any, B: np.ndarray, A: float | np.ndarray) -> tuple[np.ndarray, Any, np.ndarray]:
    """Posterior probability of the slab, its variance, and its log odds (log partition if rho = 1)."""
    tau = 1 / rho
    v = tau / (1 + A * tau)
    log_odds = v * B**2 / 2 - np.log1p(A * tau) / 2
    if rho == 1:
        return np.ones_like(B), v, log_odds
    log_odds = log_odds + np.log(rho / (1 - rho))
    return expit(log_odds), v, log_odds


def _sparse_fields(rho: Any, qhat: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights over the law of B = qhat w + sqrt(qhat) x, a mixture of two centred Gaussians.

    The law is even; panels at the scale of the spike resolve the switch between spike and slab, which is narrow
    compared to the slab when qhat is large.
    """
    spike = np.sqrt(qhat)[..., None]
    slab = np.sqrt(qhat**2 / rho + qhat)[..., None]
    t, w = gauss_legendre(64)
    ends = [0 * spike, 3 * spike, 9 * spike, np.maximum(9 * spike, 3 * slab), np.maximum(9 * spike, 9 * slab)]
    B = np.concatenate([a + (b - a) * t for a, b in zip(ends[:-1], ends[1:], strict=True)], -1)
    width = np.concatenate([(b - a) * w for a, b in zip(ends[:-1], ends[1:], strict=True)], -1)
    density = _sparse_density(rho, B, qhat[..., None])
    weight = 2 * width * np.where(spike > 0, density, 0.0) + np.where(spike > 0, 0.0, 1 / B.shape[-1])
    return B, weight, qhat[..., None]


def _sparse_density(rho: Any, B: np.ndarray, qhat: np.ndarray) -> np.ndarray:
    """The density of B: a spike of variance qhat, a slab of qhat^2 / rho + qhat."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (1 - rho) * _normal(B, np.sqrt(qhat)) + rho * _normal(B, np.sqrt(qhat**2 / rho + qhat))


def _normal(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.exp(-((x / scale) ** 2) / 2) / (scale * np.sqrt(2 * np.pi))
