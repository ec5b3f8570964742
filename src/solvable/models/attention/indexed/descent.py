r"""Gradient descent on an attention layer of the teacher's rank, and the conjecture about where it ends.

The layer W (d x p) starts from independent N(0, 1) entries and descends $\frac1d\sum_\mu |y_\mu - \hat y_\mu|_F^2$ by
Adam. **Conjecture**, as for quadratic networks: a run ends as good as a sample of the posterior, with twice the
Bayes-optimal error, and the average of K runs has $(1 + 1/K)$ times it. Where a run ends depends on the temperature of
the softmax, which the posterior does not. [boncoraglio2025bayes]
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from solvable.core.errors import NotSimulable, NotSolvable
from solvable.core.learners import GradientDescent
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.engine.posterior_samples import averaged_samples
from solvable.models.attention.indexed.model import AttentionData, AttentionIndexed, is_wide

_CHECK = 25
"""After how many steps the loss is looked at."""


@theory(AttentionIndexed, GradientDescent, references=("boncoraglio2025bayes",))
def averaged_descent(model: AttentionIndexed, learner: GradientDescent, alpha: np.ndarray) -> Prediction:
    """Conjecture: (1 + 1/runs) times the Bayes-optimal error, for softmax of tied keys and queries."""
    _check(model, learner, NotSolvable)
    return averaged_samples(model.prediction(model.solver().optimal(model.gain(alpha=alpha))), int(learner.runs))


@simulation(AttentionIndexed, GradientDescent, references=("boncoraglio2025bayes",))
def run_descent(
    model: AttentionIndexed, learner: GradientDescent, data: AttentionData, rng: np.random.Generator
) -> Outcome:
    """Independent runs from N(0, 1) weights on the same data, and the average of their matrices."""
    _check(model, learner, NotSimulable)
    d = data.X.shape[2]
    p = max(1, round(float(model.rho) * d))
    with jax.enable_x64(True):
        X, y = jnp.asarray(data.X), jnp.exp(jnp.asarray(data.y))
        ends = [
            _descended(X, y, rng.standard_normal((d, p)), float(model.beta), learner) for _ in range(int(learner.runs))
        ]
    matrices = [W @ W.T / np.sqrt(p * d) for W, _, _ in ends]
    single = [model.scores(S, data, rng)["estimation_error"] for S in matrices]
    average = np.mean(matrices, axis=0)
    details = {"iterations": sum(steps for _, steps, _ in ends), "single_run_error": float(np.mean(single))}
    return Outcome(model.scores(average, data, rng), average, all(done for _, _, done in ends), details=details)


def _check(model: AttentionIndexed, learner: GradientDescent, error: type[Exception]) -> None:
    learner.check_plain(error)
    if model.output != "softmax" or not model.tied:
        raise error("gradient descent is known for output = 'softmax' and tied = True: hardmax has no gradient.")
    if is_wide(model.rho) or not model.rho:
        raise error("gradient descent is known for a layer of finite rank: rho neither 0 nor infinite.")


def _descended(X: Any, y: Any, W: np.ndarray, beta: float, learner: GradientDescent) -> tuple[np.ndarray, int, bool]:
    """The weights at the end, the number of steps, and whether it ended by itself."""
    weights = jnp.asarray(W)
    before, steps, tolerance = np.inf, 0, float(learner.tolerance)
    optimiser = optax.adam(float(learner.step))
    state = optimiser.init(weights)
    while steps < int(learner.max_steps):
        count = min(_CHECK, int(learner.max_steps) - steps)
        weights, state, loss = _steps(X, y, weights, state, beta, float(learner.step), count)
        steps, now = steps + count, float(loss)
        if now <= tolerance or before * (1 - tolerance) <= now <= before:
            return np.asarray(weights), steps, True
        before = now
    return np.asarray(weights), steps, False


@functools.partial(jax.jit, static_argnames="count")
def _steps(X: Any, y: Any, W: Any, state: Any, beta: Any, rate: Any, count: int) -> tuple[Any, Any, Any]:
    """`count` steps of Adam, and the mean squared residual of an entry of the label before the last."""
    n, T, d = X.shape
    optimiser = optax.adam(rate)

    def loss(W: Any) -> tuple[Any, Any]:
        projected = X.reshape(n * T, d) @ W
        projected = projected.reshape(n, T, -1) / jnp.sqrt(jnp.sqrt(W.shape[1] * d) * jnp.sqrt(d))
        h = jnp.einsum("nap,nbp->nab", projected, projected)
        h -= jnp.eye(T) * jnp.sum(W**2) / (jnp.sqrt(W.shape[1] * d) * jnp.sqrt(d))
        squares = jnp.sum((jax.nn.softmax(beta * h, axis=-1) - y) ** 2)
        return squares / d, squares / y.size

    def step(carry: Any, _: Any) -> tuple[Any, Any]:
        W, state = carry
        (_, mean), slope = jax.value_and_grad(loss, has_aux=True)(W)
        update, state = optimiser.update(slope, state)
        return (optax.apply_updates(W, update), state), mean

    (W, state), means = jax.lax.scan(step, (W, state), None, length=count)
    return W, state, means[-1]
