r"""Runs of `TwoSteps`: both steps are taken on a network, and the directions read off its second one.

In theory the update of unit i is $a_i$ times a polynomial of $a_i$ with the directions as its coefficients. They are
fitted by least squares, with two powers more than there are directions, so that what is left of higher powers is not
taken for lower ones. The scatter of the units around the fit says how much of the length of a direction is not its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from solvable.core.memory import check_memory
from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.features.two_layer.model import TwoLayer
from solvable.models.features.two_layer.run import Network, sphere_rows
from solvable.models.features.two_steps.expansion import Expansion, expansion
from solvable.models.features.two_steps.learner import TwoSteps
from solvable.models.features.two_steps.theory import SHOWN

_BLOCK = 2000
_BEYOND = 2
_TINY = 1e-300


class Fitted(NamedTuple):
    """A direction as fitted, and how much of its squared length is the scatter of finitely many units."""

    direction: np.ndarray
    noise: float

    def cosine(self, theta: np.ndarray) -> float:
        """With a unit vector; the scatter is taken off the length as far as it leaves a tenth of the square."""
        square = float(self.direction @ self.direction)
        length = math.sqrt(max(square - self.noise, 0.1 * square, _TINY))
        return min(max(float(self.direction @ theta) / length, -1.0), 1.0)


@simulation(TwoLayer, TwoSteps, references=("moniri2026two",))
def run_two_steps(model: TwoLayer, learner: TwoSteps, data: Data, rng: np.random.Generator) -> Outcome:
    """Two steps from rows on the sphere and a Gaussian second layer."""
    averages = expansion(model, learner)
    powers = averages.powers()
    (n, d), p, theta = data.X.shape, model.units(data.X.shape[1]), data.truth[:, 0]
    check_memory(8.0 * (min(n, _BLOCK) + 2 * p) * (d + p), f"two steps on {n} samples", "width", model.width)
    a, W = rng.standard_normal(p) / math.sqrt(p), sphere_rows(rng, p, d)
    rows = _rows(model, learner, W, a, data.X, data.y)
    W += p ** float(learner.first) * a[:, None] * rows
    first = a @ (a[:, None] * rows)
    X, y = (data.X, data.y) if learner.reuse else model.fresh(rng, data.truth, n)
    rows = _rows(model, learner, W, a, X, y)
    W += p ** float(learner.second) * a[:, None] * rows
    found = _fitted(averages, a, rows)
    metrics = {f"alignment_{k}": found[k].cosine(theta) if k in powers else 0.0 for k in range(SHOWN)}
    span = [*(() if learner.reuse or 0 not in powers else (first,)), *(part.direction for part in found.values())]
    share = _share(np.array(span), theta) if span else 0.0
    metrics |= {"squared_overlap": share, "cosine": math.sqrt(share)}
    return Outcome(
        metrics,
        Network(W, a),
        True,
        details={"truth": theta, "first": first, **{f"direction_{k}": found[k].direction for k in found}},
    )


def _rows(model: TwoLayer, learner: TwoSteps, W: np.ndarray, a: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The mean over samples of y sigma'(W x) x^T, or of (y - f) sigma'(W x) x^T: the update without a and its rate."""
    total = np.zeros_like(W)
    for begin in range(0, len(X), _BLOCK):
        part, label = X[begin : begin + _BLOCK], y[begin : begin + _BLOCK]
        values, slopes = model.activation.value_and_slope(part @ W.T)
        if learner.loss == "square":
            label = label - values @ a / math.sqrt(len(a))
        total += (slopes * label[:, None]).T @ part
    return total / len(X)


def _fitted(averages: Expansion, a: np.ndarray, rows: np.ndarray) -> dict[int, Fitted]:
    """The directions beta_k, up to positive factors, for each power k of a."""
    powers = averages.powers()
    if not powers:
        return {}
    degree = min(max(powers) + _BEYOND, max(len(a) - 2, 0))
    design = (math.sqrt(len(a)) * a)[:, None] ** np.arange(degree + 1)
    found = np.linalg.lstsq(design, rows, rcond=None)[0]
    left = np.sum((rows - design @ found) ** 2) / max(len(a) - degree - 1, 1)
    noise = left * np.diagonal(np.linalg.pinv(design.T @ design))
    return {k: Fitted(averages.signs[k] * found[min(k, degree)], noise[min(k, degree)]) for k in powers}


def _share(span: np.ndarray, theta: np.ndarray) -> float:
    """The share of theta in the span of the rows."""
    scaled = span / np.maximum(np.linalg.norm(span, axis=1, keepdims=True), _TINY)
    return float(min(np.sum((np.linalg.qr(scaled.T)[0].T @ theta) ** 2), 1.0))
