"""Contaminated labels of the target z, in closed form: y = beta_c z + sqrt(Delta_c) xi with probability p_c."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from solvable.channels.base import LabelLaw
from solvable.channels.contamination import Component
from solvable.channels.mixture.base import LabelNodes, MixtureChannel, on_panels, shares, unless_erased
from solvable.channels.scalar import PosteriorKernel, ScalarPosterior
from solvable.numerics.gaussian import ladder_edges, normal_density, panels
from solvable.targets.landscape import Landscape

_TAIL = 8.5


class LinearMixturePosterior(PosteriorKernel):
    """y = beta_c z + sqrt(Delta_c) xi: g_c = beta_c (y - beta_c omega) / S_c with S_c = Delta_c + beta_c^2 V.

    `share`, `slope` and `noise` have an entry a component; `erased` is the probability of a label
    that is exactly 0, None if there is no such.
    """

    share: Any
    slope: Any
    noise: Any
    erased: float | None

    def evaluate(self, xp: Any, observation: Any, omega: Any, V: Any, evidence: bool = True) -> ScalarPosterior:
        log_Z, g, variance = self.steps(xp, observation, omega, V)
        return unless_erased(xp, self.erased, observation, omega, V, ScalarPosterior(log_Z, omega + V * g, variance))

    def steps(self, xp: Any, y: Any, omega: Any, V: Any) -> tuple[Any, Any, Any]:
        """log Z, g and the posterior variance; g itself, since (mean - omega) / V has no digits left at small V."""
        # Components along the first axis: sums over a short last axis are slow.
        share, slope, noise = (a.reshape(-1, *[1] * omega.ndim) for a in (self.share, self.slope, self.noise))
        total = noise + slope**2 * V
        residual = y - slope * omega
        step = slope * residual / total
        log_Z, r = shares(xp, xp.log(share / xp.sqrt(2 * xp.pi * total)) - residual**2 / (2 * total))
        g = xp.sum(r * step, 0)
        variance = V * xp.sum(r * noise / total, 0) + V**2 * xp.sum(r * (step - g) ** 2, 0)
        return log_Z, g, variance


class LinearMixture(MixtureChannel):
    """Contaminated labels of the target z, in closed form; components without noise are allowed."""

    kernel: LinearMixturePosterior

    def __init__(self, landscape: Landscape, components: Sequence[Component]):
        super().__init__(landscape, components)
        share, slope, noise = (np.array(column) for column in zip(*self.dense, strict=True))
        self.kernel = LinearMixturePosterior(share, slope, noise, self._erased)

    @property
    def deepest(self) -> float:
        return 40.0

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def _averages(self, V: np.ndarray, fineness: float) -> np.ndarray:
        found = np.empty((2, len(V)))
        for i, v in enumerate(V):
            nodes = linear_nodes(self.dense, float(v), fineness)
            log_Z, g, _ = self.kernel.steps(np, nodes.y, nodes.omega, v)
            weight = nodes.weight * np.exp(log_Z)
            found[:, i] = np.sum(weight * g**2), np.sum(weight * log_Z)
        return found

    def _label_law(self, fineness: float) -> LabelLaw:
        return self._law_at(linear_nodes(self.dense, 1.0, fineness))


def linear_nodes(components: Sequence[Component], V: float, fineness: float) -> LabelNodes:
    """The rule for the target z, on whose labels component c is N(beta_c omega, Delta_c + beta_c^2 V).

    The mirror image omega, y -> -omega, -y is the same, so omega > 0 is enough; with one slope for all, omega = 0 is.
    """
    _, slope, noise = (np.array(column, float) for column in zip(*components, strict=True))
    q, width = 1 - V, np.sqrt(noise + slope**2 * V)
    omega, weight = np.zeros(1), np.ones(1)
    if np.ptp(slope) > 0 and q > 0:
        # Components part where their distance passes their width, on a scale in omega that can be far below 1.
        finest = np.clip(0.3 * width.min() / (np.ptp(slope) * np.sqrt(q)), 1e-9, 0.5)
        edges = ladder_edges(np.zeros(1), _TAIL, finest)
        x, x_weight = panels(edges[edges >= 0], round(8 * fineness), graded=False)
        omega, weight = np.sqrt(q) * x, 2 * x_weight * normal_density(x)
    reach = np.concatenate([np.arange(9.0), [9.5]])
    ends = (slope * omega[:, None])[..., None] + width[:, None] * np.concatenate([-reach[:0:-1], reach])
    return on_panels(np.sort(ends.reshape(len(omega), -1), 1), omega, weight, round(8 * fineness))
