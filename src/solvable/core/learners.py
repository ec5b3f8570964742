"""The learners that several families share. A family's own learners live beside its models."""

from __future__ import annotations

import math
import numbers
from typing import Any, TypeGuard

import equinox as eqx

from solvable.core.errors import bad_parameter
from solvable.core.model import Learner


class BayesOptimal(Learner):
    """The best that any method can do, whatever its cost: the global optimum of the free entropy.

    Its estimate is the posterior mean under the true prior and channel, so that the overlap with the truth equals the
    estimate's own norm, $q = \\hat w \\cdot w^* / d = |\\hat w|^2 / d$.
    """


class AMP(Learner):
    """Bayesian approximate message passing from an uninformed start.

    One step proposes $\\hat w'$ and moves to $\\hat w + \\delta (\\hat w' - \\hat w)$ with $\\delta$ = `damping`, the
    weight of the new iterate (1 is undamped). It stops when the relative change is below `tolerance`, or after
    `max_steps`. Its theory is the fixed point of state evolution reached from an infinitesimal overlap. `start` is
    `"noise"`, or `"spectral"` for the estimate of the symmetric spectral method (with several projections).
    """

    damping: float = 0.5
    max_steps: int = eqx.field(default=600, static=True)
    tolerance: float = 1e-4
    start: str = eqx.field(default="noise", static=True)

    def __check_init__(self):
        if self.start not in ("noise", "spectral"):
            raise bad_parameter("start", self.start, "'noise' or 'spectral'")
        if not (_is_real(self.damping) and 0 < self.damping <= 1):
            raise bad_parameter("damping", self.damping, "a number above 0 and at most 1 (the weight of the new step)")
        if isinstance(self.max_steps, bool) or not isinstance(self.max_steps, numbers.Integral) or self.max_steps < 1:
            raise bad_parameter("max_steps", self.max_steps, "an integer of at least 1")
        if not (_is_real(self.tolerance) and 0 < self.tolerance < 1):
            raise bad_parameter("tolerance", self.tolerance, "a number between 0 and 1")


class Spectral(Learner):
    """The leading eigenvector of a matrix built from the samples and preprocessed labels.

    `kind` is `"symmetric"` for a weighted covariance of the inputs, or `"asymmetric"` for the non-symmetric operator
    that linearises message passing around its uninformed fixed point.
    """

    kind: str = eqx.field(default="symmetric", static=True)

    def __check_init__(self):
        if self.kind not in ("symmetric", "asymmetric"):
            raise bad_parameter("kind", self.kind, "'symmetric' or 'asymmetric'")


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
        _check_penalty(self.penalty)
        if self.solver not in ("convex", "network"):
            raise bad_parameter("solver", self.solver, "'convex' or 'network'")
        if self.width is not None:
            takes = "None, an integer of at least 1 (units) or a fraction above 0 and up to 1 (units per dimension)"
            whole = isinstance(self.width, numbers.Integral) and not isinstance(self.width, bool)
            if not (self.width >= 1 if whole else _is_real(self.width) and 0 < self.width <= 1):
                raise bad_parameter("width", self.width, takes)


class Lazy(Learner):
    r"""Ridge regression on the features, as a network does that stays close to its start (the tangent kernel).

    $\min_S \frac{1}{d^2}\sum_\mu (y_\mu - \mathrm{Tr}[G_\mu S])^2 + \frac{\lambda}{d} \|S\|_F^2$ over all symmetric
    S, with $\lambda$ = `penalty`. A penalty of 0 is the limit of a vanishing one.
    """

    penalty: float = 0.0

    def __check_init__(self):
        _check_penalty(self.penalty)


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
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
                raise bad_parameter(name, value, "an integer of at least 1")
        for name in ("step", "tolerance"):
            if not (_is_real(getattr(self, name)) and getattr(self, name) > 0):
                raise bad_parameter(name, getattr(self, name), "a positive number")


def _check_penalty(penalty: Any) -> None:
    # A value that JAX traces, when a theory is differentiated, has no number to check; a text is no number at all.
    traced = hasattr(penalty, "dtype") and not isinstance(penalty, numbers.Number)
    if not traced and not (_is_real(penalty) and penalty >= 0):
        raise bad_parameter("penalty", penalty, "a finite number, zero or positive")


def _is_real(value: Any) -> TypeGuard[float]:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
