"""Output channels P(y|z): closed forms, and the generic channel of any target."""

from __future__ import annotations

from solvable.channels.base import Channel, Information, LabelLaw, Linearisation, Posterior
from solvable.channels.closed import Absolute, Linear, Logit, Probit, Sign, Square
from solvable.channels.factory import channel_of, generic_channel
from solvable.channels.generic import GenericChannel
from solvable.channels.levels.levelset import LevelSetChannel
from solvable.channels.noisy import NoisyChannel
from solvable.channels.predictor import Predictor
from solvable.channels.scalar import Rows, ScalarChannel

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
    "NoisyChannel",
    "Posterior",
    "Predictor",
    "Probit",
    "Rows",
    "ScalarChannel",
    "Sign",
    "Square",
    "channel_of",
    "generic_channel",
]
