r"""Gradient descent on batches of n = alpha d samples, a fresh one at every step: what it does to the overlaps.

On a batch that the weights have not seen fields h and projections z are Gaussian, v = (h, z) with the covariance
Sigma = [[Q, M], [M^T, I]]. In the limit of large d $w_i \leftarrow A w_i + (\eta/d) \sum_\mu F_i x_\mu$, with
A = 1 - eta lambda, gives

    M <- A M + eta alpha E[F z^T]
    Q <- A^2 Q + A eta alpha (E[F h^T] + E[h F^T]) + eta^2 alpha E[F F^T] + (eta alpha)^2 G,
    G  = E[F v^T] Sigma^+ E[v F^T].

The third term of Q is every sample with itself, $|x|^2 = d$. The last is every pair of samples: the square of the mean
gradient $E[F_i x]$, which by Stein's identity lies in the span of neurons and directions, its coefficients
$E[F v^T] \Sigma^{+}$. Averages are integrals over the plane for one neuron and one direction, else over Sobol points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.engine.dynamics.dmft import SETS, Course, compiled_force
from solvable.engine.dynamics.labels import Labels
from solvable.engine.dynamics.plane import NODES, plane_rule
from solvable.engine.dynamics.samples import sobol_samples

_POWER = 14


class Moments(NamedTuple):
    """E[F h^T] (p, p), E[F z^T] (p, r) and E[F F^T] (p, p), the noise of labels included."""

    Fh: np.ndarray
    Fz: np.ndarray
    FF: np.ndarray


def descend_fresh(
    labels: Labels, alpha: float, rate: float, steps: int, M: np.ndarray, Q: np.ndarray
) -> tuple[Course, Course]:
    """The overlaps from M (p, r) and Q (p, p), and a rougher course to hold them against."""
    if labels.width == labels.directions == 1:
        ways = [[_on_plane(labels, nodes)] for nodes in (NODES, NODES - 4)]
    else:
        ways = [[_on_points(labels, power, number) for number in range(start, start + SETS)]
                for power, start in ((_POWER, 0), (_POWER - 2, SETS))]  # fmt: skip
    first, second = (_course(way, alpha, rate, labels.decay_rate, steps, M, Q) for way in ways)
    return first, second


Averages = Callable[[np.ndarray, np.ndarray], Moments]


def _course(
    way: list[Averages], alpha: float, rate: float, decay: float, steps: int, M: np.ndarray, Q: np.ndarray
) -> Course:
    overlaps, selfs = np.empty((len(way), steps + 1, *M.shape)), np.empty((len(way), steps + 1, *Q.shape))
    overlaps[:, 0], selfs[:, 0] = M, Q
    with np.errstate(over="ignore", invalid="ignore"):  # descent that runs away is not finite, and says so
        for k, moments in enumerate(way):
            for t in range(steps):
                now = overlaps[k, t], selfs[k, t]
                overlaps[k, t + 1], selfs[k, t + 1] = fresh_step(moments(*now), alpha, rate, 1 - rate * decay, *now)
    return Course(overlaps, selfs, True, 1.0)


def fresh_step(
    found: Moments, alpha: float, rate: float, A: float, M: np.ndarray, Q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """M and Q after one step."""
    p, r = M.shape
    both = np.concatenate([found.Fh, found.Fz], axis=1)
    if not (np.all(np.isfinite(both)) and np.all(np.isfinite(Q))):
        return np.full((p, r), np.nan), np.full((p, p), np.nan)
    covariance = np.block([[Q, M], [M.T, np.eye(r)]])
    G = both @ np.linalg.pinv(covariance, rcond=1e-12, hermitian=True) @ both.T
    step = rate * alpha
    after = A**2 * Q + A * step * (found.Fh + found.Fh.T) + rate * step * found.FF + step**2 * G
    return A * M + step * found.Fz, (after + after.T) / 2


def _on_plane(labels: Labels, nodes: int) -> Averages:
    target, student = labels.target, labels.student

    def moments(M: np.ndarray, Q: np.ndarray) -> Moments:
        m, q = float(M[0, 0]), float(Q[0, 0])
        if not (np.isfinite(m) and np.isfinite(q)):
            return Moments(*(np.full((1, 1), np.nan) for _ in range(3)))
        z, h, weight = plane_rule(m, q, target, student.activation, nodes)
        value, slope = student.activation.value_and_slope(h)
        a, y = student.second_layer[0], target.numpy(z[:, None])[:, None]
        F = a * (y - a * value if student.square else y) * slope
        parts = (F * h, F * z[:, None], F**2 + labels.noise * (a * slope) ** 2)
        return Moments(*(np.full((1, 1), np.sum(weight * part)) for part in parts))

    return moments


def _on_points(labels: Labels, power: int, number: int) -> Averages:
    p, r = labels.width, labels.directions
    z, extra, e, weight = sobol_samples(r, labels.extra, p, power, number)
    y = labels.context(z, extra)
    force = compiled_force(labels, False)

    def moments(M: np.ndarray, Q: np.ndarray) -> Moments:
        if not (np.all(np.isfinite(M)) and np.all(np.isfinite(Q))):
            return Moments(np.full((p, p), np.nan), np.full((p, r), np.nan), np.full((p, p), np.nan))
        left, vectors = np.linalg.eigh(Q - M @ M.T)
        h = M @ z + (vectors * np.sqrt(np.maximum(left, 0.0))) @ e
        F = force(h, y)[0]
        return Moments(*((weight * F) @ other.T for other in (h, z, F)))

    return moments
