"""Channels whose labels take finitely many values: averages over omega first, then a plain sum over the labels."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component
from solvable.channels.scalar import PosteriorKernel, Rows, ScalarChannel, ScalarInformation, pad_rows, scalar_law
from solvable.numerics.gaussian import ladder_edges, normal_density, panels, standard_edges

_REACH = 8.5


class FiniteChannel(ScalarChannel):
    """P(y|z) for y in `labels`.

    At each omega I = E_omega sum_y Z g^2 and Psi = E_omega sum_y Z log Z are sums over the labels, so only omega is
    integrated over, on panels that shrink towards the breaks of the target to the scale sqrt(V).
    """

    labels: np.ndarray = np.zeros(0)  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def components(self) -> tuple[Component, ...] | None:
        return None

    @abc.abstractmethod
    def probabilities(self, z: np.ndarray) -> np.ndarray:
        """P(y|z) of each label along a new last axis."""

    @property
    def deterministic(self) -> bool:
        return False

    @property
    def continuous_mass(self) -> float:
        return 0.0

    @property
    def discrete(self) -> bool:
        return True

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        z = np.asarray(z, float)[..., 0]
        below = np.cumsum(self.probabilities(z), -1)
        drawn = np.sum(rng.random(np.shape(z))[..., None] * below[..., -1:] >= below, -1)
        return self.labels[np.minimum(drawn, len(self.labels) - 1)]

    def make_rows(self, fineness: float, narrow: bool) -> Rows:
        breaks = self.landscape.edges
        edges = ladder_edges(breaks, _REACH) if narrow else standard_edges(breaks, _REACH)
        z, weight = panels(edges, round((8 if narrow else 24) * fineness), graded=not narrow)
        share = (weight * normal_density(z))[:, None] * self.probabilities(z)
        y = np.broadcast_to(self.labels, share.shape)
        return pad_rows(Rows(np.repeat(z, len(self.labels)), share.ravel(), self.observe(y.ravel())))

    def scalar_information(self, V: np.ndarray, fineness: float = 1.0) -> ScalarInformation:
        V = np.asarray(V, float)
        found = np.array([self._average(float(v), fineness) for v in V.ravel()]).T
        return ScalarInformation(*found.reshape(2, *V.shape))

    def label_law(self, fineness: float = 1.0) -> LabelLaw:
        found = self.scalar_posterior(self.observe(self.labels), np.zeros(len(self.labels)), 1.0)
        return scalar_law(np.exp(found.log_Z), found.mean, found.variance + found.mean**2)

    def _average(self, V: float, fineness: float) -> tuple[float, float]:
        q = max(1 - V, 0.0)
        scaled = self.landscape.edges / np.sqrt(max(q, 1e-300))
        finest = min(0.1, 0.02 * np.sqrt(V / max(q, 1e-300)))
        edges = ladder_edges(scaled[np.abs(scaled) < _REACH], _REACH, finest)
        x, weight = panels(edges, round(12 * fineness), graded=False)
        weight = weight * normal_density(x)
        count = len(self.labels)
        omega = np.repeat(np.sqrt(q) * x, count)
        log_Z, g = steps(self.kernel, self.observe(np.tile(self.labels, len(x))), omega, V)
        share = np.repeat(weight, count) * np.exp(log_Z)
        return float(np.sum(share * g**2)), float(np.sum(np.where(share > 0, share * log_Z, 0.0)))


def steps(kernel: PosteriorKernel, observation: Any, omega: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
    """log Z and g; directly where the kernel has them, since (mean - omega) / V loses its digits at small V."""
    direct = getattr(kernel, "steps", None)
    if direct is not None:
        return direct(np, observation, omega, V)[:2]
    found = kernel.evaluate(np, observation, omega, V)
    return found.log_Z, (found.mean - omega) / V
