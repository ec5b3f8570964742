r"""Gradient descent on a deep attention network of the teacher's shape, by runs alone.

The directions W (d x L) start from independent N(0, 1) entries and descend, by plain steps,

$$ \frac1d \sum_{\mu\in batch} |y_\mu - y(W)_\mu|_F^2 + \frac{decay}{2d} |W|^2 . $$

There is no theory of where it ends. [troiani2025fundamental]
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import NotSimulable
from solvable.core.learners import GradientDescent
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.attention.sequence.model import DeepAttention, SequenceData

_CHECK = 50
"""After how many batches the loss of all samples is looked at."""


@simulation(DeepAttention, GradientDescent, references=("troiani2025fundamental",))
def run_descent(
    model: DeepAttention, learner: GradientDescent, data: SequenceData, rng: np.random.Generator
) -> Outcome:
    """One run from N(0, 1) weights; `details["cosine_path"]` (batches + 1, L) has the cosine of each layer, up to its
    sign, from the start on."""
    if not model.tied or model.rank > 1 or int(learner.runs) > 1:
        raise NotSimulable(
            "gradient descent on deep attention is written for tied = True, rank = 1 and runs = 1: labels hide the "
            "sign of each layer, so that the directions of several runs have no average."
        )
    found = descended(data, float(model.residual), learner, rng)
    metrics = model.scores(found.W, data, rng)
    # What is not a posterior mean has no overlap, and predicts the label that its directions make.
    kept = {name: value for name, value in metrics.items() if not name.startswith("overlap")}
    kept |= {"generalization_error": metrics["plug_in_error"], "training_error": found.loss}
    details = {"iterations": (len(found.cosines) - 1) * int(learner.passes), "cosine_path": found.cosines}
    return Outcome(kept, found.W, found.converged, details=details)


class Descent(NamedTuple):
    """Where a run ended: W (d x L), the training error of a sample, the cosines (batches + 1, L) on the way, and
    whether it ended by itself."""

    W: np.ndarray
    loss: float
    cosines: np.ndarray
    converged: bool


def descended(data: SequenceData, residual: float, learner: GradientDescent, rng: np.random.Generator) -> Descent:
    """Batches of round(batch d) samples in an order drawn anew each epoch, what is left over being skipped."""
    n, _, d = data.X.shape
    size = min(n, max(1, round(float(learner.batch) * d))) if float(learner.batch) else n
    passes, tolerance, decay = int(learner.passes), float(learner.tolerance), float(learner.decay)
    count = max(1, int(learner.max_steps) // passes)
    start, order = rng.standard_normal(data.truth.shape), _batches(n, size, count, rng)
    with jax.enable_x64(True):
        X, y, truth, W = jnp.asarray(data.X), jnp.exp(jnp.asarray(data.y)), jnp.asarray(data.truth), jnp.asarray(start)
        path, before, squares, converged = [np.asarray(_cosines(W, truth))[None]], np.inf, np.inf, False
        begin = float(_squares(W, X, y, residual)) + decay / 2 * float(jnp.sum(W**2))
        for first in range(0, count, _CHECK):
            length = min(_CHECK, count - first)
            chosen = None if size == n else jnp.asarray(order[first : first + length])
            W, cosines = _batch_steps(X, y, truth, W, chosen, float(learner.step), decay, residual, passes, length)
            path.append(np.asarray(cosines))
            squares = float(_squares(W, X, y, residual))
            now = squares + decay / 2 * float(jnp.sum(W**2))
            # Only the loss of all samples falls at every step, so that a small fall says something; not above the
            # start, where steps that are too long end with labels of zeros and ones, which have no slope.
            stalled = size == n and now < begin and before * (1 - tolerance * length * passes) <= now <= before
            converged, before = squares <= tolerance * y.size or stalled, now
            if converged or not np.isfinite(now):
                break
    return Descent(np.asarray(W), squares / n, np.concatenate(path), converged)


def _batches(n: int, size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """The samples (count, size) of each batch; none for batches of all samples."""
    if size == n:
        return np.empty((0, n), int)
    each = n // size
    epochs = [rng.permutation(n)[: each * size].reshape(each, size) for _ in range(-(-count // each))]
    return np.concatenate(epochs)[:count]


def _cosines(W: Any, truth: Any) -> Any:
    """|w_l.w_l*| / (|w_l| |w_l*|) of each layer."""
    return jnp.abs(jnp.sum(W * truth, axis=0)) / (jnp.linalg.norm(W, axis=0) * jnp.linalg.norm(truth, axis=0))


@jax.jit
def _squares(W: Any, X: Any, y: Any, residual: Any) -> Any:
    """The sum over samples of |y - y(W)|_F^2."""
    n, T, d = X.shape
    u, *later = jnp.moveaxis((X.reshape(n * T, d) @ W).reshape(n, T, -1), -1, 0)
    while later:
        A = jax.nn.softmax(u[:, :, None] * u[:, None, :], axis=-1)
        u, *later = (residual * rest + jnp.einsum("nts,ns->nt", A, rest) for rest in later)
    return jnp.sum((jax.nn.softmax(u[:, :, None] * u[:, None, :], axis=-1) - y) ** 2)


@functools.partial(jax.jit, static_argnames=("passes", "length"))
def _batch_steps(
    X: Any, y: Any, truth: Any, W: Any, order: Any, rate: Any, decay: Any, residual: Any, passes: int, length: int
) -> tuple[Any, Any]:
    """`passes` steps on each of `length` batches, and the cosines after each batch."""
    slope = jax.grad(_squares)

    def batch(W: Any, chosen: Any) -> tuple[Any, Any]:
        x, labels = (X, y) if chosen is None else (X[chosen], y[chosen])

        def step(_: Any, W: Any) -> Any:
            return W - rate * (slope(W, x, labels, residual) + decay * W) / X.shape[2]

        W = jax.lax.fori_loop(0, passes, step, W)
        return W, _cosines(W, truth)

    return jax.lax.scan(batch, W, order, length=length)
