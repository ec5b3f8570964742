r"""One solver for fixed points x = f(x, args) on any pytree of arrays.

The iteration is Anderson's [anderson1965iterative]: with the residuals r_k = f(x_k) - x_k, the last m differences
dx_j = x_{j+1} - x_j and dr_j = r_{j+1} - r_j, and the damping b in (0, 1],

    gamma = argmin | r_k - sum_j gamma_j dr_j |,      x_{k+1} = x_k + b r_k - sum_j gamma_j (dx_j + b dr_j).

With m = 0 it is the damped iteration x_{k+1} = (1 - b) x_k + b f(x_k). The loop is `optimistix.fixed_point`, and its
`ImplicitAdjoint` gives derivatives by the implicit function theorem, so they cost one linear solve whatever the number
of steps. Near a solution with slope s = df/dx, a residual r means an error of about r / (1 - s): close to a
threshold, where s -> 1, a small residual alone does not make an accurate solution.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax.flatten_util import ravel_pytree


class Ending(enum.IntEnum):
    """How a solve ended; the numbers are those of `solvable.core.status.Status`."""

    CONVERGED = 0
    MAX_STEPS = 1
    NONFINITE = 3


class FixedPoint(NamedTuple):
    """A solution and its report.

    `residual` is max |f(x) - x| / (|x| + atol/rtol) over all entries, evaluated afresh at the returned `value`;
    `status` is `Ending.CONVERGED` if and only if it is at most rtol (and the value is finite). `iterations` counts the
    evaluations of f inside the loop. All are arrays, batched under `vmap`; only `value` carries derivatives, and those
    have a meaning only where the solve converged.
    """

    value: Any
    residual: jax.Array
    iterations: jax.Array
    status: jax.Array


class _History(eqx.Module):
    """The last points and residuals. `last_r` is infinite until there is one; `count` differences are stored."""

    scaled_residual: jax.Array
    last_x: jax.Array
    last_r: jax.Array
    dx: jax.Array
    dr: jax.Array
    count: jax.Array
    accelerated: jax.Array


class Anderson(optx.AbstractFixedPointSolver):
    """Anderson acceleration with damping and two safeguards, as an optimistix fixed-point solver.

    An accelerated step after which the residual more than doubles, or is not finite, is taken back and replaced by the
    plain damped step, so that an extrapolation out of the function's domain does no harm. And while the residual
    grows in its own direction the iteration is leaving an unstable fixed point, to which an extrapolation would lead
    back: plain steps are taken until that ends. The iteration so ends where the plain one would in the usual case of
    a state evolution started near an unstable solution; where basins are intricate, use `memory=0`.
    """

    rtol: float
    atol: float
    damping: float = 1.0
    memory: int = 5
    norm: ClassVar[Callable[[Any], jax.Array]] = optx.max_norm

    def init(self, fn, y, args, options, f_struct, aux_struct, tags) -> _History:
        del fn, args, options, f_struct, aux_struct, tags
        x, _ = ravel_pytree(y)
        # More differences than unknowns are linearly dependent, and the old ones only blur the new.
        memory = min(self.memory, x.size)
        empty = jnp.zeros((memory, x.size), x.dtype)
        infinite = jnp.full_like(x, jnp.inf)
        return _History(jnp.asarray(jnp.inf, x.dtype), x, infinite, empty, empty, jnp.asarray(0), jnp.asarray(False))

    def step(self, fn, y, args, options, state: _History, tags):
        del options, tags
        image, aux = fn(y, args)
        x, unravel = ravel_pytree(y)
        r = ravel_pytree(image)[0] - x
        scaled = _scaled_residual(x, r, self.rtol, self.atol)
        first = ~jnp.all(jnp.isfinite(state.last_r))
        size, last_size = jnp.linalg.norm(r), jnp.linalg.norm(state.last_r)
        rejected = state.accelerated & ~(size <= 2 * last_size)
        leaving = ~first & (jnp.vdot(r, state.last_r) > last_size**2)

        dx = _push(state.dx, x - state.last_x)
        dr = _push(state.dr, r - state.last_r)
        count = jnp.where(first | leaving, 0, jnp.minimum(state.count + 1, len(state.dx)))
        use = jnp.arange(len(state.dx)) < count
        dx, dr = jnp.where(use[:, None], dx, 0.0), jnp.where(use[:, None], dr, 0.0)
        accelerated = (count > 0) & ~rejected

        # Where the step is rejected these residuals may be NaN, which the least squares must not see.
        gamma = _least_squares(jnp.where(accelerated, dr, 0.0), jnp.where(accelerated, r, 0.0))
        extrapolated = x + self.damping * r - gamma @ jnp.where(accelerated, dx + self.damping * dr, 0.0)
        retreat = state.last_x + self.damping * state.last_r
        new_x = jnp.where(rejected, retreat, jnp.where(accelerated, extrapolated, x + self.damping * r))
        # The point whose residual was found small is the one to return, not a step beyond it.
        new_x = jnp.where(scaled <= 1, x, new_x)

        new_state = _History(
            scaled_residual=scaled,
            last_x=jnp.where(rejected, state.last_x, x),
            last_r=jnp.where(rejected, state.last_r, r),
            dx=jnp.where(rejected, 0.0, dx),
            dr=jnp.where(rejected, 0.0, dr),
            count=jnp.where(rejected, 0, count),
            accelerated=accelerated,
        )
        return unravel(new_x), new_state, aux

    def terminate(self, fn, y, args, options, state: _History, tags):
        del fn, y, args, options, tags
        return state.scaled_residual <= 1, optx.RESULTS.successful

    def postprocess(self, fn, y, aux, args, options, state, tags, result):
        del fn, args, options, state, tags, result
        return y, aux, {}


class Iteration(NamedTuple):
    """Where the iteration ended, after how many evaluations of f, and the tolerances it had; not yet judged."""

    value: Any
    iterations: jax.Array
    rtol: float
    atol: float

    def judged(self, image: Any) -> FixedPoint:
        """The report, given f at `value`."""
        x, image = jax.lax.stop_gradient((self.value, image))
        change = ravel_pytree(jax.tree.map(jnp.subtract, image, x))[0]
        residual = _scaled_residual(ravel_pytree(x)[0], change, self.rtol, self.atol)  # in units of the tolerance
        status = jnp.where(
            jnp.isfinite(residual), jnp.where(residual <= 1, Ending.CONVERGED, Ending.MAX_STEPS), Ending.NONFINITE
        )
        return FixedPoint(self.value, self.rtol * residual, self.iterations, status.astype(jnp.int32))


def solve_fixed_point(
    function: Callable[[Any, Any], Any],
    start: Any,
    args: Any = None,
    *,
    damping: float = 1.0,
    memory: int = 5,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    max_steps: int = 1000,
) -> FixedPoint:
    """Solve x = function(x, args) from `start`, an array or a pytree of arrays, and report how it went.

    `damping` is the weight of the new iterate (1 is the plain iteration); `memory` the number of past steps that
    Anderson acceleration uses (0 for none). A relative tolerance below what the precision in use can resolve is raised
    to ten times its rounding unit. Works under `jit`, `vmap` and `grad`, in the precision of `start`; outside of `jit`
    pass the same function object each time, with what changes in `args`, or each call compiles anew.
    """
    found = iterate(function, start, args, damping, memory, rtol, atol, max_steps)
    return found.judged(function(*jax.lax.stop_gradient((found.value, args))))


def iterate(
    function: Callable[[Any, Any], Any],
    start: Any,
    args: Any,
    damping: float,
    memory: int,
    rtol: float,
    atol: float,
    max_steps: int,
) -> Iteration:
    """The iteration of `solve_fixed_point` alone, for callers who evaluate the function at its end themselves."""
    if not 0 < damping <= 1:
        raise ValueError(
            f"damping = {damping!r} is not allowed: damping must be in (0, 1], the weight of the new iterate."
        )
    if memory < 0:
        raise ValueError(
            f"memory = {memory!r} is not allowed: memory must be a number of steps, 0 for no acceleration."
        )
    # Python numbers would be compiled in as constants, and each new value would compile anew.
    start = jax.tree.map(_inexact, start)
    args = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, args)
    rounding = max(jnp.finfo(leaf.dtype).eps for leaf in jax.tree.leaves(start))
    rtol = max(rtol, 10 * float(rounding))
    solver = Anderson(rtol=rtol, atol=atol, damping=damping, memory=memory)
    solution = optx.fixed_point(function, solver, start, args, max_steps=max_steps, throw=False)
    return Iteration(solution.value, jnp.asarray(solution.stats["num_steps"], jnp.int32), rtol, atol)


def _inexact(leaf: Any) -> jax.Array:
    leaf = jnp.asarray(leaf)
    return leaf if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf.astype(jnp.zeros(()).dtype)


def _scaled_residual(x: jax.Array, r: jax.Array, rtol: float, atol: float) -> jax.Array:
    """max |r| / (atol + rtol |x|), and NaN if x is not finite (an infinite scale would hide any residual)."""
    return jnp.where(jnp.all(jnp.isfinite(x)), jnp.max(jnp.abs(r) / (atol + rtol * jnp.abs(x))), jnp.nan)


def _push(rows: jax.Array, new: jax.Array) -> jax.Array:
    """Put a row first and drop the last."""
    return jnp.concatenate([new[None], rows])[: len(rows)]


def _least_squares(rows: jax.Array, r: jax.Array) -> jax.Array:
    """The smallest gamma minimising |r - gamma @ rows|; rows of very different sizes are brought to one scale."""
    sizes = jnp.linalg.norm(rows, axis=1)
    scale = jnp.where(sizes > 0, sizes, 1.0)
    gamma, *_ = jnp.linalg.lstsq((rows / scale[:, None]).T, r)
    return gamma / scale
