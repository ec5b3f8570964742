"""A direction learned by one pass of descent: students that know the function, and single neurons."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from solvable.core.checks import is_array, real_array, real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner
from solvable.engine.dynamics.student import as_activation
from solvable.targets.target import Target

ATTENTION, TIED, PLAIN = "attention", "tied", "plain"
RANDOM = "random"


def _as_start(value: Any) -> Any:
    if isinstance(value, str) and value.strip().lower() == RANDOM:
        return RANDOM
    numbers = real_array("start", value) if is_array(value) else [real_number("start", value, "'random' or numbers")]
    return tuple(float(number) for number in np.ravel(numbers))


class SequenceSGD(Learner):
    r"""One pass of descent on the square loss, a fresh sample a step, weights on the sphere; alpha = samples seen / d.

    $w \leftarrow w - (\gamma/d)\nabla_w \frac12|y - f(x)|^2$, normalised, with $\gamma$ = `learning_rate`.

    - `student`: `"attention"`, the function of the model applied to $q_t = w\cdot(x_t + p_t)$; `"tied"`, the neuron
      $\sigma(T^{-1/2}\sum_t w\cdot x_t)$; `"plain"`, the neuron $\sigma(T^{-1/2}\sum_t w_t\cdot x_t)$ with weights for
      every token, normalised together.
    - `positions`: whether the tokens of an attention student stand at $\pm p$, |p| = 1, p orthogonal to w*; two tokens.
    - `activation`: of a neuron, as targets are typed, by name, or a function written with `jax.numpy`.
    - `start`: the overlap with w*, two numbers with that with p, or `"random"`: a random direction at size d, which in
      the limit knows nothing. A plain student of single tokens starts with as many numbers as there are tokens.
    """

    by_default: ClassVar[bool] = False

    learning_rate: float
    student: str = eqx.field(default=ATTENTION, static=True)
    positions: bool = eqx.field(default=False, static=True)
    activation: Target = eqx.field(default="relu", converter=as_activation, static=True)
    start: Any = eqx.field(default=RANDOM, converter=_as_start)

    def __check_init__(self):
        real_number("learning_rate", self.learning_rate, "a positive number", lambda x: x > 0)
        if self.student not in (ATTENTION, TIED, PLAIN):
            raise bad_parameter("student", self.student, f"'{ATTENTION}', '{TIED}' or '{PLAIN}'")
        if not isinstance(self.positions, bool):
            raise bad_parameter("positions", self.positions, "True or False")
        if self.positions and self.student != ATTENTION:
            raise bad_parameter("positions", self.positions, "False for a neuron: only attention looks at them")

    def first(self, directions: int, D: int | None = None, rng: np.random.Generator | None = None) -> np.ndarray:
        """The overlaps with the directions at the start: in the limit, or at dimension D of the student's weights."""
        if self.start == RANDOM:
            if D is None or rng is None:
                return np.zeros(directions)
            if directions + 2 >= D:
                raise bad_parameter("d", D, f"at least {directions + 3}")
            x = rng.standard_normal(directions)
            return x / np.sqrt(np.sum(x**2) + rng.chisquare(D - directions))
        found = np.array(self.start)
        if len(found) == 1 and self.positions:
            found = np.append(found, 0.0)
        if len(found) != directions:
            takes = f"'random' or {directions} number{'s' * (directions > 1)}, one for each direction of this student"
            raise bad_parameter("start", self.start, takes)
        if np.sum(found**2) > 1:
            raise bad_parameter("start", self.start, "overlaps of unit vectors: their squares sum to one at most")
        return found
