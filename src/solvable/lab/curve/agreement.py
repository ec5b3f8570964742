"""Where theory and simulation differ most, in standard errors of the simulated mean."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from solvable.core.status import Status
from solvable.lab.curve.entries import ENTRY, entries_of

if TYPE_CHECKING:
    from solvable.lab.curve import Curve


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The point where theory and simulation differ most, in standard errors of the simulated mean.

    `metric` is the scalar compared; of a matrix metric, the diagonal entry: `overlap_2` for the second of `overlap`.
    `deviation` is |theory - simulation| / standard_error. It is 0 where the two numbers agree to 1e-9 relative,
    whatever the spread, and infinite where they do not although the runs have no spread beyond rounding (1e-12).
    `at` is the place in the grid, with the dimension d if the runs have several. `points` is how many were compared,
    `runs` the number of seeds behind the point.
    """

    metric: str
    deviation: float
    learner: str
    at: dict[str, float | str]
    theory: float
    simulation: float
    standard_error: float
    points: int
    runs: int

    @property
    def chance(self) -> float:
        """How probable so large a deviation is at one of the points if theory is right and the runs are Gaussian.

        The standard error is itself estimated from few runs, so the deviation has Student's law; the probability is
        multiplied by the number of points, among which this is the worst.
        """
        from scipy.special import stdtr

        return float(min(1.0, 2 * self.points * stdtr(self.runs - 1, -self.deviation)))

    def __str__(self) -> str:
        places = (f"{name} = {value if isinstance(value, str) else f'{value:g}'}" for name, value in self.at.items())
        return (
            f"{self.metric}: largest deviation of {self.points} points is {self.deviation:.2f} standard errors, "
            f"at {', '.join([self.learner, *places])}: "
            f"theory {self.theory:.6g}, simulation {self.simulation:.6g} +- {self.standard_error:.2g}"
        )


def largest_deviation(curve: Curve, metric: str, resolution: float) -> Agreement:
    """Compare the theory of a metric with the mean of the runs at every point (see `Curve.agreement`)."""
    nothing = f"nothing to compare for {metric}: no point has both a theory and at least two runs."
    if f"{metric}_theory" not in curve.dataset or f"{metric}_simulation" not in curve.dataset:
        raise ValueError(nothing)
    parts = (curve.theory(metric).where(curve.dataset["status"] == Status.CONVERGED), *curve.summary(metric))
    theory, mean, error, count = (entries_of(part) if curve.has_entries(metric) else part for part in parts)
    error = xr.apply_ufunc(np.hypot, error, resolution)
    theory, mean, error, count = xr.broadcast(theory, mean, error, count)
    usable = (theory.notnull() & mean.notnull() & (count >= 2)).values
    if not usable.any():
        raise ValueError(nothing)
    distance = np.abs(theory.values - mean.values)
    same = np.isclose(theory.values, mean.values, rtol=1e-9, atol=1e-15)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = error.values > 1e-12 * np.abs(mean.values)
        deviation = np.where(same, 0.0, np.where(spread, distance / error.values, np.inf))
    worst = np.unravel_index(np.argmax(np.where(usable, deviation, -1.0)), deviation.shape)
    place = theory[tuple(int(i) for i in worst)]
    return Agreement(
        metric=f"{metric}_{place[ENTRY].item()}" if ENTRY in theory.dims else metric,
        deviation=float(deviation[worst]),
        learner=str(place["learner"].values),
        at={name: place[name].item() for name in (*curve.axes, "d") if name in theory.dims},
        theory=float(theory.values[worst]),
        simulation=float(mean.values[worst]),
        standard_error=float(error.values[worst]),
        points=int(usable.sum()),
        runs=int(count.values[worst]),
    )
