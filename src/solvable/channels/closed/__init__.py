"""Channels in closed form, of one projection and of several."""

from __future__ import annotations

from solvable.channels.closed.logit import Logit
from solvable.channels.closed.norm import Norm2, Norm3
from solvable.channels.closed.product import Product
from solvable.channels.closed.scalar import Absolute, Linear, Probit, Sign, Square
from solvable.channels.closed.signs import Majority, Parity, SignSum2, SignSum3
from solvable.channels.closed.staircase import Staircase

__all__ = [
    "Absolute",
    "Linear",
    "Logit",
    "Majority",
    "Norm2",
    "Norm3",
    "Parity",
    "Probit",
    "Product",
    "Sign",
    "SignSum2",
    "SignSum3",
    "Square",
    "Staircase",
]
