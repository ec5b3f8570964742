"""The errors of predictions of any channel of several projections, also where some directions are known exactly."""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels.frozen import FrozenChannel
from solvable.channels.generic import GenericChannel
from solvable.channels.multi import MultiChannel
from solvable.numerics.subspaces import complement
from solvable.targets.target import Target

_EXACT = 1e-7

Errors = dict[str, tuple[float, float]]


def prediction_errors(channel: MultiChannel, M: np.ndarray) -> Errors:
    """As `MultiChannel.prediction_errors`: the errors do not depend on the noise, only on what M knows of z."""
    m, u = np.linalg.eigh((M + M.T) / 2)
    exact = m > 1 - _EXACT
    if exact.all():
        return {name: (0.0, 0.0) for name in _names(channel)}
    if not exact.any():
        return _extrapolated(_generic(channel.target), m, u)
    known = u[:, exact]
    rest = complement(known)
    left = rest.T @ M @ rest
    found = _extrapolated(_frozen(channel.target, known.round(12).tobytes(), known.shape), *np.linalg.eigh(left))
    return {name: found.get(name, (0.0, 0.0)) for name in _names(channel)}


def _names(channel: MultiChannel) -> list[str]:
    return ["generalization_error", *(["classification_error"] if channel.discrete else [])]


@functools.lru_cache(maxsize=16)
def _generic(target: Target) -> GenericChannel:
    return GenericChannel(target)


@functools.lru_cache(maxsize=16)
def _frozen(target: Target, known: bytes, shape: tuple[int, int]) -> FrozenChannel:
    return FrozenChannel(target, 0.0, np.frombuffer(known).reshape(shape))


def _extrapolated(channel: GenericChannel | FrozenChannel, m: np.ndarray, u: np.ndarray) -> Errors:
    """The errors at M = u diag(m) u^T, continued to variances below the channel's resolution.

    There an error depends on a small variance v like a + b v for smooth labels, like a + b v^(1/2) beside jumps.
    """
    v, resolution = 1 - m, channel.resolution
    small = v < resolution
    if not small.any():
        return channel.errors_of_predictions((u * m) @ u.T)
    one, two = (channel.errors_of_predictions((u * (1 - np.where(small, k * resolution, v))) @ u.T) for k in (1.0, 2.0))
    x = (v[small].mean() / resolution) ** (0.5 if channel.discrete else 1.0)
    gap = np.sqrt(2) - 1 if channel.discrete else 1.0

    def continued(name: str) -> tuple[float, float]:
        slope = (two[name][0] - one[name][0]) / gap
        value = one[name][0] - slope * (1 - x)
        return max(value, 0.0), one[name][1] + 0.2 * abs(slope) * (1 - x)

    return {name: continued(name) for name in one}
