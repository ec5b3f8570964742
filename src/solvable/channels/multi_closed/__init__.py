"""Closed-form channels of several projections."""

from __future__ import annotations

from solvable.channels.multi_closed.committee import Majority, SignSum2, SignSum3
from solvable.channels.multi_closed.norm import Norm2, Norm3
from solvable.channels.multi_closed.parity import Parity
from solvable.channels.multi_closed.product import Product
from solvable.channels.multi_closed.staircase import Staircase

__all__ = ["Majority", "Norm2", "Norm3", "Parity", "Product", "SignSum2", "SignSum3", "Staircase"]
