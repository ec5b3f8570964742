"""Kernel ridge regression with a polynomial kernel as a learner: a network of fixed features, whatever the labels."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from solvable.core.checks import real_number
from solvable.core.model import Learner


class Kernel(Learner):
    r"""Ridge regression with the kernel $k(x, x') = \sum_{1\le q\le Q} (x\cdot x')^q/q!$, for inputs of norm about one.

    $\min_f \sum_\mu (y_\mu - \bar y - f(x_\mu))^2 + \lambda |f|^2$ with the norm of the kernel's space; the mean label
    $\bar y$ is taken as it is. So does a network learn whose neurons keep their first weights: it cannot adapt its
    features to the labels.

    - `degree`: Q, a whole number, or `inf` for $e^{x\cdot x'} - 1$.
    - `penalty`: $\lambda$; None for the one of least error on samples set aside, after which all are trained on.
    - `validation`: the share of the samples that is set aside to choose the penalty.
    """

    by_default: ClassVar[bool] = False

    degree: float
    penalty: float | None
    validation: float

    def __init__(self, degree: float = 2, penalty: float | None = None, validation: float = 0.2):
        self.degree = checked_degree("degree", degree)
        self.penalty = checked_penalty(penalty)
        self.validation = checked_share("validation", validation)

    @property
    def curvature(self) -> float:
        """k(x, x) less its linear part at |x| = 1: what a kernel matrix in high dimension has on its diagonal only."""
        if math.isinf(self.degree):
            return math.e - 2
        return sum(1 / math.factorial(q) for q in range(2, int(self.degree) + 1))


MOST_DEGREE = 20


def checked_degree(name: str, value: Any) -> float:
    """A whole number from 1 to 20, or infinity."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    takes = f"a whole number from 1 to {MOST_DEGREE}, or infinite"
    return int(real_number(name, value, takes, lambda q: 1 <= q <= MOST_DEGREE and q == int(q)))


def checked_penalty(penalty: Any) -> float | None:
    """A number, not negative, or None for one that is chosen."""
    if penalty is None:
        return None
    return real_number("penalty", penalty, "a finite number, zero or positive, or None", lambda x: x >= 0)


def checked_share(name: str, value: Any) -> float:
    """A share of the samples that leaves some on both sides."""
    return real_number(name, value, "a share of the samples, above 0 and below 1", lambda x: 0 < x < 1)
