r"""The metrics of posterior means of several directions of sequences, in theory and of a run.

A fresh sample enters through $z_t = x_t\cdot W^*$ and $\omega_t = x_t\cdot\hat W$ of its tokens. With z and z' two
draws given $\omega$ the error of the posterior mean of a label y(z) is half of $E|y(z) - y(z')|^2$.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from solvable.core.results import Prediction
from solvable.engine.cosines import cosine_error, cosines, cosines_of
from solvable.engine.solvers.base import FixedPoints, plain
from solvable.numerics.errors import error_of_mean
from solvable.numerics.sobol import normal_points

Labels = Callable[[np.ndarray], np.ndarray]
"""Labels (n, ..) of projections (n, T, r), equal for equal models, with no noise."""
_POWER, _SCRAMBLINGS = 11, 16
_FRESH, _NODES = 11, 7
_NUMBERS, _MOST, _LEAST_POWER = 2**22, 2**23, 3
"""Of all labels that are held at once, and of those of a scrambling, which still has some samples."""


def prediction(labels: Labels, tokens: int, points: FixedPoints) -> Prediction:
    """Every metric at fixed points, with the numerical error of the overlaps carried over."""
    M, V, error = points.overlap, points.variance, points.uncertainty
    r = M.shape[-1]
    q = np.trace(M, axis1=1, axis2=2) / r
    metrics: dict[str, Any] = _overlaps(M)
    metrics |= {**cosines(q, q, 1.0), "estimation_error": np.trace(V, axis1=1, axis2=2)}
    errors = np.broadcast_to(error[:, None, None], M.shape) if points.errors is None else points.errors
    each = np.minimum(np.diagonal(errors, axis1=1, axis2=2), 1.0)
    uncertainty = _overlaps(errors) | {
        "cosine": cosine_error(q, each.mean(axis=1)),
        "squared_overlap": each.mean(axis=1),
        "estimation_error": each.sum(axis=1),
    }
    found = np.array([label_errors(labels, tokens, v) for v in V]).reshape(-1, 4)
    shifted = (V + each[:, :, None] * np.eye(r)).reshape(V.shape)
    moved = np.array([label_errors(labels, tokens, v) for v in shifted]).reshape(-1, 4)
    for place, name in ((0, "generalization_error"), (2, "plug_in_error")):
        metrics[name] = found[:, place]
        uncertainty[name] = found[:, place + 1] + np.abs(moved - found)[:, place]
    return points.prediction(metrics, uncertainty)


def label_errors(labels: Labels, tokens: int, V: np.ndarray) -> tuple[float, float, float, float]:
    """The squared errors of the posterior mean of a fresh label, and of the label of omega, each with its error."""
    return _label_errors(labels, tokens, len(V), tuple(V.ravel().tolist()))


@functools.lru_cache(maxsize=512)
def _label_errors(labels: Labels, tokens: int, r: int, entries: tuple[float, ...]) -> tuple[float, float, float, float]:
    V = np.array(entries).reshape(r, r)
    v, u = np.linalg.eigh(V)
    known, left = ((u * np.sqrt(np.clip(part, 0.0, 1.0))) @ u.T for part in (1 - v, v))
    # Many tokens are an average by themselves.
    power = min(_POWER, max(_LEAST_POWER, int(np.log2(_MOST / tokens**2))))
    means = []
    for number in range(_SCRAMBLINGS):
        x = normal_points(3 * tokens * r, power, number).reshape(-1, 3, tokens, r)
        Omega = x[:, 0] @ known
        both = Omega + x[:, 1] @ left, Omega + x[:, 2] @ left
        sums = np.zeros(2)
        for rows in _blocks(len(x), tokens):
            one, other, plug = (labels(z[rows]) for z in (*both, Omega))
            sums += _squares(one - other) / 2, (_squares(one - plug) + _squares(other - plug)) / 2
        means.append(sums / len(x))
    value, error = np.mean(means, axis=0), error_of_mean(np.array(means))
    return float(value[0]), float(error[0]), float(value[1]), float(error[1])


def _squares(difference: np.ndarray) -> float:
    return float(np.sum(difference**2))


def _blocks(count: int, tokens: int) -> Iterator[slice]:
    """Rows of which labels are held at once: they are T x T matrices."""
    size = max(1, _NUMBERS // tokens**2)
    return (slice(start, start + size) for start in range(0, count, size))


def scores(
    labels: Labels, tokens: int, estimate: np.ndarray, truth: np.ndarray, rng: np.random.Generator
) -> dict[str, Any]:
    r"""The metrics of an aligned estimate (d x r); labels are predicted at $V = I - \hat W^T\hat W/d$."""
    d, r = truth.shape
    M, Q, S = (a.T @ b / d for a, b in ((truth, estimate), (estimate, estimate), (truth, truth)))
    metrics: dict[str, Any] = {name: value[0] for name, value in _overlaps(M[None]).items()}
    metrics |= cosines_of(estimate, truth)
    metrics["estimation_error"] = float(np.sum((estimate - truth) ** 2) / d)
    z = rng.standard_normal((2**_FRESH, tokens, r)) @ np.linalg.cholesky(S).T
    mean = np.linalg.solve(S, M)
    Omega = z @ mean + rng.standard_normal(z.shape) @ _root(Q - M.T @ mean)
    left = _root(np.eye(r) - Q)
    nodes = normal_points(tokens * r, _NODES).reshape(-1, tokens, r) @ left
    posterior = plug_in = 0.0
    for rows in _blocks(len(z), tokens):
        label = labels(z[rows])
        predicted = sum(labels(Omega[rows] + node) for node in nodes) / len(nodes)
        posterior += _squares(label - predicted)
        plug_in += _squares(label - labels(Omega[rows]))
    return metrics | {"generalization_error": posterior / len(z), "plug_in_error": plug_in / len(z)}


def _root(S: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh((S + S.T) / 2)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


def _overlaps(M: np.ndarray) -> dict[str, np.ndarray]:
    """`overlap`, the matrices M (k, r, r), and their diagonals; the numbers (k,) where r = 1."""
    r = M.shape[-1]
    return {"overlap": plain(M)} | {f"overlap_{i + 1}": M[:, i, i] for i in range(r) if r > 1}
