"""The learners that several families share. A family's own learners live beside its models."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx

from solvable.core.checks import check_count, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner


class BayesOptimal(Learner):
    """The best that any method can do, whatever its cost: the global optimum of the free entropy.

    Its estimate is the posterior mean under the true prior and channel, so that the overlap with the truth equals the
    estimate's own norm, $q = \\hat w \\cdot w^* / d = |\\hat w|^2 / d$.
    """

    posterior_mean: ClassVar[bool] = True


class AMP(Learner):
    """Bayesian approximate message passing from an uninformed start.

    One step proposes $\\hat w'$ and moves to $\\hat w + \\delta (\\hat w' - \\hat w)$ with $\\delta$ = `damping`, the
    weight of the new iterate (1 is undamped). It stops when the relative change is below `tolerance`, or after
    `max_steps`. Its theory is the fixed point of state evolution reached from an infinitesimal overlap. `start` is
    `"noise"`, or `"spectral"` for the estimate of the symmetric spectral method; a run from noise that did not succeed
    by its own account is started again from there.
    """

    posterior_mean: ClassVar[bool] = True

    damping: float = 0.5
    max_steps: int = eqx.field(default=600, static=True)
    tolerance: float = 1e-4
    start: str = eqx.field(default="noise", static=True)

    def __check_init__(self):
        if self.start not in ("noise", "spectral"):
            raise bad_parameter("start", self.start, "'noise' or 'spectral'")
        takes = "a number above 0 and at most 1 (the weight of the new step)"
        real_number("damping", self.damping, takes, lambda x: 0 < x <= 1)
        check_count("max_steps", self.max_steps, least=1)
        real_number("tolerance", self.tolerance, "a number between 0 and 1", lambda x: 0 < x < 1)


class Spectral(Learner):
    """The leading eigenvector of a matrix built from the samples and preprocessed labels.

    `kind` is `"symmetric"` for a weighted covariance of the inputs, or `"asymmetric"` for the non-symmetric operator
    that linearises message passing around its uninformed fixed point.
    """

    posterior_mean: ClassVar[bool] = True  # of the weights given the eigenvector

    kind: str = eqx.field(default="symmetric", static=True)

    def __check_init__(self):
        if self.kind not in ("symmetric", "asymmetric"):
            raise bad_parameter("kind", self.kind, "'symmetric' or 'asymmetric'")


class GradientDescent(Learner):
    """Gradient descent on a network of the teacher's width, from random weights.

    `runs` independent starts are made on the same data and their predictions averaged. Each run takes steps of size
    `step`, until the mean squared residual is below `tolerance`, or falls by a smaller share than that in a step, or
    after `max_steps`. Quadratic networks descend a quarter of the sum of squares by plain steps, halved whenever the
    loss would rise; attention layers descend the squares of the labels' errors by Adam.

    Deep attention descends by plain steps, and it alone takes minibatches: `batch` samples over d (0 for all samples),
    `passes` steps on each, and a penalty of strength `decay`. Only steps on all samples can end by a small fall.
    """

    runs: int = 1
    step: float = 0.1
    max_steps: int = eqx.field(default=10_000, static=True)
    tolerance: float = 1e-6
    batch: float = 0.0
    passes: int = eqx.field(default=1, static=True)
    decay: float = 0.0

    def __check_init__(self):
        for name in ("runs", "max_steps", "passes"):
            check_count(name, getattr(self, name), least=1)
        for name in ("batch", "decay"):
            real_number(name, getattr(self, name), "a number of at least 0", lambda x: x >= 0)
        for name in ("step", "tolerance"):
            real_number(name, getattr(self, name), "a positive number", lambda x: x > 0)

    def check_plain(self, error: type[Exception]) -> None:
        """Raise `error` unless every step is on all samples, without penalty."""
        if float(self.batch) or float(self.decay) or int(self.passes) > 1:
            raise error("batch, passes and decay of gradient descent are for DeepAttention; elsewhere leave them out.")
