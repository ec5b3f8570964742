r"""Kernel ridge regression of labels: by the features of the kernel where there are fewer of them than samples.

$\sum_q (x\cdot x')^q/q!$ is the inner product of the monomials $x^\alpha/\sqrt{\alpha!}$ of degree 1 to Q, of which
there are $\binom{d+Q}{Q} - 1$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvable.core.memory import check_memory
from solvable.engine.kernel import Kernel
from solvable.numerics.batches import in_blocks
from solvable.numerics.ridge import by_kernel, on_features, trained_samples


class KernelFit(NamedTuple):
    """What was fitted: a function of inputs, its gradient at x = 0, and the penalty."""

    predict: Callable[[np.ndarray], np.ndarray]
    gradient: np.ndarray
    penalty: float


def fit_kernel(learner: Kernel, X: np.ndarray, y: np.ndarray) -> KernelFit:
    """Fit labels y (n) of inputs X (n x d)."""
    n, d = X.shape
    mean = float(y.mean())
    if n < 2:
        return KernelFit(lambda inputs: np.full(len(inputs), mean), np.zeros(d), math.nan)
    trained = trained_samples(n, float(learner.validation))
    penalty = None if learner.penalty is None else float(learner.penalty)
    count = feature_count(d, learner.degree)
    if count <= n:
        check_memory(16.0 * count * (n + count), f"{count} features of {n} samples", "degree", learner.degree)
        degree = int(learner.degree)
        w, penalty = on_features(monomials(X, degree), y - mean, penalty, trained)
        predict = in_blocks(lambda inputs: mean + monomials(inputs, degree) @ w)
        return KernelFit(predict, w[:d], penalty)
    check_memory(24.0 * n**2, f"a kernel matrix of {n} samples", "degree", learner.degree)
    c, penalty = by_kernel(kernel_values(learner.degree, X @ X.T), y - mean, penalty, trained)
    predict = in_blocks(lambda inputs: mean + kernel_values(learner.degree, inputs @ X.T) @ c)
    return KernelFit(predict, X.T @ c, penalty)


def kernel_values(degree: float, inner: np.ndarray) -> np.ndarray:
    """k of an array of inner products."""
    if math.isinf(degree):
        return np.expm1(inner)
    values = np.zeros_like(inner)
    for q in range(int(degree), 0, -1):  # Horner's scheme for t (1 + t/2 (1 + t/3 (...)))
        values = (1.0 + values) * inner
        values /= q
    return values


def feature_count(d: int, degree: float) -> float:
    """How many monomials of degree 1 to Q there are in d variables."""
    return math.inf if math.isinf(degree) else math.comb(d + int(degree), int(degree)) - 1


def monomials(X: np.ndarray, degree: int) -> np.ndarray:
    r"""$x^\alpha/\sqrt{\alpha!}$ for $1 \le |\alpha| \le Q$, one row an input (n x d).

    Those of degree q are x_i times those of degree q - 1 whose first variable is i or a later one; x_i^k brings the
    factor $1/\sqrt{k}$ with its k-th power.
    """
    n, d = X.shape
    found = [X]
    first, powers = np.arange(d), np.ones(d)
    for _ in range(1, degree):
        below, parts, firsts, counts = found[-1], [], [], []
        for i in range(d):
            later = first >= i
            count = np.where(first[later] == i, powers[later] + 1, 1.0)
            parts.append(below[:, later] * X[:, i : i + 1] / np.sqrt(count))
            firsts.append(np.full(len(count), i))
            counts.append(count)
        found.append(np.concatenate(parts, axis=1))
        first, powers = np.concatenate(firsts), np.concatenate(counts)
    return np.concatenate(found, axis=1)
