"""Predicting a fresh noiseless label from omega: the posterior mean of g(z), the most probable value, and their errors.

With z | omega ~ N(omega, V) and omega ~ N(0, I - V), the predictor of least squared error is
yhat(omega) = E[g(z) | omega], and its error E[(g(z) - yhat)^2] is the variance of g(z) left on average. None of this
depends on the noise of the labels, only on the target and on V.
"""

from __future__ import annotations

import abc
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from solvable.channels.levels.averages import label_moments
from solvable.channels.levels.labels import LabelRule
from solvable.channels.levels.surface import Surface
from solvable.numerics.errors import COARSER
from solvable.numerics.gaussian import gaussian_panels, graded_legendre, ladder_edges, normal_density, panels
from solvable.numerics.gaussian_many import Frame, frame
from solvable.numerics.roots import illinois
from solvable.numerics.subspaces import complement
from solvable.targets.landscape import Landscape

if TYPE_CHECKING:
    from solvable.channels.generic import GenericChannel

_PANELS = np.array([-10.0, -7.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0])
_NODES = (10, 16, 32, 64)
_CHUNK = 128
"""How many omega are taken at a time: their nodes then stay in the cache."""

_KNOWN = 1e-7
"""Directions with a smaller variance count as known exactly."""
_TABLE_REACH = 5.0
_TABLE_NODES = {1: 2001, 2: 161, 3: 41}
_TABLE_EXACT = 1e-3
_KINKED = {1: 4.0, 2: 3.0, 3: 1.5}

Errors = dict[str, tuple[np.ndarray, np.ndarray]]
"""For each metric its value (k,) and an error estimate (k,) at each V of a batch."""


class Predictor(abc.ABC):
    """The best predictions of the noiseless label g(z), z ~ N(omega, V), and what they miss on average."""

    @abc.abstractmethod
    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The posterior mean E[g(z)] for each row of Omega (n, r), V (r, r)."""

    @abc.abstractmethod
    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The most probable value for each row; for discrete targets."""

    @abc.abstractmethod
    def errors(self, V: np.ndarray) -> Errors:
        """The errors of both for omega ~ N(0, I - V), at each V of a batch (k, r, r).

        `generalization_error` is E[(g - E[g|omega])^2]; `classification_error`, for discrete targets, the probability
        that the most probable value is wrong. Directions that V leaves no variance are taken as known.
        """


def batched(found: list[dict[str, tuple[float, float]]]) -> Errors:
    """The errors of a batch from those of each V."""
    return {
        name: (np.array([each[name][0] for each in found]), np.array([each[name][1] for each in found]))
        for name in (found[0] if found else {})
    }


class LandscapePredictor(Predictor):
    """The predictor of a target of one projection, by quadrature on the pieces of its landscape."""

    def __init__(self, shape: Landscape):
        self.landscape = shape

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return predict(self.landscape, np.asarray(Omega)[:, 0], float(V[0, 0]))

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return classify(self.landscape, np.asarray(Omega)[:, 0], float(V[0, 0]))

    def errors(self, V: np.ndarray) -> Errors:
        variance = np.asarray(V, float)[:, 0, 0]
        squared = generalization_error(self.landscape, variance)
        found = {"generalization_error": (squared, quadrature_error(self.landscape) * squared)}
        if self.landscape.flat.all():
            wrong = classification_error(self.landscape, variance)
            found["classification_error"] = wrong, np.zeros_like(wrong)
        return found


def predict(shape: Landscape, omega: np.ndarray, V: float) -> np.ndarray:
    """yhat(omega) = E[g(z)], z ~ N(omega, V), elementwise."""
    return _moments(shape, np.asarray(omega, float), V)[0]


def class_probabilities(shape: Landscape, omega: np.ndarray, V: float) -> np.ndarray:
    """P(g(z) = atom), z ~ N(omega, V), for each atom along a new last axis."""
    s = np.sqrt(V)
    ends = np.concatenate([[-np.inf], shape.edges, [np.inf]])
    with np.errstate(divide="ignore"):
        below = ndtr((ends - np.asarray(omega, float)[..., None]) / s)
    belongs = shape.atom_of(shape.value_lower)[:, None] == np.arange(len(shape.atoms))
    return np.diff(below, axis=-1) @ belongs.astype(float)


def classify(shape: Landscape, omega: np.ndarray, V: float) -> np.ndarray:
    """The most probable value of a discrete target given omega."""
    return shape.atoms[np.argmax(class_probabilities(shape, omega, V), -1)]


def generalization_error(shape: Landscape, V: np.ndarray) -> np.ndarray:
    """E[(g(z) - yhat(omega))^2] for an array of variances V."""
    return _average(shape, V, lambda omega, v: _moments(shape, omega, v)[1])


@functools.lru_cache(maxsize=64)
def quadrature_error(shape: Landscape) -> float:
    """The relative error of `generalization_error` where a finer rule gives the answer: Var g, at V = 1."""
    return _error_with(shape, _nodes(shape)) + 1e-9


@functools.lru_cache(maxsize=64)
def _nodes(shape: Landscape) -> int:
    """The nodes a panel: few for a mild target, more for narrow peaks and steep steps."""
    return next((n for n in _NODES if _error_with(shape, n) < 1e-8), _NODES[-1])


def _error_with(shape: Landscape, nodes: int) -> float:
    if shape.flat.all():
        return 0.0
    z, weight = gaussian_panels(shape.edges, 192, 14.0)
    with np.errstate(over="ignore"):
        g = np.where(weight > 0, shape.target.numpy(z[:, None]), 0.0)
    variance = np.sum(weight * (g - np.sum(weight * g)) ** 2)
    return float(abs(_smooth_moments(shape, np.zeros(1), 1.0, nodes)[1][0] / variance - 1))


def classification_error(shape: Landscape, V: np.ndarray) -> np.ndarray:
    """P(the most probable class is wrong) for an array of variances V; discrete targets only."""

    def wrong(omega: np.ndarray, v: float) -> np.ndarray:
        probabilities = class_probabilities(shape, omega, v)
        return probabilities.sum(-1) - probabilities.max(-1)

    return _average(shape, V, wrong, lambda q, v: _ties(shape, q, v))


def _average(shape: Landscape, V: np.ndarray, local_error, extra_breaks=None) -> np.ndarray:
    """E over omega ~ N(0, q) of a local error that varies at the scale sqrt(V) near the breaks of g."""
    V = np.asarray(V, float)
    result = np.zeros(V.shape)
    for i, v in np.ndenumerate(V):
        q = 1 - v
        if v < 1e-15:
            continue  # z is known to rounding
        if q <= 0:
            result[i] = local_error(np.zeros(1), 1.0)[0]
            continue
        breaks = shape.target.breaks
        if extra_breaks is not None:
            breaks = np.concatenate([breaks, extra_breaks(q, v)])
        scaled = breaks[np.abs(breaks) < 8 * np.sqrt(q)] / np.sqrt(q)
        s, weight = panels(ladder_edges(scaled, 8.0, finest=min(0.1, 0.02 * np.sqrt(v / q))), 10, graded=False)
        result[i] = np.sum(weight * normal_density(s) * local_error(np.sqrt(q) * s, v))
    return result


def _ties(shape: Landscape, q: float, v: float) -> np.ndarray:
    """The omega where the most probable class changes: the error has a kink there."""
    omega = np.sqrt(q) * np.linspace(-8.0, 8.0, 322)
    near = (shape.edges[:, None] + np.sqrt(v) * np.linspace(-4.0, 4.0, 25)).ravel()
    omega = np.unique(np.concatenate([omega, near]))
    best = np.argmax(class_probabilities(shape, omega, v), -1)
    change = np.nonzero(best[1:] != best[:-1])[0]
    low, high, left = omega[change], omega[change + 1], best[change]
    right = best[change + 1]

    def lead(x: np.ndarray) -> np.ndarray:
        probabilities = class_probabilities(shape, x, v)
        index = np.arange(len(x))
        return probabilities[index, left] - probabilities[index, right]

    return illinois(lead, low, high) if len(low) else low


def _moments(shape: Landscape, omega: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of g(z), z ~ N(omega, V)."""
    if not shape.flat.all():
        nodes = _nodes(shape)
        flat = np.ravel(omega)
        parts = [_smooth_moments(shape, flat[i : i + _CHUNK], V, nodes) for i in range(0, max(1, flat.size), _CHUNK)]
        mean, variance = (np.concatenate(column).reshape(np.shape(omega)) for column in zip(*parts, strict=True))
        return mean, variance
    probabilities = class_probabilities(shape, omega, V)
    mean = probabilities @ shape.atoms
    return mean, np.sum(probabilities * (shape.atoms - mean[..., None]) ** 2, -1)


def _smooth_moments(shape: Landscape, omega: np.ndarray, V: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The moments by graded quadrature on the pieces of g within reach."""
    t, w = graded_legendre(nodes)
    s = np.sqrt(V)
    centre = omega[..., None]
    steps = centre + s * _PANELS
    pieces = np.clip(np.broadcast_to(shape.edges, (*omega.shape, len(shape.edges))), steps[..., :1], steps[..., -1:])
    ends = np.sort(np.concatenate([steps, pieces], -1), -1)
    low, width = ends[..., :-1, None], np.diff(ends, axis=-1)[..., None]
    z = low + width * t
    weight = width * w * np.exp(-(((z - centre[..., None]) / s) ** 2) / 2)
    weight /= weight.sum((-2, -1), keepdims=True)
    with np.errstate(over="ignore"):
        g = shape.target.numpy(z[..., None])
    # A panel of no width may sit on a pole.
    g = np.where(weight > 0, g, 0.0)
    mean = np.sum(weight * g, (-2, -1))
    return mean, np.sum(weight * (g - mean[..., None, None]) ** 2, (-2, -1))


class LevelSetPredictor(Predictor):
    """The predictor of a target of several projections, from the level sets of its noiseless channel."""

    def __init__(self, channel: GenericChannel):
        self.channel = channel

    def predict(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self._table(V).mean(Omega @ self.channel.basis)

    def classify(self, Omega: np.ndarray, V: np.ndarray) -> np.ndarray:
        return self._table(V).most_probable(Omega @ self.channel.basis)

    def _table(self, V: np.ndarray) -> PredictionTable:
        basis = self.channel.basis
        return PredictionTable(self.channel.rule(), self.channel.surface, basis.T @ V @ basis)

    def errors(self, V: np.ndarray) -> Errors:
        return batched([self._errors(v) for v in np.asarray(V, float)])

    def _errors(self, V: np.ndarray) -> dict[str, tuple[float, float]]:
        v, u = np.linalg.eigh((V + V.T) / 2)
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


class PredictionTable:
    """E[g(z)] and the most probable value for z ~ N(omega, V), as functions of omega."""

    def __init__(self, rule: LabelRule, surface: Surface, V: np.ndarray):
        self._rule, self._surface = rule, surface
        v, self._basis = np.linalg.eigh(V)
        self._known = v.max() < _TABLE_EXACT
        if self._known:
            return
        v = np.clip(v, _TABLE_EXACT, 1.0)
        count = _TABLE_NODES[len(v)]
        axes = []
        for v_i in v:
            reach = max(_TABLE_REACH * np.sqrt(1 - v_i), 1e-3)
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
