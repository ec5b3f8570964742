"""Empirical risk minimisation as a learner: a loss and a penalty."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx

from solvable.channels.losses import Loss, Square, as_loss
from solvable.core.errors import bad_parameter
from solvable.core.fields import number_paths
from solvable.core.model import Learner
from solvable.core.status import Status
from solvable.priors.penalties import Penalty, Ridge, as_penalty

_ADVICE = {
    Status.UNSTABLE: "the replicon is above 1 or the proximal operator has several values: many minima compete; "
    "take a larger penalty, more samples, or a convex loss",
    Status.NONFINITE: "the iteration left the region where the theory holds, usually since many minima compete; "
    "take a larger penalty, more samples, or a convex loss",
    Status.DIVERGED: "without a penalty the minimum lies at infinity, as for separable classes, or where there are as "
    "many samples as weights; take a positive strength",
    Status.OUT_OF_DOMAIN: "a ridge this negative leaves the risk without a minimum; raise its strength",
}


class ERM(Learner):
    r"""The minimiser of a loss summed over the samples plus a penalty on the weights.

    $\hat w = \arg\min_w \sum_\mu l(y_\mu, x_\mu\cdot w) + r(w)$ with inputs of variance 1/d, so that $|w|^2$ is of
    order d. Where the minimum is not unique or not attained, a strength of 0 means the limit of a vanishing one.

    - `loss`: one of `sv.losses`, a function of (y, z) written with `jax.numpy`, or text such as `"huber:0.8"`.
    - `penalty`: `sv.Ridge(strength)`, which may be zero or negative, `sv.Lasso(strength)`, a number (the strength of a
      ridge), or text such as `"lasso:0.1"`.
    - `solver`: how runs are made: `"direct"` minimises the risk by a method of optimisation, `"gamp"` by message
      passing, whose every step the theory describes.

    - `start`: which of several minima is meant, of a model that names them; None for the lowest.

    For a loss that is not convex, or a negative strength, runs start from w = 0 and end in a local minimum.
    """

    by_default: ClassVar[bool] = False

    loss: Loss
    penalty: Penalty
    solver: str = eqx.field(static=True)
    start: str | None = eqx.field(static=True)

    def __init__(
        self,
        loss: Loss | str | Callable[[Any, Any], Any] | None = None,
        penalty: Penalty | str | float | None = None,
        solver: str = "direct",
        start: str | None = None,
    ):
        self.loss = Square() if loss is None else as_loss(loss)
        self.penalty = Ridge() if penalty is None else as_penalty(penalty)
        if solver not in ("direct", "gamp"):
            raise bad_parameter("solver", solver, "'direct' or 'gamp'")
        self.solver = solver
        if start is not None and not isinstance(start, str):
            raise bad_parameter("start", start, "the name of a minimum, or None for the lowest")
        self.start = start

    def check_start(self, *names: str) -> None:
        """Refuse the name of a minimum that is not among those of the model."""
        if self.start is not None and self.start not in names:
            takes = f"None or one of {', '.join(map(repr, names))}" if names else "None: this model names no minima"
            raise bad_parameter("start", self.start, takes)

    def advice(self, status: Status) -> str | None:
        return _ADVICE.get(status)

    def search_bounds(self, field: str, model: Any, axes: dict[str, float]) -> tuple[float, float] | None:
        """A ridge may be as negative as the lowest eigenvalue of X^T X allows for losses with l'' up to 1."""
        if number_paths(self).get(field) == ("loss", "scale"):
            return (0.01, 100.0)
        if isinstance(self.penalty, Ridge) and hasattr(model, "gain"):
            return (-(max(math.sqrt(model.gain(**axes)) - 1, 0.0) ** 2), 1e3)
        return None
