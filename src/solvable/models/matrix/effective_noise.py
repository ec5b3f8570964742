"""The effective noise of Bayes-optimal learning: one equation for every matrix that is seen through linear labels.

What n labels say of the hidden matrix amounts to seeing it with Gaussian noise of variance D that solves

    D = (noise + mmse(D)) / ratio,

with mmse(D) the error of the best estimate from such a matrix, and noise and ratio the model's Delta and alpha in units
where this is the form. mmse(D)/D falls with D, from `slope` at D = 0 on, so that the solution is unique.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.core.results import Prediction
from solvable.core.status import Status
from solvable.numerics.batches import in_batches

Denoising = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""mmse(D) and its numerical error, for an array of D; compiled for arrays of a few lengths only."""

_SMALLEST = 1e-12
"""The effective noise, over the variance of the unknown, below which mmse(D) is proportional to D."""
_STRIDE = 2.5
"""How far log D goes down at a time in search of a bracket."""
_ACCURACY = 1e-13
_ACCEPTED = 1e-10
_STEPS = 90


class BayesPoints(NamedTuple):
    """Effective noise D, estimation error, its numerical error, the residual of the logarithm of D's equation."""

    effective_noise: np.ndarray
    estimation_error: np.ndarray
    uncertainty: np.ndarray
    residual: np.ndarray

    @property
    def status(self) -> np.ndarray:
        """Whether the equation is solved."""
        return np.where(self.residual < _ACCEPTED, int(Status.CONVERGED), int(Status.MAX_STEPS))

    def prediction(self, factors: dict[str, float]) -> Prediction:
        """Metrics that are multiples of the estimation error."""
        return Prediction(
            metrics={name: factor * self.estimation_error for name, factor in factors.items()},
            order_parameters={"effective_noise": self.effective_noise},
            status=self.status,
            residual=self.residual,
            uncertainty={name: factor * self.uncertainty for name, factor in factors.items()},
        )


def solve(denoising: Denoising, noise: float, ratio: np.ndarray, variance: float, slope: float) -> BayesPoints:
    """The solution for each `ratio`; `variance` is mmse at infinite D, reached without samples."""
    found = np.zeros((4, len(ratio)))
    found[0], found[1] = np.inf, variance
    measured = ratio > 0
    # As D falls mmse = slope D and the equation is linear: its solution holds where it is too small to be resolved.
    tiny = noise / np.maximum(ratio - slope, 1e-300)
    below = measured & (slope <= ratio) & (tiny < _SMALLEST * variance)
    found[:, below] = np.stack([tiny, slope * tiny, 1e-6 * slope * tiny, np.zeros_like(tiny)])[:, below]
    search = measured & ~below
    if search.any():
        found[:, search] = _search(denoising, noise, ratio[search], variance)
    return BayesPoints(*found)


def _search(denoising: Denoising, noise: float, ratio: np.ndarray, variance: float) -> np.ndarray:
    """The four rows of `BayesPoints` by secants in log D within a bracket; what is finished is not evaluated again."""

    def excess(log_D: np.ndarray, ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log of (noise + mmse(D)) / (ratio D), which falls with D; mmse and its numerical error."""
        found = np.stack(in_batches(denoising, np.exp(log_D)))
        return np.log(np.maximum(noise + np.maximum(found[0], 0.0), 1e-300) / ratio) - log_D, found

    # mmse <= variance bounds D from above; from there down until the sign changes.
    least = np.log(np.maximum(noise / ratio, _SMALLEST * variance))
    low = high = np.log((noise + variance) / ratio)
    active = np.arange(len(ratio))
    while active.size:
        high, low = high.copy(), low.copy()
        high[active], low[active] = low[active], np.maximum(low[active] - _STRIDE, least[active])
        short = (excess(low[active], ratio[active])[0] < 0) & (low[active] > least[active])
        active = active[short]

    guess = (low + high) / 2
    before, value_before = guess.copy(), np.full(len(ratio), np.nan)
    value, found = np.full(len(ratio), np.inf), np.zeros((2, len(ratio)))
    active = np.arange(len(ratio))
    for step in range(_STEPS):
        value[active], found[:, active] = excess(guess[active], ratio[active])
        low, high = np.where(value > 0, guess, low), np.where(value > 0, high, guess)
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = guess - value * (guess - before) / (value - value_before)
        # The slope of the excess is between -1 and 0, so that a step of its value does not pass the solution.
        secant = np.where(np.isfinite(secant), secant, guess + value)
        # Where the excess is flat, at a threshold, secants creep from one side: every third step halves the bracket.
        halve = ~((secant > low) & (secant < high)) | (step % 3 == 2)
        new = np.where(halve, (low + high) / 2, secant)
        active = np.flatnonzero((np.abs(value) > _ACCURACY) & (high - low > 1e-15 * np.abs(high)))
        if not active.size:
            break
        before[active], value_before[active], guess[active] = guess[active], value[active], new[active]
    return np.stack([np.exp(guess), *found, np.abs(value)])
