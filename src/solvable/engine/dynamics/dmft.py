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

- by Stein's identity, $E[g_t (om, z)^T] = (Rl(t,\cdot), b_t)\, Cov(om, z)$, without derivatives, kinks or not. The
  fields of later steps are nearly combinations of those before, so that single entries of Rl mean little after ten
  steps. What Rl does to the fields remains well determined if all is written in one triangular basis of them, from
  which fields are left out that are new by less than the averages are known.
- by derivatives, $dg_t/dom_s = g'(h_t) (\delta_{ts} + \eta\sum_{s\le v<t} Rth(t,v)\, dg_v/dom_s)$, sample by sample.
  It takes steps^2/2 numbers a sample, and g must have a derivative: what a kink adds to g' at one point is missed. The
  covariances are then those of the process that the weights follow beside the directions,

      r_{t+1} = A_t r_t + eta alpha sum_{s<=t} Rl(t,s) r_s + eta xi_t,      E xi_t xi_s^T = alpha E[g_t g_s^T],

  so that they remain those of some fields, however few samples there are and however many steps.

The first has the smaller scatter, and is used. It is held against a second course: by the derivatives where there are
some and their number allows, or else by Stein's identity with a quarter of the samples, whose error is another.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from solvable.core.errors import NotSolvable
from solvable.engine.dynamics.samples import Samples, grid_samples, sobol_samples
from solvable.targets.target import Target

SETS = 8
"""How many independent sets of samples there are."""
_LARGEST = 16
"""A set has 2^16 samples, or fewer for many steps."""
_FEWEST = 8
"""The least such power: with fewer samples averages mean nothing."""
_NUMBERS = 2**22
"""The most samples of a set times fields: what it keeps is three times that."""
_DERIVATIVES = 2**23
"""The most derivatives that a set keeps."""
_NEW = 1e-6
"""A field that is known from earlier ones to this share of its variance tells nothing new."""
_MANY = 12
"""After more steps than this the errors of averages add up: fields must be new by ten times as much."""
_GRID = 3
"""The most dimensions in which the samples of a smooth force are a grid."""


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


class Course(NamedTuple):
    """Overlaps along the steps for every set of samples: `M` (sets, steps + 1, p, r) and `Q` (sets, steps + 1, p, p).

    `stein` says in which way the response was found. `condition` is that of the covariance of z and the fields, the
    largest among the sets.
    """

    M: np.ndarray
    Q: np.ndarray
    stein: bool
    condition: float


def descend(
    signal: Signal, alpha: float, rate: float, steps: int, M: np.ndarray, Q: np.ndarray, target: Target | None = None
) -> tuple[Course, Course]:
    """The overlaps of descent at `rate` eta from M (p, r) and Q (p, p), and a second course to hold them against.

    With the `target` of one direction that labels come from, few steps of a smooth force are computed on grids.
    """
    run = functools.partial(course, signal, alpha, rate, steps, M, Q)
    p, r, extra = signal.width, signal.directions, signal.extra
    if target is not None and r == 1 and not signal.kinked and 1 + extra + p * steps <= _GRID:
        fine, coarse = (grid_samples(target, extra, p * steps, size) for size in (1.0, 0.75))
        return run([fine], new=1e-12), run([coarse], new=1e-12)
    power = set_size(signal, steps)
    new = _NEW if steps <= _MANY else 10 * _NEW
    fewer = min(power - 2, int(np.log2(_DERIVATIVES / max(p**2 * steps * (steps + 1) // 2, 1))))
    derived = not signal.kinked and fewer >= _FEWEST
    # The second course is rougher in every way, so that their difference covers what the scatter of the first hides.
    first = run(_sets(signal, steps, power, 0), new=new)
    if derived:
        return first, run(_sets(signal, steps, fewer, SETS), stein=False)
    return first, run(_sets(signal, steps, power - 2, SETS), new=10 * new)


def _sets(signal: Signal, steps: int, power: int, start: int) -> Iterator[Samples]:
    shape = signal.directions, signal.extra, signal.width * steps
    return (sobol_samples(*shape, power, number) for number in range(start, start + SETS))


def set_size(signal: Signal, steps: int) -> int:
    """The power of two of the number of samples in a set."""
    power = min(_LARGEST, int(np.log2(_NUMBERS / max(signal.width * steps, 1))))
    if power < _FEWEST + 2:
        raise NotSolvable(
            f"the theory of {steps} steps of {signal.width} neurons on one batch follows every sample at every step, "
            "which is too much: take fewer steps or neurons, or simulate."
        )
    return power


def course(
    signal: Signal, alpha: float, rate: float, steps: int, M: np.ndarray, Q: np.ndarray, sets: Iterable[Samples],
    stein: bool = True, new: float = _NEW,
) -> Course:  # fmt: skip
    """The overlaps of descent for each of several sets of samples, the response found in one of the two ways."""
    with np.errstate(over="ignore", invalid="ignore"):  # descent that runs away is not finite, and says so
        parts = [_one_set(signal, alpha, rate, steps, M, Q, samples, stein, new) for samples in sets]
    overlaps, selfs, conditions = (np.stack(part) for part in zip(*parts, strict=True))
    return Course(overlaps, selfs, stein, float(conditions.max()))


def _one_set(
    signal: Signal, alpha: float, rate: float, steps: int, M0: np.ndarray, Q0: np.ndarray, samples: Samples,
    stein: bool, new: float,
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """The whole course of one set of samples: M, Q and the condition."""
    p, r, n = signal.width, signal.directions, len(samples.weight)
    z, weight, E = samples.z, samples.weight, np.concatenate([samples.z, samples.e])
    context = signal.context(z, samples.extra)
    x_star = signal.direction(z, context)
    force = compiled_force(signal, not stein)
    size = p * (steps + 1)
    M, C, Rth = np.zeros((steps + 1, p, r)), np.zeros((size, size)), np.zeros((size, size))
    H, G = np.zeros((p * steps, n)), np.zeros((p * steps, n))
    response = None if stein else _Response(p, steps, weight, rate, alpha, Q0 - M0 @ M0.T)
    basis = _Basis(r, p * steps, new)
    M[0], C[:p, :p] = M0, Q0
    for t in range(steps):
        now, past, upto = slice(p * t, p * (t + 1)), slice(0, p * t), slice(0, p * (t + 1))
        soon = slice(p * (t + 1), p * (t + 2))
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
        # The samples answer to their fields, and to their own past.
        Rl = basis.solve(on_basis) if response is None else response.step(slope, rate * Rth[now, past])
        Rth[soon, now] = np.eye(p)
        Rth[soon, past] = A @ Rth[now, past] + rate * alpha * Rl @ Rth[upto, past]
        if response is not None:
            beside = response.covariance(A, Rl, Rth[: soon.stop, upto], weighted @ G[upto].T)
            C[soon, : soon.stop] = M[t + 1] @ M[: t + 2].reshape(-1, r).T + beside
            C[: soon.stop, soon] = C[soon, : soon.stop].T
            continue
        C[soon, upto] = A @ C[now, upto] + rate * alpha * weighted @ H[upto].T
        C[upto, soon] = C[soon, upto].T
        # The self-overlap: E[g_t h_{t+1}^T] from what is known of om_{t+1}, its new part being independent of g_t.
        known = basis.project(M[t + 1], C[soon, upto])
        g_h = on_basis @ known.T + rate * (weighted @ G[upto].T) @ Rth[soon, upto].T
        spike = signal.shift(M[t + 1], context)
        g_h = g_h if spike is None else g_h + weighted @ spike.T
        after = A @ C[upto, soon][now] + rate * alpha * g_h
        C[soon, soon] = (after + after.T) / 2
    Q = np.stack([C[p * t : p * (t + 1), p * t : p * (t + 1)] for t in range(steps + 1)])
    return M, Q, basis.condition()


class _Basis:
    """(z, om_0, om_1, ..) = (I, L) e with independent e, the new part of each om one coordinate; z come first."""

    def __init__(self, r: int, most: int, new: float):
        self.r, self.size, self._count, self._new = r, 0, 0, new
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
            rows[:, r : r + len(pivots)] = solve_triangular(triangle, rest.T, lower=True, check_finite=False).T
        return rows

    def add(self, M: np.ndarray, C: np.ndarray, Q: np.ndarray) -> np.ndarray:
        """The rows of new fields, with covariance Q among each other too; their number is that of the rows of M."""
        first = C.shape[1]
        for i in range(len(M)):
            known = np.concatenate([C[i], Q[i, :i]])
            row = self.project(M[i : i + 1], known[None])[0]
            left = Q[i, i] - row @ row
            if left > self._new * Q[i, i]:
                self._pivots[first + i] = True
                row[self.r + self.size] = np.sqrt(left)
                self.size += 1
            self.L[first + i] = row
        self._count = first + len(M)
        return self.L[first : first + len(M)]

    def solve(self, on_basis: np.ndarray) -> np.ndarray:
        """X with X L = on_basis on the coordinates that are there: the coefficients of the fields; zero where none."""
        pivots, r = np.flatnonzero(self._pivots), self.r
        triangle = self.L[pivots, r : r + self.size]
        found = np.zeros((len(on_basis), self._count))
        right = on_basis[:, r : r + self.size].T
        found[:, pivots] = solve_triangular(triangle, right, lower=True, trans=1, check_finite=False).T
        return found

    def condition(self) -> float:
        """Of the covariance of z and the fields."""
        rows = np.concatenate([np.eye(self.r, self.L.shape[1]), self.L])
        values = np.linalg.svd(rows, compute_uv=False) ** 2 if np.all(np.isfinite(rows)) else np.full(1, np.nan)
        return float(values[0] / max(values[-1], 1e-16 * values[0]))


class _Response:
    """dg_v/dom_s of every sample, for all s <= v: what the average response and later derivatives are made of.

    `beside` (p, p) is the covariance of the weights beside the directions at the start.
    """

    def __init__(self, p: int, steps: int, weight: np.ndarray, rate: float, alpha: float, beside: np.ndarray):
        self.p, self.weight, self.rate, self.alpha, self.beside = p, weight, rate, alpha, beside
        self._kept = [np.empty((steps - s, p, p * len(weight))) for s in range(steps)]
        self._gram = np.zeros((p * steps, p * steps))
        self._start = np.zeros((p * (steps + 1), p))  # what is left of r_0 in r_t
        self._start[:p] = np.eye(p)
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

    def covariance(self, A: np.ndarray, Rl: np.ndarray, Rth: np.ndarray, g_g: np.ndarray) -> np.ndarray:
        """E r_{t+1} r_s^T for all s <= t + 1, (p, p (t + 2)), of the process of the weights; `g_g` = E g_t g_s^T."""
        p, upto = self.p, slice(0, self.p * self._t)
        now, soon = slice(upto.stop - p, upto.stop), slice(upto.stop, upto.stop + p)
        self._gram[now, upto], self._gram[upto, now] = g_g, g_g.T
        self._start[soon] = A @ self._start[now] + self.rate * self.alpha * Rl @ self._start[upto]
        kept = self._start[: soon.stop]
        pushed = self.rate**2 * self.alpha * (Rth[soon] @ self._gram[upto, upto]) @ Rth.T
        return self._start[soon] @ self.beside @ kept.T + pushed


@functools.lru_cache(maxsize=32)
def compiled_force(signal: Signal, with_slope: bool) -> Any:
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
