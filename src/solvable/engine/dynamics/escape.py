r"""How a neuron leaves the start where it knows nothing: after how many samples, and at which rates at all.

For one neuron on the sphere, Mehler's formula expands the pull on the overlaps m with the target's directions,

    <F (z - m h)> = sum_k (1/k!) B_k[m, .., m] + higher orders
    B_k = E[He_{k+1}(z) T_k(y)],     T_k(y) = E[F(y, h) He_k(h)],

$h \sim N(0, 1)$ independent of the label, He_{k+1}(z) the Hermite tensor. With one direction it is exact: $(1 - m^2)
\sum_k \beta_k m^k/k!$, and for plain descent $\beta_k = u_{k+1}[g]\,u_{k+1}[\sigma]$, the products of Hermite
coefficients [arous2021online]. The first k with $B_k \ne 0$ and $V = E[F^2]$ at m = 0 decide. From overlaps of order
$d^{-1/2}$,

    k = 0   dm/dt = gamma b                              C d samples
    k = 1   rate lambda = gamma a - gamma^2 V/2          d log d / (2 lambda), if gamma < gamma_c = 2 a/V
    k >= 2  with gamma = c d^{-(k-1)/2}, x = sqrt(d) m and time t/d^{k-1}:  dx/dt = c B_k[x, .., x]/k! - c^2 V x/2

where a is the largest eigenvalue of B_1. In the last case x blows up after C, that is C d^k samples; with one direction
and |x| = 1 at the start, $C = -\log(1 - v/u)/((k-1) v)$ with $u = c|\beta_k|/k!$, $v = c^2 V/2$, if $v < u$.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from solvable.engine.dynamics import neuron
from solvable.engine.dynamics.flow import velocity
from solvable.engine.dynamics.moves import Move, Rates
from solvable.targets.target import Target

MOST = 6
"""The largest k that is looked at."""
LEVEL = 0.5
"""A neuron has left when the length of its overlaps with the directions is this."""
_ZERO = 1e-7
_LONG = 1e4
_PATIENCE = 50.0


class Expansion(NamedTuple):
    """The first `order` k of the pull that does not vanish, its `tensor` B_k (k + 1 axes of length r), and V.

    The order is None if there is none up to MOST.
    """

    order: int | None
    tensor: np.ndarray
    V: float

    @property
    def growth(self) -> float:
        """How fast the best direction is pulled: |b|, the largest eigenvalue a, or the largest pull from |x_j| = 1.

        Negative or zero where every direction is pulled back.
        """
        if self.order is None:
            return 0.0
        if self.order == 0:
            return float(np.linalg.norm(self.tensor))
        if self.order == 1:
            return float(np.linalg.eigvalsh(self.tensor)[-1])
        return self._start()[1]

    @property
    def critical_rate(self) -> float:
        """The constant c of the learning rate above which noise wins: infinite for k = 0, and 0 if it always does."""
        if self.order == 0:
            return math.inf
        return max(0.0, 2 * self.growth / self.V) if self.order is not None else 0.0

    @property
    def rate_power(self) -> float:
        """The power of d that the learning rate has to go with."""
        return -max(0, (self.order or 0) - 1) / 2

    def constant(self, rate: float) -> float:
        """C of C d log d (k = 1) or C d^k (k >= 2) samples, at this constant of the rate; infinite if never."""
        k = self.order
        assert k is not None and k > 0
        if not rate < self.critical_rate:
            return math.inf
        if k == 1:
            return 1 / (2 * (rate * self.growth - rate**2 * self.V / 2))
        u, v = rate * self.growth, rate**2 * self.V / 2
        if len(self.tensor) == 1:
            return -math.log1p(-v / u) / ((k - 1) * v)
        return self._blow_up(rate)

    def best(self) -> tuple[float, float]:
        """The constant of the learning rate that leaves soonest, and C at that rate (k >= 1)."""
        if self.order == 1:
            rate = self.critical_rate / 2
            return rate, self.constant(rate)
        found = minimize_scalar(
            lambda x: self.constant(x * self.critical_rate),
            bounds=(0.02, 0.98),
            method="bounded",
            options={"xatol": 1e-4},
        )
        return float(found.x * self.critical_rate), float(found.fun)

    def _pull(self, x: np.ndarray) -> np.ndarray:
        found = self.tensor / math.factorial(len(self.tensor.shape) - 1)
        for _ in range(self.tensor.ndim - 1):
            found = found @ x
        return found

    def _start(self) -> tuple[np.ndarray, float]:
        """Of the starts x_j = +-1 the one that is pulled most, and its pull along itself over its squared length."""
        signs = (np.array(s, float) for s in itertools.product((1, -1), repeat=len(self.tensor)))
        pulls = [(x, float(x @ self._pull(x)) / len(x)) for x in signs]
        return max(pulls, key=lambda pair: pair[1])

    def _blow_up(self, rate: float) -> float:
        x, _ = self._start()

        def gone(t: float, x: np.ndarray) -> float:
            return float(np.linalg.norm(x)) - _LONG

        gone.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
        scale = 1 / (rate * self.growth)
        found = solve_ivp(
            lambda t, x: rate * self._pull(x) - rate**2 * self.V / 2 * x, (0, 1e4 * scale), x, events=gone, rtol=1e-8
        )
        return float(found.t_events[0][0]) if found.t_events[0].size else math.inf


def expansion(target: Target, noise: float, move: Move, rates: Rates) -> Expansion:
    """The expansion of the pull on one neuron at zero overlap."""
    fine, coarse = (_moments(rule, move, rates) for rule in neuron.neuron_rules(target, noise, move, rates))
    V = fine[1]
    for k, (tensor, other) in enumerate(zip(fine[0], coarse[0], strict=True)):
        scale = math.sqrt(V * math.factorial(k) * math.factorial(k + 1))
        if np.abs(tensor).max() > max(_ZERO * scale, 10 * np.abs(tensor - other).max()):
            return Expansion(k, tensor, V)
    return Expansion(None, np.zeros(target.projections), V)


def _moments(rule: neuron.NeuronRule, move: Move, rates: Rates) -> tuple[list[np.ndarray], float]:
    """B_0 .. B_MOST, and V."""
    h, weight, force = (np.asarray(part) for part in _at_zero(move, rates, rule))
    weighted, z, outer = weight * force, np.asarray(rule.z), np.asarray(rule.weight)
    tensors = [_hermite_mean(z, outer * np.sum(weighted * _hermite(h, k), axis=1), k + 1) for k in range(MOST + 1)]
    return tensors, float(outer @ np.sum(weighted * force, axis=1))


@functools.partial(jax.jit, static_argnums=0)
def _at_zero(move: Move, rates: Rates, rule: neuron.NeuronRule) -> tuple[Any, Any, Any]:
    """The nodes of h for each label where nothing is known, their weights, and the force there."""
    h, weight = neuron.fields(rule, jnp.zeros(len(rule.y)), 1.0)
    return h, weight, move.force(rule.y[:, None], h[..., None], rates)[..., 0]


def _hermite(x: np.ndarray, k: int) -> np.ndarray:
    """He_k."""
    return np.polynomial.hermite_e.hermeval(x, [0.0] * k + [1.0])


def _hermite_mean(z: np.ndarray, weight: np.ndarray, degree: int) -> np.ndarray:
    """The sum of weight times the Hermite tensor of z (n, r): He of how often each direction is in the index."""
    r = z.shape[1]
    ladder = np.stack([_hermite(z, k) for k in range(degree + 1)])
    found = np.empty((r,) * degree)
    for index in itertools.product(range(r), repeat=degree):
        factors = (ladder[index.count(i), :, i] for i in range(r))
        found[index] = weight @ math.prod(factors, start=np.ones(len(z)))
    return found


def exit_time(target: Target, noise: float, move: Move, rates: Rates) -> float:
    """The time n/d after which a neuron that starts at m = 0 has |m| = LEVEL, in the limit; infinite if never.

    A neuron that has not left after _PATIENCE times as long as its first pull alone would take is held back by noise.
    """
    rule = neuron.neuron_rules(target, noise, move, rates)[0]
    numbers = jax.tree.map(jnp.asarray, rates)

    def left(t: float, m: np.ndarray) -> float:
        return float(np.linalg.norm(m)) - LEVEL

    left.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
    start = np.zeros(target.projections)
    first = float(np.linalg.norm(_drift(move, numbers, rule, start)))
    found = solve_ivp(
        lambda t, m: np.asarray(_drift(move, numbers, rule, m)),
        (0, _PATIENCE * LEVEL / first),
        start,
        method="LSODA",
        events=left,
        rtol=1e-5,
        atol=1e-7,
    )
    return float(found.t_events[0][0]) if found.t_events[0].size else math.inf


@functools.partial(jax.jit, static_argnums=0)
def _drift(move: Move, rates: Rates, rule: neuron.NeuronRule, m: Any) -> Any:
    """dm/dt of one neuron on the sphere."""
    M, Q = m[None], jnp.ones((1, 1))
    return velocity(move, rates, neuron.average(move, rates, rule, M, Q), M, Q)[0][0]
