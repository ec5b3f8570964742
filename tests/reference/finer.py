"""What a prediction would be with finer quadrature, solved anew from where it is; for the true error of predictions.

Each function takes a model, a learner, alpha and the prediction there (a single point), and gives metrics by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import numpy as np
from reference import erm_equations as erm

import solvable as sv
from solvable.engine.signals.singular_values import SingularValueSignal
from solvable.models.index.spectral.theory import law_of, spectral_prediction
from solvable.models.matrix.nuclear.width import WidthTheory
from solvable.spectra.convolution import NODES, free_sum
from solvable.spectra.denoising import mmse_forms
from solvable.spectra.rectangular import NODES as RECTANGULAR_NODES
from solvable.spectra.rectangular import rectangular_sums
from solvable.spectra.rectangular_denoising import rectangular_mmse_forms
from solvable.spectra.upper_part import UpperPart

FINER = 1.6
"""The fineness of the better rules, where the usual one is 1 and that of error estimates 0.7."""


def one_overlap(model, learner, alpha: float, found) -> dict[str, float]:
    """The fixed point of one projection, without the table of the curve."""
    qhat, signal = found.order_parameters["qhat"], model.signal_side()
    if not 0 < qhat < np.inf:
        return {}

    def excess(x: float) -> float:
        V = signal.mmse(np.exp([x]))
        return x - float(np.log(alpha * model.channel.information(V[:, None, None], FINER).information[0, 0, 0]))

    qhat = np.exp([secant(excess, float(np.log(qhat)))])
    return {"overlap": float(signal.overlap(qhat)[0]), "estimation_error": float(signal.mmse(qhat)[0])}


def several_overlaps(model, learner, alpha: float, found) -> dict[str, Any]:
    """The fixed point of several projections, in the entries of log(1 + Mhat)."""
    from scipy.optimize import root

    M = np.asarray(found.order_parameters["M"])
    values, vectors = np.linalg.eigh(M)
    if values[0] < 1e-3 or values[-1] > 0.999:
        return {}  # part of it is known not to be learned, or exactly

    def step(M: np.ndarray) -> np.ndarray:
        information = model.channel.information((np.eye(len(M)) - M)[None], FINER).information[0]
        return np.linalg.solve(np.eye(len(M)) + alpha * information, alpha * information)

    rows = np.triu_indices(len(M))

    def matrix(x: np.ndarray) -> np.ndarray:
        full = np.zeros(M.shape)
        full[rows] = x
        return full + np.triu(full, 1).T

    solved = root(lambda x: (step(matrix(x)) - matrix(x))[rows], M[rows], tol=1e-11, options={"eps": 1e-6})
    M = matrix(solved.x)
    return {"overlap": M, "estimation_error": len(M) - np.trace(M)}


def spectral(model, learner, alpha: float, found) -> dict[str, float]:
    """The same formulas with a finer law of the labels."""
    fine = spectral_prediction(law_of(model.channel, FINER), learner.kind, np.array([alpha]), edges=False)
    r, q = model.projections, float(np.trace(fine.overlap[0])) / model.projections
    return {"squared_overlap": q, "estimation_error": r * (1 - q)}


def matrix_bayes(model, learner, alpha: float, found) -> dict[str, float]:
    """The fixed point with twice the nodes on each interval of the spectrum."""
    signal, gain, noise = model.signal_side(), float(model.gain(alpha=alpha)), model.output_side().noise
    unit = getattr(signal, "variance", 1.0)
    order = found.order_parameters
    D = float(order["effective_noise"] if "effective_noise" in order else unit / order["qhat"])
    if not 0 < D < np.inf:
        return {}

    def left(D: float) -> float:
        """What is left unknown, for unit variance, at noise D."""
        if isinstance(signal, SingularValueSignal):
            sums = rectangular_sums(*signal.upright, np.array([D]), 2 * RECTANGULAR_NODES)
            both = [float(part[0]) for part in rectangular_mmse_forms(1.0, jax.tree.map(np.asarray, sums))]
        else:
            both = [float(part) for part in mmse_forms(signal.law, free_sum(signal.law, D, 2 * NODES))]
        return both[0 if unit > D else 1] / unit

    # qhat = unit / D solves qhat = gain / (noise + V).
    x = secant(lambda x: x - float(np.log((noise + left(np.exp(x))) * unit / gain)), float(np.log(D)))
    V = left(np.exp(x)) * unit
    return {"estimation_error": V}


class _Finer(WidthTheory):
    def _part(self, delta: float, keep: bool = False) -> UpperPart:
        if delta not in self._parts:
            self._parts[delta] = UpperPart(self.law, delta**2, 2 * NODES)
        return self._parts[delta]


def nuclear(model, learner, alpha: float, found) -> dict[str, float]:
    """Another form of the equations, in which nothing cancels, with twice the nodes."""
    share, penalty = learner.width or 1.0, float(learner.penalty)
    fine = _Finer(model.law).solve(float(model.noise), penalty, share, np.array([alpha]))
    if fine["status"][0] != 0:
        return {}
    mse, fit, reg, rank = (float(fine[name][0]) for name in ("estimation_error", "fit", "reg", "rank"))
    return {"estimation_error": mse, "training_error": fit / alpha, "training_loss": fit + reg, "rank": rank}


def minimiser(labels: Callable, weights: Callable) -> Callable:
    """The fixed point of `erm_equations` for averages `labels(m, q, V)` and penalty `weights`, by Newton's method."""

    def truth(model, learner, alpha: float, found) -> dict[str, float]:
        m, q, V = (found.order_parameters[name] for name in ("m", "q", "V"))

        def excess(x: np.ndarray) -> np.ndarray:
            m, q, V = x[0], *np.exp(x[1:])
            new = erm.image(labels(m, q, V), weights, alpha)
            return np.array([new.m - m, np.log(new.q / q), np.log(new.V / V)])

        x = np.array([m, np.log(q), np.log(V)])
        for _ in range(2):
            columns = [(excess(x + h) - excess(x - h)) / 2e-5 for h in 1e-5 * np.eye(3)]
            x = x - np.linalg.solve(np.stack(columns, 1), excess(x))
        m, q, V = x[0], *np.exp(x[1:])
        return {
            "squared_overlap": m**2 / q,
            "estimation_error": 1 - 2 * m + q,
            "training_loss": labels(m, q, V).loss,
        }

    return truth


def with_constants(constants: dict[tuple[Any, str], Any], caches: tuple = ()) -> Callable:
    """The same prediction with other constants of modules, (module, name) -> value: more nodes, smaller steps.

    Caches of what hangs on them are cleared before and after.
    """

    def truth(model, learner, alpha: float, found) -> dict[str, Any]:
        with contextlib.ExitStack() as stack:
            for (module, name), value in constants.items():
                stack.enter_context(mock.patch.object(module, name, value))
            for cache in caches:
                cache.cache_clear()
                stack.callback(cache.cache_clear)
            return dict(sv.predict(model, learner, alpha=alpha, throw=False).metrics)

    return truth


def secant(function: Callable[[float], float], x: float) -> float:
    """The root close to x, by three steps of the secant method."""
    other = x + 1e-4
    values = function(x), function(other)
    for _ in range(3):
        if values[0] == values[1]:
            break
        new = x - values[0] * (x - other) / (values[0] - values[1])
        x, other, values = new, x, (function(new), values[0])
    return x
