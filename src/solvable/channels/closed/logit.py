r"""Logistic labels: y = +1 with probability 1 / (1 + exp(-gain z)), else -1."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import numpy as np
from scipy.special import expit

from solvable.channels.finite import FiniteChannel
from solvable.channels.scalar import PosteriorKernel, ScalarPosterior
from solvable.core.checks import real_number
from solvable.numerics.gaussian import gauss_legendre
from solvable.numerics.roots import halving
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

_BELL = np.array([-8.5, -5.5, -3.0, -1.0, 1.0, 3.0, 5.5, 8.5])
_NODES = 12
_STEEPEST = 1e6


class LogitPosterior(PosteriorKernel):
    r"""Z = E sigma(t), t = gain y z, by quadrature on nodes that move with omega; g = gain y E[1 - sigma(t) | y].

    With z = omega + sqrt(V) u the posterior of u is strongly log-concave, so all of it lies within a few units of its
    mode. Panels around the mode resolve the Gaussian, and panels that grow away from t = 0 the sigmoid, whose scale in
    u is 1 / (gain sqrt(V)). `rungs` of the latter, and `halvings` to find the mode, suffice for the channel's gain.
    """

    gain: Any
    rungs: int = eqx.field(static=True)
    halvings: int = eqx.field(static=True)

    @classmethod
    def of(cls, gain: float) -> LogitPosterior:
        """The kernel of a gain, which bounds the steepness gain sqrt(V)."""
        rungs = max(1, 1 + math.ceil(math.log(2 * _BELL[-1] * max(gain, 1.0), 3)))
        return cls(np.float64(gain), rungs, math.ceil(math.log2(8 * max(gain, 1.0))))

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        log_Z, g, variance = self.steps(xp, observation, omega, V)
        return ScalarPosterior(log_Z, omega + V * g, variance)

    def steps(self, xp: Any, y: Any, omega: Any, V: Any) -> tuple[Any, Any, Any]:
        """log Z, g and the posterior variance."""
        steepness = self.gain * xp.sqrt(V)
        centre = self.gain * y * omega
        mode = self._mode(xp, centre, steepness)
        zero = -centre / xp.maximum(steepness, 1e-12)
        growing = 3.0 ** np.arange(self.rungs) / xp.maximum(steepness, 1e-12)
        ladder = xp.concatenate([-growing[::-1], xp.zeros(1), growing]) + zero[..., None]
        low, high = mode[..., None] + _BELL[0], mode[..., None] + _BELL[-1]
        ends = xp.concatenate([xp.clip(ladder, low, high), mode[..., None] + _BELL], -1)
        ends = xp.sort(ends, -1)
        t, w = gauss_legendre(_NODES)
        size = xp.diff(ends, axis=-1)[..., None]
        u = ends[..., :-1, None] + size * t
        field = centre[..., None, None] + steepness * u
        log_weight = -(u**2) / 2 - xp.logaddexp(xp.zeros_like(field), -field)
        largest = xp.max(log_weight, (-2, -1), keepdims=True)
        weight = xp.exp(log_weight - largest) * size * w
        total = xp.sum(weight, (-2, -1))
        doubt = xp.sum(weight * _sigmoid(xp, -field), (-2, -1)) / total
        mean = steepness * doubt
        variance = xp.sum(weight * (u - mean[..., None, None]) ** 2, (-2, -1)) / total
        log_Z = xp.log(total) + largest[..., 0, 0] - np.log(2 * np.pi) / 2
        return log_Z, self.gain * y * doubt, V * variance

    def _mode(self, xp: Any, centre: Any, steepness: Any) -> Any:
        """The root of u = S sigma(-centre - S u) in (0, S), to within a fraction of the bell's width."""
        low, high = xp.zeros_like(centre), steepness + xp.zeros_like(centre)

        def above(u: Any) -> Any:
            return u > steepness * _sigmoid(xp, -(centre + steepness * u))

        return halving(above, low, high, self.halvings, unroll=True).middle


def _sigmoid(xp: Any, x: Any) -> Any:
    return (1 + xp.tanh(x / 2)) / 2


class Logit(FiniteChannel):
    """Labels y = +1 with probability 1 / (1 + exp(-gain z)), else -1; gain 0 makes them random.

    Predictions are scored against the clean label sign(z). Use it as a model's target:
    `MultiIndex(sv.channels.Logit(gain=2.0))`.
    """

    labels = np.array([-1.0, 1.0])

    def __init__(self, gain: float = 1.0):
        takes = f"a number from 0 (random labels) to {_STEEPEST:g}; use channels.Sign() for a sharp step"
        self.gain = real_number("gain", gain, takes, lambda x: 0 <= x <= _STEEPEST)
        self.landscape = landscape(Target("sign(z)"))
        # Where labels are random nothing is left of the sign.
        self.exponent = 1.0 if self.gain > 0 else np.inf
        self.kernel = LogitPosterior.of(self.gain)

    @property
    def definition(self) -> dict[str, Any]:
        return super().definition | {"gain": self.gain}

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def probabilities(self, z: np.ndarray) -> np.ndarray:
        return expit(self.gain * np.asarray(z, float)[..., None] * self.labels)

    def __repr__(self) -> str:
        return f"Logit(gain={self.gain:g})"
