"""The error of an average, by the change from a coarser rule of quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

COARSER = 0.7
"""The fineness, nodes per unit length over those of the rule in use, of the rule that tells its error.

Averages converge geometrically: with three tenths fewer nodes the error is some power 0.7 of what it was, so that the
change is that of the coarser rule, an upper bound. Closer to one the two rules would be wrong in the same way.
"""


class Estimated(NamedTuple):
    """A value, and what a coarser rule makes of it: both with the structure that the average has."""

    value: Any
    coarser: Any

    @property
    def error(self) -> Any:
        """|value - coarser| of each array."""
        return jax.tree.map(lambda fine, coarse: np.abs(fine - coarse), self.value, self.coarser)

    @property
    def largest_error(self) -> float:
        """The largest of all entries of all arrays."""
        return max((float(np.max(leaf, initial=0.0)) for leaf in jax.tree.leaves(self.error)), default=0.0)


def estimated(average: Callable[[float], Any], fineness: float = 1.0, coarser: float = COARSER) -> Estimated:
    """average(fineness) and average(coarser): a number, an array, or any pytree of them."""
    return Estimated(average(fineness), average(coarser))
