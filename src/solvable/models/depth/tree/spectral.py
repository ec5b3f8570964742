r"""Layer-wise learning of a tree target by linear algebra: a subspace, a regression in it, a function of the result.

The expected $\frac1n\sum y (x x^T - I)$ has the eigenvalue $\pm u_2 E[g'(h)] \sqrt{2/(r m)}$ on the target's r m
directions, against noise of size $\sqrt{d/n}$: they come out of it at n of the order of d m. [dandi2025computational]
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from solvable.core.memory import check_memory
from solvable.engine.kernel.fit import feature_count
from solvable.models.depth.learners import Layerwise
from solvable.models.depth.tree.model import TreeData
from solvable.models.depth.tree.scores import Function
from solvable.numerics.gaussian import hermite_functions
from solvable.numerics.ridge import on_features, trained_samples

NEURONS = 60
"""ReLU neurons of the last read-out, a function of one number."""
_REACH = 2.5
"""Their kinks lie within so many standard deviations of the feature."""


class Network(NamedTuple):
    """What was learned: a function of inputs, the `directions` (d x k) of its first layer, its hidden features."""

    predict: Function
    directions: np.ndarray
    features: Function | None


def learn(learner: Layerwise, data: TreeData, rng: np.random.Generator) -> Network:
    """The three steps, in the order of `Layerwise`."""
    n, d = data.X.shape
    count = data.truth.shape[1]
    wide = feature_count(count, int(learner.degree))
    check_memory(16.0 * wide * (n + wide), f"{wide} polynomials of {n} samples", "degree", learner.degree)
    mean = float(data.y.mean())
    X, y = np.sqrt(d) * data.X, data.y - mean
    V = leading(X, y, count)
    H = polynomials(X @ V, int(learner.degree))
    if learner.layers == 1:
        w, _ = on_features(H, y, None, trained_samples(n, learner.validation))

        def read(inputs: np.ndarray) -> np.ndarray:
            return mean + polynomials(np.sqrt(d) * inputs @ V, int(learner.degree)) @ w

        return Network(read, V, None)
    half = max(2, n // 2)
    w, _ = on_features(H[:half], y[:half], None, trained_samples(half, learner.validation))
    scale = float(np.std(H @ w))
    w = w / scale if scale > 0 else w
    layer = relu_layer(rng)
    feature = H[half:] @ w
    a, _ = on_features(layer(feature), y[half:], None, trained_samples(len(feature), learner.validation))

    def hidden(inputs: np.ndarray) -> np.ndarray:
        return (polynomials(np.sqrt(d) * inputs @ V, int(learner.degree)) @ w)[:, None]

    def predict(inputs: np.ndarray) -> np.ndarray:
        return mean + layer(hidden(inputs)[:, 0]) @ a

    return Network(predict, V, hidden)


def leading(X: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """The eigenvectors of largest |eigenvalue| of (1/n) sum y (x x^T - I), for x of unit variance."""
    C = (X * y[:, None]).T @ X / len(y) - np.mean(y) * np.eye(X.shape[1])
    values, vectors = eigh(C)
    return vectors[:, np.argsort(-np.abs(values), kind="stable")[:count]]


def polynomials(z: np.ndarray, degree: int) -> np.ndarray:
    """Orthonormal Hermite polynomials of degree 1 to Q in the coordinates of z (n x k), one row a sample."""
    n, k = z.shape
    h = hermite_functions(z, degree)
    found = np.empty((n, int(feature_count(k, degree))), order="F")
    column = 0
    for q in range(1, degree + 1):
        for chosen in itertools.combinations_with_replacement(range(k), q):
            powers = {j: chosen.count(j) for j in chosen}
            factors = [h[power][:, j] for j, power in powers.items()]
            found[:, column] = factors[0]
            for factor in factors[1:]:
                found[:, column] *= factor
            column += 1
    return found


def relu_layer(rng: np.random.Generator) -> Function:
    """Random ReLU neurons of one number."""
    signs, places = rng.choice([-1.0, 1.0], NEURONS), rng.uniform(-_REACH, _REACH, NEURONS)
    return lambda feature: np.maximum(np.outer(feature, signs) + places, 0.0)
