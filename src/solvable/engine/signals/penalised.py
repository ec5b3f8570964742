"""Weights sought by a learner with a separable penalty: shrunk fields, and their averages over the teacher's weights.

Its response is the V that the next step uses, and the precision of its field is the one that the labels' derivatives
show. [thrampoulidis2018precise]
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np

from solvable.engine.sides import Field, Overlap, Signal, SignalStep
from solvable.priors import Prior
from solvable.priors.penalties import Lasso, Penalty, Shrinkage

_LEAST_V = 1e-12


class PenalisedSignal(eqx.Module, Signal):
    """A penalty on weights whose true law is a mixture of Gaussians: arrays of (weight, mean, variance)."""

    penalty: Penalty
    mixture: Any

    @classmethod
    def of(cls, penalty: Penalty, prior: Prior) -> PenalisedSignal:
        """The signal of a penalty for weights of a prior."""
        # A ridge sees only the variance of the weights, which is one for every prior.
        parts = prior.mixture() if isinstance(penalty, Lasso) else ((1.0, 0.0, 1.0),)
        return cls(penalty, tuple(np.array(column, float) for column in zip(*parts, strict=True)))

    def shrinkage(self, m_hat: Any, q_hat: Any, V_hat: Any) -> Shrinkage:
        """The averages of the shrunk weights at a field of one direction (numbers)."""
        return self.penalty.average(m_hat, q_hat, V_hat, self.mixture)

    def average(self, field: Field) -> Overlap:
        found = _average(self, *(np.asarray(part, float).reshape(-1) for part in field))
        shape = np.shape(field.V_hat)
        return Overlap(*(np.asarray(part).reshape(shape) for part in (found.m, found.q, found.V)))

    def denoiser(self, operator: Any = None) -> PenalisedDenoiser:
        return PenalisedDenoiser(self.penalty)


@eqx.filter_jit
def _average(signal: PenalisedSignal, m_hat: Any, q_hat: Any, V_hat: Any) -> Shrinkage:
    return jax.vmap(signal.shrinkage)(m_hat, q_hat, V_hat)


class PenalisedDenoiser:
    """The shrinkage of a penalty, the same for signals of any operator; V is its response."""

    def __init__(self, penalty: Penalty):
        self._penalty = penalty

    def __call__(self, B: np.ndarray, precision: np.ndarray) -> SignalStep:
        estimate, response = self._penalty.denoise(B, float(precision[0, 0]))
        variance = np.full((1, 1), max(response, _LEAST_V))
        return SignalStep(estimate, np.full((1, 1), response), precision, variance)
