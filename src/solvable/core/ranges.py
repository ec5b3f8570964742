"""What stands between a theory and CONVERGED: metrics are finite, in the range of what they mean, and precise.

Rounding may carry a metric a little out of its range: one that its own uncertainty brings back is put on the bound. Any
other point outside is OUT_OF_RANGE, and one whose uncertainty is a tenth of a metric or more is IMPRECISE.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from solvable.core.results import Prediction, all_finite
from solvable.core.status import Status

_SHARE = 0.1
"""The uncertainty over the value from which on a metric is imprecise."""
_ROUNDING = 1e-12
"""How far a metric may leave its range whatever its uncertainty, relative to the bound or to one."""


class Range(NamedTuple):
    """The values that a metric can take; of a matrix, its eigenvalues. Uncertainties up to `floor` are always small."""

    low: float = -math.inf
    high: float = math.inf
    floor: float = 1e-9


UNIT = Range(0.0, 1.0, 1e-5)
"""A share, or an overlap: 0 to within 1e-5 is known well."""
SIGNED = Range(-1.0, 1.0, 1e-5)
NOT_NEGATIVE = Range(0.0)
_NAMED = {
    "cosine": SIGNED._replace(floor=math.sqrt(UNIT.floor)),  # as well known as its square
    "squared_overlap": UNIT,
    "rank": UNIT,
    "active_fraction": UNIT,
    "classification_error": UNIT,
    "norm": NOT_NEGATIVE,
    "replicon": Range(floor=1e-5),
}


def usual_range(metric: str) -> Range:
    """The range of a metric by its name: errors are not negative, cosines lie between -1 and 1, shares below 1."""
    if metric.startswith("share_"):
        return UNIT
    return _NAMED.get(metric, NOT_NEGATIVE if metric.endswith("_error") else Range())


def guarded(found: Prediction, ranges: dict[str, Range]) -> Prediction:
    """The points of `found` with what they claim checked; `ranges` are those that differ from the usual ones.

    An infinite order parameter is legitimate (a conjugate field at perfect recovery); an infinite metric is not.
    """
    count = len(found.status)
    metrics = {name: _put_back(found, name, ranges) for name in found.metrics}
    found = dataclasses.replace(found, metrics=metrics)
    lost = ~all_finite(metrics, count)
    for value in found.order_parameters.values():
        lost |= np.isnan(value).reshape(count, -1).any(axis=1)
    outside, blurred = np.zeros((2, count), bool)
    for name in metrics:
        outside |= ~_inside(found, name, ranges)
        blurred |= _imprecise(found, name, ranges)
    verdict = np.where(blurred, int(Status.IMPRECISE), int(Status.CONVERGED))
    verdict = np.where(outside, int(Status.OUT_OF_RANGE), verdict)
    verdict = np.where(lost, int(Status.NONFINITE), verdict)
    return dataclasses.replace(found, status=np.where(found.status == Status.CONVERGED, verdict, found.status))


def offence(found: Prediction, ranges: dict[str, Range]) -> str:
    """Which metric of a single point made it OUT_OF_RANGE or IMPRECISE, in words; nothing for any other status."""
    wrong = {Status.OUT_OF_RANGE: lambda name: ~_inside(found, name, ranges)}
    wrong[Status.IMPRECISE] = lambda name: _imprecise(found, name, ranges)
    test = wrong.get(Status(int(found.status[0])))
    names = [name for name in found.metrics if test is not None and test(name)[0]]
    if not names:
        return ""
    name = names[0]
    value, limits = found.metrics[name][0], _range(name, ranges)
    shown = value if value.ndim == 0 else np.linalg.eigvalsh(value) if _square(value[None]) else np.ravel(value)
    text = f"{name} = {np.array2string(np.asarray(shown), precision=6)}"
    text += f" +- {np.max(_uncertainty(found, name)[0]):.2g}"
    if found.status[0] == Status.OUT_OF_RANGE:
        text += f", not between {limits.low:.6g} and {limits.high:.6g}"
    return text


def _range(name: str, ranges: dict[str, Range]) -> Range:
    return ranges.get(name, usual_range(name))


def _uncertainty(found: Prediction, name: str) -> np.ndarray:
    """That of every entry of a metric; a theory that gives none has closed forms."""
    value = found.metrics[name]
    given = found.uncertainty.get(name, np.zeros(len(value)))
    return np.broadcast_to(given.reshape(given.shape + (1,) * (value.ndim - given.ndim)), value.shape)


def _slack(error: np.ndarray, limits: Range) -> np.ndarray:
    size = max([1.0, *(abs(bound) for bound in limits[:2] if math.isfinite(bound))])
    return np.nan_to_num(error, nan=0.0, posinf=0.0) + _ROUNDING * size


def _put_back(found: Prediction, name: str, ranges: dict[str, Range]) -> np.ndarray:
    """A metric with the values on the bounds that lie beyond by less than their uncertainty; matrices as they are."""
    value, limits = found.metrics[name], _range(name, ranges)
    if value.ndim > 1 or value.dtype.kind != "f":
        return value
    near, slack = np.clip(value, limits.low, limits.high), _slack(_uncertainty(found, name), limits)
    return np.where((value >= near - slack) & (value <= near + slack), near, value)


def _inside(found: Prediction, name: str, ranges: dict[str, Range]) -> np.ndarray:
    """Whether the metric of each point lies in its range, to within its uncertainty; what is not finite does."""
    value, limits = found.metrics[name], _range(name, ranges)
    count = len(value)
    if value.dtype.kind != "f" or limits[:2] == (-math.inf, math.inf):
        return np.ones(count, bool)
    slack = _slack(_uncertainty(found, name), limits)
    finite = np.isfinite(value).reshape(count, -1).all(axis=1)
    if _square(value):
        shown = np.where(finite[:, None, None], value, 0.0)
        value = np.linalg.eigvalsh((shown + shown.swapaxes(-1, -2)) / 2)
        slack = slack.sum(axis=-1)  # no eigenvalue moves by more than the largest sum of a row
        slack = np.broadcast_to(slack.max(axis=-1, keepdims=True), value.shape)
    good = (value >= limits.low - slack) & (value <= limits.high + slack)
    return good.reshape(count, -1).all(axis=1) | ~finite


def _imprecise(found: Prediction, name: str, ranges: dict[str, Range]) -> np.ndarray:
    """Whether the uncertainty is a tenth of a metric or more, or not finite; of a matrix, of its largest entry."""
    value, error = (part.reshape(len(part), -1) for part in (found.metrics[name], _uncertainty(found, name)))
    if value.dtype.kind != "f":
        return np.zeros(len(value), bool)
    size, worst = np.abs(value).max(axis=1, initial=0.0), error.max(axis=1, initial=0.0)
    return ~np.isfinite(worst) | ((worst >= _SHARE * size) & (worst > _range(name, ranges).floor))


def _square(value: np.ndarray) -> bool:
    return value.ndim == 3 and value.shape[1] == value.shape[2]
