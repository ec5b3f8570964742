"""Channels in closed form, of one projection and of several."""

from __future__ import annotations

from solvable.channels.closed.absolute import Absolute, Square
from solvable.channels.closed.committee import Majority, SignSum2, SignSum3
from solvable.channels.closed.linear import Linear
from solvable.channels.closed.logit import Logit
from solvable.channels.closed.norm import Norm2, Norm3
from solvable.channels.closed.parity import Parity
from solvable.channels.closed.probit import Probit, Sign
from solvable.channels.closed.product import Product
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
