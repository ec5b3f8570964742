"""A target g(z1..zr): a function of a few projections, from text or from a callable written with `jax.numpy`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from solvable.core.errors import TargetError, bad_parameter
from solvable.targets.expression import Expression, evaluate
from solvable.targets.parser import MAX_PROJECTIONS, parse

CHUNK = 4096
"""Compiled functions always see this many points, padded: other sizes do not compile anew."""


class Target:
    """The function g of r projections that a model's labels come from.

    `Target("z1**2 + z2")` reads a formula (see `parser.parse`); r is the highest index in it, or `projections` if
    given. `Target(f, projections=r)` takes a function written with `jax.numpy` that maps an array z of shape (r,) to
    a scalar; for r = 1 a result of shape (1,) is accepted too. g must be a real number for every z, or infinite.

    Targets are immutable, and equal when their formulas (or their functions) and r are.
    """

    text: str | None
    expression: Expression | None
    projections: int
    name: str

    def __init__(self, target: str | Expression | Callable[..., Any], projections: int | None = None):
        if isinstance(target, (str, Expression)):
            self._read_formula(target, projections)
        elif callable(target):
            self._take_function(target, projections)
        else:
            takes = "a formula such as 'abs(z)', or a function with its number of projections"
            raise TargetError(f"target = {target!r:.60} is not allowed: target must be {takes}.")
        self._check_values()

    def _read_formula(self, target: str | Expression, projections: int | None) -> None:
        self.expression = parse(target) if isinstance(target, str) else target
        self.text = " ".join(target.split()) if isinstance(target, str) else str(target)
        self.name = self.text
        self._function = None
        used = self.expression.projections
        self.projections = used if projections is None else _whole("projections", projections)
        if not used <= self.projections <= MAX_PROJECTIONS:
            takes = f"from {used} (the highest index in '{self.text}') to {MAX_PROJECTIONS}"
            raise bad_parameter("projections", projections, takes)

    def _take_function(self, function: Callable[..., Any], projections: int | None) -> None:
        self.text = self.expression = None
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        if projections is None:
            takes = f"given with a function: Target({self.name}, projections=r) for a function of r projections"
            raise bad_parameter("projections", None, takes)
        self.projections = _whole("projections", projections)
        if not 1 <= self.projections <= MAX_PROJECTIONS:
            raise bad_parameter("projections", projections, f"from 1 to {MAX_PROJECTIONS}")

    def _check_values(self) -> None:
        """Evaluate at typical z, so that a bad function or a formula without a value there fails here and clearly."""
        z = np.random.default_rng(0).standard_normal((256, self.projections))
        try:
            values = self.numpy(z)
        except TargetError:
            raise
        except Exception as error:
            cause = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            advice = "it must be written with jax.numpy (no `if` on values: use jnp.where) and take z of shape"
            raise TargetError(f"{self.name} cannot be evaluated ({cause}); {advice} ({self.projections},)") from error
        if np.any(missing := np.isnan(values)):
            at = ", ".join(f"{v:.3g}" for v in z[np.argmax(missing)])
            advice = "a target needs a value for every z, for instance by abs(z) or where(condition, a, b)"
            raise TargetError(f"{self.name} is not a number at z = {at}: {advice}")

    def __call__(self, z: Any) -> Any:
        """g(z) for z of shape (..., r), with `jax.numpy`: traceable and differentiable."""
        import jax
        import jax.numpy as jnp

        z = jnp.asarray(z)
        z = z if jnp.issubdtype(z.dtype, jnp.floating) else z.astype(float)
        self._check_shape(z.shape)
        if self.expression is not None:
            return jnp.asarray(evaluate(self.expression, [z[..., i] for i in range(self.projections)], jnp), z.dtype)
        values = jax.vmap(self._call_function)(z.reshape(-1, self.projections))
        return values.reshape(z.shape[:-1]).astype(z.dtype)

    def _call_function(self, z: Any) -> Any:
        import jax.numpy as jnp

        assert self._function is not None
        value = jnp.asarray(self._function(z))
        if value.shape not in (((), (1,)) if self.projections == 1 else ((),)):
            raise TargetError(f"{self.name} returns shape {value.shape} for one z of shape {z.shape}: return a scalar")
        if jnp.issubdtype(value.dtype, jnp.complexfloating):
            raise TargetError(f"{self.name} returns complex values: a target must be real")
        return value.reshape(())

    def numpy(self, z: Any) -> np.ndarray:
        """g(z) for z of shape (..., r), as a NumPy array in float64."""
        z = np.asarray(z, dtype=np.float64)
        self._check_shape(z.shape)
        if self.expression is not None:
            return evaluate(self.expression, [z[..., i] for i in range(self.projections)], np)
        (values,) = _on_points(self._compiled_value, z.reshape(-1, self.projections))
        return values.reshape(z.shape[:-1])

    def value_and_slope(self, z: Any) -> tuple[np.ndarray, np.ndarray]:
        """g(z) and dg/dz in float64, elementwise on an array z of any shape; for one projection only."""
        self._need_one_projection("value_and_slope")
        z = np.asarray(z, dtype=np.float64)
        value, slope = _on_points(self._compiled_slope, z.reshape(-1, 1))
        return value.reshape(z.shape), slope.reshape(z.shape)

    @functools.cached_property
    def _compiled_value(self) -> Callable[[np.ndarray], tuple[Any, ...]]:
        import jax

        return jax.jit(lambda z: (self(z),))

    @functools.cached_property
    def _compiled_slope(self) -> Callable[[np.ndarray], tuple[Any, ...]]:
        import jax
        import jax.numpy as jnp

        return jax.jit(lambda z: jax.jvp(self, (z,), (jnp.ones_like(z),)))

    @functools.cached_property
    def breaks(self) -> np.ndarray:
        """Sorted locations of the kinks, jumps, poles and domain edges of g; for one projection only."""
        from solvable.targets.breaks import find_breaks

        locations = find_breaks(self)
        locations.flags.writeable = False
        return locations

    def is_even(self) -> bool:
        """Whether g(-z) = g(z), by values at many points; for one projection only."""
        return self._has_parity(1.0)

    def is_odd(self) -> bool:
        """Whether g(-z) = -g(z), by values at many points; for one projection only."""
        return self._has_parity(-1.0)

    def _has_parity(self, sign: float) -> bool:
        self._need_one_projection("parity")
        # A step of 1/223.6068 keeps the points off the round numbers where jumps sit.
        z = (np.arange(1600) + 0.6180339887) / 223.6068
        right, left = self.numpy(z[:, None]), sign * self.numpy(-z[:, None])
        with np.errstate(invalid="ignore"):
            close = np.abs(right - left) <= 1e-12 * np.maximum(np.abs(right), np.abs(left))
        return bool(np.all(close | (right == left) | (np.isnan(right) & np.isnan(left))))

    def _need_one_projection(self, what: str) -> None:
        if self.projections != 1:
            raise ValueError(f"{what} is defined for one projection, and {self.name} has {self.projections}.")

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if not shape or shape[-1] != self.projections:
            raise bad_parameter("z", f"array of shape {shape}", f"of shape (..., {self.projections})")

    def _key(self) -> tuple[Any, int]:
        return (self.expression if self._function is None else id(self._function)), self.projections

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        # Compiled functions do not travel to another process; the definition does.
        return Target, (self.text if self._function is None else self._function, self.projections)

    def __repr__(self) -> str:
        return f"Target({self.text!r})" if self.text is not None else f"Target({self.name}, {self.projections})"

    def __str__(self) -> str:
        return self.name


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise bad_parameter(name, value, "a whole number")
    return int(value)


def _on_points(function: Callable[[np.ndarray], tuple[Any, ...]], points: np.ndarray) -> tuple[np.ndarray, ...]:
    """A compiled function at the rows of `points`, `CHUNK` at a time."""
    import jax

    from solvable.numerics.batches import in_batches

    # Also right when called while another function is being traced: the points are numbers, not tracers.
    with jax.ensure_compile_time_eval():
        return in_batches(function, points, batch=CHUNK, alone=False)
