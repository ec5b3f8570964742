r"""The overlaps of descent on single samples, as the Markov chain that they are at any finite d: no weights, no inputs.

A step $w_i \leftarrow \alpha_i w_i + c_i x$ whose numbers depend on x through the fields and $|x|^2$ only changes
$M_{ik} = w_i\cdot w^*_k$ and $Q_{ij} = w_i\cdot w_j$ in a way that depends on x through them only. With $L L^T = Q - M
M^T$, independent standard normal z (r), $\xi$ (p) and $\chi \sim \chi^2_{d-r-p}$,

    h* = z,     h = M z + L xi,     |x|^2 = |z|^2 + |xi|^2 + chi

have exactly the law of the fields and the norm of an input given the past, and

    M_ik <- alpha_i M_ik + c_i z_k
    Q_ij <- alpha_i alpha_j Q_ij + alpha_i c_j h_i + alpha_j c_i h_j + c_i c_j |x|^2.

So the law of the overlaps is that of the d-dimensional run, at a cost that does not depend on d. Labels and norms do
not depend on the state: they are drawn for blocks of steps at once, and a compiled loop does the rest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from solvable.core.errors import bad_parameter
from solvable.engine.dynamics.moves import AHEAD, TWICE, Move, Rates
from solvable.targets.target import Target

BLOCK = 2048
"""Steps drawn and made at a time, whatever the number asked for: so a run does not depend on where it is seen."""
_LANES = 4
"""Runs of several neurons that a compiled loop makes side by side, which costs it little more than one.

As many for one run as for many, others in vain, so that a run does not depend on its company to the last digit. With
one neuron a loop over single runs is the fastest.
"""
_JITTER = 1e-14


class Samples(NamedTuple):
    """What a step sees of a sample: projections z (r), label y, normals xi (p) that make fields, and |x|^2/d.

    `other` holds those of a near-copy that the look ahead is on, with x.x'/d in the place of the norm.
    """

    z: Any
    y: Any
    xi: Any
    square: Any
    other: Any = None


def chain(
    target: Target,
    noise: float,
    move: Move,
    rates: Rates,
    d: int,
    starts: Sequence[tuple[np.ndarray, np.ndarray]],
    counts: np.ndarray,
    rngs: Sequence[np.random.Generator],
) -> tuple[np.ndarray, np.ndarray]:
    """M (s, k, p, r) and Q (s, k, p, p) of s runs from their starts, after increasing numbers of samples `counts`."""
    r, p = target.projections, move.student.width
    if d - r - p < 2:
        raise bad_parameter("d", d, f"at least {r + p + 2}: more than the directions and neurons")
    lanes = 1 if p == 1 else _LANES
    parts = [
        _side_by_side(target, noise, move, rates, d, starts[k : k + lanes], counts, rngs[k : k + lanes], lanes)
        for k in range(0, len(rngs), lanes)
    ]
    M, Q = (np.concatenate(part) for part in zip(*parts, strict=True))
    return M, Q


def _side_by_side(target, noise, move, rates, d, starts, counts, rngs, lanes) -> tuple[np.ndarray, np.ndarray]:
    runs = len(rngs)
    fill = [0] * (lanes - runs)
    state = tuple(jnp.asarray(np.stack([start[k] for start in (*starts, *(starts[0] for _ in fill))])) for k in (0, 1))
    seen = [np.empty((runs, len(counts), *part.shape[1:])) for part in state]
    numbers = jax.tree.map(jnp.asarray, Rates(*map(float, rates)))
    done = 0
    for k in np.flatnonzero(counts == 0):
        for part, whole in zip(state, seen, strict=True):
            whole[:, k] = np.asarray(part)[:runs]
    while done < counts[-1]:
        drawn = [_drawn(target, noise, move, float(rates.similarity), d, rng) for rng in rngs]
        samples = jax.tree.map(lambda *leaves: np.stack([*leaves, *(leaves[0] for _ in fill)], axis=1), *drawn)
        state, path = _block(move, d, numbers, samples, state)
        inside = (counts > done) & (counts <= done + BLOCK)
        for part, whole in zip(path, seen, strict=True):
            whole[:, inside] = np.moveaxis(np.asarray(part)[counts[inside] - done - 1], 0, 1)[:runs]
        done += BLOCK
    return seen[0], seen[1]


def _drawn(target: Target, noise: float, move: Move, similarity: float, d: int, rng: np.random.Generator) -> Samples:
    """The samples of a block of steps."""
    r, p = target.projections, move.student.width
    freedom = d - r - p

    def labels(z: np.ndarray) -> np.ndarray:
        clean = target.numpy(z)
        return clean + math.sqrt(noise) * rng.standard_normal(BLOCK) if noise > 0 else clean

    x = rng.standard_normal((BLOCK, r + p))
    rest = rng.chisquare(freedom, BLOCK)
    square = np.sum(x**2, axis=1) + rest
    if not move.copies:
        return Samples(x[:, :r], labels(x[:, :r]), x[:, r:], square / d)
    # A second input x'' whose part outside the fields has the component n along that of x.
    fresh, n = rng.standard_normal((BLOCK, r + p)), rng.standard_normal(BLOCK)
    product = np.sum(x * fresh, axis=1) + np.sqrt(rest) * n
    norm = np.sum(fresh**2, axis=1) + n**2 + rng.chisquare(freedom - 1, BLOCK)
    s, c = similarity, math.sqrt(1 - similarity**2)
    copy = s * x + c * fresh
    first = Samples(x[:, :r], labels(x[:, :r]), x[:, r:], (s * square + c * product) / d)
    both = s**2 * square + 2 * s * c * product + c**2 * norm
    return Samples(copy[:, :r], labels(copy[:, :r]), copy[:, r:], both / d, first)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _block(move: Move, d: int, rates: Rates, samples: Samples, state: Any) -> Any:
    """The runs after a block of steps, and all they went through."""

    def step(state: Any, sample: Samples) -> Any:
        state = jax.vmap(functools.partial(_step, move, d, rates))(state, sample)
        return state, state

    return jax.lax.scan(step, state, samples)


def _step(move: Move, d: int, rates: Rates, state: Any, sample: Samples) -> Any:
    """One step of one run."""
    M, Q = state
    student, gamma = move.student, rates.learning_rate
    L = _root(Q - M @ M.T)
    h = M @ sample.z + L @ sample.xi
    first = sample if sample.other is None else sample.other
    if move.kind == AHEAD:
        before = h if sample.other is None else M @ first.z + L @ first.xi
        ahead = h + rates.extrapolation * first.square * student.force(first.y, before)
        return _moved(move, M, Q, h, gamma / d * student.force(sample.y, ahead), sample, d)[:2]
    M, Q, h = _moved(move, M, Q, h, gamma / d * student.force(sample.y, h), sample, d)
    if move.kind == TWICE:
        M, Q, h = _moved(move, M, Q, h, gamma / d * student.force(sample.y, h), sample, d)
    return M, Q


def _moved(move: Move, M: Any, Q: Any, h: Any, c: Any, sample: Samples, d: int) -> Any:
    """The overlaps and the fields of the same sample after w <- w + c x, on the sphere if asked."""
    square = d * sample.square
    along = 1 - c * h if move.spherical else jnp.ones_like(c)
    M = along[:, None] * M + c[:, None] * sample.z
    cross = (along * h)[:, None] * c
    Q = along[:, None] * Q * along + cross + cross.T + c[:, None] * c * square
    h = along * h + c * square
    if move.spherical:
        norm = jnp.sqrt(jnp.diagonal(Q))
        M, Q, h = M / norm[:, None], Q / (norm[:, None] * norm), h / norm
    return M, Q, h


def _root(G: Any) -> Any:
    """L with L L^T = G, the Gram matrix of what lies outside the target's directions: lower triangular."""
    if len(G) == 1:
        return jnp.sqrt(jnp.maximum(G, 0.0))
    return jnp.linalg.cholesky(G + _JITTER * jnp.eye(len(G)))
