"""Fixed points of what draws of labels tell, once more with several times the draws, made of other seeds.

Each function takes a model, a learner, alpha and the prediction there, and gives metrics by name. The uncertain part is
the information of a label. Where it is made anew only at the point found, its change moves the fixed point as the slope
of the state evolution says, which the usual draws tell well enough.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from reference.finer import secant
from scipy.special import ndtr

from solvable.channels.sequence import base, drawn_layers, function, hidden, turns
from solvable.models.attention.indexed import hardmax_many, hardmax_untied
from solvable.models.attention.sequence.metrics import label_errors
from solvable.numerics import sobol

_OTHER = 50_000
_STEP = 0.02
_LEAST = 2e-3
"""Eigenvalues of an overlap, or what they leave of one, below which the prediction is one of exact knowledge."""


@contextlib.contextmanager
def other_draws(*modules: Any) -> Iterator[None]:
    """Sobol points of scramblings that the package does not use."""

    def points(dimensions: int, power: int, number: int = 0) -> np.ndarray:
        return sobol.normal_points(dimensions, power, number + _OTHER)

    with contextlib.ExitStack() as stack:
        for module in modules:
            stack.enter_context(mock.patch.object(module, "normal_points", points))
        yield


def information(channel: Any, V: np.ndarray, fineness: float) -> tuple[np.ndarray, float]:
    """The information of labels at V (r x r), and its stated error, by other draws."""
    with other_draws(base, drawn_layers, function, hidden, turns):
        found = channel.information(V[None], fineness)
    return found.information[0], float(found.error[0])


def overlaps(fineness: float) -> Callable:
    """A matrix M of overlaps: Mhat = gain I(I - M), M = 1 - mmse(Mhat), layer by layer or for Gaussian weights."""

    def truth(model, learner, alpha: float, found) -> dict[str, Any]:
        M = np.atleast_2d(np.asarray(found["overlap"], float))
        values = np.linalg.eigvalsh(M)
        if values[0] < _LEAST or values[-1] > 1 - _LEAST:
            return {}
        one, gain, channel = np.eye(len(M)), float(model.gain(alpha=alpha)), model.channel
        signal = None if hasattr(model.signal_side(), "prior") else model.signal_side()
        rows = np.diag_indices(len(M)) if signal is not None else np.triu_indices(len(M))

        def overlap_of(information: np.ndarray) -> np.ndarray:
            field = gain * information
            if signal is not None:
                return np.diag([float(signal.overlap(np.array([x]))[0]) for x in np.diag(field)])
            return np.linalg.solve(one + field, field)

        def usual(M: np.ndarray) -> np.ndarray:
            return overlap_of(channel.information((one - M)[None]).information[0])[rows]

        # Newton's step from M, with the slope of the usual draws.
        here, slope = usual(M), []
        for a, b in zip(*rows, strict=True):
            moved = M.copy()
            moved[a, b] = moved[b, a] = M[a, b] - _STEP * min(M[a, a], M[b, b])
            slope.append((usual(moved) - here) / (moved[a, b] - M[a, b]))
        better = overlap_of(information(channel, one - M, fineness)[0])[rows]
        change = np.linalg.solve(np.eye(len(here)) - np.stack(slope, 1), better - M[rows])
        M[rows] += change
        M = np.triu(M) + np.triu(M, 1).T
        exact = {f"overlap_{k + 1}": M[k, k] for k in range(len(M)) if len(M) > 1}
        return exact | {"estimation_error": len(M) - np.trace(M)}

    return truth


def label_error(model, learner, alpha: float, found) -> dict[str, float]:
    """The errors of labels where overlaps are known exactly, from sixteen times the points."""
    from solvable.models.attention.sequence import metrics

    M = np.atleast_2d(np.asarray(found["overlap"], float))
    labels = model.labels() if hasattr(model, "labels") else model.channel.clean
    with other_draws(metrics), mock.patch.object(metrics, "_POWER", metrics._POWER + 4):
        metrics._label_errors.cache_clear()
        exact = label_errors(labels, model.tokens, np.eye(len(M)) - M)
    metrics._label_errors.cache_clear()
    return {"generalization_error": exact[0], "plug_in_error": exact[2]}


def scaled(better: Callable[[Any, float], float]) -> Callable:
    """One overlap: the information is that of the package times what `better(model, V)` is there over it."""

    def truth(model, learner, alpha: float, found) -> dict[str, float]:
        V, gain = float(found["estimation_error"]), float(model.gain(alpha=alpha))
        output, signal = model.output_side(), model.signal_side()
        factor = better(model, V) / float(output.information(np.array(V)))

        def excess(x: float) -> float:
            V = float(signal.mmse(np.exp([x]))[0])
            return x - float(np.log(gain * factor * output.information(np.array(V))))

        x = secant(excess, float(np.log(found.order_parameters["qhat"])))
        return {"estimation_error": float(signal.mmse(np.exp([x]))[0])}

    return truth


def hardmax(model, V: float) -> float:
    """The largest score of each row, by fresh samples."""
    if not model.tied:
        with other_draws(hardmax_untied):
            found = [hardmax_untied.row_information(model.tokens, 1 / V - 1, 13, k) for k in range(4)]
        return model.tokens * float(np.mean(found)) / V
    hardmax_many._uniform.cache_clear()
    ratio = (1 + float(model.rho) - V) / V
    with other_draws(hardmax_many):
        found = [hardmax_many.drawn_information(model.tokens, ratio, 12, 64, k) for k in range(8)]
    hardmax_many._uniform.cache_clear()
    return float(np.mean(found)) / V


def sign_of_score(model, V: float) -> float:
    """Labels sign(h_12): E phi(k)^2 / (Phi(k) Phi(-k)), k ~ N(0, (1 - V)/V), by the trapezoidal rule."""
    k = np.linspace(-9, 9, 4001)
    width = np.sqrt((1 - V) / V)
    z = np.linspace(-9, 9, 4001)
    weight = np.exp(-(z**2) / 2)
    k = width * z
    density = np.exp(-(k**2) / 2) / np.sqrt(2 * np.pi)
    below = ndtr(-np.abs(k))
    return float(weight @ (density**2 / np.maximum(below * (1 - below), 1e-300)) / weight.sum()) / V


def noisy_scores(model, V: float) -> float:
    """All scores of untied keys and queries with noise: measurements of d^2 entries."""
    return model.tokens**2 / (V + float(model.noise))
