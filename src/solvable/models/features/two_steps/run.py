r"""Runs of `TwoSteps`: both steps are taken on a network, and the directions read off its second one.

In theory the update of unit i is $a_i$ times a polynomial of $a_i$ with the directions as its coefficients. They are
fitted by least squares, with two powers more than there are directions, so that what is left of higher powers is not
taken for lower ones. Finitely many units scatter around the fit, which makes the fitted directions too long. Two halves
of the units scatter independently, so that the inner products of directions fitted to different halves are free of it,
and so are the cosines, and the share of the target in their span, made from them. Where scatter is more than half of
the square of a direction, or the share is smaller than that of one direction alone, what is left is not known well, and
the run says that it is not `consistent`.
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
from solvable.models.features.two_steps.theory import NAMES

_BLOCK = 2000
_BEYOND = 2
_TINY = 1e-300
_LEAST = 0.1
"""At least this share of the square of a fitted direction is taken to be its own."""
_SHORT = 0.03
"""Combinations of directions of length one with a smaller square are none: a few hundred units do not show it."""
_ALLOWED = 0.05
"""By how much the share of theta in a span may be smaller than that in one direction of it."""


class Fitted(NamedTuple):
    """Directions as rows: fitted to all units, and to the two halves of them."""

    directions: np.ndarray
    halves: np.ndarray

    @property
    def gram(self) -> np.ndarray:
        """Inner products without scatter, in units of lengths with it; of the diagonal at least a tenth."""
        one, other = self.halves
        product, scale = one @ other.T, self.lengths
        product = (product + product.T) / 2 / np.outer(scale, scale)
        return product + np.diag(np.maximum(_LEAST - np.diag(product), 0.0))

    @property
    def lengths(self) -> np.ndarray:
        """With the scatter."""
        return np.maximum(np.linalg.norm(self.directions, axis=1), _TINY)

    def cosines(self, theta: np.ndarray) -> np.ndarray:
        """Of each with a unit vector."""
        return np.clip(self.directions @ theta / self.lengths / np.sqrt(np.diag(self.gram)), -1.0, 1.0)

    def share(self, theta: np.ndarray) -> float:
        """The share of a unit vector in their span."""
        scale = np.sqrt(np.diag(self.gram))
        values, vectors = np.linalg.eigh(self.gram / np.outer(scale, scale))
        one, other = (self.halves @ theta / self.lengths / scale) @ vectors
        there = values > _SHORT
        return float(np.clip(np.sum((one * other)[there] / values[there]), 0.0, 1.0))

    def consistent(self, theta: np.ndarray) -> bool:
        """Whether scatter is less than half of the square of each, and the span has no less of theta than each."""
        largest = float(np.max(self.cosines(theta) ** 2))
        return bool(np.all(np.diag(self.gram) > 0.5)) and self.share(theta) >= largest - _ALLOWED


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
    details = {"truth": theta, "first": first}
    if not powers:
        return Outcome(dict.fromkeys((*NAMES, "squared_overlap", "cosine"), 0.0), Network(W, a), details=details)
    found = _fitted(averages, a, rows)
    cosines = dict(zip(powers, found.cosines(theta).tolist(), strict=True))
    span = found if learner.reuse or 0 not in powers else _joined(first, found)
    share = span.share(theta)
    metrics = {name: cosines.get(k, 0.0) for k, name in enumerate(NAMES)}
    metrics |= {"squared_overlap": share, "cosine": math.sqrt(share)}
    details |= {f"direction_{k}": row for k, row in zip(powers, found.directions, strict=True)}
    return Outcome(metrics, Network(W, a), details=details, consistent=span.consistent(theta))


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


def _fitted(averages: Expansion, a: np.ndarray, rows: np.ndarray) -> Fitted:
    """The directions beta_k, up to positive factors, for each power k of a that does not vanish."""
    powers = averages.powers()
    degree = min(max(powers) + _BEYOND, max(len(a) // 2 - 2, 0))
    design = (math.sqrt(len(a)) * a)[:, None] ** np.arange(degree + 1)
    parts = [np.linalg.lstsq(design[part], rows[part], rcond=None)[0] for part in (np.s_[:], np.s_[::2], np.s_[1::2])]
    kept = [min(k, degree) for k in powers]
    every, *halves = (averages.signs[powers, None] * part[kept] for part in parts)
    return Fitted(every, np.array(halves))


def _joined(first: np.ndarray, found: Fitted) -> Fitted:
    """The direction of the first step, in which all units are averaged and none scatters, before the others."""
    halves = [np.concatenate([first[None], half]) for half in found.halves]
    return Fitted(np.concatenate([first[None], found.directions]), np.array(halves))
