"""Hermite coefficients of a target, c_k = E[g(z) h_k1(z1) ... h_kr(zr)], for one projection and for several.

h_k = He_k / sqrt(k!) are orthonormal, so that the sum of c_k^2 over k != 0 is Var g. For one projection the quadrature
has panels that end on the breaks of g. For several it is a tensor product in the adapted coordinates of the target,
with pieces that end on its planes of breaks: there it is exact.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np

from solvable.core.errors import bad_parameter
from solvable.numerics.gaussian import gaussian_panels, hermite_functions, normal_density, panels, standard_edges
from solvable.targets.adapted import adapted_basis
from solvable.targets.axis_breaks import axis_breaks
from solvable.targets.rotate import rotate
from solvable.targets.symmetry import symmetries
from solvable.targets.target import Target

_REACH = 14.0
_MAX_POINTS = 6_000_000
_SLAB = 500_000
_ENOUGH = 1e-10
_ZERO = 10**-5.5
"""A coefficient below this, relative to the standard deviation, is taken for zero.

Its square is what counts as zero in the label law, where lambda_k >= c_k^2 / Var g: the exponents stay consistent.
"""

Rule = list[tuple[np.ndarray, np.ndarray]]
"""Nodes and weights for each axis."""


def hermite_coefficients(target: Target, order: int) -> np.ndarray:
    """c_0..c_order of a target of one projection, exact across the breaks of g."""
    nodes = max(48, math.ceil(5 * math.sqrt(order)))  # h_k oscillates with a frequency of sqrt(k)
    z, weight = gaussian_panels(target.breaks, nodes, _REACH)
    with np.errstate(over="ignore"):
        values = target.numpy(z[:, None])
    return hermite_functions(z, order) @ (weight * np.where(weight > 0, values, 0.0))


def information_exponent(coefficients: np.ndarray) -> float:
    """The lowest degree k > 0 with c_k != 0, or infinity if there is none among those given [arous2021online]."""
    scale = np.sqrt(np.sum(coefficients[1:] ** 2))
    nonzero = np.nonzero(np.abs(coefficients[1:]) > _ZERO * max(scale, 1e-300))[0]
    return float(nonzero[0] + 1) if nonzero.size else np.inf


@dataclasses.dataclass(frozen=True, eq=False)
class HermiteTensor:
    """The coefficients c_k of all multi-indices k with |k| <= `degree`, and the variance of g.

    `error` estimates the error of the coefficients, by the change under refinement, and `variance_error` that of the
    variance.
    """

    coefficients: dict[tuple[int, ...], float]
    degree: int
    variance: float
    error: float
    variance_error: float

    @property
    def floor(self) -> float:
        """A coefficient below this cannot be told from zero."""
        return max(_ZERO * math.sqrt(self.variance), 4 * self.error)

    @functools.cached_property
    def nonzero(self) -> dict[tuple[int, ...], float]:
        """The coefficients, other than the mean, that differ from zero beyond rounding and error."""
        return {k: c for k, c in self.coefficients.items() if sum(k) and abs(c) > self.floor}


@functools.lru_cache(maxsize=64)
def hermite_tensor(target: Target, degree: int) -> HermiteTensor:
    """All c_k with |k| <= degree: to about 1e-9 if the breaks of g are planes along adapted axes, else less exact."""
    if degree < 0:
        raise bad_parameter("degree", degree, "zero or more")
    basis = adapted_basis(target)
    if not basis.shape[1]:
        mean = float(target.numpy(np.full(target.projections, 0.6180339887)))
        zeros = {k: 0.0 for n in range(degree + 1) for k in _indices(target.projections, n)}
        return HermiteTensor(zeros | {(0,) * target.projections: mean}, degree, 0.0, 0.0, 0.0)
    is_identity = basis.shape[0] == basis.shape[1] and np.allclose(basis, np.eye(len(basis)), atol=1e-14)
    full, second, error, change = _converge(target if is_identity else rotate(target, basis), degree)
    coefficients = {k: float(full[k]) for n in range(degree + 1) for k in _indices(basis.shape[1], n)}
    if not is_identity:
        coefficients = change_coordinates(coefficients, basis, degree)
    if error > 1e-9 * math.sqrt(second):
        coefficients = _symmetrised(coefficients, symmetries(target).group)
    mean = float(full.flat[0])
    return HermiteTensor(coefficients, degree, max(second - mean**2, 0.0), error, change + 2 * abs(mean) * error)


def kernel_error(tensor: HermiteTensor, kappa: float) -> float:
    """Mean squared error of kernel and random-feature methods with n = d^kappa samples, kappa not a whole number.

    They learn the part of degree at most floor(kappa) [ghorbani2021linearized]: the error is Var g minus the sum of
    c_k^2, 1 <= |k| <= kappa.
    """
    if not 0 <= kappa < tensor.degree + 1:
        raise bad_parameter("kappa", kappa, f"at least 0 and below {tensor.degree + 1}, one more than the degree")
    learned = sum(c**2 for k, c in tensor.coefficients.items() if 1 <= sum(k) <= math.floor(kappa))
    return max(tensor.variance - learned, 0.0)


# Quadrature


def _converge(target: Target, degree: int) -> tuple[np.ndarray, float, float, float]:
    """E[g h_k] for all k with entries up to `degree`, E[g^2], and the error of each of the two.

    Axes are refined as long as it matters.
    """
    breaks = axis_breaks(target)
    axes = range(len(breaks))
    needed = np.sum(np.indices((degree + 1,) * len(breaks)), axis=0) <= degree
    # Many panels are right also for logarithms and steep sigmoids, but too many points in more dimensions.
    levels = [2.0 if len(breaks) <= 2 else 0.0 for _ in axes]

    def evaluate(levels: list[float]) -> tuple[np.ndarray, float]:
        return _contract(target, [_rule(c, level, degree) for c, level in zip(breaks, levels, strict=True)], degree)

    full, second = evaluate(levels)
    errors, correction = [0.0 for _ in axes], np.zeros_like(full)
    changes = [0.0 for _ in axes]
    active, exhausted = list(axes), []
    while active:
        for axis in tuple(active):
            finer = [level + (i == axis) for i, level in enumerate(levels)]
            points = math.prod(len(_rule(c, level, degree)[0]) for c, level in zip(breaks, finer, strict=True))
            if points > _MAX_POINTS:
                active.remove(axis)
                exhausted.append(axis)
                continue
            new_full, new_second = evaluate(finer)
            errors[axis] = float(np.abs(new_full - full)[needed].max())
            changes[axis] = abs(new_second - second)
            scale = max(abs(second), 1e-300)
            if errors[axis] < _ENOUGH * math.sqrt(scale) and changes[axis] < 10 * _ENOUGH * scale:
                active.remove(axis)
                correction += new_full - full
            else:
                levels, full, second = finer, new_full, new_second
    if exhausted:
        # Breaks that are no planes: another rule of about the same size shows by how much it may be wrong.
        other, other_second = evaluate([level - 0.5 * (i in exhausted) for i, level in enumerate(levels)])
        errors.append(float(np.abs(other - full)[needed].max()))
        changes.append(abs(other_second - second))
    error, change = (sum(part[i] for i in range(len(part)) if i not in exhausted) for part in (errors, changes))
    return full + correction, second, error, change


def _rule(breaks: np.ndarray, level: float, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """A rule for E f(z) along one axis, with pieces that end at the breaks: the higher the level, the finer."""
    return _cached_rule(tuple(breaks.tolist()), level, degree)


@functools.lru_cache(maxsize=256)
def _cached_rule(breaks: tuple[float, ...], level: float, degree: int) -> tuple[np.ndarray, np.ndarray]:
    if level <= 1:
        return gauss_pieces(breaks, round(max(10, degree + 4) * 2**level))
    return gaussian_panels(breaks, round(16 * 2 ** (level - 2)), _REACH)


def gauss_pieces(breaks: tuple[float, ...], nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss rule of the normal density on each piece between breaks, exact for piecewise polynomials."""
    ends = [-_REACH, *breaks, _REACH]
    rules = [_gauss_piece(low, high, nodes) for low, high in itertools.pairwise(ends)]
    z, weight = (np.concatenate(parts) for parts in zip(*rules, strict=True))
    return z, weight


def _gauss_piece(low: float, high: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [low, high], by the Lanczos recurrence on a fine discretisation of the density."""
    edges = np.unique(np.clip(standard_edges((), _REACH), low, high))
    x, weight = panels(np.unique([low, *edges, high]), max(48, nodes), graded=False)
    weight = weight * normal_density(x)
    mass = weight.sum()
    if mass < 1e-30:
        return np.zeros(0), np.zeros(0)
    count = nodes if mass > 1e-10 else min(nodes, 6)
    basis = np.zeros((count + 1, len(x)))
    basis[0] = np.sqrt(weight / mass)
    diagonal, side = np.zeros(count), np.zeros(count)
    for k in range(count):
        vector = x * basis[k]
        diagonal[k] = vector @ basis[k]
        for _ in range(2):
            vector = vector - basis[: k + 1].T @ (basis[: k + 1] @ vector)
        side[k] = np.linalg.norm(vector)
        basis[k + 1] = vector / side[k]
    z, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(side[:-1], 1) + np.diag(side[:-1], -1))
    return z, mass * vectors[0] ** 2


def _contract(target: Target, rule: Rule, degree: int) -> tuple[np.ndarray, float]:
    """E[g h_k] for all k with entries up to `degree`, and E[g^2], in slabs along the first axis."""
    first, first_weight = rule[0]
    others = math.prod(len(z) for z, _ in rule[1:])
    slab = max(1, _SLAB // others)
    weighted = [hermite_functions(z, degree) * w for z, w in rule]
    total = np.zeros((degree + 1,) * len(rule))
    second = 0.0
    for start in range(0, len(first), slab):
        part = slice(start, start + slab)
        grid = np.meshgrid(first[part], *(z for z, _ in rule[1:]), indexing="ij")
        with np.errstate(over="ignore"):
            values = target.numpy(np.stack(grid, axis=-1))
            square = values**2
        for _, weight in reversed(rule[1:]):
            square = square @ weight
        second += float(first_weight[part] @ square)
        for axis in range(len(rule) - 1, -1, -1):
            matrix = weighted[axis] if axis else weighted[0][:, part]
            values = np.tensordot(matrix, values, (1, len(rule) - 1))
        total += values
    return total, second


def change_coordinates(
    coefficients: dict[tuple[int, ...], float], matrix: np.ndarray, degree: int
) -> dict[tuple[int, ...], float]:
    """The coefficients of g in the coordinates v = A u, from those in u: A with orthonormal rows or columns.

    The tensors of degree n transform by the n-th power of A. In terms of raising operators, a_i h_m = sqrt(m_i + 1)
    h_{m + e_i}, the image of h_k = a_j h_{k - e_j} / sqrt(k_j) is that of h_{k - e_j} raised by sum_i A_ij a_i.
    """
    size, old_size = matrix.shape
    here, there = [(0,) * size], [(0,) * old_size]
    image = np.ones((1, 1))
    found = {here[0]: coefficients[there[0]]}
    for n in range(1, degree + 1):
        lower, lower_there = here, {k: column for column, k in enumerate(there)}
        here, there = _indices(size, n), _indices(old_size, n)
        row = {k: position for position, k in enumerate(here)}
        raised = np.array(there).reshape(-1, old_size)
        j = np.argmax(raised > 0, axis=1)
        parent = [lower_there[_shifted(k, int(i), -1)] for k, i in zip(there, j, strict=True)]
        below = image[:, parent] / np.sqrt(raised[np.arange(len(j)), j])
        image = np.zeros((len(here), len(there)))
        for i in range(size):
            rows = [row[_shifted(m, i, 1)] for m in lower]
            factor = np.sqrt(np.array(lower)[:, i] + 1)
            image[rows] += factor[:, None] * below * matrix[i, j]
        found |= zip(here, (image @ np.array([coefficients[k] for k in there])).tolist(), strict=True)
    return found


def _shifted(k: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*k[:place], k[place] + by, *k[place + 1 :])


def _indices(r: int, total: int) -> list[tuple[int, ...]]:
    """All multi-indices of r entries that add up to `total`."""
    return [k for k in itertools.product(range(total + 1), repeat=r) if sum(k) == total]


def _symmetrised(coefficients: dict[tuple[int, ...], float], group: np.ndarray) -> dict[tuple[int, ...], float]:
    """The mean over the symmetries S, g(S z) = g(z), of c_k = E[g h_k(S^T z)]: an inexact quadrature may break them."""
    total = dict.fromkeys(coefficients, 0.0)
    for s in group:
        sign, place = s.sum(0), np.abs(s).argmax(0)
        for k in coefficients:
            moved = [0] * len(k)
            for j, degree in enumerate(k):
                moved[place[j]] = degree
            total[k] += math.prod(sign[j] ** k[j] for j in range(len(k))) * coefficients[tuple(moved)] / len(group)
    return total
