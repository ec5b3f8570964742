r"""Layer-wise learning of a tree target by gradient descent, a layer at a time with those above it frozen.

First layer: neurons $\mathrm{relu}(w_j\cdot x + b_j)$ on the sphere with frozen signs $a_j$ above them take a number
of steps $w_j \leftarrow w_j + 4\sqrt d\, a_j \frac1n\sum_\mu y_\mu \mathrm{relu}'(w_j\cdot x_\mu + b_j)\, x_\mu$ of
the correlation loss, normalised, of the order of log d of them. The labels are without their mean and their linear
part, which would draw all neurons to one direction. Each step is one of a power iteration of
$\frac1n\sum y x x^T$ on the part of it with the neuron's sign. [dandi2025computational]

Second layer: the weights V of $f = c + \sum_k a_k \mathrm{relu}(v_k\cdot\varphi(x) + c_k)$, with $\varphi$ the neurons
of the first layer, each of mean zero and variance one over the samples, are trained from zero by Adam on the square
loss of one half of the samples; those of the step of least error on a part set aside are kept. [kingma2015adam]

Read-out: ridge regression on the neurons of the last layer, on the other half.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from solvable.core.memory import check_memory
from solvable.models.depth.learners import Layerwise
from solvable.models.depth.tree.model import TreeData
from solvable.models.depth.tree.spectral import Network
from solvable.numerics.ridge import on_features, trained_samples

HIDDEN = 20
"""Neurons of the second layer."""
FIRST_RATE = 4.0
"""A step of the first layer over sqrt(d) times the gradient of a neuron."""
STEPS_PER_LOG = 3.0
"""Steps of the first layer over log d."""


def learn(learner: Layerwise, data: TreeData, rng: np.random.Generator) -> Network:
    """Both layers and the read-out, in the order of `Layerwise`."""
    n, d = data.X.shape
    p = int(learner.width)
    check_memory(16.0 * p * (n + p), f"{p} neurons on {n} samples", "width", p)
    mean = float(data.y.mean())
    X, y = np.sqrt(d) * data.X, data.y - mean
    W, b = first_layer(X, y, p, rng)
    values = np.maximum(X @ W + b, 0.0)
    centre, scale = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-12)

    def neurons(inputs: np.ndarray) -> np.ndarray:
        return (np.maximum(np.sqrt(d) * inputs @ W + b, 0.0) - centre) / scale

    F = (values - centre) / scale
    if learner.layers == 1:
        w, _ = on_features(F, y, None, trained_samples(n, learner.validation))
        return Network(lambda inputs: mean + neurons(inputs) @ w, W, None)
    half = max(2, n // 2)
    V, biases = second_layer(learner, F[:half], y[:half], rng)

    def features(inputs: np.ndarray) -> np.ndarray:
        return np.maximum(neurons(inputs) @ V + biases, 0.0)

    last = np.column_stack([np.ones(n - half), np.maximum(F[half:] @ V + biases, 0.0)])
    a, _ = on_features(last, y[half:], None, trained_samples(n - half, learner.validation))
    return Network(lambda inputs: mean + a[0] + features(inputs) @ a[1:], W, features)


def first_layer(X: np.ndarray, y: np.ndarray, p: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Weights W (d x p) on the sphere and biases, after about 3 log d steps on all samples; y of mean zero."""
    d = X.shape[1]
    y = y - X @ np.linalg.lstsq(X, y)[0]
    W = rng.standard_normal((d, p))
    W /= np.linalg.norm(W, axis=0)
    b, signs = rng.uniform(-1.0, 1.0, p), rng.choice([-1.0, 1.0], p)
    X, y = X.astype(np.float32), y.astype(np.float32)
    for _ in range(round(STEPS_PER_LOG * np.log(d))):
        active = (X @ W.astype(np.float32) > -b.astype(np.float32)) * y[:, None]
        W = W + FIRST_RATE * np.sqrt(d) * signs * (X.T @ active) / len(y)
        W /= np.linalg.norm(W, axis=0)
    return W.astype(np.float64), b


def second_layer(
    learner: Layerwise, F: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Weights V (p x q) and biases of the second layer, trained on features F and labels y."""
    p = F.shape[1]
    biases, signs = rng.uniform(-1.0, 1.0, HIDDEN), rng.choice([-1.0, 1.0], HIDDEN)
    trained = trained_samples(len(y), float(learner.validation))
    start = np.zeros((p, HIDDEN))
    rate = float(learner.learning_rate) / np.sqrt(p)
    parts = (F[:trained], y[:trained], F[trained:], y[trained:])
    single = [jnp.asarray(part, jnp.float32) for part in (start, biases, signs / np.sqrt(HIDDEN), rate, *parts)]
    return np.asarray(_trained(int(learner.steps), *single), np.float64), biases


@functools.partial(jax.jit, static_argnums=0)
def _trained(steps: int, V: Any, biases: Any, signs: Any, rate: Any, F: Any, y: Any, F_aside: Any, y_aside: Any) -> Any:
    """The weights of least loss on the samples set aside."""
    optimizer = optax.adam(rate)

    def loss(V: Any, F: Any, y: Any) -> Any:
        predicted = jax.nn.relu(F @ V + biases) @ signs
        return jnp.mean((y - predicted + jnp.mean(predicted)) ** 2)

    def step(state: Any, _: Any) -> Any:
        V, memory, best, least = state
        aside = loss(V, F_aside, y_aside)
        best = jnp.where(aside < least, V, best)
        update, memory = optimizer.update(jax.grad(loss)(V, F, y), memory)
        return (optax.apply_updates(V, update), memory, best, jnp.minimum(aside, least)), None

    (_, _, best, _), _ = jax.lax.scan(step, (V, optimizer.init(V), V, jnp.inf), length=steps)
    return best
