"""Closed forms of one projection: they are what the generic channels must agree with, and cheaper.

Linear labels y = z + sqrt(noise) xi; phase retrieval, y = |z| and y = z^2, which know z up to its sign; and binary
labels with noise before the sign, y = sign(z + sqrt(noise) xi).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import scipy.special

from solvable.channels.contamination import Component
from solvable.channels.scalar import PosteriorKernel, Rows, ScalarChannel, ScalarInformation, ScalarPosterior, pad_rows
from solvable.core.errors import checked_variance
from solvable.numerics.gaussian import ladder_edges, normal_density, panels, standard_edges
from solvable.targets.landscape import landscape
from solvable.targets.target import Target


class ClosedScalar(ScalarChannel):
    """A channel of one projection with a closed-form posterior, whose observation is the label itself."""

    formula: str

    def __init__(self):
        self.landscape = landscape(Target(self.formula))

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        edges = ladder_edges(self.landscape.edges, 8.5) if narrow else standard_edges(self.landscape.edges, 8.5)
        z, weight = panels(edges, round((8 if narrow else 24) * fineness), graded=not narrow)
        y = self.landscape.target.numpy(z[:, None])
        return pad_rows(Rows(z, weight * normal_density(z), y))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(noise={self.noise:g})" if self.noise else f"{type(self).__name__}()"


class GaussianPosterior(PosteriorKernel):
    """y = z + sqrt(D) xi: mean omega + V (y - omega) / (V + D), variance V D / (V + D)."""

    noise: Any

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        total = V + self.noise
        residual = observation - omega
        log_Z = -(residual**2) / (2 * total) - xp.log(2 * xp.pi * total) / 2
        return ScalarPosterior(
            log_Z, omega + (V / total) * residual, xp.broadcast_to(V * self.noise / total, omega.shape)
        )


class Linear(ClosedScalar):
    """y = z + sqrt(noise) xi, for which I = 1 / (V + noise)."""

    formula = "z"
    exponent = 1.0

    def __init__(self, noise: float = 0.0):
        super().__init__()
        self.noise = checked_variance(noise)
        self.kernel = GaussianPosterior(np.float64(self.noise))

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        rows = super().make_rows(fineness, narrow)
        if self.noise == 0:
            return rows
        # The law of the label is needed only at omega = 0, where y ~ N(0, 1 + noise) stands for (z, y).
        return rows._replace(observation=rows.observation * np.sqrt(1 + self.noise))

    @property
    def deepest(self) -> float:
        return 40.0

    def scalar_information(self, V: np.ndarray, fineness: float = 1.0) -> ScalarInformation:
        total = np.asarray(V, float) + self.noise
        return ScalarInformation(1 / total, -(1 + np.log(2 * np.pi * total)) / 2)


class AbsolutePosterior(PosteriorKernel):
    """y = |z|: mean y tanh(y omega / V), variance y^2 / cosh^2(y omega / V)."""

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        y, field = observation, observation * (omega / V)
        mean = y * xp.tanh(field)
        log_Z = None
        if evidence:
            log_Z = -((y - xp.abs(omega)) ** 2) / (2 * V) + xp.log1p(xp.exp(-2 * xp.abs(field)))
            log_Z = log_Z - xp.log(2 * xp.pi * V) / 2
        return ScalarPosterior(log_Z, mean, (y - mean) * (y + mean))


class SquarePosterior(PosteriorKernel):
    """y = z^2: that of |z| = sqrt(y), with the density's Jacobian 1 / (2 sqrt(y))."""

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        size = xp.sqrt(xp.maximum(observation, 1e-300))
        posterior = AbsolutePosterior().evaluate(xp, size, omega, V, evidence)
        return posterior._replace(log_Z=posterior.log_Z - xp.log(2 * size)) if evidence else posterior


class Absolute(ClosedScalar):
    """y = |z|: real phase retrieval."""

    formula = "abs(z)"
    exponent = 2.0
    kernel = AbsolutePosterior()


class Square(ClosedScalar):
    """y = z^2: the same information as |z|."""

    formula = "z**2"
    exponent = 2.0
    kernel = SquarePosterior()


class ProbitPosterior(PosteriorKernel):
    """y = sign(z + sqrt(D) xi): Z = Phi(a), g = y phi(a) / (Phi(a) sqrt(U)), U = V + D, a = y omega / sqrt(U)."""

    noise: Any

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        log_ndtr = scipy.special.log_ndtr if xp is np else jax.scipy.special.log_ndtr
        total = V + self.noise
        a = observation * omega / xp.sqrt(total)
        log_Z = log_ndtr(a)
        # phi / Phi = -a + tail, with the tail by its series where the two would cancel.
        far = xp.minimum(a, -50.0)
        ratio = xp.exp(-(a**2) / 2 - log_Z) / xp.sqrt(2 * xp.pi)
        tail = xp.where(a < -50.0, -1 / far + 2 / far**3, a + ratio)
        ratio = xp.where(a < -50.0, tail - a, ratio)
        g = observation * ratio / xp.sqrt(total)
        return ScalarPosterior(log_Z, omega + V * g, V * xp.maximum(1 - V / total * ratio * tail, 0.0))


class Probit(ClosedScalar):
    """y = sign(z + sqrt(noise) xi): the noise comes before the sign, and labels stay binary.

    Predictions are scored against the clean label sign(z). Use it as a model's target:
    `MultiIndex(sv.channels.Probit(noise=0.5))`.
    """

    formula = "sign(z)"
    exponent = 1.0
    label_noise: float

    def __init__(self, noise: float = 0.0):
        super().__init__()
        self.label_noise = checked_variance(noise)
        self.kernel = ProbitPosterior(np.float64(self.label_noise))

    @property
    def definition(self) -> dict[str, Any]:
        return super().definition | {"label_noise": self.label_noise}

    @property
    def deterministic(self) -> bool:
        return self.label_noise == 0

    @property
    def components(self) -> tuple[Component, ...] | None:
        return super().components if self.deterministic else None

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        z = np.asarray(z, float)
        with np.errstate(divide="ignore", invalid="ignore"):
            return scipy.special.ndtr(np.where(z == 0, 0.0, z / np.sqrt(self.label_noise))[..., None] * self.atoms)

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        z = np.asarray(z, float)[..., 0]
        noisy = z + np.sqrt(self.label_noise) * rng.standard_normal(np.shape(z)) if self.label_noise else z
        return np.where(noisy >= 0, 1.0, -1.0)

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        rows = super().make_rows(fineness, narrow)
        if self.label_noise == 0:
            return rows
        agree = scipy.special.ndtr(np.abs(rows.z) / np.sqrt(self.label_noise))
        return Rows(
            np.concatenate([rows.z, rows.z]),
            np.concatenate([rows.weight * agree, rows.weight * (1 - agree)]),
            np.concatenate([rows.observation, -rows.observation]),
        )

    def __repr__(self) -> str:
        return f"Probit(noise={self.label_noise:g})"


class Sign(Probit):
    """y = sign(z), without noise."""

    def __init__(self):
        super().__init__(0.0)
