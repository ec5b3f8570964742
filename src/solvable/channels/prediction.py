"""Predicting a fresh label from omega: the posterior mean of g(z), the most probable class, and their mean errors.

With z | omega ~ N(omega, V) and omega ~ N(0, q), q = 1 - V, the predictor of least squared error is
yhat(omega) = E[g(z) | omega], and its error E[(g(z) - yhat)^2] is the variance of g(z) left on average.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from solvable.numerics.gaussian import gauss_legendre, ladder_edges, normal_density, panels
from solvable.targets.landscape import Landscape

_REACH = 7.5
_NODES = 24


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
        if v <= 0:
            continue
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
    for _ in range(26):
        middle = (low + high) / 2
        stays = np.argmax(class_probabilities(shape, middle, v), -1) == left
        low, high = np.where(stays, middle, low), np.where(stays, high, middle)
    return (low + high) / 2


def _moments(shape: Landscape, omega: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of g(z), z ~ N(omega, V), by quadrature on the smooth stretches of g within reach."""
    t, w = gauss_legendre(_NODES)
    s = np.sqrt(V)
    breaks = shape.target.breaks
    centre = omega[..., None]
    # Between breaks g is smooth; panels of two standard deviations resolve it together with the Gaussian.
    steps = centre + s * np.linspace(-_REACH, _REACH, 4)
    ends = np.sort(
        np.concatenate(
            [steps, np.clip(np.broadcast_to(breaks, (*omega.shape, len(breaks))), steps[..., :1], steps[..., -1:])], -1
        ),
        -1,
    )
    low, width = ends[..., :-1, None], np.diff(ends, axis=-1)[..., None]
    z = low + width * t
    weight = width * w * np.exp(-(((z - centre[..., None]) / s) ** 2) / 2)
    weight /= weight.sum((-2, -1), keepdims=True)
    g = shape.target.numpy(z[..., None])
    # A panel of no width may sit on a pole.
    g = np.where(weight > 0, g, 0.0)
    mean = np.sum(weight * g, (-2, -1))
    return mean, np.sum(weight * (g - mean[..., None, None]) ** 2, (-2, -1))
