r"""Any function of the projections of T tokens, y = g(z) + sqrt(noise) xi, by weighted draws of $N(\omega, V)$.

With noise a draw has the weight $N(y; g(z), noise)$; a label of finitely many values without noise keeps the draws that
have it. The error of so many draws is measured, not assumed: `base`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.channels.sequence.base import Moments, SequenceChannel
from solvable.core.errors import bad_parameter
from solvable.numerics.sobol import normal_points

Function = Callable[[np.ndarray], np.ndarray]
"""g: projections (n, T, r) to labels (n,) or (n, m)."""
_DRAWS = 10
"""The logarithm of the number of draws, to base 2."""
_NUMBERS = 2**22
_MOST_VALUES = 64
LEAST_NOISE = 0.01


class FunctionChannel(SequenceChannel):
    """Labels g(z) with noise, or of finitely many values; `name` tells functions apart."""

    weighted, fineness_on_data = True, 8.0

    def __init__(self, function: Function, name: Any, tokens: int, projections: int, noise: float):
        self.function, self.name, self.tokens = function, name, tokens
        self._projections, self.noise = projections, float(noise)
        z = np.random.default_rng(0).standard_normal((4096, tokens, projections))
        labels = self.clean(z)
        if not np.isfinite(labels).all():
            raise bad_parameter("target", name, "a function that is finite for typical projections")
        self._discrete = len(np.unique(labels.round(9), axis=0)) <= _MOST_VALUES
        if noise < LEAST_NOISE and not (self._discrete and noise == 0):
            takes = f"at least {LEAST_NOISE:g}, or 0 for a label of at most {_MOST_VALUES} values"
            raise bad_parameter("noise", noise, takes)
        self.label_dimensions = labels.shape[1] if self.noise else 0
        flips = [np.where(np.arange(projections) == k, -1.0, 1.0) for k in range(projections)]
        self.mirrored = all(np.allclose(self.clean(z * flip), labels) for flip in flips)
        self.shared = int(self.mirrored)

    @property
    def projections(self) -> int:
        return self._projections

    @property
    def definition(self) -> dict[str, Any]:
        return {"function": self.name, "tokens": self.tokens, "projections": self.projections, "noise": self.noise}

    def __repr__(self) -> str:
        return f"FunctionChannel({self.name}, tokens={self.tokens}, noise={self.noise:g})"

    @property
    def discrete(self) -> bool:
        return self._discrete

    @property
    def row_resolution(self) -> float:
        return 1e-2 if self.discrete and not self.noise else super().row_resolution

    def most_growth(self, directions: np.ndarray) -> float:
        """That of k directions seen as such: T (T k + 1)."""
        left = self.projections - directions.shape[1]
        return float(self.tokens * (self.tokens * left + 1))

    def clean(self, z: np.ndarray) -> np.ndarray:
        """Labels (n, m) without noise."""
        return np.asarray(self.function(z), float).reshape(len(z), -1)

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels (n, m) of projections (n, T, r)."""
        clean = self.clean(z)
        return clean + np.sqrt(self.noise) * rng.standard_normal(clean.shape) if self.noise else clean

    def shown(self, z: np.ndarray, noise: np.ndarray) -> np.ndarray:
        clean = self.clean(z)
        return clean + np.sqrt(self.noise) * noise if self.noise else clean

    def observe(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(y, float)

    def moments(
        self, shown: np.ndarray, Omega: np.ndarray, V: np.ndarray, draw: int = 0, fineness: float = 1.0
    ) -> Moments:
        T, r, n = self.tokens, self.projections, len(Omega)
        v, u = np.linalg.eigh(V)
        nodes = normal_points(T * r, _DRAWS + round(np.log2(fineness)), 1000 + draw).reshape(-1, T, r)
        nodes = nodes @ ((u * np.sqrt(np.maximum(v, 0.0))) @ u.T)
        rows = max(1, _NUMBERS // (len(nodes) * T * r))
        parts = [self._weighed(shown[i : i + rows], Omega[i : i + rows], nodes) for i in range(0, n, rows)]
        return Moments(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _weighed(self, y: np.ndarray, Omega: np.ndarray, nodes: np.ndarray) -> Moments:
        n, K = len(Omega), len(nodes)
        labels = self.clean((Omega[:, None] + nodes).reshape(n * K, self.tokens, self.projections)).reshape(n, K, -1)
        distance = np.sum((labels - y[:, None]) ** 2, axis=-1)
        log_p = -distance / (2 * self.noise) if self.noise else np.where(distance < 1e-12, 0.0, -np.inf)
        top = np.max(log_p, axis=1, keepdims=True)
        seen = np.isfinite(top)
        # A label that no draw has: nothing is learned of it, and it is as rare as half a draw.
        p = np.where(seen, np.exp(log_p - np.where(seen, top, 0.0)), 1.0)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        x = nodes.reshape(K, -1)
        mean = p @ x
        covariance = np.einsum("nk,ka,kb->nab", p, x, x, optimize=True) - mean[:, :, None] * mean[:, None, :]
        norm = y.shape[1] / 2 * np.log(2 * np.pi * self.noise) if self.noise else 0.0
        log_Z = np.where(seen, top + np.log(total / K), np.log(0.5 / K))[:, 0] - norm
        return Moments(log_Z, mean + Omega.reshape(n, -1), covariance)
