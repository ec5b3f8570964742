"""Losses of empirical risk minimisation: regression, classification, and one's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from solvable.channels.losses.base import Kinks, Loss, ResidualLoss, has_single_minimum
from solvable.channels.losses.custom import Custom
from solvable.channels.losses.named import Absolute, Cosine, Hinge, Huber, Logistic, MarginLoss, Square, Tukey
from solvable.core.errors import bad_parameter

__all__ = [
    "Absolute",
    "Cosine",
    "Custom",
    "Hinge",
    "Huber",
    "Kinks",
    "Logistic",
    "Loss",
    "MarginLoss",
    "ResidualLoss",
    "Square",
    "Tukey",
    "as_loss",
    "has_single_minimum",
]

_NAMED: dict[str, type[Loss]] = {
    loss.__name__.lower(): loss for loss in (Absolute, Cosine, Hinge, Huber, Logistic, Square, Tukey)
}
_SCALED = ("cosine", "huber", "tukey")


def as_loss(loss: Loss | str | Callable[[Any, Any], Any]) -> Loss:
    """A loss from an instance, a function of (y, z), or text: `square`, `huber:0.8`, `logistic`."""
    takes = f"a loss, a function of (y, z), or one of {', '.join(sorted(_NAMED))}, with a scale as in 'huber:0.8'"
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        if not dataclasses.fields(loss):
            return loss()
        raise bad_parameter("loss", loss.__name__, f"an instance: write {loss.__name__}(...)")
    if isinstance(loss, str):
        name, _, scale = loss.strip().lower().partition(":")
        if name not in _NAMED or (scale and name not in _SCALED):
            raise bad_parameter("loss", loss, takes)
        try:
            return _NAMED[name](float(scale)) if scale else _NAMED[name]()  # pyright: ignore[reportCallIssue]
        except ValueError:
            raise bad_parameter("loss", loss, takes) from None
    if callable(loss):
        return Custom(loss)
    raise bad_parameter("loss", loss, takes)
