r"""Descent on single samples with the d-dimensional weights themselves: what the chain of overlaps has the law of.

Inputs come from the stream of a model, of variance 1/d, and are multiplied by $\sqrt d$ here; weights have norms of
order one. It costs O(p d) a step, in a compiled loop over the samples of a block.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import NotSimulable, bad_parameter
from solvable.core.memory import check_memory
from solvable.core.model import Stream
from solvable.engine.dynamics.moves import AHEAD, TWICE, Move, Rates

BLOCK = 256


def full_run(
    stream: Stream,
    move: Move,
    rates: Rates,
    start: tuple[np.ndarray, np.ndarray],
    counts: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """M (k, p, r) and Q (k, p, p) of the weights after increasing numbers of samples, from the overlaps `start`."""
    if move.copies:
        raise NotSimulable("near-copies are simulated by the reduced chain only: use reduced=True.")
    teacher = stream.truth / math.sqrt(len(stream.truth))
    if len(teacher) < teacher.shape[1] + len(start[0]):
        least = teacher.shape[1] + len(start[0])
        raise bad_parameter("d", len(teacher), f"at least {least}, the number of directions and neurons")
    W = jnp.asarray(weights_with(*start, teacher, rng))
    d, p = len(teacher), len(start[0])
    check_memory(8.0 * BLOCK * d * p, f"the weights along {BLOCK} steps", "d", d)
    numbers = jax.tree.map(jnp.asarray, Rates(*map(float, rates)))
    M, Q = (np.empty((len(counts), *part.shape)) for part in start)
    done = 0

    def look(k: int, W: np.ndarray) -> None:
        M[k], Q[k] = W @ teacher, W @ W.T

    for k in np.flatnonzero(counts == 0):
        look(int(k), np.asarray(W))
    while done < counts[-1]:
        data = stream.draw(BLOCK)
        W, path = _block(move, numbers, math.sqrt(d) * data.X, data.y, W)
        for k in np.flatnonzero((counts > done) & (counts <= done + BLOCK)):
            look(int(k), np.asarray(path[counts[k] - done - 1]))
        done += BLOCK
    return M, Q


def weights_with(M: np.ndarray, Q: np.ndarray, teacher: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights (p x d) with exactly these overlaps with the orthonormal columns of `teacher` and with each other."""
    outside = rng.standard_normal((len(teacher), len(M)))
    frame, _ = np.linalg.qr(outside - teacher @ (teacher.T @ outside))
    left, vectors = np.linalg.eigh(Q - M @ M.T)
    root = (vectors * np.sqrt(np.maximum(left, 0.0))) @ vectors.T
    return M @ teacher.T + root @ frame.T


@functools.partial(jax.jit, static_argnums=0)
def _block(move: Move, rates: Rates, X: Any, y: Any, W: Any) -> Any:
    d = X.shape[1]
    student, gamma = move.student, rates.learning_rate

    def moved(W: Any, c: Any, x: Any, h: Any) -> Any:
        if not move.spherical:
            return W + c[:, None] * x
        W = W + c[:, None] * (x - h[:, None] * W)
        return W / jnp.linalg.norm(W, axis=1, keepdims=True)

    def step(W: Any, sample: Any) -> Any:
        x, label = sample
        h = W @ x
        force = student.force(label, h)
        if move.kind == AHEAD:
            force = student.force(label, (W + rates.extrapolation / d * force[:, None] * x) @ x)
        W = moved(W, gamma / d * force, x, h)
        if move.kind == TWICE:
            h = W @ x
            W = moved(W, gamma / d * student.force(label, h), x, h)
        return W, W

    return jax.lax.scan(step, W, (jnp.asarray(X), jnp.asarray(y)))
