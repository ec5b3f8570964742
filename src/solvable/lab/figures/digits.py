"""The 8 x 8 digits that scikit-learn ships, as a task of two classes, and what reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PENALTIES = np.geomspace(1e-7, 1e3, 31)
"""Of ridge regressions, of which cross-validation on the training set takes one."""
TASKS = {"odd or even": lambda digit: digit % 2 == 1, "five and more": lambda digit: digit >= 5}


def digits(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Images as rows of mean zero and mean square norm one, and labels +-1."""
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    X = np.asarray(found.data, float)
    X = X - X.mean(axis=0)
    return X / np.sqrt(np.mean(np.sum(X**2, axis=1))), np.where(TASKS[task](found.target), 1.0, -1.0)


def split(count: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on, and the others."""
    order = np.random.default_rng([seed, n]).permutation(count)
    return order[:n], order[n:]


def ridge_error(train: np.ndarray, y: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    """The mean squared error of a ridge regression on features."""
    from sklearn.linear_model import RidgeCV

    return float(np.mean((RidgeCV(PENALTIES).fit(train, y).predict(test) - truth) ** 2))


def kernel_features(train: np.ndarray, test: np.ndarray, depth: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Features whose inner products are the kernel of `depth` layers of infinitely many ReLU neurons."""
    from solvable.engine.lofi.layers import arc_cosine, length

    for _ in range(depth):
        scale = length(train)
        values, vectors = np.linalg.eigh(arc_cosine(train, train, scale))
        there = values > 1e-10 * values[-1]
        roots, vectors = np.sqrt(values[there]), vectors[:, there]
        train, test = vectors * roots, arc_cosine(test, train, scale) @ (vectors / roots)
    return train, test


def random_layers(widths: list[int], train: np.ndarray, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Layers of random ReLU neurons of these widths, which nothing selects."""
    from solvable.engine.lofi.layers import Neurons

    layers, h = [], train
    for width in widths:
        layers.append(Neurons(h, width, rng))
        h = layers[-1].values

    def through(h: np.ndarray) -> np.ndarray:
        for layer in layers:
            h = layer(h)
        return h

    return through
