"""Predicting a fresh noiseless label from omega: the posterior mean of g(z), the most probable value, and their errors.

With z | omega ~ N(omega, V) and omega ~ N(0, I - V), the predictor of least squared error is
yhat(omega) = E[g(z) | omega], and its error E[(g(z) - yhat)^2] is the variance of g(z) left on average. None of this
depends on the noise of the labels, only on the target and on V.
"""

from __future__ import annotations

import abc
import functools

import numpy as np
from scipy.special import ndtr

from solvable.numerics.gaussian import gaussian_panels, graded_legendre, ladder_edges, normal_density, panels
from solvable.numerics.roots import illinois
from solvable.targets.landscape import Landscape

_PANELS = np.array([-10.0, -7.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0])
_NODES = (10, 16, 32, 64)
_CHUNK = 128
"""How many omega are taken at a time: their nodes then stay in the cache."""

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
