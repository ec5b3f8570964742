r"""Averages where the posterior is narrower than the level-set rule resolves.

Where V is small, g is linear over the posterior, and a label without noise says exactly n.z, n = grad g(z). Then

    E[g g^T] -> E[n n^T / (n^T V n + noise)]        as V -> 0, for labels that are smooth in z,

while a label that is piecewise constant informs only within sqrt(V) of its jumps, so that E[g g^T] grows like V^{-1/2}.
The rule's value at the edge of its resolution fixes the corrections.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvable.channels.levels.averages import Rule, information
from solvable.channels.levels.labels import LabelRule


def linear_information(rule: LabelRule, V: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """The limit of E[g g^T] for narrow posteriors, and of Psi = E[log Z] for its smooth labels."""
    n, mass = rule.sets.gradient, rule.mass / rule.mass.sum()
    variance = np.einsum("ki,ij,kj->k", n, V, n) + noise
    smooth = np.sum(n**2, 1) > 0
    n, mass, variance = n[smooth], mass[smooth], variance[smooth]
    matrix = np.einsum("k,ki,kj->ij", mass / variance, n, n, optimize=True)
    return matrix, float(np.sum(mass * -(1 + np.log(2 * np.pi * variance)) / 2))


class Narrow(NamedTuple):
    """E[g g^T] and Psi continued beyond what a rule resolves, and the error that this may add."""

    information: np.ndarray
    entropy: float
    error: float


class Narrowness(NamedTuple):
    """Where a rule stops: `resolution` is the least variance it resolves; where all are below `wide`, the linear limit
    with corrections is as good and cheaper. `discrete` and `kinked` say how the label varies."""

    resolution: float
    wide: float
    discrete: bool
    kinked: bool

    def concerns(self, v: np.ndarray) -> bool:
        """Whether variances v are too small for the rule alone."""
        return v.min() < self.resolution or (v.max() < self.wide and not self.discrete)


def narrow_information(
    rule: LabelRule,
    u: np.ndarray,
    v: np.ndarray,
    noise: float,
    seen: Rule,
    fineness: float,
    limits: Narrowness,
) -> Narrow:
    """E[g g^T] and Psi at V = u diag(v) u^T with variances that `limits` calls narrow."""
    if v.max() < limits.wide and not limits.discrete:
        edge_v = np.maximum(v * (limits.wide / v.max()), limits.resolution)
        edge, psi = information(seen, (u * (1 - edge_v)) @ u.T, fineness)
        limit, limit_psi = linear_information(rule, (u * v) @ u.T, noise)
        reference, reference_psi = linear_information(rule, (u * edge_v) @ u.T, noise)
        # What the linear limit misses at the edge fades like V, or like the width of the posterior beside kinks.
        fade = (v.max() / limits.wide) ** (0.5 if limits.kinked else 1.0)
        unit, root = np.linalg.inv(_square_root(reference)), _square_root(limit)
        correction = np.eye(len(v)) + (unit @ edge @ unit - np.eye(len(v))) * fade
        value = root @ correction @ root
        error = 0.3 * fade * (1 - fade) * float(np.abs(correction - np.eye(len(v))).max() * np.abs(limit).max())
        return Narrow(value, limit_psi + (psi - reference_psi) * fade, error)
    # Continue the power law between one and two times the resolution: V^-1 where labels pin the narrow directions,
    # V^-1/2 beside jumps, less where the other directions blur the label.
    small = v < limits.resolution
    edge_v, wider_v = (np.where(small, k * limits.resolution, v) for k in (1.0, 2.0))
    edge, psi = information(seen, (u * (1 - edge_v)) @ u.T, fineness)
    wider, wider_psi = information(seen, (u * (1 - wider_v)) @ u.T, fineness)
    at_edge, at_wider = (np.sum(u * (A @ u), 0) for A in (edge, wider))
    power = np.clip(np.log2(np.maximum(at_edge, 1e-300) / np.maximum(at_wider, 1e-300)), 0.0, 1.0)
    scale = (u * np.where(small, (edge_v / v) ** (power / 2), 1.0)) @ u.T
    steps = float(np.log2(edge_v[small] / v[small]).mean())
    value = scale @ edge @ scale
    return Narrow(value, psi + (psi - wider_psi) * steps, 0.2 * float(np.abs(value - edge).max()))


def _square_root(A: np.ndarray) -> np.ndarray:
    """The symmetric square root, kept positive where labels say nothing about a direction."""
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.sqrt(np.maximum(values, 1e-12 * values[-1]))) @ vectors.T
