r"""Scores of two tokens whose attention is fitted, as the proximal step of a learner sees them.

With the noise of tokens along the teacher $\sigma z_t$, z ~ N(0, I_2), the scores of a sample left out are

    omega = sigma theta z + (m, -m) + s eta,      s^2 = sigma^2 (q - theta^2),      eta ~ N(0, I_2),

where $\theta = w\cdot w^*/d$, $m = w\cdot 1/d$ and $q = |w|^2/d$. Training moves them to

    x = argmin |x - omega|^2 / (2 sigma^2 V) + sigma^2 sum_t (T_t - S_t(x))^2,

T and S being the diagonals of both attention matrices, whose rows sum to one. S is even in x, so that there may be two
minima, one on each side; which of them is lower changes across a curve through zero. The averages are the integral

- over z by the trapezoidal rule, on one half of the plane: exchanging the tokens and the sign of the scores changes
  nothing;
- over eta along the direction e(T) in which x = 0 is least stable by panels that are cut at that curve, and by the
  trapezoidal rule across it.

The response holds the jumps of x, E[-dg/domega] = -E[eta g]/s. What it would be without them is `smooth`.
[cui2024phase]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.channels.losses import Loss
from solvable.channels.losses.quadrature import Panel
from solvable.engine.outputs.proximal import Averages, LabelModel

_STEP, COARSER, _RADIUS = 0.55, 1.25, 4.9
"""The step of the trapezoidal rules, by how much larger it is for the rules that tell the error, and the last node."""
_CUTS = (-_RADIUS, 0.0, _RADIUS)
_MOST_STEPS, _TURNS, _DRIFT = 40, 10, 0.1
_SMALL = 1e-11
_LEAST_STRETCH = 0.05
_APART = 1e-5
"""Two minima that are closer than this are one."""


class Moments(NamedTuple):
    """Averages over the scores of a sample: `semantic` E[z.g], `places` E[g_1 - g_2], `power` E|g|^2, `response`
    E[-tr dg/domega] with the jumps and `smooth` without, `stiffness` E|dg/domega|^2 without, and `loss` that of the
    sample once trained on."""

    semantic: Any
    places: Any
    power: Any
    response: Any
    smooth: Any
    stiffness: Any
    loss: Any


class AttentionScores(LabelModel):
    """The law of what a sample of the model says, from the model's numbers."""

    positional: Any
    place: Any
    variance: Any

    def averages(self, loss: Loss, m: Any, q: Any, V: Any, panel: Panel) -> Averages:
        r"""The averages for weights of overlaps m = (theta, m) with the two directions that are known.

        Weights see the tokens through $x = \sigma z + p$: with $\sigma^2 = variance$,

            push = (sigma E[z.g] + sigma^2 theta E[h], E[g_1 - g_2]),    power = sigma^2 E|g|^2,
            response = sigma^2 E[h].
        """
        found = self.moments(m, q, V, panel)
        s2 = self.variance
        push = jnp.stack([jnp.sqrt(s2) * found.semantic + s2 * m[0] * found.response, found.places])
        return Averages(push, s2 * found.power, s2 * found.response, s2**2 * found.stiffness, found.loss)

    def moments(self, m: Any, q: Any, V: Any, panel: Panel) -> Moments:
        """The averages over z and eta at the order parameters of the weights."""
        s2, (theta, places) = self.variance, m
        sigma, V = jnp.sqrt(s2), s2 * V
        s = jnp.sqrt(s2 * jnp.maximum(q - theta**2, 1e-14 * q))
        step = _STEP * jnp.where(panel.full > 0, 1.0, COARSER)
        plus, minus, across = step * jnp.asarray(_GRID)
        weight = jnp.exp(-(plus**2 + minus**2 + across**2) / 2)
        weight /= jnp.sum(weight)
        z = (plus + minus) / jnp.sqrt(2.0), (plus - minus) / jnp.sqrt(2.0)
        T = self.labels(z)
        e = _soft_direction(T)
        centre = sigma * theta * z[0] + places, sigma * theta * z[1] - places
        u = _across(centre, e) + s * across
        cut = (_edge(T, u, e, V, s2) - _along(centre, e)) / s
        along, inner = _panels(cut, panel)
        column = [part[:, None] for part in (*z, *T, *e, u)]
        z, T, e, u = column[:2], column[2:4], column[4:6], column[6]
        t = _along(centre, [part[:, 0] for part in e])[:, None] + s * along
        omega = u * -e[1] + t * e[0], u * e[0] + t * e[1]
        eta = across[:, None] * -e[1] + along * e[0], across[:, None] * e[0] + along * e[1]
        x = _proximal(omega, jnp.sign(along - cut[:, None]), T, e, V, s2)
        g = (x[0] - omega[0]) / V, (x[1] - omega[1]) / V
        weight = weight[:, None] * inner

        def mean(value: Any) -> Any:
            return jnp.sum(weight * value)

        trace, square = _responses(x, T, V, s2)
        return Moments(
            semantic=mean(z[0] * g[0] + z[1] * g[1]),
            places=mean(g[0] - g[1]),
            power=mean(g[0] ** 2 + g[1] ** 2),
            response=-mean(eta[0] * g[0] + eta[1] * g[1]) / s,
            smooth=mean(trace),
            stiffness=mean(square),
            loss=mean(s2 * _misfit(x, T)),
        )

    def error(self, m: Any, q: Any, coarser: Any = 1.0) -> Any:
        """sigma^2 E|T - S(omega)|^2 over all entries: the error of labels not trained on; by rules `coarser`."""
        s2, (theta, places) = self.variance, m
        s = jnp.sqrt(s2 * jnp.maximum(q - theta**2, 0.0))
        step = _STEP * coarser
        plus, minus, one = (step * part[:, None] for part in _GRID)
        other = step * _LINE
        weight = jnp.exp(-(plus**2 + minus**2 + one**2 + other**2) / 2)
        z = (plus + minus) / jnp.sqrt(2.0), (plus - minus) / jnp.sqrt(2.0)
        part = jnp.sqrt(s2) * theta
        omega = part * z[0] + places + s * one, part * z[1] - places + s * other
        return 2 * s2 * jnp.sum(weight * _misfit(omega, self.labels(z))) / jnp.sum(weight)

    def labels(self, z: Any) -> Any:
        """The diagonal of the teacher's attention at projections z of unit variance."""
        z = [jnp.sqrt(self.variance) * part for part in z]
        fixed = jax.nn.sigmoid(2 * self.place**2)
        return [(1 - self.positional) * part + self.positional * fixed for part in _attention(z)]


def _grid() -> np.ndarray:
    """Nodes over the step (3, k) in z_+ > 0, z_- and eta across, within a ball."""
    half = np.arange(int(_RADIUS / _STEP) + 1) + 0.5
    nodes = np.stack(np.meshgrid(half, *[np.concatenate([-half[::-1], half])] * 2, indexing="ij")).reshape(3, -1)
    return nodes[:, np.sum(nodes**2, axis=0) * _STEP**2 < _RADIUS**2]


_GRID = _grid()
_LINE = np.unique(_GRID[1])


def _attention(x: Any) -> Any:
    """The diagonal of softmax(x x^T), of two tokens."""
    a, b = x
    return jax.nn.sigmoid(a * (a - b)), jax.nn.sigmoid(b * (b - a))


def _misfit(x: Any, T: Any) -> Any:
    """sum_t (T_t - S_t(x))^2."""
    S = _attention(x)
    return (T[0] - S[0]) ** 2 + (T[1] - S[1]) ** 2


def _derivatives(x: Any, T: Any) -> tuple[Any, ...]:
    """The gradient of `_misfit` and the three entries of its Hessian."""
    a, b = x
    first, second = _attention(x)
    slopes, bends = [], []
    for S, label in ((first, T[0]), (second, T[1])):
        d = S * (1 - S)
        slopes.append(-2 * (label - S) * d)
        bends.append(2 * (d**2 - (label - S) * d * (1 - 2 * S)))
    (u, v), (p, r) = slopes, bends
    # The exponents are a (a - b) and b (b - a).
    ua, ub, va, vb = 2 * a - b, -a, -b, 2 * b - a
    return (
        u * ua + v * va,
        u * ub + v * vb,
        p * ua**2 + r * va**2 + 2 * u,
        p * ua * ub + r * va * vb - u - v,
        p * ub**2 + r * vb**2 + 2 * v,
    )


def _proximal(omega: Any, side: Any, T: Any, e: Any, V: Any, s2: Any) -> Any:
    """The minimum on one side (+-1) along e: from the scores there that fit the label."""
    reach, u = side * _reach(T), _across(omega, e)
    return _descended((reach * e[0] - u * e[1], reach * e[1] + u * e[0]), omega, T, V, s2)


def _cost(x: Any, omega: Any, T: Any, V: Any, s2: Any) -> Any:
    return ((x[0] - omega[0]) ** 2 + (x[1] - omega[1]) ** 2) / (2 * V) + s2 * _misfit(x, T)


def _descended(x: Any, omega: Any, T: Any, V: Any, s2: Any) -> Any:
    """A minimum by Newton's steps, bent until the Hessian is positive and shortened until the cost does not rise."""
    x = tuple(part + 0 * (omega[0] + T[0]) for part in x)

    def unfinished(state: Any) -> Any:
        *_, moved, count = state
        return (count < _MOST_STEPS) & jnp.any(moved > _SMALL)

    def newton(state: Any) -> Any:
        a, b, shift, cost, _, count = state
        ga, gb, aa, ab, bb = (s2 * part for part in _derivatives((a, b), T))
        ga, gb, aa, bb = ga + (a - omega[0]) / V, gb + (b - omega[1]) / V, aa + 1 / V, bb + 1 / V
        lowest = (aa + bb) / 2 - jnp.sqrt(((aa - bb) / 2) ** 2 + ab**2)
        lift = jnp.maximum(1e-3 / V - lowest, 0.0) + shift
        aa, bb = aa + lift, bb + lift
        det = aa * bb - ab**2
        da, db = -(bb * ga - ab * gb) / det, -(aa * gb - ab * ga) / det
        trial = _cost((a + da, b + db), omega, T, V, s2)
        good = trial <= cost + 1e-15
        shift = jnp.where(good, jnp.where(shift < 1e-3 / V, 0.0, shift / 8), 4 * shift + 0.3 / V)
        a, b = jnp.where(good, a + da, a), jnp.where(good, b + db, b)
        moved = jnp.maximum(jnp.abs(da), jnp.abs(db))
        return a, b, shift, jnp.where(good, trial, cost), moved, count + 1

    first = _cost(x, omega, T, V, s2)
    state = (*x, jnp.zeros_like(first), first, jnp.ones_like(first), 0)
    a, b, *_ = jax.lax.while_loop(unfinished, newton, state)
    return a, b


def _responses(x: Any, T: Any, V: Any, s2: Any) -> tuple[Any, Any]:
    """The trace and the sum of squares of h = H (1 + V H)^-1, with H the Hessian of the loss at x.

    Jumps begin at scores where 1 + V H = 0: around these h is integrable, but not by nodes of a rule, and held.
    """
    _, _, aa, ab, bb = (s2 * part for part in _derivatives(x, T))
    mean, half = (aa + bb) / 2, jnp.sqrt(((aa - bb) / 2) ** 2 + ab**2)
    values = [value / jnp.maximum(1 + V * value, _LEAST_STRETCH) for value in (mean - half, mean + half)]
    return values[0] + values[1], values[0] ** 2 + values[1] ** 2


def _soft_direction(T: Any) -> tuple[Any, Any]:
    """The unit vector e along which the loss falls fastest from x = 0.

    Near zero it is $-\\frac12 \\sum_t (T_t - 1/2) k_t(x)$ with the exponents k = (x_1^2 - x_1 x_2, x_2^2 - x_1 x_2).
    """
    one, two = T[0] - 0.5, T[1] - 0.5
    angle = jnp.arctan2(-(one + two), one - two) / 2
    return jnp.cos(angle), jnp.sin(angle)


def _reach(T: Any) -> Any:
    """How far out the scores are that fit the label: logit T_1 + logit T_2 = (x_1 - x_2)^2."""
    logits = [jnp.log(part) - jnp.log1p(-part) for part in T]
    return jnp.sqrt(jnp.maximum(logits[0] + logits[1], 0.0) / 2)


def _along(x: Any, e: Any) -> Any:
    return x[0] * e[0] + x[1] * e[1]


def _across(x: Any, e: Any) -> Any:
    return x[1] * e[0] - x[0] * e[1]


def _edge(T: Any, u: Any, e: Any, V: Any, s2: Any) -> Any:
    """The t at which the minima on both sides of omega = u e_orthogonal + t e are equally low.

    By Newton's method: the difference of the two costs falls at the rate of their distance along e over V. Where there
    is one minimum t moves to where it would lie in the middle; of a convex cost any t will do.
    """
    reach = _reach(T)

    def turn(_: Any, t: Any) -> Any:
        omega = t * e[0] - u * e[1], t * e[1] + u * e[0]
        one, two = (_proximal(omega, side, T, e, V, s2) for side in (1.0, -1.0))
        difference = _cost(one, omega, T, V, s2) - _cost(two, omega, T, V, s2)
        apart = _along((one[0] - two[0], one[1] - two[1]), e)
        found = apart > _APART
        step = jnp.where(found, V * difference / jnp.where(found, apart, 1.0), -_DRIFT * _along(one, e))
        return t + jnp.clip(step, -reach / 4, reach / 4)

    return jax.lax.fori_loop(0, _TURNS, turn, jnp.zeros_like(u))


def _panels(cut: Any, panel: Panel) -> tuple[Any, Any]:
    """Nodes (k, nodes) and weights of N(0, 1) that are cut at `cut` (k)."""
    ends = jnp.broadcast_to(jnp.asarray(_CUTS), (*cut.shape, len(_CUTS)))
    ends = jnp.sort(jnp.concatenate([ends, jnp.clip(cut, -_RADIUS, _RADIUS)[:, None]], axis=1), axis=1)
    width = jnp.diff(ends, axis=1)[:, :, None]
    nodes = (ends[:, :-1, None] + width * panel.t).reshape(len(cut), -1)
    density = jnp.exp(-(nodes**2) / 2)
    weight = (width * panel.w).reshape(len(cut), -1) * density
    return nodes, weight / jnp.sum(weight, axis=1, keepdims=True)
