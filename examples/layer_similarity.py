"""Which of two attention layers settles first? Train them on your own tokens and see.

    python examples/layer_similarity.py tokens.npz

The file holds `tokens` (samples, length), whole numbers from 0, and `classes` (samples,). Without a file, made-up
sentences are used, whose class is that of the token they have most of.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

from solvable.models.attention.sequence.similarity import settled_at, similarity_to_end

SIZE, WIDTH, RATE, BATCH = 32, 16, 3e-3, 32


def load(path: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and classes of a file, or made-up ones."""
    if path is not None:
        data = np.load(path)
        return data["tokens"].astype(int), data["classes"].astype(int)
    rng = np.random.default_rng(0)
    classes = rng.integers(4, size=400)
    tokens = np.where(rng.random((400, 8)) < 0.4, classes[:, None], rng.integers(20, size=(400, 8)))
    return tokens, classes


def predict(weights: dict, tokens: jax.Array) -> jax.Array:
    """Scores of the classes: two layers x <- softmax(x W W^T x^T) x, the mean over tokens, and a linear read-out."""
    x = weights["embedding"][tokens]
    for layer in weights["layers"]:
        seen = x @ layer
        x = jax.nn.softmax(seen @ jnp.swapaxes(seen, -1, -2) / np.sqrt(WIDTH), axis=-1) @ x
    return x.mean(axis=-2) @ weights["readout"]


def train(tokens: np.ndarray, classes: np.ndarray, epochs: int, start: float = 0.1) -> np.ndarray:
    """The weights (2, times, d, k) of both layers at the start and after each epoch."""
    rng = np.random.default_rng(1)
    weights = {
        "embedding": jnp.asarray(rng.standard_normal((tokens.max() + 1, SIZE))),
        "layers": [jnp.asarray(start * rng.standard_normal((SIZE, WIDTH))) for _ in range(2)],
        "readout": jnp.asarray(0.1 * rng.standard_normal((SIZE, classes.max() + 1))),
    }
    optimiser = optax.adam(RATE)
    state = optimiser.init(weights)

    @jax.jit
    def step(weights, state, tokens, classes):
        def loss(weights):
            return optax.softmax_cross_entropy_with_integer_labels(predict(weights, tokens), classes).mean()

        update, state = optimiser.update(jax.grad(loss)(weights), state)
        return optax.apply_updates(weights, update), state

    kept = [[np.array(layer) for layer in weights["layers"]]]
    for _ in range(epochs):
        order = rng.permutation(len(tokens))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[first : first + BATCH]
            weights, state = step(weights, state, tokens[rows], classes[rows])
        kept.append([np.array(layer) for layer in weights["layers"]])
    return np.swapaxes(np.array(kept), 0, 1)


def main(path: str | None = None, epochs: int = 10) -> list[np.ndarray]:
    found = [similarity_to_end(layer) for layer in train(*load(path), epochs)]
    for number, similarity in enumerate(found, start=1):
        print(f"layer {number}: S = {np.round(similarity, 3)}, above 0.9 from epoch {settled_at(similarity, 0.9)} on")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
