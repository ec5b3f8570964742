r"""The flow of the overlaps in samples seen, $t = n/d$, in the limit of large d.

With the averages $\langle F_i z_k\rangle$, $\langle F_i h_j\rangle$, $\langle F_i F_j\rangle$ over the joint Gaussian
law of the fields, $E[hh^T] = Q$, $E[hz^T] = M$, $E[zz^T] = I$ [saad1995online, goldt2019dynamics],

    dM_ik/dt = gamma <F_i z_k>
    dQ_ij/dt = gamma (<F_i h_j> + <F_j h_i>) + gamma^2 <F_i F_j>

and on the sphere, with $u_i = \gamma\langle F_i h_i\rangle + \gamma^2\langle F_i^2\rangle/2$ for what projection and
normalisation take away,

    dM_ik/dt = gamma <F_i z_k> - u_i M_ik,     dQ_ij/dt = (as above) - (u_i + u_j) Q_ij.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import bad_parameter
from solvable.core.status import Status
from solvable.engine.dynamics.moves import Move, Rates
from solvable.numerics.batches import rounded_up_to_power

TOLERANCE = 1e-8
SAMPLED_TOLERANCE = 3e-5
"""Relative to the overlaps, of the integration; averages at random points jump with the kinks of single points."""
_NARROWER = 30.0
"""The tolerance over that of the flows which show the error: a wider one may take the same few steps, and show none."""
_SAFETY = 3.0
"""Times what other rules and narrower steps change: rules of nearly as many nodes differ by less than they are off."""
_SAMPLED_SLACK = 20.0
"""What flows at random points may be off, over their tolerance; there are none of narrower steps beside them."""
_SPREAD = 2.5
MAX_STEPS = 65_536
STIFFEST = 3.3 * MAX_STEPS
"""Times to forget in, by the rule of an explicit step: it is stable up to 3.3 times the time of the fastest decay."""
_BRISK = 1e3
"""gamma^2 times the last time, below which it is not looked at how fast neurons forget."""
LARGEST = 1e8
"""Overlaps beyond this have left: the flow of a network of polynomial activation can end in finite time."""


class Averages(NamedTuple):
    """<F z> (p x r), <F h> (p x p) and <F F> (p x p)."""

    Fz: Any
    Fh: Any
    FF: Any


class Path(NamedTuple):
    """M (k, p, r) and Q (k, p, p) at the times asked for, how each ended, and the steps taken.

    `others` are paths (M, Q) that are as good, to within the error of the averages; `slack` is what the integration may
    be off besides, relative to the overlaps.
    """

    M: np.ndarray
    Q: np.ndarray
    others: list[tuple[np.ndarray, np.ndarray]]
    status: np.ndarray
    steps: int
    slack: float


Average = Callable[[Move, Rates, Any, Any, Any], Averages]
"""(move, rates, rule, M, Q) -> averages: a rule holds the nodes that they are taken over."""


def velocity(move: Move, rates: Rates, found: Averages, M: Any, Q: Any) -> tuple[Any, Any]:
    """dM/dt and dQ/dt."""
    gamma = rates.learning_rate
    dM = gamma * found.Fz
    dQ = gamma * (found.Fh + found.Fh.T) + gamma**2 * found.FF
    if move.spherical:
        lost = _lost(gamma, found)
        dM = dM - lost[:, None] * M
        dQ = dQ - (lost[:, None] + lost) * Q
    return dM, dQ


def follow(
    average: Average,
    move: Move,
    rates: Rates,
    rules: list[Any],
    start: tuple[np.ndarray, np.ndarray],
    times: np.ndarray,
    replicas: bool = False,
) -> Path:
    """The flow from `start` = (M, Q) seen at increasing `times`, by each of the rules.

    The first of the `rules` is the answer, and the others, which are coarser, say how far it may be off, by flows of
    narrower steps; of averages that are exact there is a single rule, and the steps alone tell. `replicas` of a random
    rule are averaged instead, and their spread tells.
    """
    M0, Q0 = (jnp.asarray(part) for part in start)
    numbers = jax.tree.map(jnp.asarray, rates)
    _check_pace(average, move, rates, rules[0], (M0, Q0), float(times[-1]))
    asked = [(rule, SAMPLED_TOLERANCE) for rule in rules]
    if not replicas:
        asked = [(rules[0], TOLERANCE), *((rule, TOLERANCE / _NARROWER) for rule in rules[1:] or rules)]
    # A program serves grids of about the same length: the last time is asked for again to fill them up.
    filled = jnp.asarray(np.pad(times, (0, rounded_up_to_power(len(times), 8) - len(times)), mode="edge"))
    found = [_solved(average, move, numbers, rule, M0, Q0, filled, rtol) for rule, rtol in asked]
    M, Q, ended, steps = (np.stack([np.asarray(one[k]) for one in found]) for k in range(4))
    return _judged(M[:, : len(times)], Q[:, : len(times)], ended, steps, replicas)


def _check_pace(average: Average, move: Move, rates: Rates, rule: Any, start: tuple[Any, Any], last: float) -> None:
    """Refuse a rate that makes spherical neurons forget all they saw far too often for the flow to be followed.

    M decays at the rate u of the module's docstring. It has to be large at the start and without any overlap, where
    a neuron that forgets stays, since it vanishes for one that has learned.
    """
    rate = float(rates.learning_rate)
    if not move.spherical or rate * rate * last < _BRISK:
        return
    M, Q = start
    numbers = jax.tree.map(jnp.asarray, rates)
    found = [_forgetting(average, move, numbers, rule, M, Q) for M in (M, jnp.zeros_like(M))]
    forgetting = min(float(rate) for rate in found)
    if not forgetting * last <= STIFFEST:
        takes = (
            f"so small that a neuron does not forget all it saw {forgetting * last:.2g} times up to alpha = {last:g}"
        )
        raise bad_parameter("learning_rate", rates.learning_rate, f"{takes}: {STIFFEST:.0e} times can be followed")


@functools.partial(jax.jit, static_argnums=(0, 1))
def _forgetting(average: Average, move: Move, rates: Rates, rule: Any, M: Any, Q: Any) -> Any:
    """The largest u_i."""
    return jnp.max(_lost(rates.learning_rate, average(move, rates, rule, M, Q)))


def _lost(gamma: Any, found: Averages) -> Any:
    """u: what projection and normalisation take away of each neuron."""
    return gamma * jnp.diagonal(found.Fh) + gamma**2 * jnp.diagonal(found.FF) / 2


def _judged(M: np.ndarray, Q: np.ndarray, ended: np.ndarray, steps: np.ndarray, replicas: bool) -> Path:
    """One path from those of several rules, with others as good and its status at each time."""
    flat = np.concatenate([part.reshape(*part.shape[:2], -1) for part in (M, Q)], axis=2)
    finite = np.all(np.isfinite(flat), axis=(0, 2))[:, None, None]
    status = np.where(
        finite[:, 0, 0], Status.CONVERGED, Status.DIVERGED if np.any(ended == DIVERGED) else Status.MAX_STEPS
    )
    M, Q = (np.where(finite, part, np.nan) for part in (M, Q))
    if replicas:
        # The mean of four; they are moved apart until the farthest is about three standard errors of it away, by
        # Student's t.
        centre = M.mean(0), Q.mean(0)
        apart = [c + _SPREAD * (part - c) for c, part in zip(centre, (M, Q), strict=True)]
        others = list(zip(*apart, strict=True))
    else:
        apart = [part[0] + _SAFETY * (part[1:] - part[0]) for part in (M, Q)]
        centre, others = (M[0], Q[0]), list(zip(*apart, strict=True))
    slack = _SAMPLED_SLACK * SAMPLED_TOLERANCE if replicas else TOLERANCE / _NARROWER
    return Path(*centre, others, status, int(steps[0]), slack)


FINISHED, DIVERGED, UNFINISHED = 0, 1, 2


@functools.partial(jax.jit, static_argnums=(0, 1))
def _solved(average: Average, move: Move, rates: Rates, rule: Any, M0: Any, Q0: Any, times: Any, rtol: Any) -> Any:
    def field(t: Any, state: Any, args: Any) -> Any:
        M, Q = state
        return velocity(move, rates, average(move, rates, rule, M, Q), M, Q)

    def gone(t: Any, state: Any, args: Any, **kwargs: Any) -> Any:
        return jnp.max(jnp.abs(state[1])) > LARGEST

    found = diffrax.diffeqsolve(
        diffrax.ODETerm(field),  # pyright: ignore[reportArgumentType]
        diffrax.Tsit5(),
        t0=0.0,
        t1=times[-1],
        dt0=None,
        y0=(M0, Q0),
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol / 1000),
        event=diffrax.Event(gone),
        max_steps=MAX_STEPS,
        throw=False,
        adjoint=diffrax.ForwardMode(),
    )
    assert found.ys is not None
    left = found.result == diffrax.RESULTS.event_occurred
    done = found.result == diffrax.RESULTS.successful
    M, Q = found.ys
    ended = jnp.where(done, FINISHED, jnp.where(left, DIVERGED, UNFINISHED))
    return M, Q, ended, found.stats["num_steps"]
