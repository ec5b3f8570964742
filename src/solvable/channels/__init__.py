"""Output channels P(y|z): closed forms, and the generic channel of any target."""

from __future__ import annotations

import functools

import numpy as np

from solvable.channels.base import Channel, Information, LabelLaw, Posterior, Rows
from solvable.channels.closed import Absolute, Linear, Probit, Sign, Square
from solvable.channels.generic import GenericChannel
from solvable.channels.levelset import LevelSetChannel
from solvable.channels.logit import Logit
from solvable.channels.multi import Linearisation, MatrixInformation, MultiChannel, MultiLabelLaw, MultiPosterior
from solvable.channels.noisy import NoisyChannel
from solvable.core.errors import bad_parameter
from solvable.targets.hermite import hermite_coefficients
from solvable.targets.landscape import landscape
from solvable.targets.target import Target

__all__ = [
    "Absolute",
    "Channel",
    "GenericChannel",
    "Information",
    "LabelLaw",
    "LevelSetChannel",
    "Linear",
    "Linearisation",
    "Logit",
    "MatrixInformation",
    "MultiChannel",
    "MultiLabelLaw",
    "MultiPosterior",
    "NoisyChannel",
    "Posterior",
    "Probit",
    "Rows",
    "Sign",
    "Square",
    "channel_of",
    "generic_channel",
    "multi_channel_of",
]

_LEAST_NOISE = 1e-12
_NOISELESS_CLOSED = {Target(c.formula): c for c in (Absolute, Square, Sign)}


@functools.lru_cache(maxsize=64)
def channel_of(target: Target, noise: float) -> Channel:
    """The channel y = g(z) + sqrt(noise) xi: a closed form where there is one, else the generic channel."""
    landscape(target)
    _refuse_tiny(target, noise)
    if target == Target("z"):
        return Linear(noise)
    if noise == 0 and target in _NOISELESS_CLOSED:
        return _NOISELESS_CLOSED[target]()
    return generic_channel(target, noise)


def multi_channel_of(target: Target, noise: float) -> MultiChannel:
    """The channel of a target of two or three projections: a closed form where there is one, else the generic one."""
    from solvable.channels.several import multi_channel_of as found

    return found(target, noise)


def generic_channel(target: Target, noise: float) -> Channel:
    """The channel that works for any one-projection target, even where a closed form exists."""
    shape = landscape(target)
    return NoisyChannel(shape, noise) if noise > 0 else LevelSetChannel(shape)


def _refuse_tiny(target: Target, noise: float) -> None:
    """Noise far below the resolution of double precision is neither noise nor its absence."""
    variance = float(np.sum(hermite_coefficients(target, 32)[1:] ** 2))
    if 0 < noise < _LEAST_NOISE * variance:
        raise bad_parameter("noise", noise, f"0, or at least {_LEAST_NOISE * variance:.2g} for labels of this scale")
