"""Predicting a fresh label from omega: the posterior mean of g(z) and the most probable value, from the level sets.

With Z_l(omega) the evidence of label l, E[g | omega] = sum_l mu_l y_l Z_l(omega): a table over omega, interpolated.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.levels.averages import Frame, frame, label_moments
from solvable.channels.levels.labels import LabelRule
from solvable.channels.levels.surface import Surface

_REACH = 5.0
_NODES = {1: 2001, 2: 161, 3: 41}
_EXACT = 1e-3
_KINKED = {1: 4.0, 2: 3.0, 3: 1.5}


def prediction_errors(rule: LabelRule, M: np.ndarray, fineness: float = 1.0) -> dict[str, float]:
    """E[(g - E[g|omega])^2] and, for discrete labels, P(the most probable label is wrong), for omega ~ N(0, M)."""
    grid = frame(M, fineness)
    Z = label_moments(rule, grid, [(0,) * len(M)])[:, 0] * rule.mu[:, None]
    weight = grid.weights
    total = Z.sum(0)
    mean, square = (rule.y @ Z / total, rule.y**2 @ Z / total)
    errors = {"generalization_error": float(weight @ (square - mean**2))}
    if not rule.nodes:
        errors["classification_error"] = _classification_error(rule, M, fineness)
    return errors


def _classification_error(rule: LabelRule, M: np.ndarray, fineness: float) -> float:
    """The largest of the probabilities has kinks in omega, so that its grid must be finer than that of smooth means."""
    grid = frame(M, _KINKED[len(M)] * fineness)
    Z = label_moments(rule, grid, [(0,) * len(M)])[:, 0] * rule.mu[:, None]
    return float(grid.weights @ (1 - Z.max(0) / Z.sum(0)))


class PredictionTable:
    """E[g(z)] and the most probable value for z ~ N(omega, V), as functions of omega."""

    def __init__(self, rule: LabelRule, surface: Surface, V: np.ndarray):
        self._rule, self._surface = rule, surface
        v, self._basis = np.linalg.eigh(V)
        self._known = v.max() < _EXACT
        if self._known:
            return
        v = np.clip(v, _EXACT, 1.0)
        count = _NODES[len(v)]
        axes = []
        for v_i in v:
            reach = max(_REACH * np.sqrt(1 - v_i), 1e-3)
            step = 0.35 * np.sqrt(v_i)
            axes.append(np.linspace(-reach, reach, int(np.clip(np.ceil(2 * reach / step), 5, count))))
        grid = Frame(self._basis, v, axes, [np.ones(len(a)) for a in axes])
        Z = label_moments(rule, grid, [(0,) * len(v)])[:, 0] * rule.mu[:, None]
        self._Z, self._axes = Z / np.maximum(Z.sum(0), 1e-300), axes

    def mean(self, omega: np.ndarray) -> np.ndarray:
        """E[g(z)] at each row of omega."""
        if self._known:
            return self._surface.function(omega)
        return self._interpolated(self._rule.y @ self._Z, omega)

    def most_probable(self, omega: np.ndarray) -> np.ndarray:
        """The most probable value at each row of omega; for discrete labels."""
        if self._known:
            return self._surface.function(omega)
        chances = np.stack([self._interpolated(row, omega) for row in self._Z], 1)
        return self._rule.y[np.argmax(chances, 1)]

    def _interpolated(self, table: np.ndarray, omega: np.ndarray) -> np.ndarray:
        place = omega @ self._basis
        place = np.clip(place, [a[0] for a in self._axes], [a[-1] for a in self._axes])
        values = table.reshape([len(a) for a in self._axes])
        from scipy.interpolate import RegularGridInterpolator  # loaded when needed: it takes long to import

        return RegularGridInterpolator(tuple(self._axes), values, method="cubic" if values.ndim < 3 else "linear")(
            place
        )
