"""Phase retrieval: y = |z| and y = z^2, which know z up to its sign."""

from __future__ import annotations

from typing import Any

from solvable.channels.closed.scalar import ClosedScalar
from solvable.channels.scalar import PosteriorKernel, ScalarPosterior


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
