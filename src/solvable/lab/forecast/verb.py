"""`forecast`: the learning curve of ridge regression on a user's own data, also beyond the samples there are."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvable.core.checks import check_count, is_array, real_array
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.lab.forecast.curves import fit_of
from solvable.lab.forecast.data import Table, table
from solvable.lab.forecast.holdout import Check, hold_out, overall
from solvable.lab.forecast.learners import BEST, KernelRidge, LinearRidge
from solvable.lab.forecast.samples import Samples
from solvable.lab.verdict import quantile
from solvable.models.features.learners import RandomFeatures
from solvable.numerics.blas import single_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HALVES = 8
"""From as many halves of the rows, in pairs, the interval is made."""
MISS = 0.05
"""The chance that an error lies outside of its interval."""
FARTHEST = 1000
"""How many times the samples there are a forecast may go."""
SMALLEST = 1e-140
"""Labels of a standard deviation below this, or above its inverse, are refused."""
MOST = 1200
"""Rows that a kernel uses unless told: its matrix is decomposed in a time that grows with their cube."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The mean squared `error` on fresh labels, noise included, of training on `n` samples, from `low` to `high`.

    All are arrays over n, `penalty` too. The interval is of the mean over training sets and holds it with a chance of
    95 %. `rows` of the data were used; `baseline` is the variance of the labels, the error of knowing their mean only.
    `checks` are forecasts from a quarter of the rows against measured errors and `word` sums them up: "agrees",
    "differs" or "too few runs to say"; empty if there are none.
    """

    n: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    penalty: np.ndarray
    rows: int
    columns: int
    learner: Learner
    baseline: float
    checks: tuple[Check, ...] = ()

    @property
    def word(self) -> str:
        return overall(self.checks) if self.checks else ""

    @property
    def r_squared(self) -> np.ndarray:
        """The share of the variance of the labels that is explained, on fresh ones."""
        return 1 - self.error / self.baseline

    def __str__(self) -> str:
        head = f"{self.learner.name()} on {self.rows} rows of {self.columns} inputs"
        head += f"; labels of variance {self.baseline:.4g}"
        lines = [f"n = {int(n)}: {text}" for n, text in zip(self.n, self.entries, strict=True)]
        checks = [f"check {check}" for check in self.checks]
        return "\n".join([head, *lines, *checks, *([f"forecast and measurement: {self.word}"] if self.checks else [])])

    @property
    def entries(self) -> list[str]:
        """Each error with its interval, in words."""
        return [f"{e:.4g} ({a:.4g} to {b:.4g})" for e, a, b in zip(self.error, self.low, self.high, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """The forecast as plain data."""
        names = ("n", "error", "low", "high", "penalty", "rows", "columns", "baseline")
        checks = [dataclasses.asdict(check) for check in self.checks]
        shown = {name: getattr(self, name) for name in names} | {"r_squared": self.r_squared}
        return shown | {"learner": self.learner.describe(), "checks": checks, "word": self.word}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the error with its interval against n, the rows there are, and what was measured."""
        from solvable.lab.forecast.picture import draw

        return draw(self, ax)


def forecast(
    X: Any,
    y: Any,
    learner: Learner | None = None,
    n: Any = None,
    *,
    p: float | None = None,
    standardize: bool = True,
    check: bool = True,
    rows: int = MOST,
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> Forecast:
    """The learning curve of ridge regression on one's own data, below and beyond the number of samples there are.

    **Arguments:** `X`, a row for each sample and a column for each input, an array or a data frame; `y`, a number for
    each row, or the name of a column of X; `learner`, `LinearRidge()` unless told, a `KernelRidge`, or
    `RandomFeatures(penalty)`, for rectified neurons, whose number is `p`; `n`, numbers of samples up to a thousand
    times those there are, from a few of them to ten times all unless told; `standardize`, whether the inputs are
    brought to variance one; `check`, whether forecasts from a part of the rows are compared with measured errors;
    `rows`, how many a kernel uses at most, drawn at random; `seed`, of what is drawn; `columns`, the names of the
    inputs, for messages.

    **Returns:** a `Forecast`, whose error is on labels with their noise: what a test set would show.
    """
    chosen = _learner(learner, p)
    data = table(X, y, standardize, columns)
    return forecast_table(data, chosen, n, check, rows, seed)


@single_thread()
def forecast_table(
    data: Table, learner: LinearRidge | KernelRidge, n: Any, check: bool = True, rows: int = MOST, seed: int = 0
) -> Forecast:
    """The forecast for a table that is checked already."""
    rng = np.random.default_rng(check_count("seed", seed, least=0))
    rows = check_count("rows", rows, least=50)
    X, y = data.X, data.y
    if isinstance(learner, KernelRidge) and learner.kernel != "linear" and len(y) > rows:
        kept = np.sort(rng.permutation(len(y))[:rows])
        X, y = X[kept], y[kept]
    count = len(y)
    sizes = _sizes(n, count)
    unit = _unit(y)
    y = (y - y.mean()) / unit  # so that the squares of very large or small labels are numbers
    samples = Samples(X, y, learner)
    penalty = None if learner.penalty == BEST else float(learner.penalty)
    whole = samples.estimate(np.arange(count))
    fits = [fit_of(whole, size, samples.p, penalty) for size in sizes]
    error = np.array([fit.error for fit in fits])
    orders = [rng.permutation(count) for _ in range(HALVES // 2)]
    halves = [samples.estimate(np.sort(half)) for order in orders for half in np.array_split(order, 2)]
    drawn = np.array([[fit_of(half, size, samples.p, penalty).error for size in sizes] for half in halves])
    # For what is linear in the samples, half of them are as far from all as all are from the truth.
    scatter = np.sqrt(np.mean(np.log(drawn / error) ** 2, axis=0))
    reach = np.exp(quantile(MISS, HALVES - 1) * scatter)
    checks = ()
    if check and samples.measurable:
        tested = (count // 4, count // 2, count - math.ceil(count / 4))
        penalties = {size: fit_of(whole, size, samples.p, penalty).penalty for size in tested}
        checks = hold_out(samples, penalties, rng)
    error = unit**2 * error
    return Forecast(
        n=sizes,
        error=error,
        low=error / reach,
        high=error * reach,
        penalty=np.array([fit.penalty for fit in fits]),
        rows=count,
        columns=X.shape[1],
        learner=learner,
        baseline=unit**2,
        checks=tuple(check.in_units(unit**2) for check in checks),
    )


def _unit(y: np.ndarray) -> float:
    """The standard deviation of the labels, if its square is a number."""
    largest = np.abs(y - y.mean()).max()
    unit = float(largest * np.std((y - y.mean()) / largest))
    if not SMALLEST < unit < 1 / SMALLEST:
        raise ValueError(f"y has the standard deviation {unit:.3g}, too small or large to be squared: change its unit.")
    return unit


def _learner(learner: Any, p: Any) -> LinearRidge | KernelRidge:
    """The learner in the terms of a kernel."""
    if isinstance(learner, RandomFeatures):
        if learner.loss != "square":
            raise bad_parameter("learner", learner, "of square loss: of another there is no forecast")
        if p is None:
            raise ValueError("missing p: the forecast of RandomFeatures needs their number, such as p=300.")
        return KernelRidge("relu", penalty=learner.penalty, p=p)
    if p is not None:
        raise ValueError("unexpected p: it is the number of RandomFeatures; KernelRidge has a field p.")
    if learner is None:
        return LinearRidge()
    if not isinstance(learner, (LinearRidge, KernelRidge)):
        raise bad_parameter("learner", learner, "LinearRidge(), KernelRidge(...) or RandomFeatures(...)")
    return learner


def _sizes(n: Any, rows: int) -> np.ndarray:
    """The numbers of samples, whole and increasing."""
    if n is None:
        return np.unique(np.round(np.geomspace(max(rows / 16, 8), 10 * rows, 12)).astype(int).tolist() + [rows])
    array = np.ravel(real_array("n", list(n) if isinstance(n, Sequence) else n))
    bad = ~((array >= 4) & (array <= FARTHEST * rows) & (array == np.round(array)))
    if np.any(bad) or (is_array(n) and np.any(np.diff(array) <= 0)):
        worst = float(array[bad][0]) if np.any(bad) else n
        raise bad_parameter(
            "n", worst, f"whole numbers from 4 to {FARTHEST * rows}, {FARTHEST} times the rows, increasing"
        )
    return array.astype(int)
