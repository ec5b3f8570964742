r"""Gradient descent on a network of the teacher's width, and the conjecture about where it ends.

**Conjecture.** Without noise in the labels, a run from independent N(0, 1) weights ends as good as a sample from the
posterior: its estimation error is twice the Bayes-optimal one, and the average of K runs on the same data has
$(1 + 1/K)$ times the Bayes-optimal error. This is a numerical observation, not a theorem; runs at d = 40 are above it
by 7 to 80 percent, most where recovery is near, and approach it like 1/d.
"""

from __future__ import annotations

import numpy as np

from solvable.core.errors import NotSimulable, NotSolvable
from solvable.core.registry import simulation, theory
from solvable.core.results import Outcome, Prediction
from solvable.models.matrix.bayes_theory import bayes_points
from solvable.models.matrix.instance import MatrixData, scores
from solvable.models.matrix.learners import GradientDescent
from solvable.models.matrix.matrix_model import MatrixModel
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.network_descent import gradient_descent
from solvable.models.matrix.quadratic_network import QuadraticNetwork
from solvable.spectra import MarchenkoPastur


@theory(QuadraticNetwork, GradientDescent, references=("maillard2024bayes",))
@theory(MatrixSensing, GradientDescent, references=("maillard2024bayes",))
def averaged_descent(model: MatrixModel, learner: GradientDescent, alpha: np.ndarray) -> Prediction:
    """Conjecture: (1 + 1/runs) times the Bayes-optimal error, for noiseless networks with Gaussian weights."""
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
    points = bayes_points(model.law, 0.0, np.ravel(alpha))
    factor = 1 + 1 / int(learner.runs)
    error, uncertainty = factor * points.estimation_error, factor * points.uncertainty
    return Prediction(
        metrics={
            "estimation_error": error,
            "generalization_error": 2 * error,
            "training_error": np.zeros_like(error),  # samples of the posterior without noise fit every label
        },
        order_parameters={"effective_noise": points.effective_noise},
        status=points.status,
        residual=points.residual,
        uncertainty={
            "estimation_error": uncertainty,
            "generalization_error": 2 * uncertainty,
            "training_error": np.zeros_like(error),
        },
    )


@simulation(QuadraticNetwork, GradientDescent, references=("maillard2024bayes",))
@simulation(MatrixSensing, GradientDescent, references=("maillard2024bayes",))
def run_gradient_descent(
    model: MatrixModel, learner: GradientDescent, data: MatrixData, rng: np.random.Generator
) -> Outcome:
    """Independent runs from N(0, 1) weights on the same data, and the average of their matrices."""
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
    errors = [scores(run.S, data.truth)["estimation_error"] for run in runs]
    details = {
        "iterations": [run.iterations for run in runs],
        "steps": [run.step for run in runs],
        "single_run_error": float(np.mean(errors)),
    }
    metrics = scores(average, data.truth) | {"training_error": float(np.mean(residual**2))}
    return Outcome(metrics, average, all(run.converged for run in runs), details=details)
