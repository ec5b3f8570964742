"""The learners of matrices: penalties on the trace or the squared norm, and descent on the weights of a network."""

from __future__ import annotations

import numbers

import equinox as eqx

from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner


class NuclearNorm(Learner):
    r"""The network of quadratic units trained with weight decay: least squares under a penalty on the trace.

    $\min_{S \succeq 0} \frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2
    + \frac{\lambda}{d} \mathrm{Tr}\, S$ with $\lambda$ = `penalty`. A network $S = W^T W/\sqrt{pd}$ of p >= d units
    trained on $\sum_\mu (y_\mu - \hat y_\mu)^2 + \lambda_W \|W\|_F^2$ solves the same problem with
    $\lambda = \lambda_W \sqrt{p/d}$. A penalty of 0 is the limit of a vanishing one.

    - `width`: None for p >= d; otherwise S has a rank of at most p: an integer is the number of units, a fraction up
      to 1 is the number of units over the dimension.
    - `solver`: how runs are made: `"convex"` (accelerated proximal gradient on S) or `"network"` (descent on W).
    """

    penalty: float = 0.0
    width: int | float | None = None
    solver: str = eqx.field(default="convex", static=True)

    def __check_init__(self):
        real_number("penalty", self.penalty, "a finite number, zero or positive", lambda x: x >= 0)
        if self.solver not in ("convex", "network"):
            raise bad_parameter("solver", self.solver, "'convex' or 'network'")
        if self.width is not None:
            takes = "None, an integer of at least 1 (units) or a fraction above 0 and up to 1 (units per dimension)"
            whole = isinstance(self.width, numbers.Integral)
            real_number("width", self.width, takes, lambda x: x >= 1 if whole else 0 < x <= 1)


class Lazy(Learner):
    r"""Ridge regression on the features, as a network does that stays close to its start (the tangent kernel).

    $\min_S \frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d} \|S\|_F^2$ over all symmetric
    S, with $\lambda$ = `penalty`. A penalty of 0 is the limit of a vanishing one.
    """

    penalty: float = 0.0

    def __check_init__(self):
        real_number("penalty", self.penalty, "a finite number, zero or positive", lambda x: x >= 0)


class GradientDescent(Learner):
    """Full-batch gradient descent on a network of the teacher's width, from random weights, without penalty.

    `runs` independent starts are made on the same data and their predictions averaged. Each run takes steps of size
    `step` on a quarter of the sum of squares, halved whenever the loss would rise, until the mean squared residual is
    below `tolerance`, or falls by a smaller share than that in a step, or after `max_steps`.
    """

    runs: int = 1
    step: float = 0.1
    max_steps: int = eqx.field(default=10_000, static=True)
    tolerance: float = 1e-6

    def __check_init__(self):
        for name in ("runs", "max_steps"):
            check_count(name, getattr(self, name), least=1)
        for name in ("step", "tolerance"):
            real_number(name, getattr(self, name), "a positive number", lambda x: x > 0)
