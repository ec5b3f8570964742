r"""Averages over the fields of several neurons, or of two similar samples, at scrambled Sobol points.

The fields are $h = M z + L\xi$ with $L L^T = Q - M M^T$ and standard normal z, $\xi$. Some replicas of a scrambled
Sobol sequence give the averages and, by their spread, how far they may be off. Two things are kept exact, since a flow
would amplify their errors where it leaves a saddle:

- The symmetries of the target, g(S z) = g(z): the points come in orbits of them, so that overlaps that a symmetry
  forbids stay zero.
- Directions v that no function of the label has a mean in, $E[v\cdot z\,|\,y] = 0$, such as z for He_2 and He_4, and
  for a force linear in the label those with $E[y\,v\cdot z] = 0$: at M = 0 nothing pushes along them. There the average
  of F at the fields $h_0 = Q^{1/2}\xi$, which know nothing of z, is taken away.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from solvable.engine.dynamics.flow import Averages
from solvable.engine.dynamics.moves import Move, Rates
from solvable.engine.dynamics.neuron import directions
from solvable.numerics.sobol import normal_points
from solvable.targets.symmetry import symmetries
from solvable.targets.target import Target

REPLICAS = 4
_POWER = 17
"""Points times neurons, as a power of two."""
_JITTER = 1e-13
_ZERO = 1e-8
"""A mean of z given the label below this is none: that of the rules for directions."""


class SampledRule(NamedTuple):
    """Normal points `z` (n, r) with labels `y` (n) and `xi` (n, p); `silent` (r x r) projects on silent directions.

    Of two similar samples `first` holds z, y and xi of the first one; those above are the second one's.
    """

    z: Any
    y: Any
    xi: Any
    silent: Any
    first: Any = None


def average(move: Move, rates: Rates, rule: SampledRule, M: Any, Q: Any) -> Averages:
    """<F z>, <F h> and <F F> of p neurons with overlaps M (p x r) and Q (p x p)."""
    eye = _JITTER * jnp.trace(Q) * jnp.eye(len(Q))
    L, L0 = jnp.linalg.cholesky(Q - M @ M.T + eye), jnp.linalg.cholesky(Q + eye)

    def force(L: Any, M: Any) -> tuple[Any, Any]:
        h = rule.z @ M.T + rule.xi @ L.T
        if rule.first is None:
            return h, move.force(rule.y, h, rates)
        z, y, xi = rule.first
        return h, move.second_force((y, z @ M.T + xi @ L.T), rule.y, h, rates)

    h, F = force(L, M)
    _, F0 = force(L0, jnp.zeros_like(M))
    n = len(rule.y)
    return Averages((F.T @ rule.z - F0.T @ (rule.z @ rule.silent)) / n, F.T @ h / n, F.T @ F / n)


def sampled_rules(target: Target, noise: float, move: Move, rates: Rates) -> list[SampledRule]:
    """Replicas of the rule, scrambled independently."""
    return [_rule(target, noise, move, float(rates.similarity), seed) for seed in range(REPLICAS)]


def _rule(target: Target, noise: float, move: Move, similarity: float, seed: int) -> SampledRule:
    r, p = target.projections, move.student.width
    group = symmetries(target).group
    samples = 2 if move.copies else 1
    power = min(16, _POWER - math.ceil(math.log2(p)))
    base = normal_points(samples * (r + p + 1), max(8, power - math.ceil(math.log2(len(group)))), seed)
    parts = np.split(base, samples, axis=1)
    if move.copies:
        parts[1] = similarity * parts[0] + math.sqrt(1 - similarity**2) * parts[1]
        parts[1][:, -1] = base[:, -1]  # every label has a noise of its own

    def points(part: np.ndarray) -> tuple[Any, Any, Any]:
        z = np.concatenate([part[:, :r] @ S.T for S in group])
        y = target.numpy(z) + math.sqrt(noise) * np.tile(part[:, -1], len(group))
        return jnp.asarray(z), jnp.asarray(y), jnp.asarray(np.tile(part[:, r : r + p], (len(group), 1)))

    if not move.copies:
        return SampledRule(*points(parts[0]), jnp.asarray(_silent(target, move.linear)))
    # Two labels together may tell what neither tells alone.
    return SampledRule(*points(parts[1]), jnp.zeros((r, r)), points(parts[0]))


@functools.lru_cache(maxsize=64)
def _silent(target: Target, linear: bool) -> np.ndarray:
    """The projector on the directions in which no function of the label has a mean; of those linear in it if asked."""
    z, weight, y = directions(target, 1.0)
    scale = math.sqrt(float(weight @ y**2)) or 1.0
    waves = [y / scale] if linear else [f(k * y / scale) for k in (0.4, 1.0, 2.3) for f in (np.sin, np.cos)]
    moments = np.stack([(weight * wave) @ z for wave in waves])
    _, sizes, rows = np.linalg.svd(moments)
    heard = rows[: int(np.sum(sizes > _ZERO))]
    return np.eye(target.projections) - heard.T @ heard
