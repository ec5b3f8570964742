r"""Runs of `PowerLawFeatures`: ridge regression on features that are really drawn.

What the d eigenfunctions of a run leave out is independent noise: in a feature of variance $\sum_{k>d} \lambda_k$, on
the diagonal of the kernel matrix, and in the labels of variance $\sum_{k>d} \beta_k^2$. Bias and variance are those of
this draw: labels without noise, and noise alone, are fitted beside the labels, which is all the same linear map.
Close to interpolation (n = p with a small penalty) both have heavy tails over the draws, and the mean of a few is far
from the limit: take many runs, or medians, or a larger penalty.
"""

from __future__ import annotations

import numpy as np

from solvable.core.errors import NotSimulable
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.cosines import cosines
from solvable.models.features.learners import RandomFeatures
from solvable.models.features.power_law.model import PowerLawData, PowerLawFeatures


@simulation(PowerLawFeatures, RandomFeatures, references=("defilippis2024dimension",))
def run_power_law(
    model: PowerLawFeatures, learner: RandomFeatures, data: PowerLawData, rng: np.random.Generator
) -> Outcome:
    """Ridge regression of the signal and of the noise, whose sum is that of the labels."""
    if learner.loss != "square":
        raise NotSimulable(f"PowerLawFeatures has real labels: RandomFeatures with {learner.loss} loss has no run.")
    labels = np.stack([data.signal, data.noise], axis=1)
    fit = _kernel_ridge if data.F is None else _ridge
    coefficients, beside, fitted = fit(data, labels, float(learner.penalty))
    truth, unseen = data.truth, data.rest[2]
    whole, scale = coefficients.sum(axis=1), float(truth @ truth) + unseen
    # What the functions beyond d contribute to the estimate is orthogonal to the target, up to what a run leaves out.
    extra = beside[0, 0] + 2 * beside[0, 1] + beside[1, 1]
    bias = float(np.sum((coefficients[:, 0] - truth) ** 2) + beside[0, 0] + unseen)
    metrics = {
        "bias": bias,
        "variance": float(np.sum(coefficients[:, 1] ** 2) + beside[1, 1]),
        "generalization_error": float(np.sum((whole - truth) ** 2) + extra + unseen),
        "training_error": float(np.mean((labels.sum(axis=1) - fitted.sum(axis=1)) ** 2)),
    } | {k: float(v) for k, v in cosines(whole @ truth, float(whole @ whole + extra), scale).items()}
    return Outcome(metrics, whole)


def _ridge(data: PowerLawData, labels: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients (d x 2) of the fits, the squared norm (2 x 2) of what lies beyond d, and the fitted labels."""
    assert data.F is not None and data.W is not None
    n, p = data.F.shape
    F = data.F / np.sqrt(p)
    if penalty == 0:
        a = np.linalg.lstsq(F, labels, rcond=None)[0]
    elif p <= n:
        a = np.linalg.solve(F.T @ F + penalty * np.eye(p), F.T @ labels)
    else:
        a = F.T @ np.linalg.solve(F @ F.T + penalty * np.eye(n), labels)
    coefficients = np.sqrt(data.eigenvalues)[:, None] * (data.W.T @ a) / np.sqrt(p)
    return coefficients, data.rest[0] / p * (a.T @ a), F @ a


def _kernel_ridge(data: PowerLawData, labels: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for infinitely many features."""
    diagonal = np.eye(len(labels))
    kernel = (data.X * data.eigenvalues) @ data.X.T + data.rest[0] * diagonal
    dual = np.linalg.solve(kernel + penalty * diagonal, labels)
    coefficients = data.eigenvalues[:, None] * (data.X.T @ dual)
    return coefficients, data.rest[1] * (dual.T @ dual), kernel @ dual
