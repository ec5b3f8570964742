"""Ridge regression on matrix features, by least squares iterations that never form a matrix of d^2 unknowns."""

from __future__ import annotations

import numpy as np

from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.models.matrix.instance import MatrixData, scores
from solvable.models.matrix.learners import Lazy
from solvable.models.matrix.matrix_model import MatrixModel
from solvable.models.matrix.matrix_sensing import MatrixSensing
from solvable.models.matrix.operators import Features
from solvable.models.matrix.quadratic_network import QuadraticNetwork

_TOLERANCE = 1e-10
_STEPS = 20_000


@simulation(QuadraticNetwork, Lazy, references=("chizat2019lazy",))
@simulation(MatrixSensing, Lazy, references=("chizat2019lazy",))
def run_lazy(model: MatrixModel, learner: Lazy, data: MatrixData, rng: np.random.Generator) -> Outcome:
    """The ridge estimate; without penalty the least squares solution of least norm."""
    operator, penalty, d = data.operator, float(learner.penalty), data.operator.size
    S, iterations, converged = ridge(operator, data.y, penalty * d)
    residual = data.y - operator.forward(S)
    metrics = scores(S, data.truth) | {
        "training_error": float(np.mean(residual**2)),
        "training_loss": float(residual @ residual) / d**2 + penalty / d * float(np.sum(S**2)),
    }
    return Outcome(metrics, S, converged, details={"iterations": iterations})


def ridge(operator: Features, labels: np.ndarray, decay: float) -> tuple[np.ndarray, int, bool]:
    r"""The symmetric S that minimises $\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + decay\,\|S\|_F^2$, by LSQR from 0.

    Every iterate is a combination of features, so that the limit without decay is the minimiser of least norm, and all
    of them are symmetric. Returns S, the number of steps and whether the residual or its gradient fell below the
    tolerance.
    """
    from scipy.sparse.linalg import LinearOperator, lsqr  # loaded when needed: it takes long to import

    d = operator.size
    linear = LinearOperator(
        shape=(operator.samples, d * d),
        matvec=lambda vector: operator.forward(vector.reshape(d, d)),  # pyright: ignore[reportCallIssue]
        rmatvec=lambda g: operator.adjoint(np.ravel(g)).ravel(),  # pyright: ignore[reportCallIssue]
        dtype=np.float64,
    )
    options = {"atol": _TOLERANCE, "btol": _TOLERANCE, "conlim": 0, "iter_lim": _STEPS}
    vector, stop, iterations, *_ = lsqr(linear, labels, damp=np.sqrt(decay), **options)
    return vector.reshape(d, d), int(iterations), stop != 7
