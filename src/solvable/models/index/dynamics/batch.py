r"""A network trained by gradient descent on batches of n = alpha d samples: theory and runs.

With the same batch at every step the samples remember what they did to the weights, and theory is the dynamical
mean-field theory of `engine/dynamics/dmft.py`; with fresh batches it is the recursion of `engine/dynamics/fresh.py`.
After one step the two are the same. After two the same batch teaches what no number of fresh ones does: a target like
$He_3$, whose label is uncorrelated with z, becomes visible through powers of the label. [dandi2024benefits]
"""

from __future__ import annotations

import functools

import numpy as np

from solvable.core.errors import NotSimulable, NotSolvable
from solvable.core.model import Data
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.engine.dynamics.dmft import descend
from solvable.engine.dynamics.fresh import descend_fresh
from solvable.engine.dynamics.labels import Labels
from solvable.engine.dynamics.scatter import judged
from solvable.models.index.dynamics.learners import BatchGD
from solvable.models.index.dynamics.metrics import metrics_of, uncertainty_of
from solvable.models.index.multi_index import MultiIndex
from solvable.numerics.subspaces import orthonormal


def _why_not(model: MultiIndex) -> str | None:
    if model.named_channel is not None:
        return f"descent is solved for labels y = g(z) + noise, not for the named channel {model.named_channel!r}"
    if model.contamination:
        return "descent is solved for labels y = g(z) + noise, not for contaminated ones"
    return None


@theory(MultiIndex, BatchGD, vectorized=False, references=("dandi2024benefits",))
def batch_theory(model: MultiIndex, learner: BatchGD, alpha: float) -> Prediction:
    """The overlaps after `learner.steps` steps, and the metrics they give."""
    if reason := _why_not(model):
        raise NotSolvable(f"{reason}: use MultiIndex with a target and noise.")
    M, Q = learner.first_overlaps(model.projections)
    labels = Labels(model.target, learner.student, float(model.noise), float(learner.decay))
    rate, steps = float(learner.learning_rate), int(learner.steps)
    if learner.reuse:
        found, other = descend(labels, float(alpha), rate, steps, M, Q, model.target)
    else:
        found, other = descend_fresh(labels, float(alpha), rate, steps, M, Q)
    metrics, uncertainty = judged(functools.partial(metrics_of, model, labels.student), found, other)
    M, Q = (path[:, -1].mean(axis=0, keepdims=True) for path in (found.M, found.Q))
    own = uncertainty_of(model, labels.student, M, Q)
    uncertainty = {name: error + float(own[name][0]) for name, error in uncertainty.items()}
    path = {"M_path": found.M.mean(axis=0), "Q_path": found.Q.mean(axis=0)}
    last = {"M": path["M_path"][-1], "Q": path["Q_path"][-1]}
    how = {"condition": found.condition, "held_against_derivatives": float(learner.reuse and not other.stein)}
    return Prediction(metrics, last | path | how, iterations=steps, uncertainty=uncertainty)


@simulation(MultiIndex, BatchGD, references=("dandi2024benefits",))
def run_batches(model: MultiIndex, learner: BatchGD, data: Data, rng: np.random.Generator) -> Outcome:
    """Descent from weights with exactly the overlaps of the start; a fresh batch has as many samples as the first."""
    if reason := _why_not(model):
        raise NotSimulable(f"{reason}: use MultiIndex with a target and noise.")
    X, y, (d, r) = data.X, data.y, data.truth.shape
    student, directions = learner.student, data.truth / np.sqrt(d)
    rate, keep = float(learner.learning_rate), 1 - float(learner.learning_rate) * float(learner.decay)
    a, activation = np.array(student.second_layer), student.activation
    M, Q = learner.first_overlaps(r, d, rng)
    W = first_weights(directions, M, Q, rng)
    path = [(W.T @ directions, W.T @ W)]
    with np.errstate(over="ignore", invalid="ignore"):  # descent that runs away is not finite, and says so
        for step in range(int(learner.steps)):
            if step and not learner.reuse:
                X = rng.standard_normal(X.shape) / np.sqrt(d)
                y = model.target.numpy(X @ data.truth) + np.sqrt(float(model.noise)) * rng.standard_normal(len(X))
            value, slope = activation.value_and_slope(np.sqrt(d) * (X @ W))
            residual = y - value @ a if student.square else y
            W = keep * W + rate / np.sqrt(d) * (X.T @ (residual[:, None] * a * slope))
            path.append((W.T @ directions, W.T @ W))
    M, Q = (np.stack(part) for part in zip(*path, strict=True))
    metrics = {name: float(value[0]) for name, value in metrics_of(model, student, M[-1:], Q[-1:]).items()}
    return Outcome(metrics, W, details={"M": M[-1], "Q": Q[-1], "M_path": M, "Q_path": Q})


def first_weights(directions: np.ndarray, M: np.ndarray, Q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights (d, p) with W^T directions = M and W^T W = Q exactly, random but for that; `directions` orthonormal."""
    p = len(M)
    left, vectors = np.linalg.eigh(Q - M @ M.T)
    frame = rng.standard_normal((len(directions), p))
    frame = orthonormal(frame - directions @ (directions.T @ frame))
    return directions @ M.T + frame @ (vectors * np.sqrt(np.maximum(left, 0.0))).T
