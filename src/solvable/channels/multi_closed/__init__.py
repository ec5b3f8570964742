"""Closed-form channels of several projections."""

from __future__ import annotations

from solvable.channels.multi_closed.norm import Norm
from solvable.channels.multi_closed.parity import Parity
from solvable.channels.multi_closed.product import Product
from solvable.channels.multi_closed.staircase import Staircase

__all__ = ["Norm", "Parity", "Product", "Staircase"]
