"""Thresholds read off simulations alone, with error bars.

The estimators take the outcomes of runs at several alpha (and sizes d) and return a number with its standard error,
without using predicted values. What each assumes about the shape of its data is said in its docstring.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from solvable.lab.verdict import finite_size

RESAMPLES = 400


@dataclasses.dataclass(frozen=True)
class Runs:
    """Outcomes of one scalar at dimension d: `values[i, k]` is what run k gave at `alpha[i]`, NaN for nothing.

    Error bars take runs at different alpha for independent: those of a learner that follows alpha are not.
    """

    d: int
    alpha: np.ndarray
    values: np.ndarray


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its standard error; NaN where the runs do not determine it.

    `freedom` is the number of degrees of freedom of the error itself where it comes from the scatter of a few runs.
    `shift` is how far, relatively, the dimension of the runs may have moved it, where that is not in the error.
    """

    value: float
    error: float
    freedom: int | None = None
    shift: float = 0.0


def continuous_onset(runs: Runs, low: float = 0.1, high: float = 0.5) -> Estimate:
    """Where an order parameter that grows continuously from zero begins to, by extrapolation from above.

    The medians over the seeds (a run of message passing that gets stuck would drag a mean along) that lie between `low`
    and `high` are fitted by least squares with a line and with a quadratic in alpha; the estimate is the middle between
    the zero of the line and the rising zero of the quadratic. On exact curves the onset often lies between the two,
    but not always. Medians near zero are left out, since at finite size the order parameter is small but not zero
    below its onset.

    The error has two parts, added in quadrature: half the distance between the two zeros, for what extrapolating costs,
    and half the central 68 % of bootstrap resamples, in which the runs of each point are drawn with replacement.
    Finite dimension rounds the onset, which lifts the medians near it and moves the estimate down: that is not in the
    error, but in the `shift`. Take runs at a large dimension.
    """
    medians = _medians(runs)
    kept = (low < medians) & (medians < high)
    runs = dataclasses.replace(runs, alpha=runs.alpha[kept], values=runs.values[kept])
    line, curve = _zeros(runs)
    drawn = np.array([np.mean(_zeros(sample)) for sample in _resamples(runs)])
    if not np.isfinite(line + curve) or np.mean(np.isfinite(drawn)) < 0.8:
        return Estimate(np.nan, np.nan)
    lower, upper = np.nanquantile(drawn, (0.16, 0.84))
    error = float(np.hypot((upper - lower) / 2, (line - curve) / 2))
    return Estimate((line + curve) / 2, error, shift=finite_size(runs.d))


def growth_onset(runs: Runs) -> Estimate:
    """Where small overlaps begin to grow, from the measured factor gamma by which one step multiplies them.

    This assumes the linearised picture of weak recovery: each sample adds as much to a step as any other, so that
    gamma = alpha / alpha_c, and the onset is where it is 1. It does not look at overlaps with the truth. The line
    through the origin is fitted by least squares; the error is the standard deviation of bootstrap resamples. Take
    alpha well above the onset, where gamma stands clear of the eigenvalues of the noise, of size sqrt(gamma). The shift
    at this dimension is part of the answer.
    """
    if np.isfinite(runs.values).sum() < 2:
        return Estimate(np.nan, np.nan)
    drawn = [_inverse_slope(sample) for sample in _resamples(runs)]
    return Estimate(_inverse_slope(runs), float(np.nanstd(drawn)), shift=finite_size(runs.d))


def _inverse_slope(runs: Runs) -> float:
    alpha = np.where(np.isfinite(runs.values), runs.alpha[:, None], 0.0)
    return float(np.sum(alpha**2) / np.nansum(alpha * runs.values))


def jump(runs: Sequence[Runs], above: float) -> Estimate:
    """Where runs begin to end above a value with probability 1/2, in the limit of infinite dimension.

    The finite-size scaling law of message passing at a jump (Amraoui, Montanari, Richardson and Urbanke, 2009, for
    decoding) is fitted by maximum likelihood: a run succeeds with probability

        Phi(sqrt(d) (alpha - alpha_c - b d^(-2/3)) / s),

    with Phi the normal distribution function. With one size b is left out, and the shift at that size is part of the
    answer. The standard error comes from the Fisher information, by the delta method.

    The estimate is NaN where the runs do not determine it: at each size some must fail and some succeed, and at one
    size at least some fail at a larger alpha than others succeed at, or else the width s has no estimate.
    """
    if not _resolved(runs, above):
        return Estimate(np.nan, np.nan)
    rows, success = [], []
    for part in runs:
        for alpha, outcomes in zip(part.alpha, part.values, strict=True):
            for value in outcomes[np.isfinite(outcomes)]:
                rows.append((alpha, 1.0, part.d ** (-2 / 3)))
                success.append(value > above)
    design = (
        np.array(rows) * np.sqrt(np.concatenate([np.full(np.isfinite(r.values).sum(), r.d) for r in runs]))[:, None]
    )
    columns = 3 if len({part.d for part in runs}) > 1 else 2
    coefficients, covariance = _probit(design[:, :columns], np.array(success))
    slope, offset = coefficients[:2]
    gradient = np.zeros(columns)
    gradient[:2] = offset / slope**2, -1 / slope
    shift = finite_size(runs[0].d) if columns == 2 else 0.0  # fitted otherwise
    return Estimate(float(-offset / slope), float(np.sqrt(gradient @ covariance @ gradient)), shift=shift)


def _medians(runs: Runs) -> np.ndarray:
    return np.array([np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else np.nan for row in runs.values])


def _zeros(runs: Runs) -> tuple[float, float]:
    """The zero of a fitted line and the rising one of a quadratic: its lowest point, if noise keeps that above zero."""
    if runs.alpha.size < 4:
        return np.nan, np.nan
    medians = _medians(runs)
    slope, offset = np.polyfit(runs.alpha, medians, 1)
    a, b, c = np.polyfit(runs.alpha, medians, 2)
    inside = b**2 - 4 * a * c
    if inside >= 0:
        return float(-offset / slope), float(-2 * c / (b + np.sqrt(inside)))
    lowest = -b / (2 * a)
    return float(-offset / slope), float(lowest) if lowest < runs.alpha.min() else np.nan


def _resamples(runs: Runs) -> Iterator[Runs]:
    """The runs of each point, drawn with replacement."""
    rng = np.random.default_rng(0)
    for _ in range(RESAMPLES):
        picks = rng.integers(runs.values.shape[1], size=runs.values.shape)
        yield dataclasses.replace(runs, values=np.take_along_axis(runs.values, picks, axis=1))


def _resolved(runs: Sequence[Runs], above: float) -> bool:
    overlapping = False
    for part in runs:
        known = np.isfinite(part.values)
        succeeds = part.alpha[np.any(known & (part.values > above), axis=1)]
        fails = part.alpha[np.any(known & (part.values <= above), axis=1)]
        if not (succeeds.size and fails.size):
            return False
        overlapping |= bool(fails.max() > succeeds.min())
    return overlapping


def _probit(design: np.ndarray, success: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of a probit regression and their covariance."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    signs = np.where(success, 1.0, -1.0)
    scale = np.max(np.abs(design), axis=0)
    scaled = design / scale

    def ratio(margin: np.ndarray) -> np.ndarray:
        return np.exp(-(margin**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(margin))

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        margin = signs * (scaled @ b)
        return -float(np.sum(log_ndtr(margin))), -(scaled * (signs * ratio(margin))[:, None]).sum(axis=0)

    found = minimize(loss, np.zeros(scaled.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 500})
    mean = scaled @ found.x
    weight = ratio(mean) * ratio(-mean)
    information = (scaled * weight[:, None]).T @ scaled
    return found.x / scale, np.linalg.inv(information) / np.outer(scale, scale)
