r"""A loss l(y, z) of a label and the learner's output, and the proximal operator that message passing makes of it.

At a given label a loss is a function f of one variable u: the residual u = y - z for regression losses, the output
u = z itself for all others. Its proximal operator undoes

    x = u + V f'(u),

which is increasing where 1 + V f'' > 0. At a kink b of f a whole interval of x, from b + V f'(b-) to b + V f'(b+), has
the same u = b. Theory integrates over u and never needs the inverse; algorithms do.
"""

from __future__ import annotations

import abc
import dataclasses
import numbers
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.checks import real_number
from solvable.core.precision import float64

_STEPS = 60
_ROUNDING = 1e-15
_EXPANSIONS = 6


class Kinks(NamedTuple):
    """Where f' jumps at one label: the places, and the slopes on their two sides."""

    place: Any
    left: Any
    right: Any


class Loss(eqx.Module):
    """l(y, z), written as a function `profile(u, y)` of u = y - z if `residual`, of u = z otherwise.

    - `margin`: labels are +-1 and the output is a score, whose sign is the predicted label.
    - `mirrored`: l(-y, -z) = l(y, z).
    - `lowest_curvature`: the least f'' anywhere. The proximal operator has one value if V times it is above -1.
    - `kinks(y)` and `splits(y)`: where f' jumps, and where quadrature over u is cut for other reasons, such as a jump
      of f''. Both have the same number of entries for every label.

    All functions act elementwise and are written with `jax.numpy`.
    """

    residual: ClassVar[bool] = False
    margin: ClassVar[bool] = False
    mirrored: ClassVar[bool] = True

    @abc.abstractmethod
    def profile(self, u: Any, y: Any) -> Any:
        """f(u), the loss as a function of u at the label y."""

    def slope(self, u: Any, y: Any) -> Any:
        """f'(u)."""
        return _elementwise(jax.grad(self.profile))(u, y)

    def curvature(self, u: Any, y: Any) -> Any:
        """f''(u)."""
        return _elementwise(jax.grad(lambda u, y: jnp.sum(self.slope(u, y))))(u, y)

    @property
    def lowest_curvature(self) -> Any:
        return 0.0

    def kinks(self, y: Any) -> Kinks:
        none = jnp.zeros(0)
        return Kinks(none, none, none)

    def splits(self, y: Any) -> Any:
        return jnp.zeros(0)

    def __call__(self, y: Any, z: Any) -> Any:
        """l(y, z)."""
        return self.profile(self.coordinate(y, z), y)

    def coordinate(self, y: Any, z: Any) -> Any:
        """u as a function of the output z, and also z as a function of u."""
        return y - z if self.residual else z

    def prox(self, x: Any, V: Any, y: Any) -> Any:
        """The u with u + V f'(u) = x, elementwise: a bracketed Newton iteration, kinks apart."""
        x, V, y = jnp.broadcast_arrays(jnp.asarray(x), V, y)
        return self._at_kinks(_root(self, x, V, y, _ROUNDING * (1 + jnp.abs(x))), x, V, y)

    def near_prox(self, x: Any, V: Any, y: Any, tolerance: Any) -> tuple[Any, Any]:
        """A place u within about `tolerance` of the proximal operator of x, and the x that it belongs to."""
        if type(self).prox is not Loss.prox:
            return self.prox(x, V, y), x
        x, V, y, tolerance = jnp.broadcast_arrays(jnp.asarray(x), V, y, tolerance)
        rough = _root(self, x, V, y, jnp.maximum(tolerance, _ROUNDING * (1 + jnp.abs(x))))
        u = self._at_kinks(rough, x, V, y)
        return u, jnp.where(u == rough, u + V * self.slope(u, y), x)

    def kinks_of(self, y: Any) -> Kinks:
        """The kinks at each of many labels, along a new last axis."""
        found = jax.vmap(self.kinks)(jnp.reshape(y, -1))
        return jax.tree.map(lambda part: part.reshape(*np.shape(y), -1), found)

    def _at_kinks(self, u: Any, x: Any, V: Any, y: Any) -> Any:
        """u, with the place of a kink put in exactly where x lies in its interval."""
        place, left, right = (jnp.moveaxis(part, -1, 0) for part in self.kinks_of(y))
        for k in range(place.shape[0]):
            inside = (x >= place[k] + V * left[k]) & (x <= place[k] + V * right[k])
            u = jnp.where(inside, place[k], u)
        return u


class ResidualLoss(Loss):
    """A loss f(y - z) of the residual, even in it; the label itself does not matter."""

    residual: ClassVar[bool] = True


def checked_scale(scale: Any) -> Any:
    """A scale, refused unless it is a positive number."""
    return real_number("scale", scale, "a positive number, in the units of the label", lambda x: x > 0)


@float64
def has_single_minimum(loss: Loss) -> bool:
    """Whether a residual of zero, and no other, has the least loss; looked at from 1e-6 to 1000 on both sides."""
    size = np.geomspace(1e-6, 1e3, 37)
    u = np.concatenate([-size, size])
    # Near zero the slope tells what rounding hides in the value.
    rises = (np.asarray(loss.profile(u, 0.0 * u)) > float(loss.profile(np.zeros(1), np.zeros(1))[0])) | (
        u * np.asarray(loss.slope(u, 0.0 * u)) > 0
    )
    return bool(loss.residual and np.all(rises))


def name_of(loss: Loss) -> str:
    """The name of a loss with its numbers, such as `Huber(0.8)`."""
    numbers_of = [getattr(loss, field.name) for field in dataclasses.fields(loss)]
    inside = ", ".join(f"{float(value):g}" for value in numbers_of if isinstance(value, numbers.Real))
    return f"{type(loss).__name__}({inside})"


def _elementwise(function: Any) -> Any:
    """A scalar function of (u, y) on arrays that broadcast together."""

    def evaluate(u: Any, y: Any) -> Any:
        u, y = jnp.broadcast_arrays(jnp.asarray(u, dtype=float), jnp.asarray(y, dtype=float))
        return jax.vmap(function)(u.reshape(-1), y.reshape(-1)).reshape(u.shape)

    return evaluate


def _root(loss: Loss, x: Any, V: Any, y: Any, tolerance: Any) -> Any:
    """The root of u + V f'(u) - x, to the tolerance, between bounds that are moved outwards until they enclose it.

    For a convex f, and for one that falls towards u = 0 from both sides, it lies between x and x - V f'(x).
    """

    def equation(u: Any) -> Any:
        return u + V * loss.slope(u, y) - x

    first = jnp.clip(x - V * loss.slope(x, y), -1e15, 1e15)
    low, high = jnp.minimum(x, first), jnp.maximum(x, first)
    width = high - low + 1e-12 * (1 + jnp.abs(x))

    def enclose(state: Any) -> Any:
        low, high, width, _, step = state
        below, above = equation(low) <= 0, equation(high) >= 0
        low, high = jnp.where(below, low, low - width), jnp.where(above, high, high + width)
        return low, high, 4 * width, jnp.all(below & above), step + 1

    begin = (low, high, width, jnp.asarray(False), 0)
    low, high, *_ = jax.lax.while_loop(lambda s: ~s[3] & (s[4] < _EXPANSIONS), enclose, begin)

    def improve(state: Any) -> Any:
        low, high, u, last, step = state
        F = equation(u)
        low, high = jnp.where(F <= 0, u, low), jnp.where(F >= 0, u, high)
        newton = u - F / (1 + V * loss.curvature(u, y))
        # Newton steps that do not shrink may go round in a circle between the bounds: halve those instead.
        taken = (newton > low) & (newton < high) & (jnp.abs(newton - u) < last / 2)
        new = jnp.where(F == 0, u, jnp.where(taken, newton, (low + high) / 2))
        return low, high, new, jnp.abs(new - u), step + 1

    def moving(state: Any) -> Any:
        *_, last, step = state
        return (step < _STEPS) & jnp.any(last > tolerance)

    return jax.lax.while_loop(moving, improve, (low, high, (low + high) / 2, high - low, 0))[2]
