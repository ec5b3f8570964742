r"""What a learner does with one sample: the force that moves its weights, in the limit of large d.

A step on a sample (x, y) is $w_i \leftarrow w_i + (\gamma/d) F_i x$. Since $|x|^2/d \to 1$, a first step of size
$\rho_0/d$ on the same sample moves the fields by something of order one, $\tilde h = h + \rho_0 F(y, h)$, and

    plain descent        F(y, h)
    extragradient        F(y, h + rho_0 F(y, h))
    a sample seen twice  F(y, h) + F(y, h + gamma F(y, h))

[arnaboldi2024repetita]. On a near-copy $x' = s x + \sqrt{1 - s^2}\,x''$ the first step moves the fields by
$s \rho_0 F(y, h)$ of the first sample, and the force is that on the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from solvable.engine.dynamics.student import Student

PLAIN, AHEAD, TWICE = "plain", "ahead", "twice"


class Move(NamedTuple):
    """How a `student` moves: the `kind` of step, whether its neurons stay on the sphere, and near-copies (`copies`).

    It holds no numbers that vary, so that a program compiled for it serves every rate: these are `Rates`.
    """

    student: Student
    kind: str = PLAIN
    spherical: bool = True
    copies: bool = False

    @property
    def linear(self) -> bool:
        """Whether the force is linear in the label."""
        return self.kind == PLAIN

    def force(self, y: Any, h: Any, rates: Rates) -> Any:
        """The force (..., p) on a sample with label y (...) and fields h (..., p)."""
        first = self.student.force(y, h)
        if self.kind == PLAIN:
            return first
        if self.kind == AHEAD:
            return self.student.force(y, h + rates.extrapolation * first)
        return first + self.student.force(y, h + rates.learning_rate * first)

    def second_force(self, before: tuple[Any, Any], y: Any, h: Any, rates: Rates) -> Any:
        """The force on a near-copy (y, h), after a look ahead on the sample (y, h) = `before`."""
        first = self.student.force(*before)
        return self.student.force(y, h + rates.extrapolation * rates.similarity * first)


class Rates(NamedTuple):
    """The numbers of a step: learning rate, extrapolation, and how similar the second sample is to the first."""

    learning_rate: Any
    extrapolation: Any = 0.0
    similarity: Any = 1.0
