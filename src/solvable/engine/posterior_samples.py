r"""The average of K independent samples of a posterior: where descent from random starts is conjectured to end.

A sample is as far from the truth as another sample is: its mean squared error is twice that of the posterior mean, and
that of the average of K is $(1 + 1/K)$ times it (Nishimori identity). With q the squared overlap of the posterior mean
and unit truth, the average has inner product q with the truth and the square $q + (1 - q)/K$.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from solvable.core.results import Prediction
from solvable.engine.cosines import cosines


def averaged_samples(best: Prediction, K: int) -> Prediction:
    """The metrics of the average of K samples from those of the posterior mean: errors and the two cosines."""
    factor = 1 + 1 / K
    q, error = best.metrics["squared_overlap"], best.uncertainty["squared_overlap"]
    own, lower = (cosines(part, part + (1 - part) / K, 1.0) for part in (q, np.maximum(q - error, 0.0)))
    own_error = {name: own[name] - lower[name] for name in own}
    return dataclasses.replace(
        best,
        metrics={name: factor * value for name, value in best.metrics.items()} | own,
        uncertainty={name: factor * value for name, value in best.uncertainty.items()} | own_error,
    )
