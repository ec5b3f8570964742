"""A network of selected features fitted to samples: what the runs of all models share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.core.memory import check_memory
from solvable.engine.lofi import KERNEL, NeuralLoFi
from solvable.engine.lofi.layers import Stack, arc_cosine, length, select
from solvable.numerics.batches import in_blocks
from solvable.numerics.ridge import by_kernel, on_features, trained_samples


class Fit(NamedTuple):
    """A function of inputs, its layers, and the penalty of the read-out."""

    predict: Callable[[np.ndarray], np.ndarray]
    stack: Stack
    penalty: float

    def features(self, X: np.ndarray, layer: int) -> np.ndarray:
        """What the layer of that number, from 1, passes on."""
        return self.stack(X, layer)

    def directions(self, X: np.ndarray) -> np.ndarray:
        """The linear parts of the first layer's features (d x K), from the inputs X (n x d) of independent entries."""
        first = self.stack.layers[0]
        return X.T @ first(X) / len(X)


def fit_lofi(learner: NeuralLoFi, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Fit:
    """Fit labels y (n) of inputs X (n x d): layers of features, and a ridge regression on what follows them."""
    n, d = X.shape
    infinite = learner.width == KERNEL
    most = n if infinite else int(learner.width)
    check_memory(8.0 * (n + d + most) * 3 * most, f"{n} samples of {most} neurons", "width", learner.width)
    mean = float(y.mean())
    centred = (y - mean)[:, None]
    stack = select(X, centred, int(learner.features), learner.layers, learner.width, True, rng)
    penalty = None if learner.penalty is None else float(learner.penalty)
    trained = trained_samples(n, float(learner.validation)) if n > 1 else 1
    if n < 2:
        penalty = 1.0
    if not infinite:
        w, penalty = on_features(stack.output, y - mean, penalty, trained)
        return Fit(in_blocks(lambda inputs: mean + stack(inputs) @ w), stack, penalty)
    h, scale = stack.output, max(length(stack.output), float(np.finfo(float).tiny))
    c, penalty = by_kernel(arc_cosine(h, h, scale), y - mean, penalty, trained)
    return Fit(in_blocks(lambda inputs: mean + arc_cosine(stack(inputs), h, scale) @ c), stack, penalty)
