"""The learner that takes two giant gradient steps on the first layer."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx

from solvable.core.checks import is_traced, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner

MOST = 6
"""The largest power of the first step that is followed: the moments of higher ones say little at any size."""
_ROUNDING = 1e-9
_TAKES = "a number from 0 to below 1/2, the exponent of a learning rate"


class TwoSteps(Learner):
    r"""Two giant gradient steps of the first layer with the rates $p^{a_1}$ and $p^{a_2}$; the second layer is frozen.

    The network is $f(x) = a\cdot\sigma(Wx)/\sqrt p$, $a \sim N(0, I_p/p)$, from rows on the unit sphere. A step is
    $W \leftarrow W + p^{a_t} \frac1n\sum_i y_i\, (a\circ\sigma'(W x_i))\, x_i^T$ on n = alpha d samples.

    - `first`, `second`: the exponents $a_1$ and $a_2$, from 0 to below 1/2.
    - `reuse`: whether the second step sees the samples of the first again, or fresh ones, as many.
    - `loss`: `"correlation"`, -y f, whose gradient is the one above, or `"square"`, which has y - f in the place of y.
      The output is of order $c_1^2 p^{a_1 - 1/2}$, so that both have the same limit; `"square"` is slow to get there.
    - `shift`: what theory takes the first step to do to a unit: `"exact"`, or `"mean"`, the closed formula, which is
      exact where $\sigma'$ is linear. A reused batch has the exact one for smooth activations only.
    """

    by_default: ClassVar[bool] = False

    first: float
    second: float
    reuse: bool = eqx.field(default=True, static=True)
    loss: str = eqx.field(default="correlation", static=True)
    shift: str = eqx.field(default="exact", static=True)

    def __check_init__(self):
        for name, value in (("first", self.first), ("second", self.second)):
            real_number(name, value, _TAKES, lambda x: 0 <= x < 0.5)
        if not isinstance(self.reuse, bool):
            raise bad_parameter("reuse", self.reuse, "True or False")
        if self.loss not in ("correlation", "square"):
            raise bad_parameter("loss", self.loss, "'correlation' or 'square'")
        if self.shift not in ("exact", "mean"):
            raise bad_parameter("shift", self.shift, "'exact' or 'mean'")
        if not is_traced((self.first, self.second)) and self.order() > MOST:
            largest = (MOST + 1) * (0.5 - self.first)
            raise bad_parameter(
                "second", self.second, f"below {largest:.6g} for first = {self.first:g}: {MOST} powers are followed"
            )

    def order(self) -> int:
        r"""$\lfloor a_2/(1/2 - a_1) \rfloor$: up to this power of the first step the second does not vanish."""
        return math.floor(float(self.second) / (0.5 - float(self.first)) + _ROUNDING)

    def exponents(self) -> list[Any]:
        """Of the size of each term with the width p: a_2 - k (1/2 - a_1)."""
        return [self.second - k * (0.5 - self.first) for k in range(MOST + 1)]
