r"""One pass of descent on the sequence single-index model: the flow of the overlaps, and runs at size d.

Theory is the flow of `landscape.py` in samples seen. Runs follow the overlaps u with the directions that matter, which
at any d have the law of those of d-dimensional weights: with $w = \sum_i u_i v_i + r\zeta$, a step changes u through
the components of the gradient $g = \sum_t \delta_t (x_t + p_t)$ along v and $\zeta$ and through the length of the rest,
a chi-square variable,

    u <- (u - (gamma/D) g_v) / |w'|,     |w'|^2 = 1 - 2 (gamma/D) w.g + (gamma/D)^2 |g|^2 ,

D the number of weights: d, or T d of a plain student.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import NotSolvable, bad_parameter
from solvable.core.precision import float64
from solvable.core.registry import simulation, theory, thresholds_of
from solvable.core.results import Outcome, Prediction
from solvable.engine.cosines import cosines
from solvable.engine.dynamics.flow import Averages, follow
from solvable.engine.dynamics.moves import Move, Rates
from solvable.engine.dynamics.student import Student
from solvable.models.attention.online.landscape import Landscape, TokenLandscape, exponent, landscapes, losses
from solvable.models.attention.online.learner import ATTENTION, PLAIN, TIED, SequenceSGD
from solvable.models.attention.online.model import SIGNS, SequenceSingleIndex
from solvable.targets.target import Target

BLOCK = 2048
"""Steps drawn and made at a time."""
_ON_THE_SPHERE = Move(Student(Target("z"), (1.0,)))
"""All that the flow asks of a move here: that weights keep their length."""
_EVEN = 1e-9


def _time(model: SequenceSingleIndex, learner: SequenceSGD) -> float:
    """Weights over d."""
    return float(model.tokens) if learner.student == PLAIN else 1.0


def _average(move: Move, rates: Rates, rule: Landscape, M: Any, Q: Any) -> Averages:
    """What the flow is made of, for weights of length one."""
    u = M[0]
    slope = jax.grad(rule.loss)(u)
    return Averages(-slope[None], -(u @ slope)[None, None], rule.noise(u)[None, None])


@theory(SequenceSingleIndex, SequenceSGD, references=("arnaboldi2025asymptotics", "arous2021online"))
def online(model: SequenceSingleIndex, learner: SequenceSGD, alpha: np.ndarray) -> Prediction:
    """The flow of the overlaps, integrated once and seen at every alpha."""
    times, where = np.unique(alpha, return_inverse=True)
    rules = landscapes(model, learner)
    start = learner.first(rules[0].directions)
    rates = Rates(float(learner.learning_rate))
    path = follow(_average, _ON_THE_SPHERE, rates, rules, (start[None], np.ones((1, 1))), times / _time(model, learner))
    metrics = _metrics(model, learner, rules[0], path.M[:, 0])
    uncertainty = {name: path.slack * (1 + np.abs(value)) for name, value in metrics.items()}
    for M, _ in path.others:
        for name, value in _metrics(model, learner, rules[1], M[:, 0]).items():
            uncertainty[name] = np.maximum(uncertainty[name], np.abs(value - metrics[name]))
    return Prediction(
        metrics={name: value[where] for name, value in metrics.items()},
        order_parameters={"u": path.M[where, 0]},
        status=path.status[where],
        iterations=np.full(len(alpha), path.steps),
        uncertainty={name: value[where] for name, value in uncertainty.items()},
    )


def _metrics(
    model: SequenceSingleIndex, learner: SequenceSGD, landscape: Landscape, u: np.ndarray
) -> dict[str, np.ndarray]:
    """Of overlaps (k, directions)."""
    several = learner.student == PLAIN and model.joint
    m = np.linalg.norm(u, axis=1) if several else u[:, 0]
    if not several and _hides_sign(landscape):
        m = np.abs(m)
    found = cosines(m, np.ones(len(m)), 1.0)
    if learner.positions:
        found["positional_overlap"] = np.abs(u[:, 1])
    error = np.full(len(u), np.nan)
    finite = np.isfinite(u).all(axis=1)
    error[finite] = 2 * np.asarray(losses(landscape, jnp.asarray(u[finite])))
    return found | {"generalization_error": np.maximum(error, 0.0)}


def _hides_sign(landscape: Landscape) -> bool:
    """Whether the loss is the same for w and -w, by its values."""
    u = 0.6180339887 / np.arange(1, landscape.directions + 1)
    one, other = np.asarray(losses(landscape, jnp.asarray([u, -u])))
    return bool(abs(one - other) < _EVEN * (1 + abs(one)))


@thresholds_of(SequenceSingleIndex, SequenceSGD, references=("arous2021online", "arnaboldi2025asymptotics"))
def escape(model: SequenceSingleIndex, learner: SequenceSGD) -> dict[str, float]:
    """How descent leaves a random start.

    - `exponent`: the first degree k in m of the loss at m = 0; C d samples for 1, C d log d for 2, C d^(k-1) beyond. Of
      a student with places it is that at the places which it starts from.
    - `escape_rate`, for k = 2 and no places at the start: m grows like exp(rate alpha), and C = 1/(2 rate); below zero
      noise wins.
    - `critical_learning_rate`, in the same case: below it m grows.
    """
    places = float(learner.first(2)[1]) if learner.positions else 0.0
    k = exponent(model, learner, places)
    found = {"exponent": k}
    if k == 2 and places == 0:
        landscape = landscapes(model, learner)[0]
        start = jnp.zeros(landscape.directions)
        curvature, noise = (float(part) for part in _at_start(landscape, start))
        gamma, T = float(learner.learning_rate), _time(model, learner)
        found["escape_rate"] = gamma * (-curvature - gamma * noise / 2) / T
        found["critical_learning_rate"] = max(-2 * curvature / noise, 0.0)
    return found


@jax.jit
def _at_start(landscape: Landscape, start: Any) -> tuple[Any, Any]:
    return jax.hessian(landscape.loss)(start)[0, 0], landscape.noise(start)


@float64
def positional_transitions(model: SequenceSingleIndex) -> dict[str, float]:
    r"""At which `positional` share the meaning of tokens and their places are worth the same, for attention on both.

    - `global_transition`: R is the same at w = w* and at w = p.
    - `dynamical_transition`: R falls as fast towards w* as towards p from a start that knows neither. In between
      descent goes for the places although the meaning is the better end.
    """
    if model.tokens != 2 or not model.whole:
        raise NotSolvable("places and meaning compete for a function of two tokens: use tokens=2, such as 'softmax'.")
    if model.encoding != 0:
        raise NotSolvable("with an encoding of the label neither end is w* or p alone: use encoding=0.")
    learner = SequenceSGD(1.0, positions=True)
    ends = jnp.asarray([[1.0, 0.0], [0.0, 1.0]])
    sides = [TokenLandscape.of(model.with_field("positional", omega), learner, 1.0) for omega in (0.0, 1.0)]
    # The label enters both comparisons linearly, and with it the share.
    levels = [float(np.subtract(*np.asarray(losses(side, ends)))) for side in sides]
    bends = [float(np.subtract(*np.asarray(_bends(side)))) for side in sides]
    pairs = {"global_transition": levels, "dynamical_transition": bends}
    return {name: low / (low - high) if low < 0 < high else math.nan for name, (low, high) in pairs.items()}


@jax.jit
def _bends(landscape: TokenLandscape) -> Any:
    return jnp.diagonal(jax.hessian(landscape.loss)(jnp.zeros(2)))


@simulation(SequenceSingleIndex, SequenceSGD, path="alpha", data=False, references="arous2021online")
def run_online(
    model: SequenceSingleIndex, learner: SequenceSGD, d: int, alpha: np.ndarray, rng: np.random.Generator
) -> Outcome:
    """One run, seen after round(alpha d) samples for every alpha."""
    landscape, T = landscapes(model, learner)[0], int(model.tokens)
    each = learner.student == PLAIN
    D, directions = (T * d, T) if each else (d, landscape.directions)
    if directions + 3 > D:
        raise bad_parameter("d", d, "at least 5")
    start = learner.first(directions, D, rng) if not each or learner.start == "random" else _spread(model, learner)
    counts = np.round(alpha * d).astype(int)
    step = _attention if learner.student == ATTENTION else _neuron
    about = (model.function, learner.positions) if learner.student == ATTENTION else learner.activation
    state, seen, done = jnp.asarray(start), np.empty((len(counts), directions)), 0
    seen[counts == 0] = start
    rate = jnp.asarray(float(learner.learning_rate) / D)
    while done < counts[-1]:
        samples = _drawn(model, learner, D, rng)
        state, path = _block(step, about, rate, samples, state)
        inside = (counts > done) & (counts <= done + BLOCK)
        seen[inside] = np.asarray(path)[counts[inside] - done - 1]
        done += BLOCK
    if each and not model.joint:
        seen = seen.sum(axis=1, keepdims=True) / math.sqrt(T)
    metrics = _metrics(model, learner, landscape, seen)
    return Outcome(metrics, estimate={"u": seen}, converged=np.isfinite(seen).all(axis=1))


def _spread(model: SequenceSingleIndex, learner: SequenceSGD) -> np.ndarray:
    """The start of a plain student in every token: that of a sum over tokens is shared."""
    if model.joint:
        return learner.first(model.tokens)
    return np.full(model.tokens, learner.first(1)[0] / math.sqrt(model.tokens))


def _drawn(model: SequenceSingleIndex, learner: SequenceSGD, D: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """For a block of steps: projections, labels, what else fields are made of, and the squared length of the rest."""
    T = int(model.tokens)
    z = rng.standard_normal((BLOCK, T))
    y = model.labels(z)
    if model.noise > 0:
        y = y + math.sqrt(float(model.noise)) * rng.standard_normal(y.shape)
    if learner.student == ATTENTION:
        others = rng.standard_normal((BLOCK, 1 + learner.positions, T))
        return z, y, others, rng.chisquare(D - 2 - learner.positions, BLOCK)
    others = rng.standard_normal(BLOCK)
    if learner.student == TIED:
        return z.sum(axis=1, keepdims=True) / math.sqrt(T), y, others, rng.chisquare(D - 2, BLOCK)
    return z, y, others, rng.chisquare(D - T - 1, BLOCK)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _block(step: Callable[..., Any], about: Any, rate: Any, samples: Any, state: Any) -> Any:
    def one(u: Any, sample: Any) -> Any:
        u = step(about, rate, u, sample)
        return u, u

    return jax.lax.scan(one, state, samples)


def _attention(about: Any, rate: Any, u: Any, sample: Any) -> Any:
    """A step of a student that knows the function; the components of tokens are along w*, p (if any) and zeta."""
    function, positions = about
    z, y, others, rest = sample
    s = jnp.asarray(SIGNS) if positions else jnp.zeros_like(z)
    left = jnp.sqrt(jnp.maximum(1 - u @ u, 0.0))
    rows = jnp.concatenate([z[None], others[:1] + s, others[1:]]) if positions else jnp.concatenate([z[None], others])
    w = jnp.append(u, left)
    q = w @ rows
    value, pull = jax.vjp(function, q)
    delta = pull(value - y)[0]
    g = rows @ delta
    return _normalised(u, g[:-1], w @ g, g @ g + delta @ delta * rest, rate)


def _neuron(activation: Target, rate: Any, u: Any, sample: Any) -> Any:
    """A step of a neuron, from its directions v and one number for what is orthogonal to them."""
    v, y, xi, rest = sample
    left = jnp.sqrt(jnp.maximum(1 - u @ u, 0.0))
    h = u @ v + left * xi
    value, slope = jax.jvp(activation, (h[None],), (jnp.ones(1),))
    delta = jnp.squeeze((value - y[0]) * slope)
    return _normalised(u, delta * v, delta * h, delta**2 * (v @ v + xi**2 + rest), rate)


def _normalised(u: Any, along: Any, own: Any, square: Any, rate: Any) -> Any:
    return (u - rate * along) / jnp.sqrt(1 - 2 * rate * own + rate**2 * square)
