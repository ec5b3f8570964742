r"""Gradient descent on a network of the teacher's width, and the conjecture about where it ends.

**Conjecture.** Without noise in the labels, a run from independent N(0, 1) weights ends as good as a sample from the
posterior: its estimation error is twice the Bayes-optimal one, and the average of K runs on the same data has
$(1 + 1/K)$ times the Bayes-optimal error. This is a numerical observation, not a theorem; runs at d = 40 are above it
by 7 to 80 percent, most where recovery is near, and approach it like 1/d.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from solvable.core.errors import NotSimulable, NotSolvable
from solvable.core.learners import GradientDescent
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.engine.operators import Features
from solvable.engine.posterior_samples import averaged_samples
from solvable.models.matrix.model import MatrixData, MatrixModel, errors
from solvable.spectra import MarchenkoPastur


@theory(MatrixModel, GradientDescent, references=("maillard2024bayes",))
def averaged_descent(model: MatrixModel, learner: GradientDescent, alpha: np.ndarray) -> Prediction:
    """Conjecture: (1 + 1/runs) times the Bayes-optimal error, for noiseless networks with Gaussian weights."""
    learner.check_plain(NotSolvable)
    if not isinstance(model.law, MarchenkoPastur):
        raise NotSolvable(
            "gradient descent has a conjectured theory only for the eigenvalues of a network with Gaussian weights "
            "(MarchenkoPastur); it can be simulated for any that are not negative."
        )
    if float(model.noise) > 0:
        raise NotSolvable(
            f"noise = {float(model.noise):g}: gradient descent has a conjectured theory only for noise = 0; "
            "it can be simulated with noise."
        )
    best = model.prediction(model.solver().optimal(model.gain(alpha=alpha)))
    found = averaged_samples(best, int(learner.runs))
    zero = {"training_error": np.zeros_like(alpha)}  # samples of the posterior without noise fit every label
    return dataclasses.replace(found, metrics=found.metrics | zero, uncertainty=found.uncertainty | zero)


@simulation(MatrixModel, GradientDescent, references=("maillard2024bayes",))
def run_gradient_descent(
    model: MatrixModel, learner: GradientDescent, data: MatrixData, rng: np.random.Generator
) -> Outcome:
    """Independent runs from N(0, 1) weights on the same data, and the average of their matrices."""
    learner.check_plain(NotSimulable)
    d = data.operator.size
    eigenvalues = np.linalg.eigvalsh(data.truth)
    if eigenvalues[0] < -1e-9 * np.max(np.abs(eigenvalues)):
        raise NotSimulable(
            "gradient descent trains a network of quadratic units, whose matrix has no negative eigenvalues; this "
            "model's has some. Learners without this limit: BayesOptimal, AMP, Lazy."
        )
    runs = [
        gradient_descent(
            data.operator,
            data.y,
            rng.standard_normal((data.width, d)),
            float(learner.step),
            int(learner.max_steps),
            float(learner.tolerance),
        )
        for _ in range(int(learner.runs))
    ]
    average = np.mean([run.S for run in runs], axis=0)
    residual = data.y - data.operator.forward(average)
    single = [errors(run.S, data.truth)["estimation_error"] for run in runs]
    details = {
        "iterations": sum(run.iterations for run in runs),  # a number, as of all learners, so that curves can hold them
        "steps": [run.step for run in runs],
        "single_run_error": float(np.mean(single)),
    }
    metrics = errors(average, data.truth) | {"training_error": float(np.mean(residual**2))}
    return Outcome(metrics, average, all(run.converged for run in runs), details=details)


class Descent(NamedTuple):
    """Where a gradient descent ended: S, the number of steps, the last step size, and whether it ended by itself."""

    S: np.ndarray
    iterations: int
    step: float
    converged: bool


def gradient_descent(
    operator: Features, labels: np.ndarray, W: np.ndarray, step: float, max_steps: int, tolerance: float
) -> Descent:
    r"""Plain gradient descent on $\frac14\sum_\mu (y_\mu - \hat y_\mu)^2$ from the weights W (p x d).

    $W \leftarrow W + \epsilon\, W \mathcal{F}^*(y - \hat y)/\sqrt{pd}$, with $\epsilon$ = `step`, halved whenever the
    loss would rise: the curvature grows with the number of samples. It ends when the mean squared residual is below
    `tolerance`, or the loss falls by a smaller share than that in a step.
    """
    scale = np.sqrt(W.shape[0] * W.shape[1])
    S = W.T @ W / scale
    residual = labels - operator.forward(S)
    loss = float(np.mean(residual**2))
    slope = W @ operator.adjoint(residual) / scale
    for iteration in range(1, max_steps + 1):
        if loss <= tolerance:
            return Descent(S, iteration - 1, step, True)
        W_new = W + step * slope
        S_new = W_new.T @ W_new / scale
        residual = labels - operator.forward(S_new)
        loss_new = float(np.mean(residual**2))
        if not loss_new <= loss:
            step /= 2
            continue
        stalled = loss - loss_new <= tolerance * loss
        W, S, loss = W_new, S_new, loss_new
        if stalled:
            return Descent(S, iteration, step, True)
        slope = W @ operator.adjoint(residual) / scale
    return Descent(S, max_steps, step, loss <= tolerance)
