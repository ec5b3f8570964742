"""The staircase of correlational learners (SGD on the squared loss, and all that is linear in the label).

Such a learner sees g through its Hermite tensors only. With a subspace U learned, the next directions are those of
lowest order k in E[g h_a(z_U) He_k(z_perp)], for any weight h_a of what is known: learning them is a leap of k. The
construction uses subspaces, not coordinates: it is the same for g and for g after a rotation of its arguments.
[abbe2023sgd]
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from solvable.numerics.subspaces import complement, tidy
from solvable.targets.adapted import relevant_directions
from solvable.targets.hermite import HermiteTensor, change_coordinates, hermite_tensor
from solvable.targets.target import Target

_DEGREE = {1: 24, 2: 16, 3: 12, 4: 8}
"""Hermite degrees are looked at up to this, by the number of relevant directions."""


@dataclasses.dataclass(frozen=True, eq=False)
class Leap:
    """The steps in which correlational learners find the relevant directions of a target.

    `steps` is a list of (directions, cost): orthonormal columns (r x k) that are learned together, and the order of the
    tensor that shows them, infinite if none of the degrees looked at does. `exponent` is the largest cost.
    """

    exponent: float
    steps: list[tuple[np.ndarray, float]]

    @property
    def information_exponent(self) -> float:
        """The cost of the first step, the lowest degree in the Hermite expansion of g."""
        return self.steps[0][1] if self.steps else math.inf


@functools.lru_cache(maxsize=64)
def leap(target: Target) -> Leap:
    """The staircase of g and its largest leap."""
    relevant = relevant_directions(target)
    tensor = hermite_tensor(target, _DEGREE[max(1, relevant.shape[1])])
    learned = np.zeros((target.projections, 0))
    steps: list[tuple[np.ndarray, float]] = []
    while learned.shape[1] < relevant.shape[1]:
        # What is relevant but not learned, by projection of the relevant subspace on the complement of the learned.
        unseen = relevant @ complement(relevant.T @ learned)
        cost, inside = _next_step(tensor, learned, unseen)
        new = tidy(unseen @ inside)
        steps.append((new, cost))
        learned = np.concatenate([learned, new], axis=1)
    return Leap(max((cost for _, cost in steps), default=math.inf), steps)


def _next_step(tensor: HermiteTensor, learned: np.ndarray, unseen: np.ndarray) -> tuple[float, np.ndarray]:
    """The lowest order of a tensor in the unseen directions, and its range (columns); infinite if there is none."""
    known = learned.shape[1]
    turned = change_coordinates(tensor.coefficients, np.concatenate([learned, unseen], axis=1).T, tensor.degree)
    for order in range(1, tensor.degree + 1):
        terms = {k: c for k, c in turned.items() if sum(k[known:]) == order}
        floor = tensor.floor * math.sqrt(math.factorial(order))
        left, size, _ = np.linalg.svd(_unfolding(terms, known, order), full_matrices=False)
        if size[0] > floor:
            return order, left[:, size > max(floor, 1e-6 * size[0])]
    return math.inf, np.eye(unseen.shape[1])


def _unfolding(terms: dict[tuple[int, ...], float], known: int, order: int) -> np.ndarray:
    """The tensors of one order, for all weights in the known coordinates, as a matrix with a row for each direction.

    The entry of E[g h_a He_k] with b_i indices equal to i is c_ab sqrt(b!); after one index i, the other k - 1 can be
    put in (k - 1)!/(b - e_i)! orders.
    """
    size = len(next(iter(terms))) - known
    columns: dict[tuple[int, ...], int] = {}
    entries = []
    for k, c in terms.items():
        b = k[known:]
        for i in range(size):
            if b[i]:
                rest = (*k[: known + i], b[i] - 1, *b[i + 1 :])
                entries.append(
                    (i, columns.setdefault(rest, len(columns)), c * math.sqrt(b[i] * math.factorial(order - 1)))
                )
    matrix = np.zeros((size, len(columns)))
    for row, column, value in entries:
        matrix[row, column] = value
    return matrix


def one_pass_samples(exponent: float) -> str:
    """The samples that one pass of SGD needs for a leap l: d (l = 1), d log d (l = 2), d^(l-1) (l > 2)."""
    if exponent <= 2:
        return "d" if exponent <= 1 else "d log d"
    return _power(exponent - 1)


def best_correlational_samples(exponent: float) -> str:
    """The samples that the best correlational learner needs for a leap l: d^max(1, l/2)."""
    return _power(max(1.0, exponent / 2))


def _power(exponent: float) -> str:
    if math.isinf(exponent):
        return "unknown"
    return "d" if exponent == 1 else f"d^{exponent:g}"
