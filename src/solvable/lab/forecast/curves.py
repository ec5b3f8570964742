r"""Learning curves of ridge regression from what is known of a population.

The error on a fresh label, its noise included, of n samples and p features is that of
`models/features/equivalent.py` with the noise counted as a part of the target that is never learned, for the n - 1
directions that a free constant leaves, times n/(n - 1). Every nu is one penalty, $\nu m (1 - (n - 1 - m)/p)$ with
m what these samples are worth (`population`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from solvable.lab.forecast.population import Estimate, Population
from solvable.models.features.equivalent import Gaps, Sums, risk


class Fit(NamedTuple):
    """The error and the penalty it belongs to."""

    error: float
    penalty: float


def fit_of(found: Estimate, n: float, p: float, penalty: float | None) -> Fit:
    """The error at n samples and p features, for a penalty or, if None, for the best.

    Up to the number of samples seen it is read off them. Beyond, it is the error there times what more samples change
    in the smooth functions: what the theory cannot know of these features cancels to first order.
    """
    if n <= found.rows:
        return _fit(found.seen, n, p, penalty)
    here = _fit(found.seen, found.rows, p, penalty)
    before, after = (_fit(found.smooth, size, p, penalty) for size in (found.rows, n))
    return Fit(here.error * after.error / before.error, after.penalty)


def _fit(table: Population, n: float, p: float, penalty: float | None) -> Fit:
    m = n - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = table.worth(m)
        # What the samples are not worth has gone into degrees of freedom, of the features as well.
        freedom = m - worth
        gap = Gaps(worth, 1 - freedom / p)
        sums = Sums(table.T2, np.maximum(freedom - table.T2, 0.0), 0.0, table.H - table.Q, table.Q)
        error = n / m * risk(m, p, 0.0, gap, sums).bias * table.leaving_out
        penalties = table.nu * gap.samples * gap.features
    known = (gap.samples > 0) & (gap.features > 0) & (error > 0)
    error, penalties = error[known], penalties[known]
    if penalty is not None:
        at = np.interp(np.log(penalty), np.log(penalties), np.log(error))
        return Fit(float(np.exp(at)), float(penalty))
    return Fit(*_lowest(penalties, error))


def _lowest(penalties: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """The lowest error and its penalty, by the parabola through the lowest point and its neighbours."""
    k = int(np.argmin(error))
    if k in (0, len(error) - 1):
        return float(error[k]), float(penalties[k])
    x, y = np.log(penalties[k - 1 : k + 2]), np.log(error[k - 1 : k + 2])
    parabola: Any = np.polyfit(x - x[1], y, 2)
    place = -parabola[1] / (2 * parabola[0]) if parabola[0] > 0 else 0.0
    return float(np.exp(np.polyval(parabola, place))), float(np.exp(x[1] + place))
