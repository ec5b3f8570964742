r"""The fixed point of a proximal output and a penalised signal: Anderson's iteration, differentiable.

A learner that minimises a loss and a penalty has the order parameters $m = \hat w\cdot w^*/d$, $q = |\hat w|^2/d$ and
V, the mean response of a weight to its field. With alpha samples for each weight, one step goes from them to the law of
a weight's field and back,

    m_hat = alpha E[z g] + m V_hat,    q_hat = alpha E[g^2],    V_hat = alpha E[-dg/domega]       (labels and loss)
    (m, q, V) = averages of argmin_w [V_hat w^2/2 - (m_hat w* + sqrt(q_hat) x) w + r(w)]         (penalty and prior),

with $g = (prox - \omega)/V$ the proximal step of the loss. Bayes-optimal learning is the case of posterior means, where
m = q = 1 - V. The fixed point describes the minimiser if it is stable against splitting into many minima, that is if
the replicon

    R = alpha E[(dg/domega)^2] E[(dw/db)^2]

is below 1, and if the proximal operator has a single value, 1 + V l'' > 0. It is solved for (c, log q, log V) with the
cosine $c = m/\sqrt q$, which keeps each of them in its range at any scale. Where weights are compared with several
orthogonal directions m, m_hat and c are vectors, in the same place. [thrampoulidis2018precise, loureiro2021learning,
vilucchio2023asymptotic]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.losses.quadrature import COARSE, Panel, panel
from solvable.core.status import Status
from solvable.engine.outputs.proximal import Averages, ProximalOutput
from solvable.engine.sides import Evolution
from solvable.engine.signals.separable import PenalisedSignal
from solvable.numerics.errors import told_by_two
from solvable.numerics.fixed_point import iterate
from solvable.priors.penalties import Shrinkage

_RTOL = 1e-10
_LARGEST_LOG = 300.0
_MAX_STEPS = 400
_MAX_DAMPED_STEPS = 3000
_SHIFT = 1e-5
_RESOLVED = 0.02
"""The largest change of (c, log q, log V) by coarser quadrature that a solution may show."""


ProximalEvolution = Evolution[ProximalOutput, PenalisedSignal]
"""What is minimised on which data: a loss on labels, and a penalty on the weights behind them."""


class ProximalPoint(NamedTuple):
    """A fixed point: the order parameters, the averages there, and how the search ended.

    `energy` is the minimum over d, alpha E[l] + E[r]; `residual` the largest change of (c, log q, log V) by one more
    step. `coarse` holds (c, q, V, replicon, loss, active) as coarser quadrature has them, to first order in the
    difference, of two rules as `told_by_two` weighs them. `slope` is the derivative of a step in (c, log q, log V).
    """

    c: Any
    q: Any
    V: Any
    m_hat: Any
    q_hat: Any
    V_hat: Any
    replicon: Any
    loss: Any
    energy: Any
    active: Any
    status: Any
    residual: Any
    iterations: Any
    coarse: Any
    slope: Any

    @property
    def m(self) -> Any:
        return self.c * jnp.sqrt(self.q)


BLANK = ProximalPoint(
    *[np.float64("nan")] * 10,
    status=np.int64(Status.MAX_STEPS),
    residual=np.float64("nan"),
    iterations=np.int64(0),
    coarse=(np.float64("nan"),) * 6,
    slope=np.full((3, 3), np.nan),
)
"""A point that is not known yet."""


def solve(
    evolution: ProximalEvolution, gain: Any, start: Any, damping: float = 1.0, rtol: float = _RTOL
) -> ProximalPoint:
    """The fixed point reached from `start` = (c, log q, log V) at one gain > 0."""
    fine, coarse = panel(), [panel(nodes) for nodes in COARSE]
    steps = _MAX_STEPS if damping == 1 else _MAX_DAMPED_STEPS
    search = iterate(
        _step, start, (evolution, gain, fine), damping=damping, memory=3, rtol=rtol, atol=rtol / 10, max_steps=steps
    )
    x = search.value
    # Every further evaluation goes through one loop, so that the step is compiled once more only.
    size = x.size
    shifts = _SHIFT * jnp.concatenate([jnp.zeros((3, size)), jnp.eye(size), -jnp.eye(size)])
    panels = Panel(*(jnp.stack([a, *others, *[a] * 2 * size]) for a, *others in zip(fine, *coarse, strict=True)))
    out, back = jax.lax.map(lambda job: _both(x + job[0], evolution, gain, Panel(*job[1])), (shifts, tuple(panels)))
    images = jax.vmap(_image)(back)
    found = search.judged(images[0])
    slope = (images[3 : 3 + size] - images[3 + size :]).T / (2 * _SHIFT)
    changes = jnp.stack([images[0] - x, *(images[1:3] - images[0])])
    left, *moves = jnp.linalg.solve(jnp.eye(size) - slope, changes.T).T
    sizes = jnp.max(jnp.abs(jnp.stack(moves)), 1)
    weights = jnp.stack(told_by_two(jnp, *sizes))
    move = weights @ jnp.stack(moves)
    # What the search has left and what the rules tell are added, never set off against each other.
    weights = jnp.where(left @ move < 0, -1, 1) * weights
    move = left + weights @ jnp.stack(moves)

    def coarser(values: Any) -> Any:
        """An average as coarser quadrature has it where its own solution is."""
        response = (values[3 : 3 + size] - values[3 + size :]) @ move / (2 * _SHIFT)
        return values[0] + weights @ (values[1:3] - values[0]) + response

    averages = [coarser(part) for part in (gain * out.stiffness * back.stiffness, out.loss, back.active)]
    point = _averaged(x, gain, *jax.tree.map(lambda part: part[0], (out, back)))
    resolved = jnp.max(jnp.abs(left)) + jnp.max(sizes) < _RESOLVED
    return ProximalPoint(
        **point,
        status=_status(evolution, point["V"], back.margin[0], point["replicon"], found.status, resolved),
        residual=jnp.max(jnp.abs(images[0] - x)),
        iterations=found.iterations,
        coarse=(_cosines(x + move), point["q"] * jnp.exp(move[-2]), point["V"] * jnp.exp(move[-1]), *averages),
        slope=slope,
    )


def _averaged(x: Any, gain: Any, out: Averages, back: Shrinkage) -> dict[str, Any]:
    """What a point says of its averages, at x = (c, log q, log V)."""
    return {
        "c": _cosines(x),
        "q": jnp.exp(x[-2]),
        "V": jnp.exp(x[-1]),
        "m_hat": gain * out.push,
        "q_hat": gain * out.power,
        "V_hat": gain * out.response,
        "replicon": gain * out.stiffness * back.stiffness,
        "loss": out.loss,
        "energy": gain * out.loss + back.cost,
        "active": back.active,
    }


def moved(point: ProximalPoint, evolution: ProximalEvolution, gain: Any) -> ProximalPoint:
    r"""A fixed point as a function of the problem's numbers, for derivatives: implicit differentiation.

    With the step F and its derivative F' in x at the solution, $dx = (1 - F')^{-1}\,\partial F$, which is the
    derivative of one Newton step from the solution itself.
    """
    x = jax.lax.stop_gradient(jnp.stack([*jnp.atleast_1d(point.c), jnp.log(point.q), jnp.log(point.V)]))
    slope = jax.lax.stop_gradient(point.slope)
    x = x + jnp.linalg.solve(jnp.eye(x.size) - slope, step(x, evolution, gain) - x)
    return point._replace(**_averaged(x, gain, *_both(x, evolution, gain, panel())))


def step(x: Any, evolution: ProximalEvolution, gain: Any) -> Any:
    """One step of the iteration, (c, log q, log V) to its image."""
    return _step(x, (evolution, gain, panel()))


def _both(x: Any, evolution: ProximalEvolution, gain: Any, panel: Panel) -> tuple[Averages, Shrinkage]:
    """Both halves of a step at x = (c, log q, log V)."""
    c, q, V = _cosines(x), jnp.exp(x[-2]), jnp.exp(x[-1])
    out = evolution.output.averages(c * jnp.sqrt(q), q, V, panel)
    back = evolution.signal.shrinkage(gain * out.push, gain * out.power, gain * out.response)
    return out, back


def _image(back: Shrinkage) -> Any:
    """(c, log q, log V) of what the penalty gives."""
    log_q, log_V = (jnp.clip(jnp.log(part), -_LARGEST_LOG, _LARGEST_LOG) for part in (back.q, back.V))
    return jnp.stack([*jnp.atleast_1d(back.m / jnp.sqrt(back.q)), log_q, log_V])


def _cosines(x: Any) -> Any:
    """c of x = (c, log q, log V): a number for one direction."""
    return x[0] if x.size == 3 else x[:-2]


def _step(x: Any, args: Any) -> Any:
    evolution, gain, panel = args
    return _image(_both(x, evolution, gain, panel)[1])


def _status(evolution: ProximalEvolution, V: Any, margin: Any, replicon: Any, ending: Any, resolved: Any) -> Any:
    """The verdict on a fixed point; the first that applies: runaway, not solved, no minimum, several, not resolved."""
    lowest = evolution.output.loss.lowest_curvature
    # Of a convex problem the replicon is at most 1, and 1 itself for the absolute loss without a penalty.
    convex = (lowest >= 0) & (evolution.signal.penalty.strength >= 0)
    stable = convex | ((1 + V * lowest > 0) & (replicon < 1))
    solved = jnp.where(resolved, int(Status.CONVERGED), int(Status.MAX_STEPS))
    verdict = jnp.where(stable, solved, int(Status.UNSTABLE))
    verdict = jnp.where(margin > 0, verdict, int(Status.OUT_OF_DOMAIN))
    verdict = jnp.where(ending == 0, verdict, ending)
    runaway = (evolution.signal.penalty.strength < 0) & (jnp.log(V) > _LARGEST_LOG - 1)
    return jax.lax.stop_gradient(jnp.where(runaway, int(Status.OUT_OF_DOMAIN), verdict)).astype(int)
