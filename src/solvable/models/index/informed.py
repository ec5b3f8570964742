r"""The finite-size check of the Bayes-optimal theory of index models (`engine.informed`).

Perfect recovery of k directions without noise counts as infinite entropy where it is: with c the share of labels that
depend on z through these directions only, and D the information dimension of a weight,
$\phi \to (k D - \alpha c)/2 \cdot \log v$ as their variance v -> 0.
"""

from __future__ import annotations

import numpy as np

from solvable.core.learners import BayesOptimal
from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.amp import AMPReport
from solvable.engine.informed import dominant_end, finite_entropy
from solvable.models.index.multi_index import MultiIndex
from solvable.numerics.subspaces import tidy

_RECOVERED = 0.999
_SPAN_ERROR = 5e-3


@simulation(MultiIndex, BayesOptimal, references=("rangan2011generalized", "aubin2018committee"))
def run_bayes_optimal(model: MultiIndex, learner: BayesOptimal, data: Data, rng: np.random.Generator) -> Outcome:
    """The end of larger free entropy of message passing from noise and from close to the truth."""
    return dominant_end(model, data, rng, lambda report: _limiting_entropy(model, data, report))


def _limiting_entropy(model: MultiIndex, data: Data, report: AMPReport) -> tuple[float, float]:
    """How fast the free entropy grows as V -> 0 in the recovered directions (0 where it does not), and its value."""
    _, value = finite_entropy(report)
    n, d = data.X.shape
    if value == -np.inf:
        return 0.0, value
    q, u = np.linalg.eigh(report.estimate.T @ report.estimate / d)
    # The recovered span is that of the target's own directions, up to the small error of the estimate.
    recovered = tidy(u[:, q > _RECOVERED], tolerance=_SPAN_ERROR)
    k = recovered.shape[1]
    if not k or not model.channel.deterministic:
        return 0.0, value
    return max(n / d * model.channel.pinned_mass(recovered) - k * model.prior.dimension, 0.0), value
