r"""Averages over labels and omega as matrix products.

In the eigenbasis of M the Gaussian N(z; omega, V) factorises, so that on a tensor grid of omega the evidence of a
label and its derivatives are products of small matrices, with no exponential for a pair (point, omega):

    Z(omega)     = sum_k w_k prod_i A_i[k, omega_i],      A_i[k, omega] = N(u_ki; omega, v_i)
    Z g_i(omega) = the same with A_i replaced by A_i x_i,   x_i = (u_ki - omega_i) / v_i.

Where V is narrower than the points resolve, g is linear over the posterior, and a label without noise says exactly n.z,
n = grad g(z). Then

    E[g g^T] -> E[n n^T / (n^T V n + noise)]        as V -> 0, for labels that are smooth in z,

while a label that is piecewise constant informs only within sqrt(V) of its jumps, so that E[g g^T] grows like V^{-1/2}.
The value at the edge of what is resolved fixes the corrections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.channels.base import Average
from solvable.channels.levels.labels import Block, LabelRule, Share
from solvable.channels.levels.noise import NoisyRule
from solvable.numerics.blas import single_thread
from solvable.numerics.gaussian_many import Frame, frame
from solvable.numerics.threads import each

_TINY = 1e-250
_MOST_VALUES = 4_000_000

Exponents = tuple[int, ...]
Rule = LabelRule | NoisyRule


def label_moments(rule: Rule, grid: Frame, exponents: list[Exponents]) -> np.ndarray:
    """(L, len(exponents), number of omega): sums over the points of each label of w N(z; omega, V) prod_i x_i^e_i."""
    u, start = rule.sets.z @ grid.basis, rule.sets.start

    def evaluate(label: int) -> np.ndarray:
        here = slice(start[label], start[label + 1])
        return _moments(u[here], rule.sets.weight[here], grid, exponents)

    with single_thread():
        return np.array(each(evaluate, range(len(start) - 1)))


def _moments(u: np.ndarray, weight: np.ndarray, grid: Frame, exponents: list[Exponents]) -> np.ndarray:
    factors = []
    for i, (omega, v) in enumerate(zip(grid.omega, grid.v, strict=True)):
        x = (u[:, i : i + 1] - omega) / v
        kernel = np.exp(-(x**2) * v / 2) / math.sqrt(2 * math.pi * v)
        powers = [kernel]
        for _ in range(max(e[i] for e in exponents)):
            powers.append(powers[-1] * x)
        factors.append(powers)
    # The axis with the most nodes goes to the left of the product, the others are joined on the right.
    lead = int(np.argmax([len(o) for o in grid.omega]))
    others = [i for i in range(len(factors)) if i != lead]
    left = [weight[:, None] * p for p in factors[lead]]
    shape = (len(grid.omega[lead]), *(len(grid.omega[i]) for i in others))
    right: dict[Exponents, np.ndarray] = {}
    rows = []
    for e in exponents:
        key = tuple(e[i] for i in others)
        if key not in right:
            right[key] = _joined([factors[i][e[i]] for i in others], len(u))
        product = (left[e[lead]].T @ right[key]).reshape(shape)
        rows.append(np.moveaxis(product, 0, lead).ravel())
    return np.stack(rows)


def _joined(factors: list[np.ndarray], points: int) -> np.ndarray:
    """The row-wise Kronecker product of the factors."""
    joined = np.ones((points, 1))
    for factor in factors:
        joined = (joined[:, :, None] * factor[:, None, :]).reshape(points, joined.shape[1] * factor.shape[1])
    return joined


def sums(rule: Rule, grid: Frame, exponents: list[Exponents]) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the labels that are seen, and their moments."""
    moments = label_moments(rule, grid, exponents)
    seen = [(share.mu, _seen(share, moments[block.labels])) for block in rule.blocks for share in block.shares]
    return np.concatenate([mu for mu, _ in seen]), np.concatenate([moments for _, moments in seen])


def _seen(share: Share, moments: np.ndarray) -> np.ndarray:
    chosen = moments[share.labels]
    return (share.matrix @ chosen.reshape(len(chosen), -1)).reshape(len(share.mu), *moments.shape[1:])


def averaged(
    rule: Rule, grid: Frame, exponents: list[Exponents], function: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """The sum over the labels that are seen of mu `function(weights of omega, moments of the label)`.

    One block of labels at a time, whose moments are used while they are in the cache.
    """
    u, start = rule.sets.z @ grid.basis, rule.sets.start
    most = max(block.labels.stop - block.labels.start for block in rule.blocks)

    def evaluate(task: tuple[Frame, Block]) -> np.ndarray:
        part, block = task
        points = (slice(start[k], start[k + 1]) for k in range(block.labels.start, block.labels.stop))
        moments = np.array([_moments(u[here], rule.sets.weight[here], part, exponents) for here in points])
        weights = part.weights
        return np.sum(
            [
                mu * function(weights, m)
                for share in block.shares
                for mu, m in zip(share.mu, _seen(share, moments), strict=True)
            ],
            axis=0,
        )

    tasks = [(part, block) for part in _parts(grid, most * len(exponents)) for block in rule.blocks if block.shares]
    with single_thread():
        return np.sum(each(evaluate, tasks), axis=0)


def _parts(grid: Frame, values: int) -> list[Frame]:
    """The grid in parts along its longest axis, such that `values` numbers for each omega fit in little memory."""
    lengths = [len(omega) for omega in grid.omega]
    axis = int(np.argmax(lengths))
    count = int(np.clip(np.ceil(values * np.prod(lengths) / _MOST_VALUES), 1, lengths[axis]))

    def part(chosen: np.ndarray) -> Frame:
        omega, weight = (
            [nodes[chosen] if i == axis else nodes for i, nodes in enumerate(column)]
            for column in (grid.omega, grid.weight)
        )
        return grid._replace(omega=omega, weight=weight)

    return [part(chosen) for chosen in np.array_split(np.arange(lengths[axis]), count)]


def information(rule: Rule, M: np.ndarray, fineness: float = 1.0) -> tuple[np.ndarray, float]:
    """E[g g^T] and Psi = E[log Z] at M."""
    r = len(M)
    grid = frame(M, fineness)
    first = [tuple(int(i == j) for j in range(r)) for i in range(r)]

    def contribution(weights: np.ndarray, moments: np.ndarray) -> np.ndarray:
        Z, slopes = moments[0], moments[1:]
        safe = np.maximum(Z, _TINY)
        matrix = (slopes * (weights / safe)) @ slopes.T
        mass = weights * Z
        return np.concatenate([matrix.ravel(), [mass @ np.log(safe), mass.sum()]])

    *matrix, entropy, total = averaged(rule, grid, [(0,) * r, *first], contribution)
    return grid.basis @ (np.reshape(matrix, (r, r)) / total) @ grid.basis.T, float(entropy / total)


def second_moments(
    rule: Rule, M: np.ndarray, basis: np.ndarray, fineness: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """E[m m^T] and E[G (x) G] for m = E[basis^T z | y, omega], G = E[basis^T z z^T basis | y, omega] - I.

    The columns of `basis` are directions in which nothing is known: M basis = 0.
    """
    r, k = basis.shape
    grid = frame(M, fineness)
    # Put the eigenbasis so that its unknown directions are the given ones.
    known = [i for i in range(r) if len(grid.omega[i]) > 1]
    rest = [i for i in range(r) if i not in known]
    columns = np.concatenate([grid.basis[:, known], _completed(grid.basis[:, known], basis)], 1)
    place = [*known, *rest]
    grid = Frame(columns, grid.v[place], [grid.omega[i] for i in place], [grid.weight[i] for i in place])
    unknown = range(len(known), len(known) + k)

    def exponent(*axes: int) -> Exponents:
        return tuple(axes.count(i) for i in range(r))

    pairs = [(i, j) for i in unknown for j in unknown if i <= j]
    exponents = [exponent(), *(exponent(i) for i in unknown), *(exponent(i, j) for i, j in pairs)]

    def contribution(weights: np.ndarray, moments: np.ndarray) -> np.ndarray:
        Z = np.maximum(moments[0], _TINY)
        m = moments[1 : 1 + k] / Z
        G = np.empty((k, k, len(Z)))
        for (i, j), value in zip(pairs, moments[1 + k :], strict=True):
            a, b = i - len(known), j - len(known)
            G[a, b] = G[b, a] = value / Z - (a == b)
        mass = weights * moments[0]
        flat = G.reshape(k * k, -1)
        return np.concatenate([((m * mass) @ m.T).ravel(), ((flat * mass) @ flat.T).ravel(), [mass.sum()]])

    *parts, total = averaged(rule, grid, exponents, contribution)
    trivial, easy = np.split(np.array(parts) / total, [k * k])
    # E[G_ia G_jb] takes dM_ab to F(dM)_ij.
    easy = easy.reshape(k, k, k, k).transpose(0, 2, 1, 3).reshape(k * k, k * k)
    return trivial.reshape(k, k), easy


def _completed(known: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """`basis` and then whatever completes it and the known directions."""
    r = len(known)
    together = np.concatenate([known, basis], 1)
    missing = r - together.shape[1]
    if not missing:
        return basis
    null = np.linalg.svd(together.T)[2][-missing:].T
    return np.concatenate([basis, null], 1)


def linear_information(rule: LabelRule, V: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """The limit of E[g g^T] for narrow posteriors, and of Psi = E[log Z] for its smooth labels."""
    n, mass = rule.sets.gradient, rule.mass / rule.mass.sum()
    variance = np.einsum("ki,ij,kj->k", n, V, n) + noise
    smooth = np.sum(n**2, 1) > 0
    n, mass, variance = n[smooth], mass[smooth], variance[smooth]
    matrix = np.einsum("k,ki,kj->ij", mass / variance, n, n, optimize=True)
    return matrix, float(np.sum(mass * -(1 + np.log(2 * np.pi * variance)) / 2))


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
) -> Average:
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
        return Average(value, limit_psi + (psi - reference_psi) * fade, error)
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
    return Average(value, psi + (psi - wider_psi) * steps, 0.2 * float(np.abs(value - edge).max()))


def _square_root(A: np.ndarray) -> np.ndarray:
    """The symmetric square root, kept positive where labels say nothing about a direction."""
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.sqrt(np.maximum(values, 1e-12 * values[-1]))) @ vectors.T
