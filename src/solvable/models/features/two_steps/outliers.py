r"""The outliers of the first layer after two steps: large singular values, at a given width.

After both steps W is what it was, of singular values up to $1 + \sqrt{p/d}$, plus a matrix of few directions,

    p^(a_1) a c_1 beta^T + p^(a_2) sum_k p^(k a_1) a^(k+1) beta_k^T,

independent of it. With a = g/sqrt(p), g standard Gaussian, the left vectors have the inner products
$E[g^{j+k+2}]$, and the right ones those of `directions`: so its singular values are known, and each t of them above
$(p/d)^{1/4}$ makes an outlier at

    sqrt((1 + t^2)(p/d + t^2)) / t,       right vectors having the squared overlap 1 - (p/d + t^2)/(t^2 (1 + t^2))

[benaych2012singular]. Terms that vanish with the width are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from solvable.core.precision import float64
from solvable.models.features.two_layer.model import TwoLayer
from solvable.models.features.two_steps.directions import directions, sample_nodes
from solvable.models.features.two_steps.expansion import expansion, slopes_by_power
from solvable.models.features.two_steps.learner import MOST, TwoSteps


class Outliers(NamedTuple):
    """The largest singular values of the first layer, and |cosine| of their right vectors with the target."""

    values: np.ndarray
    alignments: np.ndarray


def measured_outliers(W: np.ndarray, theta: np.ndarray, count: int) -> Outliers:
    """The largest singular values of a first layer, as many as are asked for, from its d x d Gram matrix."""
    from scipy.linalg import eigh  # loaded when needed: it takes long to import

    d = W.shape[1]
    values, vectors = eigh(W.T @ W, subset_by_index=(d - count, d - 1))
    return Outliers(np.sqrt(values[::-1]), np.abs(theta @ vectors[:, ::-1]))


@float64
def expected_outliers(model: TwoLayer, learner: TwoSteps, alpha: float, d: int) -> Outliers:
    """Those above the bulk that theory expects at dimension d, the largest first."""
    averages, p = expansion(model, learner), model.units(d)
    sample = sample_nodes(model, MOST + 2, model.noise > 0)
    v = slopes_by_power(np, sample, averages, alpha, learner)
    found = directions(np, sample, alpha, learner.reuse, v)
    order, width = len(v), p / d
    # Row k: the right vector of g^(k+1)/sqrt(p), in the directions beta, beta_0, beta_1, ...
    right = np.eye(order, order + 1, 1) * p ** np.asarray(learner.exponents()[:order], float)[:, None]
    right[0, 0] += p ** float(learner.first) * averages.means[0]
    powers = np.add.outer(np.arange(order), np.arange(order)) + 2
    left = np.array([[0.0 if k % 2 else math.prod(range(k - 1, 0, -2)) for k in row] for row in powers.tolist()])
    root = np.linalg.cholesky(left)
    squares, vectors = np.linalg.eigh(root.T @ right @ found.gram @ right.T @ root)
    seen = squares[::-1] > math.sqrt(width)
    square, vectors = squares[::-1][seen], vectors[:, ::-1][:, seen]
    aligned = np.abs(vectors.T @ root.T @ right @ found.along) / np.sqrt(square)
    kept = np.sqrt(1 - (width + square) / (square * (1 + square)))
    return Outliers(np.sqrt((1 + square) * (width + square) / square), aligned * kept)
