r"""Averages where the posterior is narrower than the level-set rule resolves.

Where V is small, g is linear over the posterior, and a label without noise says exactly n.z, n = grad g(z). Then

    E[g g^T] -> E[n n^T / (n^T V n + noise)]        as V -> 0, for labels that are smooth in z,

while a label that is piecewise constant informs only within sqrt(V) of its jumps, so that E[g g^T] grows like V^{-1/2}.
The rule's value at the edge of its resolution fixes the corrections.
"""

from __future__ import annotations

import numpy as np

from solvable.channels.levels.averages import information
from solvable.channels.levels.labels import Blur, LabelRule


def linear_information(rule: LabelRule, V: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """The limit of E[g g^T] for narrow posteriors, and of Psi = E[log Z] for its smooth labels."""
    n, mass = rule.sets.gradient, rule.mass / rule.mass.sum()
    variance = np.einsum("ki,ij,kj->k", n, V, n) + noise
    smooth = np.sum(n**2, 1) > 0
    n, mass, variance = n[smooth], mass[smooth], variance[smooth]
    matrix = np.einsum("k,ki,kj->ij", mass / variance, n, n, optimize=True)
    return matrix, float(np.sum(mass * -(1 + np.log(2 * np.pi * variance)) / 2))


def narrow_information(
    rule: LabelRule,
    u: np.ndarray,
    v: np.ndarray,
    noise: float,
    blurred: Blur | None,
    resolution: float,
    fineness: float,
    discrete: bool,
) -> tuple[np.ndarray, float]:
    """E[g g^T] and Psi at V = u diag(v) u^T with some v below the resolution."""
    clipped = np.maximum(v, resolution)
    edge, psi = information(rule, (u * (1 - clipped)) @ u.T, blurred, fineness)
    if not discrete and v.max() < resolution:
        whole, at_edge = ((u * x) @ u.T for x in (v, v * (resolution / v.min()) if v.max() < v.min() * 10 else clipped))
        limit, limit_psi = linear_information(rule, whole, noise)
        reference, reference_psi = linear_information(rule, at_edge, noise)
        if not np.array_equal(at_edge, (u * clipped) @ u.T):
            edge, psi = information(rule, np.eye(len(v)) - np.minimum(at_edge, np.eye(len(v))), blurred, fineness)
        # What the linear limit misses at the edge fades in proportion to V.
        fade = v.max() / resolution
        factor = 1 + (np.trace(edge) / np.trace(reference) - 1) * fade
        return limit * factor, limit_psi + (psi - reference_psi) * fade
    below = v < resolution
    power = 0.25 if discrete else 0.5
    scale = (u * (clipped / v) ** power) @ u.T
    share = 1.0 if discrete else _pinned(rule, u[:, below])
    return (1 - share) * edge + share * scale @ edge @ scale, psi


def _pinned(rule: LabelRule, directions: np.ndarray) -> float:
    """The share of labels whose gradient lies in the given directions: only these feel their narrowness."""
    n = rule.sets.gradient
    across = np.linalg.norm(n - n @ directions @ directions.T, axis=1)
    along = np.linalg.norm(n, axis=1)
    return float(np.sum(rule.mass[(along > 0) & (across < 1e-6 * along)]) / rule.mass.sum())
