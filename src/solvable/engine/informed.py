r"""A finite-size check of Bayes-optimal theories, which looks at the truth: it is not an algorithm.

No efficient algorithm is known to reach the Bayes optimum inside a hard phase. So message passing is run twice, from
noise and from close to the truth, $\hat W = q_0 W^* + \sqrt{q_0 (1 - q_0)}\, N$ with $q_0 = 1 - 10^{-4}$, and the end
with the larger Bethe free entropy is kept: the dominant fixed point, whether or not noise leads to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.core.learners import AMP
from solvable.core.results import Outcome
from solvable.engine.amp import AMPReport
from solvable.engine.two_sided import TwoSided, outcome
from solvable.numerics.subspaces import orthonormal

_TRUTH_START = 1 - 1e-4

Entropy = Callable[[AMPReport], tuple[float, float]]
"""How fast the free entropy of an end grows as what it recovers becomes exact (0 where it does not), and its value."""


def finite_entropy(report: AMPReport) -> tuple[float, float]:
    """The free entropy of an end where nothing can be recovered exactly."""
    found = report.free_entropy
    return 0.0, -np.inf if found is None or not np.isfinite(found) else found


def dominant_end(model: TwoSided, data: Any, rng: np.random.Generator, entropy: Entropy = finite_entropy) -> Outcome:
    """The end of larger free entropy of message passing from noise and from close to the truth, `data.truth` (d x r).

    Of two entropies that are infinite the one that grows faster is larger.
    """
    instance = model.instance(data)
    informed = instance.run(truthful_start(rng, data.truth, _TRUTH_START), rng, AMP())
    uninformed, starts = instance.uninformed(rng, AMP())
    reports = {"uninformed": uninformed, "informed": informed}
    entropies = {name: entropy(report) for name, report in reports.items()}
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
