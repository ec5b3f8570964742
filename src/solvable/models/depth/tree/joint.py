"""A network of two or three layers on a tree target, all of its layers trained at once."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from solvable.models.depth.learners import JointTraining
from solvable.models.depth.tree.model import TreeData
from solvable.models.depth.tree.scores import Function
from solvable.numerics.ridge import trained_samples

WIDTHS = (100, 400)
"""Those that a width of None chooses from."""

Layers = list[tuple[Any, Any]]
"""Weights and biases of each layer."""


class Trained(NamedTuple):
    """A function of inputs, the first layer's weights (d x p), the last hidden layer, and the error set aside."""

    predict: Function
    directions: np.ndarray
    features: Function
    aside: float


def learn(learner: JointTraining, data: TreeData, rng: np.random.Generator) -> Trained:
    """The network, or of several widths that of least error on the samples set aside, which are the same for all."""
    n = len(data.y)
    order = rng.permutation(n)
    widths = WIDTHS if learner.width is None else (int(learner.width),)
    found = [_one(learner, width, data, order, rng) for width in widths]
    return min(found, key=lambda one: one.aside)


def _one(learner: JointTraining, width: int, data: TreeData, order: np.ndarray, rng: np.random.Generator) -> Trained:
    n, d = data.X.shape
    mean, scale = float(data.y.mean()), float(data.y.std()) or 1.0
    trained = trained_samples(n, float(learner.validation))
    X, y = np.sqrt(d) * data.X[order], (data.y[order] - mean) / scale
    sizes = [d, width, *([int(learner.second_width)] if learner.layers == 3 else []), 1]
    batch = min(int(learner.batch), trained)
    start = [
        (rng.uniform(-1, 1, (a, b)) / np.sqrt(a), rng.uniform(-1, 1, b) / np.sqrt(a))
        for a, b in zip(sizes[:-1], sizes[1:], strict=True)
    ]
    rates = (float(learner.learning_rate), float(learner.decay))
    parts = (X[:trained], y[:trained], X[trained:], y[trained:])
    single = jax.tree.map(lambda part: jnp.asarray(part, jnp.float32), (start, rates, *parts))
    key = jax.random.key(int(rng.integers(2**31)))
    best, least = _train(int(learner.epochs), batch, key, *single)
    layers = [tuple(np.asarray(part, np.float64) for part in layer) for layer in best]

    def hidden(inputs: np.ndarray) -> np.ndarray:
        values = np.sqrt(d) * inputs
        for W, b in layers[:-1]:
            values = np.maximum(values @ W + b, 0.0)
        return values

    def predict(inputs: np.ndarray) -> np.ndarray:
        W, b = layers[-1]
        return mean + scale * (hidden(inputs) @ W + b)[:, 0]

    return Trained(predict, layers[0][0], hidden, float(least) * scale**2)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _train(epochs: int, batch: int, key: Any, layers: Layers, rates: Any, X: Any, y: Any, X_aside: Any, y_aside: Any):
    """The network of least error on the samples set aside after any epoch, and that error."""
    rate, decay = rates
    optimizer = optax.chain(optax.add_decayed_weights(decay), optax.adam(rate))
    batches = len(y) // batch

    def loss(layers: Layers, X: Any, y: Any) -> Any:
        values = X
        for W, b in layers[:-1]:
            values = jax.nn.relu(values @ W + b)
        W, b = layers[-1]
        return jnp.mean((y - (values @ W + b)[:, 0]) ** 2)

    def step(state: Any, chosen: Any) -> Any:
        layers, memory = state
        update, memory = optimizer.update(jax.grad(loss)(layers, X[chosen], y[chosen]), memory, layers)
        return (optax.apply_updates(layers, update), memory), None

    def epoch(state: Any, key: Any) -> Any:
        layers, memory, best, least = state
        chosen = jax.random.permutation(key, len(y))[: batches * batch].reshape(batches, batch)
        (layers, memory), _ = jax.lax.scan(step, (layers, memory), chosen)
        aside = loss(layers, X_aside, y_aside)
        best = jax.tree.map(lambda new, old: jnp.where(aside < least, new, old), layers, best)
        return (layers, memory, best, jnp.minimum(aside, least)), None

    state = (layers, optimizer.init(layers), layers, loss(layers, X_aside, y_aside))
    (_, _, best, least), _ = jax.lax.scan(epoch, state, jax.random.split(key, epochs))
    return best, least
