"""Predicting fresh labels of several projections: by level sets where they resolve the posterior, else by draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.channels.levels.averages import label_moments
from solvable.channels.levels.labels import LabelRule
from solvable.channels.levels.surface import Surface
from solvable.channels.predictor import Errors, Predictor, batched
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian_many import Frame, frame
from solvable.numerics.sobol import normal_points
from solvable.numerics.subspaces import complement

if TYPE_CHECKING:
    from solvable.channels.generic import GenericChannel

_KNOWN = 1e-7
"""Directions with a smaller variance count as known exactly."""
_REACH = 5.0
_NODES = {1: 2001, 2: 161, 3: 41}
_KINKED = {1: 4.0, 2: 3.0, 3: 1.5}
_PRECISE = 1e-3
"""The relative error of level sets above which pairs of draws may know better."""
_PAIRS, _SCRAMBLINGS, _ERRORS = 14, 8, 2.5
"""The logarithm to base 2 of pairs of draws. Eight scramblings know a standard error to a quarter: 2.5 are stated."""
_DRAWS, _CHUNK = 9, 2**18
"""The logarithm to base 2 of the draws for each omega, and how many draws are looked at at a time."""


class LevelSetPredictor(Predictor):
    """The predictor of a target of several projections, from the level sets of its noiseless channel."""

    def __init__(self, channel: GenericChannel):
        self.channel = channel

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self._conditional(V).mean(Omega @ self.channel.basis)

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self._conditional(V).most_probable(Omega @ self.channel.basis)

    def _conditional(self, V: np.ndarray) -> PredictionTable | DrawnPrediction:
        channel = self.channel
        inner = channel.basis.T @ V @ channel.basis
        v, basis = np.linalg.eigh(inner)
        axes = [_axis(v_i) for v_i in v]
        if max(map(len, axes)) > _NODES[len(v)]:
            return DrawnPrediction(channel.surface, inner, channel.rule().y)
        return PredictionTable(channel.rule(), v, basis, axes)

    def errors(self, V: np.ndarray) -> Errors:
        return batched([self._errors(v) for v in np.asarray(V, float)])

    def _errors(self, V: np.ndarray) -> dict[str, tuple[float, float]]:
        name = "generalization_error"
        found = self._level_set_errors((V + V.T) / 2)
        value, error = found[name]
        if error > _PRECISE * value:
            basis = self.channel.basis
            found[name] = min(found[name], paired_error(self.channel.surface, basis.T @ V @ basis), key=_stated)
        return found

    def _level_set_errors(self, V: np.ndarray) -> dict[str, tuple[float, float]]:
        v, u = np.linalg.eigh(V)
        exact = v < _KNOWN
        names = ["generalization_error", *(["classification_error"] if self.channel.discrete else [])]
        if exact.all():
            return {name: (0.0, 0.0) for name in names}
        if not exact.any():
            return _extrapolated(self.channel, v, u)
        known = u[:, exact].round(12)
        rest = complement(known)
        found = _extrapolated(self.channel.known(known), *np.linalg.eigh(rest.T @ V @ rest))
        return {name: found.get(name, (0.0, 0.0)) for name in names}


def _stated(found: tuple[float, float]) -> float:
    return found[1]


def paired_error(surface: Surface, V: np.ndarray) -> tuple[float, float]:
    r"""$E[(g - E[g|\omega])^2] = E[(g(z) - g(z'))^2] / 2$ of two z ~ N(omega, V), and its error, from scramblings."""
    r = len(V)
    root, known = (_root(S) for S in (V, np.eye(r) - V))
    found = []
    for number in range(_SCRAMBLINGS):
        first, second, omega = np.split(normal_points(3 * r, _PAIRS, 7000 + number), 3, axis=1)
        with np.errstate(all="ignore"):
            one, two = (surface.function(omega @ known + draw @ root) for draw in (first, second))
            found.append(np.mean((one - two) ** 2) / 2)
    if not np.all(np.isfinite(found)):
        return 0.0, np.inf
    return float(np.mean(found)), float(_ERRORS * np.std(found, ddof=1) / np.sqrt(_SCRAMBLINGS))


def _root(S: np.ndarray) -> np.ndarray:
    """The symmetric root of a positive semidefinite matrix."""
    v, u = np.linalg.eigh(S)
    return (u * np.sqrt(np.maximum(v, 0.0))) @ u.T


def _extrapolated(channel: Any, v: np.ndarray, u: np.ndarray) -> dict[str, tuple[float, float]]:
    """The errors at V = u diag(v) u^T, continued to variances below the channel's resolution.

    There an error depends on a small variance v like a + b v for smooth labels, like a + b v^(1/2) beside jumps.
    """
    resolution = channel.resolution
    small = v < resolution
    if not small.any():
        return _level_errors(channel, (u * v) @ u.T)
    one, two = (_level_errors(channel, (u * np.where(small, k * resolution, v)) @ u.T) for k in (1.0, 2.0))
    x = (v[small].mean() / resolution) ** (0.5 if channel.discrete else 1.0)
    gap = np.sqrt(2) - 1 if channel.discrete else 1.0

    def continued(name: str) -> tuple[float, float]:
        slope = (two[name][0] - one[name][0]) / gap
        value = one[name][0] - slope * (1 - x)
        return max(value, 0.0), one[name][1] + 0.2 * abs(slope) * (1 - x)

    return {name: continued(name) for name in one}


def _level_errors(channel: Any, V: np.ndarray) -> dict[str, tuple[float, float]]:
    """The errors where the rules of the channel's parts resolve the posterior; the coarser rules tell their errors."""
    inner = channel.basis.T @ (np.eye(len(V)) - V) @ channel.basis
    fine, coarse = {}, {}
    for total, fineness in ((fine, 1.0), (coarse, COARSER)):
        for part in channel.parts(fineness):
            for name, value in _rule_errors(part.rule, inner, fineness).items():
                total[name] = total.get(name, 0.0) + part.chance * value
    return {name: (fine[name], abs(fine[name] - coarse.get(name, 0.0))) for name in fine}


def _rule_errors(rule: LabelRule, M: np.ndarray, fineness: float = 1.0) -> dict[str, float]:
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


def _axis(v: float) -> np.ndarray:
    """Nodes that resolve N(omega, v) for omega ~ N(0, 1 - v)."""
    reach = max(_REACH * np.sqrt(max(1 - v, 0.0)), 1e-3)
    step = 0.35 * np.sqrt(max(v, _KNOWN))
    return np.linspace(-reach, reach, max(int(np.ceil(2 * reach / step)), 5))


class PredictionTable:
    """E[g(z)] and the most probable value for z ~ N(omega, V), tabulated in omega along the eigenvectors of V."""

    def __init__(self, rule: LabelRule, v: np.ndarray, basis: np.ndarray, axes: list[np.ndarray]):
        self._rule, self._basis, self._axes = rule, basis, axes
        grid = Frame(basis, v, axes, [np.ones(len(a)) for a in axes])
        Z = label_moments(rule, grid, [(0,) * len(v)])[:, 0] * rule.mu[:, None]
        self._Z = Z / np.maximum(Z.sum(0), 1e-300)

    def mean(self, omega: np.ndarray) -> np.ndarray:
        """E[g(z)] at each row of omega."""
        return self._interpolated(self._rule.y @ self._Z, omega)

    def most_probable(self, omega: np.ndarray) -> np.ndarray:
        """The most probable value at each row of omega; for discrete labels."""
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


class DrawnPrediction:
    """The same from draws of N(omega, V), for V that no table resolves; `values` are those of a discrete g."""

    def __init__(self, surface: Surface, V: np.ndarray, values: np.ndarray):
        self._surface, self._values = surface, np.sort(values)
        self._steps = normal_points(len(V), _DRAWS, 6000) @ _root(V)

    def mean(self, omega: np.ndarray) -> np.ndarray:
        """E[g(z)] at each row of omega."""
        return np.concatenate([np.mean(g, axis=1) for g in self._labels(omega)])

    def most_probable(self, omega: np.ndarray) -> np.ndarray:
        """The most frequent value at each row of omega; for discrete labels."""
        between = (self._values[1:] + self._values[:-1]) / 2
        best = []
        for g in self._labels(omega):
            nearest = np.searchsorted(between, g)
            best.append(np.argmax([np.sum(nearest == k, axis=1) for k in range(len(self._values))], axis=0))
        return self._values[np.concatenate(best)]

    def _labels(self, omega: np.ndarray) -> Iterator[np.ndarray]:
        rows = max(1, _CHUNK // len(self._steps))
        for start in range(0, max(1, len(omega)), rows):
            yield self._surface.function(omega[start : start + rows, None] + self._steps)
