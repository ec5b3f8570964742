"""The learner that the models of this family share."""

from __future__ import annotations

from typing import Any

import equinox as eqx

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner


class RandomFeatures(Learner):
    r"""The second layer trained on random features, which stay as they were drawn.

    $\min_a \sum_\mu l(y_\mu, f(x_\mu)) + \lambda |a|^2$ with $f(x) = a\cdot\varphi(x)/\sqrt p$ and $\lambda$ =
    `penalty`, a sum over the samples; $l = (y - f)^2$ for `loss` "square". For "logistic", $l = \log(1 + e^{-y f})$
    and the penalty is $\lambda |a|^2/2$. A penalty of 0 is the limit of a vanishing one, where there is one.
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
