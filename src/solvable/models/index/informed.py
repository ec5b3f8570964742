r"""A finite-size check of the Bayes-optimal theory, which looks at the truth: it is not an algorithm.

No efficient algorithm is known to reach the Bayes optimum inside a hard phase. So message passing is run twice, from
noise and from close to the truth, $\hat W = q_0 W^* + \sqrt{q_0 (1 - q_0)}\, N$ with $q_0 = 1 - 10^{-4}$, and the end
with the larger Bethe free entropy is kept: the dominant fixed point, whether or not noise leads to it. Perfect recovery
of k directions without noise counts as infinite entropy where it is: with c the share of labels that depend on z
through these directions only, and D the information dimension of a weight,
$\phi \to (k D - \alpha c)/2 \cdot \log v$ as their variance v -> 0. Of two infinite entropies the one that grows faster
is larger.
"""

from __future__ import annotations

import numpy as np

from solvable.core.learners import AMP, BayesOptimal
from solvable.core.model import Data
from solvable.core.registry import simulation
from solvable.core.results import Outcome
from solvable.engine.amp import AMPReport
from solvable.engine.two_sided import outcome
from solvable.models.index.multi_index import MultiIndex
from solvable.numerics.subspaces import orthonormal, tidy

_TRUTH_START = 1 - 1e-4
_RECOVERED = 0.999
_SPAN_ERROR = 5e-3


@simulation(MultiIndex, BayesOptimal, references=("rangan2011generalized", "aubin2018committee"))
def run_bayes_optimal(model: MultiIndex, learner: BayesOptimal, data: Data, rng: np.random.Generator) -> Outcome:
    """The end of larger free entropy of message passing from noise and from close to the truth."""
    instance = model.instance(data)
    informed = instance.run(truthful_start(rng, data.truth, _TRUTH_START), rng, AMP())
    uninformed, starts = instance.uninformed(rng, AMP())
    reports = {"uninformed": uninformed, "informed": informed}
    entropies = {name: _limiting_entropy(model, data, report) for name, report in reports.items()}
    branch = max(reports, key=lambda name: entropies[name])
    values = {f"free_entropy_{name}": np.inf if rate > 0 else value for name, (rate, value) in entropies.items()}
    return outcome(model, instance, data, rng, reports[branch], starts=starts, branch=branch, **values)


def truthful_start(rng: np.random.Generator, truth: np.ndarray, q: float) -> np.ndarray:
    """An estimate q W* + sqrt(q (1 - q)) N with N orthonormal like W* and orthogonal to it.

    Its overlap with the truth (d x r) and with itself are both q I exactly, and it does not depend on X given the
    truth. With fewer than 2 r dimensions some columns of N find no room, and vanish.
    """
    d, r = truth.shape
    basis = orthonormal(np.hstack([truth, rng.standard_normal((d, r))]))[:, r:]
    noise = np.zeros((d, r))
    noise[:, : basis.shape[1]] = np.linalg.norm(truth) / np.sqrt(r) * basis
    return q * truth + np.sqrt(q * (1 - q)) * noise


def _limiting_entropy(model: MultiIndex, data: Data, report: AMPReport) -> tuple[float, float]:
    """How fast the free entropy grows as V -> 0 in the recovered directions (0 where it does not), and its value."""
    if report.free_entropy is None or not np.isfinite(report.free_entropy):
        return 0.0, -np.inf
    n, d = data.X.shape
    q, u = np.linalg.eigh(report.estimate.T @ report.estimate / d)
    # The recovered span is that of the target's own directions, up to the small error of the estimate.
    recovered = tidy(u[:, q > _RECOVERED], tolerance=_SPAN_ERROR)
    k = recovered.shape[1]
    if not k or not model.channel.deterministic:
        return 0.0, report.free_entropy
    return max(n / d * model.channel.pinned_mass(recovered) - k * model.prior.dimension, 0.0), report.free_entropy
