"""Runs of learners that follow alpha: what they give along it, when they first reach a value, and errors of both.

Along its path a run is the same run, so nothing here takes different alpha for independent: medians and slopes have
errors by bootstrap over whole runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.lab.figures.curves import in_processes
from solvable.lab.figures.estimators import RESAMPLES, Estimate

if TYPE_CHECKING:
    from solvable.core.model import Learner, Model
    from solvable.lab.figures.entry import Effort

COMPANY = 8
"""Runs that are made by one call."""
POINTS = 17
"""Of a theory that is looked through for where it exceeds a level."""


def paths(
    model: Model,
    learner: Learner,
    alpha: Sequence[float] | np.ndarray,
    d: int,
    seeds: int,
    metrics: Sequence[str],
    effort: Effort,
) -> dict[str, np.ndarray]:
    """Metrics of runs along their paths, each (alpha, seed): runs without a theory."""
    groups = [tuple(range(first, min(first + COMPANY, seeds))) for first in range(0, seeds, COMPANY)]
    tasks = [(model, learner, tuple(map(float, alpha)), d, group, tuple(metrics)) for group in groups]
    parts = in_processes(paths_of_runs, tasks, effort)
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in metrics}


def paths_of_runs(
    model: Model, learner: Learner, alpha: tuple[float, ...], d: int, seeds: tuple[int, ...], metrics: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Metrics (alpha, seed) of some runs, on one BLAS thread so that their rounding is the same in any process."""
    from solvable.numerics.blas import single_thread
    from solvable.verbs.simulate import simulate_many

    with single_thread():
        runs = simulate_many(model, learner, d, seeds, alpha=np.array(alpha))
    return {name: np.stack([run[name] for run in runs], axis=1) for name in metrics}


def first_above(alpha: Any, values: Any, level: float) -> np.ndarray:
    """Where each column of `values` (alpha, run) first exceeds a level, on a straight line in log alpha between points.

    It is infinite for one that never does, and the first alpha for one that does from the start.
    """
    logs, values = np.log(np.asarray(alpha, dtype=float)), np.asarray(values, dtype=float)
    above = values > level
    found = np.full(values.shape[1], np.inf)
    for run in np.flatnonzero(above.any(axis=0)):
        k = int(np.argmax(above[:, run]))
        low, high = values[max(k - 1, 0), run], values[k, run]
        part = (level - low) / (high - low) if k else 0.0
        found[run] = np.exp(logs[max(k - 1, 0)] + part * (logs[k] - logs[max(k - 1, 0)]))
    return found


def flow_above(model: Model, learner: Learner, metric: str, level: float, low: float, high: float) -> float:
    """Where the absolute value of a metric of theory first exceeds a level: a grid between two alpha, narrowed once."""
    from solvable.verbs.predict import predict

    found = np.inf
    for _ in range(2):
        alpha = np.geomspace(low, high, POINTS)
        found = float(first_above(alpha, np.abs(predict(model, learner, alpha=alpha)[metric])[:, None], level)[0])
        if not np.isfinite(found):
            return found
        k = int(np.searchsorted(alpha, found))
        low, high = alpha[max(k - 1, 0)], alpha[min(k + 1, POINTS - 1)]
    return found


def median(values: Any, scale: float = 1.0) -> Estimate:
    """The median over runs, infinite ones among them, with its error by bootstrap; NaN if that is infinite."""
    values = scale * np.asarray(values, dtype=float)
    drawn = np.array([_middle(sample) for sample in _redrawn(values)])
    return _estimate(_middle(values), drawn, len(values))


def slope(sizes: Sequence[float] | np.ndarray, times: Sequence[Any]) -> Estimate:
    """The slope of log median against log size by least squares, with its error by bootstrap over the runs."""
    fewest = min(map(len, times))
    drawn = zip(*(_redrawn(np.asarray(part, dtype=float), number) for number, part in enumerate(times)), strict=True)
    slopes = np.array([_slope(sizes, [_middle(sample) for sample in samples]) for samples in drawn])
    return _estimate(_slope(sizes, [_middle(np.asarray(part, dtype=float)) for part in times]), slopes, fewest)


def _middle(values: np.ndarray) -> float:
    return float(np.median(values))


def _slope(sizes: Sequence[float] | np.ndarray, medians: Sequence[float]) -> float:
    if not np.isfinite(medians).all():
        return np.nan
    return float(np.polyfit(np.log(sizes), np.log(medians), 1)[0])


def _redrawn(values: np.ndarray, number: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(number)
    return [rng.choice(values, len(values)) for _ in range(RESAMPLES)]


def _estimate(value: float, drawn: np.ndarray, runs: int) -> Estimate:
    """Half the central 68 % of the resamples is the error; NaN where a fifth of them gives nothing."""
    known = drawn[np.isfinite(drawn)]
    if not np.isfinite(value) or len(known) < 0.8 * len(drawn):
        return Estimate(np.nan, np.nan)
    low, high = np.quantile(known, (0.16, 0.84))
    return Estimate(value, float(high - low) / 2, runs - 1)
