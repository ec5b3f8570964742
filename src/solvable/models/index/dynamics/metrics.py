r"""What a network knows of the target, from its overlaps: theory and runs are scored by the same numbers.

With $M_{ik} = w_i\cdot w^*_k$ and $Q_{ij} = w_i\cdot w_j$, orthonormal $w^*_k$, the part of the target's directions in
the span of the neurons is

    R = M^T Q^+ M,     share_k = R_kk,     squared_overlap = Tr R / r,     cosine = its root,     norm^2 = Tr Q / p,

$Q^+$ the pseudo-inverse; for one neuron and one direction the cosine $m/\sqrt q$ keeps its sign. On a fresh input
the fields h and the projections z are exactly Gaussian of covariance [[Q, M], [M^T, I]], whatever made the weights, so
that `generalization_error` = $E (f(h) - g(z))^2$ needs no fresh inputs. For one neuron it is
an integral whose panels end on every kink, for committees of one erf or square it is closed, and otherwise it is an
average over scrambled Sobol points.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import jax
import numpy as np

from solvable.engine.cosines import cosines
from solvable.engine.dynamics.committees import CommitteeRule, committee_rules, label_error
from solvable.engine.dynamics.moves import Move, Rates
from solvable.engine.dynamics.neuron import label_errors, neuron_rules
from solvable.engine.dynamics.student import Student
from solvable.numerics.sobol import normal_points
from solvable.targets.target import Target

if TYPE_CHECKING:
    from solvable.models.index.multi_index import MultiIndex

_SINGULAR = 1e-12
"""Directions of the span with less than this share of the largest eigenvalue of Q are none."""
_SETS, _POWER = 8, 13
"""Independent scramblings of 2^13 Sobol points each."""
_WIDE = 1.4
"""Points are spread wider in z by this factor, and weighted: the square of a polynomial label lives in the tails."""
_OF_RULES = 3.0
"""Times what a coarser rule changes, which may have nearly as many nodes."""
_SAFETY = 4.0
"""Standard errors of the mean of eight that the uncertainty is: beyond it lies one in two hundred."""


def metrics_of(model: MultiIndex, student: Student, M: np.ndarray, Q: np.ndarray) -> dict[str, np.ndarray]:
    """Every metric of networks with overlaps M (k, p, r) and Q (k, p, p), each an array of k numbers."""
    if student.width == model.projections == 1 and model.hides_sign():
        M = np.abs(M)  # labels that do not tell the sign of w* leave it open
    return _shares(M, Q) | {"generalization_error": _label_errors(model.target, student, M, Q)[:, 0]}


def uncertainty_of(
    model: MultiIndex,
    student: Student,
    M: np.ndarray,
    Q: np.ndarray,
    others: Iterable[tuple[np.ndarray, np.ndarray]] = (),
) -> dict[str, np.ndarray]:
    """That of `metrics_of`: of its integrals, and the largest change if the overlaps are one of the `others` instead.

    `others` are pairs (M, Q) as good as the given one, such as those of a coarser solution.
    """
    found = metrics_of(model, student, M, Q)
    error = {name: 1e-14 * np.maximum(1.0, np.abs(value)) for name, value in found.items()}
    error["generalization_error"] = _label_errors(model.target, student, M, Q)[:, 1]
    change = {name: np.zeros(len(M)) for name in found}
    for other in others:
        for name, value in metrics_of(model, student, *other).items():
            change[name] = np.maximum(change[name], np.abs(value - found[name]))
    return {name: error[name] + change[name] for name in found}


def _shares(M: np.ndarray, Q: np.ndarray) -> dict[str, np.ndarray]:
    p, r = M.shape[1:]
    norm = {"norm": np.sqrt(np.trace(Q, axis1=1, axis2=2) / p)}
    if p == r == 1:
        return cosines(M[:, 0, 0], Q[:, 0, 0], 1.0) | norm
    R = np.swapaxes(M, 1, 2) @ np.linalg.pinv(Q, rcond=_SINGULAR, hermitian=True) @ M
    shares = np.diagonal(R, axis1=1, axis2=2)
    squared = np.maximum(shares.mean(axis=1), 0.0)
    found = {"cosine": np.sqrt(squared), "squared_overlap": squared}
    return found | {f"share_{k + 1}": shares[:, k] for k in range(r) if r > 1} | norm


def _label_errors(target: Target, student: Student, M: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """E (f - g)^2 and how far it may be off, (k, 2)."""
    if student.width == 1 and _committee(target, student) is None:
        return _of_one_neuron(target, student, M, Q)
    pairs = zip(np.asarray(M, float), np.asarray(Q, float), strict=True)
    rows = [_label_error(target, student, m.tobytes(), q.tobytes()) for m, q in pairs]
    return np.array(rows).reshape(len(M), 2)


@functools.lru_cache(maxsize=4096)
def _label_error(target: Target, student: Student, M_bytes: bytes, Q_bytes: bytes) -> tuple[float, float]:
    """That of one network; asked for twice, by the metrics and by their uncertainty, and computed once."""
    p, r = student.width, target.projections
    M, Q = np.frombuffer(M_bytes).reshape(p, r), np.frombuffer(Q_bytes).reshape(p, p)
    if not (np.all(np.isfinite(M)) and np.all(np.isfinite(Q))):
        return np.nan, np.nan
    closed = _committee(target, student)
    if closed is not None:
        value = float(label_error(student, closed, M, Q))
        return max(value, 0.0), 1e-13 * max(1.0, abs(value))
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite label makes the error infinite, and it says so
        return _by_points(target, student, M, Q)


@functools.lru_cache(maxsize=64)
def _committee(target: Target, student: Student) -> CommitteeRule | None:
    """The closed averages of student and target, if they are committees of the same erf or square."""
    rules = committee_rules(target, 0.0, Move(student))
    return None if rules is None else rules[0]


def _of_one_neuron(target: Target, student: Student, M: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """By a rule whose panels end on every kink, and a coarser one that shows its error."""
    finite = np.isfinite(M).all((1, 2)) & np.isfinite(Q).all((1, 2))
    found = np.full((len(M), 2), np.nan)
    if finite.any():
        with jax.enable_x64(True):
            rules = neuron_rules(target, 0.0, Move(student), Rates(0.0))
        fine, coarse = label_errors(student, rules, M[finite], Q[finite])
        found[finite] = np.stack([fine, _OF_RULES * np.abs(fine - coarse) + 1e-13 * np.maximum(1.0, fine)], axis=1)
    return found


def _by_points(target: Target, student: Student, M: np.ndarray, Q: np.ndarray) -> tuple[float, float]:
    """Several neurons or directions: the mean over Sobol points, and the scatter of the independent sets of them."""
    p, r = M.shape
    left, vectors = np.linalg.eigh(Q - M @ M.T)
    spread = vectors * np.sqrt(np.maximum(left, 0.0))
    means = []
    for number in range(_SETS):
        x = normal_points(r + p, _POWER, number)
        z = _WIDE * x[:, :r]
        weight = _WIDE**r * np.exp(-(_WIDE**2 - 1) / 2 * np.sum(x[:, :r] ** 2, axis=1))
        f = _value(student, z @ M.T + x[:, r:] @ spread.T) @ np.array(student.second_layer)
        means.append(np.mean(weight * (f - target.numpy(z)) ** 2))
    error = _SAFETY * np.std(means, ddof=1) / np.sqrt(_SETS)
    return float(np.mean(means)), float(error) + 1e-13


def _value(student: Student, h: np.ndarray) -> np.ndarray:
    return student.activation.numpy(h[..., None])
