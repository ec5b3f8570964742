r"""The network that descent trains: p neurons with a fixed second layer, and the gradient of its loss on one sample.

The student is $f(x) = \sum_{i\le p} a_i \sigma(h_i)$ with fields $h_i = w_i\cdot x$, $x \sim N(0, I_d)$ and $|w_i|^2$
of order one. Minus the gradient of its loss on a sample with label y is $F_i(y, h)\, x$ with

    F_i = a_i D sigma'(h_i),     D = y - f   (square loss, 1/2 D^2),     D = y   (correlation loss, -y f).

Everything that a step does to the overlaps with the teacher goes through the fields h, the label and $|x|^2$.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import TargetError, bad_parameter
from solvable.targets.parser import parse
from solvable.targets.target import Target

_CONVENTION = {"erf": "erf(z/sqrt(2))"}
"""Names that stand for another formula than name(z): erf is scaled as the field writes it."""


class Student(NamedTuple):
    """A network: its `activation`, the second layer `a` (p numbers), and whether its loss is the square one.

    Equal students are equal by definition, so that what is compiled for one serves the other.
    """

    activation: Target
    second_layer: tuple[float, ...]
    square: bool = True

    @property
    def width(self) -> int:
        """The number p of neurons."""
        return len(self.second_layer)

    def values_and_slopes(self, h: Any) -> tuple[Any, Any]:
        """sigma(h) and sigma'(h), elementwise, with `jax.numpy`; a kink has the slope that JAX gives it."""
        h = jnp.asarray(h)
        value, slope = jax.jvp(self.activation, (h[..., None],), (jnp.ones_like(h)[..., None],))
        return value, slope

    def output(self, h: Any) -> Any:
        """f of the fields h (..., p)."""
        return self.activation(jnp.asarray(h)[..., None]) @ jnp.asarray(self.second_layer)

    def force(self, y: Any, h: Any) -> Any:
        """F (..., p), minus the gradient in the fields h (..., p) of the loss on a label y (...)."""
        a = jnp.asarray(self.second_layer)
        value, slope = self.values_and_slopes(h)
        residual = y - value @ a if self.square else y
        return residual[..., None] * a * slope


def as_activation(activation: str | Target | Callable[..., Any]) -> Target:
    """A function of one projection: a formula in z, the name of a function (`"relu"`), a `Target`, or a callable.

    By name, `"erf"` is erf(z/sqrt(2)). A function without a slope almost everywhere, such as `sign`, is refused: its
    gradient says nothing.
    """
    found = read_activation(activation)
    with jax.enable_x64(True):
        z = (np.arange(400) + 0.6180339887) / 50 - 4
        try:
            slope = np.asarray(jax.jvp(found, (jnp.asarray(z)[:, None],), (jnp.ones((400, 1)),))[1])
        except TypeError as error:
            raise bad_parameter("activation", str(found), "differentiable by JAX") from error
    if not np.all(np.isfinite(slope)):
        raise bad_parameter("activation", str(found), "a function with a finite slope almost everywhere")
    if not np.any(slope):
        raise bad_parameter("activation", str(found), "a function whose slope does not vanish almost everywhere")
    return found


def read_activation(activation: Any) -> Target:
    """The same, also if its slope vanishes almost everywhere: the function is known, not trained."""
    found = _read(activation)
    if found.projections != 1:
        raise bad_parameter("activation", str(found), "a function of one variable z")
    return found


def _read(activation: Any) -> Target:
    if isinstance(activation, Target):
        return activation
    if not (isinstance(activation, str) or callable(activation)):
        raise bad_parameter("activation", activation, "a formula such as 'relu(z)', its name, or a function")
    if isinstance(activation, str) and activation.strip().isidentifier():
        name = activation.strip()
        formula = _CONVENTION.get(name, f"{name}(z)")
        try:
            parse(formula)
        except TargetError:
            pass  # "z", or an error in words
        else:
            return Target(formula)
    try:
        return Target(activation, projections=1)
    except TargetError as error:
        raise TargetError(f"activation: {error}") from None
    except ValueError:
        raise bad_parameter("activation", activation, "a function of one variable z") from None
