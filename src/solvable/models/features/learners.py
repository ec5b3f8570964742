"""The learners of this family."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner


class RandomFeatures(Learner):
    r"""The second layer of a network of p features whose first layer is random and stays as it is.

    With the square loss $f(x) = \frac{1}{\sqrt p} a \cdot \varphi(x)$ minimises
    $\sum_i (y_i - f(x_i))^2 + \lambda |a|^2$, $\lambda$ = `penalty`: a sum over the samples, without 1/2 and 1/n. A
    `penalty` of 0 is the limit of a vanishing one, the interpolator of least norm, where it exists. `loss` is
    `"square"`, or `"logistic"` where the model has labels of two classes.
    """

    penalty: float
    loss: str = eqx.field(default="square", static=True)

    def __check_init__(self):
        real_number("penalty", self.penalty, "a finite number, zero or positive", lambda x: x >= 0)
        if self.loss not in ("square", "logistic"):
            raise bad_parameter("loss", self.loss, "'square' or 'logistic'")

    def search_bounds(self, field: str, model: Any, axes: dict[str, float]) -> tuple[float, float] | None:
        """Around the penalty that a model proposes, if it does."""
        scale = getattr(model, "penalty_scale", None) if field == "penalty" else None
        return None if scale is None else (1e-6 * scale(**axes), 1e6 * scale(**axes))
