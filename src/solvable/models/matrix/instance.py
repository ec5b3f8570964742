"""One finite-size instance of a matrix model, and how an estimate is scored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.models.matrix.operators import Features


class MatrixData(NamedTuple):
    """Features as an operator S -> (Tr[G_mu S])_mu, labels `y` (n), the teacher's matrix (d x d) for scoring, and the
    `width` of a network that computes it."""

    operator: Features
    y: np.ndarray
    truth: np.ndarray
    width: int


def scores(estimate: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    r"""estimation_error $\|\hat A - A^*\|_F^2/d$ and the error of predicted labels.

    The latter is exactly twice the former: $\mathrm{Var}\,\mathrm{Tr}[G M] = 2\|M\|_F^2/d$ for both kinds of features.
    """
    error = float(np.sum((estimate - truth) ** 2) / len(truth))
    return {"estimation_error": error, "generalization_error": 2 * error}
