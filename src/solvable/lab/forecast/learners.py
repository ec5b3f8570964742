"""The learners whose curves are forecast, beside `RandomFeatures`: what they are made from, and their kernels.

Inputs are standardised, and a constant is fitted freely beside, as scikit-learn's `Ridge` and a centred `KernelRidge`
do; the penalty is theirs as well, that of a sum of squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from solvable.core.checks import real_number
from solvable.core.errors import bad_parameter
from solvable.core.model import Learner

BEST = "best"


class LinearRidge(Learner):
    r"""Ridge regression on the inputs, $\sum_i (y_i - b - w \cdot x_i)^2 + \lambda |w|^2$.

    `penalty` is $\lambda$, or `"best"` for the one with the lowest error at each number of samples.
    """

    penalty: float | str = BEST

    def __check_init__(self):
        _check_penalty(self.penalty)


class KernelRidge(Learner):
    r"""Kernel ridge regression, $\sum_i (y_i - b - f(x_i))^2 + \lambda |f|^2$ with the norm of the kernel's space.

    - `kernel`: with s = `scale` and d columns `"rbf"`, $e^{-|x - x'|^2/(2 s^2 d)}$; `"laplace"`,
      $e^{-|x - x'|/(s \sqrt d)}$; `"relu"`, that of a wide layer of rectified neurons,
      $2 E_w[(w\cdot x)_+ (w\cdot x')_+]$ with $w \sim N(0, I/d)$; `"linear"`, $x \cdot x'$; or a function of two
      arrays of inputs.
    - `penalty`: $\lambda$, or `"best"` for the one with the lowest error at each number of samples.
    - `p`: the number of random features that stand for the kernel; infinite for the kernel itself.
    """

    kernel: str | Callable = eqx.field(default="rbf", static=True)
    penalty: float | str = BEST
    scale: float = 1.0
    p: float = math.inf

    def __check_init__(self):
        if not callable(self.kernel) and self.kernel not in KERNELS:
            raise bad_parameter("kernel", self.kernel, f"one of {', '.join(KERNELS)}, or a function of two arrays")
        _check_penalty(self.penalty)
        real_number("scale", self.scale, "a finite number above 0", lambda x: x > 0)
        if not (isinstance(self.p, float) and self.p == math.inf):
            real_number("p", self.p, "a number of at least 1, or infinite", lambda x: x >= 1)

    def matrix(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """The kernel between the rows of two arrays."""
        if callable(self.kernel):
            return np.asarray(self.kernel(X, Y), dtype=float)
        return KERNELS[self.kernel](X, Y, float(self.scale))

    def draw(self, rng: np.random.Generator, d: int) -> Callable[[np.ndarray], np.ndarray] | None:
        """p random features of the kernel, over the root of p, as a function of inputs; None where none are known."""
        if callable(self.kernel):
            return None
        p, scale = round(self.p), float(self.scale) * math.sqrt(d)
        W = rng.standard_normal((d, p))
        if self.kernel == "linear":
            return lambda X: X @ W / math.sqrt(p)
        if self.kernel == "relu":
            return lambda X: np.maximum(X @ W, 0.0) * math.sqrt(2 / (d * p))
        if self.kernel == "laplace":  # whose frequencies have a Cauchy law
            W = W / np.abs(rng.standard_normal(p))
        phases = rng.uniform(0, 2 * math.pi, p)
        return lambda X: np.cos(X @ W / scale + phases) * math.sqrt(2 / p)


def _check_penalty(penalty: Any) -> None:
    if not (isinstance(penalty, str) and penalty == BEST):
        real_number("penalty", penalty, "a finite number above 0, or 'best'", lambda x: x > 0)


def _squared_distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    products = -2.0 * (X @ Y.T)
    products += np.sum(X**2, axis=1)[:, None]
    products += np.sum(Y**2, axis=1)
    return np.maximum(products, 0.0, out=products)


def _rbf(X: np.ndarray, Y: np.ndarray, scale: float) -> np.ndarray:
    return np.exp(-_squared_distances(X, Y) / (2 * scale**2 * X.shape[1]))


def _laplace(X: np.ndarray, Y: np.ndarray, scale: float) -> np.ndarray:
    return np.exp(-np.sqrt(_squared_distances(X, Y) / X.shape[1]) / scale)


def _relu(X: np.ndarray, Y: np.ndarray, scale: float) -> np.ndarray:
    """|x| |x'| (sin t + (pi - t) cos t) / (pi d), t the angle between the inputs [cho2009kernel]."""
    sizes = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    cosine = np.clip(X @ Y.T / np.where(sizes > 0, sizes, 1.0), -1.0, 1.0)
    return sizes * (np.sqrt(1 - cosine**2) + (np.pi - np.arccos(cosine)) * cosine) / (np.pi * X.shape[1])


KERNELS: dict[str, Callable[[np.ndarray, np.ndarray, float], np.ndarray]] = {
    "linear": lambda X, Y, scale: X @ Y.T,
    "rbf": _rbf,
    "laplace": _laplace,
    "relu": _relu,
}
