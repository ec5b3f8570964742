r"""One modality after the other: the matrix by its singular vectors, then the tensor contracted with the one of u.

The leading singular vectors of the matrix are its posterior means but for their length. Contracted with the left one
the tensor is a matrix again, of signal $\sqrt{c_u/N_1}\, x y^T$ and noise $\Delta_t$, with $c_u$ the squared cosine of
u: the equations of x and y are those of message passing (`equations`), with a u that does not learn from the tensor.
[benaych2012singular]
"""

from __future__ import annotations

import math

import numpy as np

from solvable.core.model import Learner
from solvable.core.registry import simulation, theory, thresholds_of
from solvable.core.results import Outcome, Prediction
from solvable.engine.solvers.base import Thresholds
from solvable.models.lowrank.matrix_tensor.equations import Posterior
from solvable.models.lowrank.matrix_tensor.interaction import Factors
from solvable.models.lowrank.matrix_tensor.model import MatrixTensor, MatrixTensorData
from solvable.models.lowrank.matrix_tensor.solver import PrecisionCurve


class Curriculum(Learner):
    """The matrix first, by its leading singular vectors; then those of the tensor contracted with the shared one.

    It reaches as far as message passing, but u stays as the matrix alone has it, and x and y with it.
    """


@theory(MatrixTensor, Curriculum, references=("tabanelli2025computational", "benaych2012singular"))
def predict_curriculum(model: MatrixTensor, learner: Curriculum) -> Prediction:
    """Closed forms: the rectangular spiked matrix, twice."""
    couplings = model.output_side()
    equation = Posterior(couplings)
    known = np.isinf(couplings.matrix)
    alone, error = (1.0, 0.0) if known else (equation.matrix_stage, equation.error(equation.matrix_stage))
    found = couplings.overlaps(np.clip([alone, alone - error, alone + error], 0.0, 1.0))
    if np.isinf(couplings.tensor):
        found[:, 2:] = 1.0  # contracted with any vector, a tensor without noise has the right singular vectors
    return model.predicted(found[0], np.max(np.abs(found[1:] - found[0]), axis=0), posterior=False)


@thresholds_of(MatrixTensor, Curriculum, references=("tabanelli2025computational",))
def thresholds(model: MatrixTensor, learner: Curriculum) -> Thresholds:
    """Noises of the matrix below which u and v (matrix_step), and x and y (tensor_step), are found: 0 none, inf any."""
    couplings = model.output_side()
    second = np.inf if np.isinf(couplings.tensor) else PrecisionCurve(couplings).onset_noise
    return Thresholds(matrix_step=math.sqrt(couplings.sizes[1]), tensor_step=second)


@simulation(MatrixTensor, Curriculum, references=("tabanelli2025computational", "benaych2012singular"))
def run_curriculum(
    model: MatrixTensor, learner: Curriculum, data: MatrixTensorData, rng: np.random.Generator
) -> Outcome:
    """Two singular value decompositions; estimates are on the spheres |w|^2 = N, their signs as the data have them."""
    u, v = _leading(data.matrix)
    x, y = _leading(np.tensordot(u, data.tensor, axes=1))
    estimate = Factors(*(np.sqrt(len(part)) * part for part in (u, v, x, y)))
    return Outcome(model.scored(estimate, data, posterior=False), estimate)


def _leading(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The leading singular vectors."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return left[:, 0], right[0]
