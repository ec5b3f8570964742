r"""Dynamical mean-field theory of gradient descent on one batch of n = alpha d samples, seen at every step.

For $w^{t+1} = (1 - \eta\Lambda_t) w^t + (\eta/\sqrt d) \sum_\mu g_\mu^t x_\mu$, $|w_i|^2 = d Q_{ii}$, with $g^t$ a
function of the fields $h^t = w^t\cdot x/\sqrt d$ of the sample, a sample follows in the limit of large d the process

    h_t  = om_t + S_t + eta sum_{s<t} Rth(t,s) g_s,      g_t = g(h_t, context)
    (om_t, z) Gaussian:   E om_t om_s^T = C(t,s),   E om_t z^T = M_t,   E z z^T = I
    M_{t+1}   = A_t M_t    + eta alpha E[g_t x*^T],      A_t = 1 - eta Lam_t
    C(t+1,s)  = A_t C(t,s) + eta alpha E[g_t h_s^T]      (s <= t+1)
    Rth(t+1,t) = I,   Rth(t+1,s) = A_t Rth(t,s) + eta alpha sum_{s<u<=t} Rl(t,u) Rth(u,s),   Rl(t,s) = E[dg_t/dom_s]

in blocks p x p: om are the fields of fresh samples, Rth is how a sample's own past pushes its field, Rl how its force
answers to its field. What is learned enters by a `Signal`: labels of z for a network, a hidden spike for a Boltzmann
machine, where $x^* = x\cdot w^*/\sqrt d$ is not z alone and $S_t$ is not zero. [dandi2024benefits]

Averages are over scrambled Sobol points, each set of which goes its own way from the first step to the last, so that
the scatter of the sets tells the error. The response Rl is found in one of two ways:

- *derivative*: $dg_t/dom_s = g'(h_t) (\delta_{ts} + \eta\sum_{s\le v<t} Rth(t,v)\, dg_v/dom_s)$, sample by sample. It
  takes steps^2/2 numbers a sample, and g must have a derivative: what a kink adds to g' at one point is missed.
- *stein*: $E[g_t (om, z)^T] = (Rl(t,\cdot), b_t)\, Cov(om, z)$, without derivatives. But the fields of later steps are
  nearly a combination of those before, so that after some ten steps the noise of the left side is blown up.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import NotSolvable
from solvable.numerics.sobol import normal_points

SETS = 8
"""How many independent sets of samples there are."""
POWER = 16
"""A set has 2^16 samples, or fewer where their derivatives would not fit into memory."""
_FEWEST = 10
"""The least power: with fewer samples averages mean nothing."""
_MEMORY = 2**29
"""Bytes that the derivatives of a set of samples may take."""
_SOBOL = 32
"""Sobol points have no more coordinates than this; what comes later matters less, and is drawn independently."""
WIDE = 1.5
"""z is spread wider by this factor, and its samples weighted: what a polynomial label does happens in the tails."""
_NEW = 1e-9
"""A field whose part that earlier ones do not tell has less than this share of its variance, tells nothing new."""


class Signal(Protocol):
    """What is learned: p fields, r directions, and the force that a sample exerts on its fields.

    It is hashable, so that the force is compiled once. `extra` is the number of Gaussian variables that a sample has
    besides z. Arrays have one column a sample.
    """

    @property
    def width(self) -> int: ...
    @property
    def directions(self) -> int: ...
    @property
    def extra(self) -> int: ...
    @property
    def kinked(self) -> bool:
        """Whether the force has kinks or jumps as a function of the fields."""
        ...

    def context(self, z: np.ndarray, extra: np.ndarray) -> Any:
        """What a sample keeps during training, such as its label, from z (r, n) and the extra variables."""
        ...

    def force(self, h: Any, context: Any) -> Any:
        """g (p, n) at the fields h (p, n), with `jax.numpy`."""
        ...

    def direction(self, z: np.ndarray, context: Any) -> np.ndarray:
        """x* (r, n): the projections of the sample on the directions."""
        ...

    def shift(self, M: np.ndarray, context: Any) -> np.ndarray | None:
        """S (p, n): what a spike in the sample adds to the fields of weights with overlaps M; None for nothing."""
        ...

    def decay(self, Q: np.ndarray, alpha: float) -> np.ndarray:
        """Lam (p, p), at the self-overlaps Q."""
        ...


class Descent(NamedTuple):
    """Overlaps along the steps for every set of samples: `M` (sets, steps + 1, p, r) and `Q` (sets, steps + 1, p, p).

    `stein` says in which way the response was found. `condition` is that of the covariance of the fields, the largest
    over the sets. `noise` is eta alpha times the scatter of the response among the sets, in its largest entry: what
    it does to the fields is of first order in the scatter of M and Q, and of second order hidden in their mean.
    `mismatch` is by how much the response found by derivatives misses Stein's identity, in standard errors, at worst.
    """

    M: np.ndarray
    Q: np.ndarray
    stein: bool
    condition: float
    noise: float
    mismatch: float


def descend(
    signal: Signal,
    alpha: float,
    rate: float,
    steps: int,
    M: np.ndarray,
    Q: np.ndarray,
    stein: bool | None = None,
    power: int = POWER,
    sets: int = SETS,
) -> Descent:
    """The overlaps of gradient descent at `rate` eta from M (p, r) and Q (p, p).

    The response is found from derivatives, and by Stein's identity where the force has kinks, unless told by `stein`.
    """
    stein = signal.kinked if stein is None else stein
    if not stein:
        a_sample = 8 * signal.width**2 * (steps * (steps + 1) // 2 + 1)
        power = min(power, int(np.log2(_MEMORY / a_sample)))
    if power < _FEWEST:
        raise NotSolvable(
            f"the theory of {steps} steps on one batch follows the response of every sample at every step to every "
            "earlier one, which does not fit into memory; take fewer steps, or simulate."
        )
    parts = [_one_set(signal, alpha, rate, steps, M, Q, stein, power, number) for number in range(sets)]
    stacked = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    condition, noise, mismatch = 1.0, 0.0, 0.0
    if steps > 0:
        condition = float(stacked["condition"].max())
    if steps > 2:
        noise = float(rate * alpha * np.max(np.std(stacked["response"], axis=0, ddof=1)))
    if steps > 0 and not stein:
        miss = stacked["mismatch"]
        error = np.std(miss, axis=0, ddof=1) / np.sqrt(sets)
        mismatch = float(np.max(np.abs(miss.mean(axis=0)) / np.maximum(error, 1e-12)))
    return Descent(stacked["M"], stacked["Q"], stein, condition, noise, mismatch)


def _one_set(
    signal: Signal, alpha: float, rate: float, steps: int, M0: np.ndarray, Q0: np.ndarray, stein: bool,
    power: int, number: int,
) -> dict[str, np.ndarray]:  # fmt: skip
    """The whole course of one set of samples."""
    p, r, n = signal.width, signal.directions, 2**power
    draws = _draws(r + signal.extra + p * steps, power, number)
    weight = WIDE**r * np.exp(-(WIDE**2 - 1) / 2 * np.sum(draws[:r] ** 2, axis=0)) / n
    draws[:r] *= WIDE
    z, extra, E = draws[:r], draws[r : r + signal.extra], np.delete(draws, slice(r, r + signal.extra), axis=0)
    context = signal.context(z, extra)
    x_star = signal.direction(z, context)
    force = _compiled(signal, not stein)
    size = p * (steps + 1)
    M, C, Rth, Rl = np.zeros((steps + 1, p, r)), np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    H, G = np.zeros((p * steps, n)), np.zeros((p * steps, n))
    response = None if stein else _Response(p, steps, weight)
    miss = np.zeros((p * steps, p * steps))
    basis = _Basis(r, p * steps)
    M[0], C[:p, :p] = M0, Q0
    for t in range(steps):
        now, past, upto = slice(p * t, p * (t + 1)), slice(0, p * t), slice(0, p * (t + 1))
        new = slice(p * (t + 1), p * (t + 2))
        rows = basis.add(M[t], C[now, past], C[now, now])
        h = rows @ E + rate * Rth[now, past] @ G[past]
        spike = signal.shift(M[t], context)
        h = h if spike is None else h + spike
        g, slope = force(h, context)
        H[now], G[now] = h, g
        weighted = weight * g
        on_basis = weighted @ E.T
        on_basis[:, r + basis.size :] = 0.0
        # The weights move, and with them the fields of fresh samples.
        A = np.eye(p) - rate * signal.decay(C[now, now], alpha)
        M[t + 1] = A @ M[t] + rate * alpha * weighted @ x_star.T
        C[new, upto] = A @ C[now, upto] + rate * alpha * weighted @ H[upto].T
        C[upto, new] = C[new, upto].T
        # The samples answer to their fields, and to their own past.
        if response is None:
            Rl[now, upto] = basis.solve(on_basis)
        else:
            Rl[now, upto] = response.step(slope, rate * Rth[now, past])
            miss[now] = on_basis[:, r:] - Rl[now, upto] @ basis.L[: p * (t + 1), r:]
        Rth[new, now] = np.eye(p)
        Rth[new, past] = A @ Rth[now, past] + rate * alpha * Rl[now, upto] @ Rth[upto, past]
        # The self-overlap: E[g_t h_{t+1}^T] from what is known of om_{t+1}, its new part being independent of g_t.
        known = basis.project(M[t + 1], C[new, upto])
        g_h = on_basis @ known.T + rate * (weighted @ G[upto].T) @ Rth[new, upto].T
        spike = signal.shift(M[t + 1], context)
        g_h = g_h if spike is None else g_h + weighted @ spike.T
        after = A @ C[upto, new][now] + rate * alpha * g_h
        C[new, new] = (after + after.T) / 2
    Q = np.stack([C[p * t : p * (t + 1), p * t : p * (t + 1)] for t in range(steps + 1)])
    used = p * max(steps - 2, 0)  # later responses move nothing before the end
    return {"M": M, "Q": Q, "condition": basis.condition(), "response": Rl[:used, :used], "mismatch": miss}


def _draws(dimensions: int, power: int, number: int) -> np.ndarray:
    """Independent N(0, 1) variables, one column a sample: of a few dimensions by Sobol points."""
    few = min(-(-dimensions // 8) * 8, _SOBOL)  # in eights: fewer sets of points to keep
    first = normal_points(few, power, number).T[: min(dimensions, few)]
    rest = np.random.default_rng([7, power, number]).standard_normal((max(dimensions - few, 0), 2**power))
    return np.concatenate([first, rest])


class _Basis:
    """(z, om_0, om_1, ..) = (I, L) e with independent e, the new part of each om one coordinate; z come first."""

    def __init__(self, r: int, most: int):
        self.r, self.size = r, 0
        self.L = np.zeros((most, r + most))
        self._pivots = np.zeros(most, bool)

    def project(self, M: np.ndarray, C: np.ndarray) -> np.ndarray:
        """The rows of fields with covariances M with z and C with the fields that are there."""
        r, rows = self.r, np.zeros((len(M), self.L.shape[1]))
        rows[:, :r] = M
        pivots = np.flatnonzero(self._pivots[: C.shape[1]])
        triangle = self.L[pivots, r : r + len(pivots)]
        if len(pivots):
            rest = C[:, pivots] - M @ self.L[pivots, :r].T
            rows[:, r : r + len(pivots)] = _solve_lower(triangle, rest.T).T
        return rows

    def add(self, M: np.ndarray, C: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """The rows of new fields, with covariance Q among each other too; their number is that of the rows of M."""
        first = C.shape[1]
        for i in range(len(M)):
            known = np.concatenate([C[i], Q[i, :i]])
            row = self.project(M[i : i + 1], known[None])[0]
            left = Q[i, i] - row @ row
            if left > _NEW * Q[i, i]:
                self._pivots[first + i] = True
                row[self.r + self.size] = np.sqrt(left)
                self.size += 1
            self.L[first + i] = row
        return self.L[first : first + len(M)]

    def solve(self, on_basis: np.ndarray) -> np.ndarray:
        """X with X L = on_basis on the coordinates that are there: the coefficients of the fields; zero where none."""
        count = np.flatnonzero(self.L.any(axis=1))[-1] + 1
        pivots = np.flatnonzero(self._pivots)
        triangle = self.L[pivots, self.r : self.r + self.size]
        found = np.zeros((len(on_basis), count))
        found[:, pivots] = _solve_lower(triangle.T[::-1, ::-1], on_basis[:, self.r : self.r + self.size].T[::-1])[
            ::-1
        ].T
        return found

    def condition(self) -> float:
        """Of the covariance of z and the fields."""
        rows = np.concatenate([np.eye(self.r, self.L.shape[1]), self.L])
        values = np.linalg.eigvalsh(rows @ rows.T)
        return float(values[-1] / max(values[0], 1e-300))


def _solve_lower(triangle: np.ndarray, right: np.ndarray) -> np.ndarray:
    from scipy.linalg import solve_triangular

    return solve_triangular(triangle, right, lower=True, check_finite=False)


class _Response:
    """dg_v/dom_s of every sample, for all s <= v: what the average response and later derivatives are made of."""

    def __init__(self, p: int, steps: int, weight: np.ndarray):
        self.p, self.weight = p, weight
        self._kept = [np.empty((steps - s, p, p * len(weight))) for s in range(steps)]
        self._t = 0

    def step(self, slope: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """E[dg_t/dom_s] (p, p (t + 1)) from dg_t/dh_t (p, p, n) and eta Rth(t, .) (p, p t)."""
        t, p, n = self._t, self.p, len(self.weight)
        mean = np.empty((p, p * (t + 1)))
        for s in range(t + 1):
            if s < t:
                past = self._kept[s][: t - s].reshape(p * (t - s), p * n)
                moved = (pull[:, p * s :] @ past).reshape(p, p, n)
                change = slope[0] * moved[0] if p == 1 else np.einsum("ijn,jkn->ikn", slope, moved)
            else:
                change = slope
            self._kept[s][t - s] = change.reshape(p, p * n)
            mean[:, p * s : p * (s + 1)] = change.reshape(p, p, n) @ self.weight
        self._t += 1
        return mean


@functools.lru_cache(maxsize=32)
def _compiled(signal: Signal, with_slope: bool) -> Any:
    """(h, context) -> the force and, if asked for, its derivative (p, p, n), as NumPy arrays."""

    @jax.jit
    def run(h: Any, context: Any) -> tuple[Any, Any]:
        if not with_slope:
            return signal.force(h, context), 0.0
        push = functools.partial(signal.force, context=context)
        directions = jnp.eye(signal.width, dtype=h.dtype)
        found = [jax.jvp(push, (h,), (jnp.broadcast_to(e[:, None], h.shape),)) for e in directions]
        return found[0][0], jnp.stack([slope for _, slope in found], axis=1)

    def call(h: np.ndarray, context: Any) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            force, slope = run(h, context)
        return np.asarray(force), np.asarray(slope)

    return call
